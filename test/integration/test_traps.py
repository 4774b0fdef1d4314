"""Programs that broke under other profilers run unharmed: those that no other test has. test/TRAPS.md has the whole
list."""

import datetime
import re
import resource
import subprocess
import time

import allocators
import pytest
from profiled import BUILD, EXACT_CPU, LIBRARY, ROOT, START_NS, attributes_of


@pytest.mark.system
@pytest.mark.parametrize("order", ["before us", "after us"])
@pytest.mark.parametrize("allocator", ["jemalloc", "tcmalloc"])
def test_libraries_come_and_go_beside_another_allocator(run, allocator, order):
    other, own = allocators.PATHS[allocator], str(LIBRARY)
    preload = f"{other}:{own}" if order == "before us" else f"{own}:{other}"
    outcome = run(
        [BUILD / "test/torture/dlopen_storm", "1.5"],
        env={"LD_PRELOAD": preload, "OTEL_PROFILER_CPU_FREQUENCY": "4000",
             "OTEL_PROFILER_ALLOC_INTERVAL": "4096"},
        timeout=60,
    )
    assert outcome.returncode == 0 and outcome.stdout.endswith("ok\n"), outcome.stdout
    assert outcome.instance("dlopen_storm").cpu_total() > 0


SANITIZERS = ["-fsanitize=address", "-fsanitize=address -static-libasan", "-fsanitize=thread",
              "-fsanitize=thread -static-libtsan", "-fsanitize=leak"]


def compiled(tmp_path, flags):
    program = tmp_path / "burn"
    subprocess.run(
        ["gcc", "-O1", *flags.split(), "-o", program, ROOT / "test/programs/burn.c"], check=True
    )
    return program


@pytest.mark.parametrize("flags", SANITIZERS)
def test_sanitized_programs_are_left_alone(run, tmp_path, flags):
    # GCC's shared libasan refuses every preload unless ASAN_OPTIONS turns the check off
    outcome = run(
        [compiled(tmp_path, flags), "40", "4"],
        env={"ASAN_OPTIONS": "verify_asan_link_order=0", "OTEL_LOG_LEVEL": "debug"}, log_to_stderr=True,
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7), outcome.stderr
    assert "built with a sanitizer" in outcome.stderr
    assert outcome.instances() == []


def test_reserved_low_memory_is_no_sanitizer(run):
    low_memory = BUILD / "test/programs/low_memory.so"
    outcome = run([BUILD / "test/programs/burn", "40", "4"], env={**EXACT_CPU, "LD_PRELOAD": f"{LIBRARY}:{low_memory}"})
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7), outcome.stderr
    assert outcome.instance("burn").cpu_of("burns_cpu") == pytest.approx(40e6, abs=START_NS)


def test_ubsan_works_beside_us(run, tmp_path):
    outcome = run([compiled(tmp_path, "-fsanitize=undefined"), "40", "4"], env=EXACT_CPU)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert outcome.instance("burn").cpu_of("burns_cpu") == pytest.approx(40e6, abs=START_NS)


def test_a_large_process_forks_at_the_highest_rate(run):
    """Copying the address space takes longer than the timer's period."""
    code = (
        "import mmap, os, time\n"
        "memory = mmap.mmap(-1, 1 << 30)\n"
        "for at in range(0, 1 << 30, 4096): memory[at] = 1\n"
        "for _ in range(10):\n"
        "    child = os.fork()\n"
        "    if child == 0: os._exit(5)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5\n"
        "print('forked')\n"
    )
    outcome = run(
        ["/usr/bin/python3", "-c", code], env={"OTEL_PROFILER_CPU_FREQUENCY": "4000"}, timeout=120
    )
    assert (outcome.stdout, outcome.returncode) == ("forked\n", 0)


def test_some_threads_get_no_timer(run, program):
    """RLIMIT_SIGPENDING bounds the timers; one more samples the rest of the process."""
    outcome = run(
        [program("cpu_shares"), "12", "1"],
        env={"OTEL_LOG_LEVEL": "debug"},
        limits={resource.RLIMIT_SIGPENDING: (10, 10)},
        log_to_stderr=True,
    )
    assert outcome.returncode == 0
    assert "one timer of the whole process samples them" in outcome.stderr
    assert outcome.instance("cpu_shares").cpu_total() > 1e9


