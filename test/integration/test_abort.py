"""abort() where the heap's peak is profiled: the last export is made, and all else is as without the profiler."""

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess

import pytest
from crash_root import ABORTED, CrashRoot
from host_root import root_of
from processes import cpu_seconds
from profiled import LIBRARY
from waiting import eventually

pytestmark = pytest.mark.fast

PEAK_BYTES = 2000 * 3000  # bytes that aborts.c holds
PEAK = {
    "OTEL_PROFILER_TYPES": "cpu,heap,heap_peak", "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_ALLOC_INTERVAL": "1",
    "OTEL_PROFILE_EXPORT_INTERVAL": "86400000",
}
LEAST_STACK = 2 * ctypes.CDLL(None).getauxval(51) + 4096  # two frames of the kernel's size, AT_MINSIGSTKSZ
NO_CORE = {resource.RLIMIT_CORE: (0, 0)}


@pytest.fixture
def aborts(run, program):
    """aborts("thread", ...) -> the outcome of a program that ends that way; other arguments as for run()."""

    def run_through(*way, **options):
        settings = {**PEAK, **options.pop("env", {})}
        return run([program("aborts"), *map(str, way)], env=settings, timeout=120, limits=NO_CORE, **options)

    return run_through


def has_peak(outcome):
    return any(it.value_of("hold_much", "peak_space") == PEAK_BYTES for it in outcome.instances())


@pytest.mark.parametrize("way", [
    ["abort"], ["raise"], ["kill"], ["thread"], ["threads", 1], ["threads", 8], ["set_back"], ["asked"], ["corrupted"],
    ["handler", LEAST_STACK],
], ids=lambda way: "-".join(map(str, way[:2])))
def test_the_peak_is_exported_and_the_process_ends_by_the_same_signal(aborts, way):
    plain = aborts(*way, profiled=False)
    outcome = aborts(*way)
    assert (outcome.returncode, outcome.stdout) == (plain.returncode, plain.stdout) == (ABORTED, plain.stdout)
    assert has_peak(outcome), outcome.stderr


def test_the_program_sees_the_default_action(aborts):
    assert aborts("asked").stdout == "default 1, flags 0\n"


def test_libc_has_found_a_corrupted_heap(aborts):
    """The program's allocator is locked: the helper has a heap of its own."""
    assert re.search(r"malloc\(\): |corrupted|invalid", aborts("corrupted").stderr)


def test_a_program_that_handles_it_is_let(aborts):
    outcome = aborts("own_handler")
    assert (outcome.returncode, outcome.stdout) == (4, "handled 6\n")
    assert has_peak(outcome), "by its _exit"


def test_a_program_that_ignores_it_goes_on(aborts):
    """When the ignored signal is over, libc ends the process by an action that it sets itself."""
    outcome = aborts("ignored")
    assert (outcome.returncode, outcome.stdout) == (ABORTED, "went on\n")


@pytest.mark.parametrize("types", ["cpu,heap,heap_peak", "heap,heap_peak"], ids=["cpu", "heap"])
@pytest.mark.parametrize("size", [0, LEAST_STACK - 1], ids=["least", "too-small"])
def test_a_small_alternate_stack_has_as_much_room_as_without_us(aborts, size, types):
    """The kernel ends a process by SIGSEGV where an alternate stack has no room for a handler's frame. With CPU
    samples our handler has a stack of its own."""
    assert aborts("handler", size, profiled=False).returncode == ABORTED
    outcome = aborts("handler", size, env={"OTEL_PROFILER_TYPES": types})
    assert outcome.returncode == ABORTED, outcome.stderr
    assert has_peak(outcome) == ("cpu" in types)


def test_an_exit_beside_it_does_not_change_how_the_process_ends(aborts):
    """The export takes longer than the exit of the other thread."""
    for _ in range(5):
        outcome = aborts("beside_exit")
        assert outcome.returncode == ABORTED
        assert has_peak(outcome)


@pytest.mark.parametrize("way", ["child", "vfork"])
def test_children_end_as_without_us(aborts, way):
    outcome = aborts(way)
    assert (outcome.returncode, outcome.stdout) == (0, "child: signal 6, core 0\n")
    peaks = [it.value_of("hold_much", "peak_space") for it in outcome.instances()]
    assert peaks == [PEAK_BYTES] * (2 if way == "child" else 1)