def test_loaded_by_dlopen_we_decline(run):
    code = (
        "import ctypes, _ctypes\n"
        "for mode in (ctypes.RTLD_GLOBAL, ctypes.RTLD_LOCAL):\n"
        f"    library = ctypes.CDLL('{LIBRARY}', mode)\n"
        "    print(bool(library.otelprof_version))\n"
        "    _ctypes.dlclose(library._handle)\n"
        "sum(range(1000000))\n"
    )
    outcome = run(["/usr/bin/python3", "-c", code], env={"LD_PRELOAD": ""}, log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("True\nTrue\n", 0)
    assert "loaded by dlopen" in outcome.stderr
    assert outcome.instances() == []


def test_an_allocator_before_us_creates_a_thread_under_its_lock(run, program):
    """The thread waits for the loader: our helper must not be inside the loader and wait for the allocator."""
    preload = f"{program('thread_in_malloc.so')}:{LIBRARY}"
    outcome = run([program("burn"), "50", "0"], env={"LD_PRELOAD": preload, "OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert outcome.instance("burn").cpu_total() > 0


def test_an_allocator_before_us_creates_a_thread_in_its_constructor(run, program):
    """Here the allocator was idle when our helper began: the helper enters the loader when main begins, not before."""
    preload = f"{program('thread_in_constructor.so')}:{LIBRARY}"
    outcome = run([program("burn"), "50", "0"], env={"LD_PRELOAD": preload, "OTEL_PROFILER_MIN_LIFETIME": "0"}, timeout=120)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert outcome.instance("burn").cpu_total() > 0


@pytest.mark.parametrize("way", ["works", "sleeps"])
def test_the_exporter_of_a_program_that_never_leaves_a_constructor_is_loaded(run, program, way):
    """The helper waits for main, but not for ever: the program ends when it sees the exporter."""
    outcome = run([program("never_in_main"), way], env={"OTEL_PROFILER_MIN_LIFETIME": "0"}, timeout=150)
    assert (outcome.stdout, outcome.returncode) == ("loaded\n", 0)


@pytest.mark.system
def test_valgrind_finds_nothing_in_us(run, program):
    # `burn` will not do: it opens a file for each sample. Valgrind names what the helper maps by the descriptor's number in
    # the main thread's table, and warns of that file.
    outcome = run(["valgrind", "-q", "--error-exitcode=9", program("allocates_much"), "20", "2"], timeout=120)
    assert outcome.returncode == 7 and '"objects": 200' in outcome.stdout, outcome.stderr
    assert "==" not in outcome.stderr, outcome.stderr


@pytest.mark.parametrize("ours_first", (True, False))
def test_beside_a_preload_that_makes_calls_by_their_functions(run, library, ours_first):
    """The preload's syscall() calls our mmap: that must not call syscall() in turn, nor may prctl."""
    order = [library, BUILD / "test/programs/routes_calls.so"]
    code = (
        "import ctypes, mmap\n"
        "memory = mmap.mmap(-1, 1 << 20); memory.resize(1 << 21); memory.close()\n"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))\n"
        "sum(range(1000000))\n"
    )
    outcome = run(
        ["/usr/bin/python3", "-c", code],
        env={**EXACT_CPU, "LD_PRELOAD": ":".join(str(part) for part in (order if ours_first else order[::-1]))},
    )
    assert (outcome.stdout, outcome.returncode) == ("1\n", 0), outcome.stderr
    assert outcome.instance("python3").cpu_total() > 0


VALGRIND_TOOLS = {
    "memcheck": "--leak-check=full --show-leak-kinds=all --error-exitcode=9",
    "helgrind": "--error-exitcode=9",
    "drd": "--error-exitcode=9",
    "massif": "--massif-out-file=counts",
    "callgrind": "--callgrind-out-file=counts",
}


@pytest.mark.system
@pytest.mark.parametrize("tool", VALGRIND_TOOLS)
def test_valgrind_prints_the_same_as_without_us(run, program, tool, tmp_path):
    """Valgrind reports nothing of our thread, our memory and our locks."""
    command = ["valgrind", f"--tool={tool}", "--log-file=said", *VALGRIND_TOOLS[tool].split(),
               program("short_threads"), "6", "500"]

    def said(outcome):
        lines = (tmp_path / "said").read_text().splitlines()
        told = re.compile(r"ERROR SUMMARY|bytes in .* blocks")
        return outcome.returncode, [
            line.split("== ")[1].split(" (suppressed")[0] for line in lines if told.search(line)
        ]

    plain = said(run(command, profiled=False, cwd=tmp_path, timeout=120))
    profiled = run(command, env={"OTEL_PROFILER_EXCLUDE": "default"}, cwd=tmp_path, timeout=120)
    assert said(profiled) == plain
    assert profiled.stderr == "" and profiled.instances() == []
    counts = tmp_path / "counts"
    assert not counts.exists() or "helper_start" not in counts.read_text()


@pytest.mark.parametrize("ours_first", (True, False))
def test_beside_a_preload_that_moves_the_clocks(run, program, library, ours_first):
    """The profiler reads the time from the kernel: sleeps and deadlines hold, and the profile has the true time."""
    order = [library, program("fake_clock.so")]
    outcome = run(
        [program("burn"), "40", "1"], timeout=120,
        env={**EXACT_CPU, "LD_PRELOAD": ":".join(order if ours_first else order[::-1])},
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert outcome.instance("burn").cpu_total() > 39e6
    scopes = (s for q in outcome.requests for r in q.resource_profiles for s in r.scope_profiles)
    times = {p.time_unix_nano for s in scopes for p in s.profiles}
    assert times and all(abs(t / 1e9 - time.time()) < 3600 for t in times)
    created = attributes_of(outcome.requests[0].resource_profiles[0].resource)["process.creation.time"]
    created = datetime.datetime.fromisoformat(created.replace("Z", "+00:00")).timestamp()
    assert abs(created - time.time()) < 3600


@pytest.mark.system
@pytest.mark.parametrize("profiled", [False, True])
@pytest.mark.parametrize("flags", [[], ["-static"]])
def test_a_program_of_another_c_library(run, tmp_path, profiled, flags):
    """Its loader, if it has one, must find all symbols that we refer to; then nothing happens."""
    built = tmp_path / "program"
    subprocess.run(["musl-gcc", *flags, "-o", built, ROOT / "test/musl/program.c"], check=True)
    outcome = run([built], profiled=profiled)
    assert (outcome.stdout, outcome.stderr) == ("15 3 0\nat the end\n", "")
    assert outcome.returncode == 5
    assert outcome.instances() == []