def test_without_the_word_nothing_changes(aborts):
    outcome = aborts("abort", env={"OTEL_PROFILER_TYPES": "cpu,alloc,heap"})
    assert outcome.returncode == ABORTED
    assert outcome.instances() == []


def test_a_receiver_that_is_away_is_not_waited_for(aborts):
    outcome = aborts("abort", env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert outcome.returncode == ABORTED


def test_a_receiver_that_never_answers_holds_up_no_end(aborts, tmp_path):
    """The receiver accepts the connection, and does no more."""
    code = (
        "import socket, sys\n"
        "listener = socket.create_server(('127.0.0.1', 0), backlog=64)\n"
        "print(listener.getsockname()[1], flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as silent:
        port = int(silent.stdout.readline())
        outcome = aborts("threads", 2, env={
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "500"})
        silent.stdin.close()
    assert outcome.returncode == ABORTED


@pytest.mark.system
def test_a_signal_from_outside_is_one_too(start, program):
    """systemd's watchdog sends SIGABRT from outside."""
    running = start([program("burn"), "60000", "4"], env=PEAK, limits=NO_CORE)
    eventually(lambda: cpu_seconds(running.process.pid), "0.7 s of CPU", unless=running.process.poll, holds=lambda used: used >= 0.7)
    running.process.send_signal(signal.SIGABRT)
    outcome = running.finish(300)
    assert outcome.returncode == ABORTED
    assert outcome.instance("burn").cpu_of("burns_cpu") > 0.5e9


def test_a_program_without_memory_reports_the_largest_holders(run, program):
    """The program ends by std::terminate, of a std::bad_alloc that no code catches."""
    limits = {**NO_CORE, resource.RLIMIT_AS: (2 << 30, 2 << 30)}
    environment = {**PEAK, "OTEL_PROFILER_ALLOC_INTERVAL": "65536"}
    outcome = run([program("runs_out_of_memory")], env=environment, limits=limits, timeout=120)
    assert outcome.returncode == ABORTED, outcome.stderr
    assert "std::bad_alloc" in outcome.stderr
    assert outcome.instance("runs_out_of_memory").value_of("fill_cache", "peak_space") > 1 << 30


@pytest.mark.system
@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
def test_a_core_file_shows_the_programs_frames(program, tmp_path):
    """The default action meets the thread where abort() has raised the signal, so the core file shows its frames."""
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        if file.read().strip() != "core":
            pytest.skip("cores go elsewhere here")
    environment = {**os.environ, **PEAK, "LD_PRELOAD": str(LIBRARY), "OTEL_PROFILES_EXPORTER": "otlp_file",
                   "OTEL_PROFILER_FILE": str(tmp_path / "profile")}
    done = subprocess.run(
        [program("aborts"), "thread"], cwd=tmp_path, env=environment, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
    assert done.returncode == ABORTED
    (core,) = tmp_path.glob("core*")
    told = subprocess.run(["gdb", "-batch", "-nx", "-ex", "bt", program("aborts"), core], capture_output=True, text=True, check=True)
    frames = re.findall(r"^#\d+ .*?\b(?:__GI_)?(raise|abort|gives_up|abort_in_thread|on_signal) \(", told.stdout, re.M)
    assert (tmp_path / "profile").stat().st_size > 0
    assert frames == ["raise", "abort", "gives_up", "abort_in_thread"], told.stdout


@pytest.mark.system
def test_a_process_that_aborts_has_not_settled():
    """The crash guard counts an abort as a failed start, also where nothing is exported (test_crash_guard.py)."""
    code = ("import os\n"
            "def helps(thread): return open(f'/proc/self/task/{thread}/comm').read().startswith('otelprof')\n"
            "while not any(map(helps, os.listdir('/proc/self/task'))): pass\n"
            "os.abort()\n")
    with root_of(CrashRoot) as root:
        root.configure("OTEL_PROFILER_INCLUDE=python3*", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9",
                       *(f"{name}={value}" for name, value in PEAK.items()))
        for _ in range(3):
            assert root.python(code).returncode == ABORTED
        assert "did not get through its first 30 s in 3 starts" in root.python("pass").stderr
