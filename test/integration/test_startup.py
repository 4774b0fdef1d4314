"""A program that lives for a short time sees only one small library of the profiler."""

import os
import re
import subprocess
import time

import pytest
from profiled import EXACT_CPU, START_NS
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.fast


OFTEN = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "50"}
# Each export then has the live heap: an export may lack CPU time, or a sampled object.
ON_CONSOLE = {"OTEL_PROFILES_EXPORTER": "otlp,console", "OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_TYPES": "heap"}
EXPORTS = 4


def run_while_exports_come(start, folder, command, env=None, **options):
    """Returns the outcome of a program that works until the file `stop` exists: some exports long."""
    running = start(command, cwd=folder, env={**OFTEN, **(env or {})}, **options)
    eventually(lambda: len(running.receiver.requests), "exports", unless=running.process.poll, holds=lambda count: count >= EXPORTS)
    (folder / "stop").touch()
    return running.finish(TIMEOUT_S)


def mapped(text):
    return set(re.findall(r"(/\S+\.so[^\s]*)", text))


def test_true_maps_nothing_else(run, library):
    """The loader itself reports what /bin/true maps: what it needs anyway, and libotelprof.so."""
    plain = run(["/bin/true"], profiled=False, env={"LD_DEBUG": "files"})
    profiled = run(["/bin/true"], env={"LD_DEBUG": "files"})
    init = lambda outcome: set(re.findall(r"calling init: (\S+)", outcome.stderr))
    assert len(init(plain)) >= 1
    assert init(profiled) - init(plain) == {str(library)}
    assert "otelprof-flush" not in profiled.stderr


def test_short_cat_of_its_own_maps(run, library):
    plain = run(["/bin/cat", "/proc/self/maps"], profiled=False)
    profiled = run(["/bin/cat", "/proc/self/maps"])
    assert mapped(profiled.stdout) - mapped(plain.stdout) == {str(library)}


def test_needs_libc_alone(library):
    text = subprocess.run(["readelf", "-dW", library], capture_output=True, check=True).stdout.decode()
    assert re.findall(r"NEEDED.*\[(.*)\]", text) == ["libc.so.6"]


def test_no_descriptor_stays_open(start, tmp_path):
    """Before, during and after exports the program has the descriptors that it has without the profiler."""
    code = (
        "import os\n"
        "def census(): return sorted(os.readlink(f'/proc/self/fd/{f}') for f in"
        " os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{f}'))\n"
        "before = census()\n"
        "while not os.path.exists('stop'): sum(range(1000))\n"
        "print([name for name in census() if name not in before and 'socket' not in name])\n"
    )
    profiled = run_while_exports_come(start, tmp_path, ["/usr/bin/python3", "-c", code])
    assert profiled.stdout == "[]\n"


def test_no_number_is_taken(start, program, tmp_path):
    """After close(0), open() gives the program the number that it left free, whatever the helper opens."""
    profiled = run_while_exports_come(start, tmp_path, [program("lowest_number"), "stop"], {"OTEL_PROFILER_SYMBOLS": "lines"})
    assert profiled.stdout == "0\n"


WORKS = "sum(range(1000000))\n"
CLOSES_ALL = (
    "import os, time\n"
    "while not os.path.exists('stop'): os.closerange(3, 1000); sum(range(1000))\n"
    "print(time.thread_time_ns())\n"
)


def test_a_program_that_closes_every_descriptor(start, tmp_path):
    """A program that closes all descriptors, over and over, ends no export."""
    profiled = run_while_exports_come(start, tmp_path, ["/usr/bin/python3", "-c", CLOSES_ALL], EXACT_CPU)
    assert profiled.instance("python3").cpu_total() == pytest.approx(int(profiled.stdout), abs=START_NS)


def test_the_helper_still_writes_to_stderr(start, tmp_path):
    """That descriptor alone is the program's; the helper borrows it for each line."""
    replaced = "import os; os.write(2, b'replaced'); os.dup2(os.open('/dev/null', os.O_WRONLY), 2)\n" + CLOSES_ALL
    said = []
    for code in (CLOSES_ALL, replaced):
        said.append(run_while_exports_come(start, tmp_path, ["/usr/bin/python3", "-c", code], ON_CONSOLE).stderr)
        (tmp_path / "stop").unlink()
    assert said[0].count("live heap:") >= EXPORTS
    assert said[1].split("replaced")[1].count("live heap:") <= 1, "one may have borrowed it before"


PIDFD_GETFD = "438"  # x86-64; the default seccomp profiles of container runtimes refuse it


@pytest.mark.parametrize("stderr", ["2>&1 >/dev/null | cat", "2>>err", "2>err"])
def test_stderr_in_a_container(start, program, tmp_path, stderr):
    """stderr cannot be borrowed there, but a pipe is opened again, and a file is kept: nothing is overwritten."""
    code = (
        "import os\n"
        "for i in range(3):\n"
        "    while not os.path.exists(f'go{i}'): sum(range(1000))\n"
        "    os.write(2, b'a line of the program, %d\\n' % i)\n"
    )
    command = [program("without_call"), PIDFD_GETFD, "/usr/bin/python3", "-c", code]
    env = {**ON_CONSOLE, **OFTEN, "OTEL_PROFILER_EXCLUDE": "sh,dash,cat,without_call"}
    running = start(["sh", "-c", f'exec "$@" {stderr}', "sh", *command], env=env, cwd=tmp_path)
    for i in range(3):
        eventually(lambda: len(running.receiver.requests), "an export", unless=running.process.poll, holds=lambda count: count > i)
        (tmp_path / f"go{i}").touch()
    profiled = running.finish(TIMEOUT_S)
    text = profiled.stdout if "|" in stderr else (tmp_path / "err").read_text()
    assert text.count("live heap:") >= 3, text
    lines = [line for line in text.splitlines() if line.startswith("a line")]
    assert lines == [f"a line of the program, {i}" for i in range(3)]


def test_standard_output_in_a_container(run, program):
    env = {"OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_FILE": "-", **EXACT_CPU}
    command = [program("without_call"), PIDFD_GETFD, program("burn"), "40", "4"]
    profiled = run(["sh", "-c", '"$@" | cat', "sh", *command], env=env)
    assert "burns_cpu" in profiled.stdout and "burnt\n" in profiled.stdout


def test_a_closed_pipe_is_closed(start, tmp_path):
    """The helper keeps no descriptor open: the closing of the last writer ends the reader's wait."""
    code = (
        "import os\n"
        "read, write = os.pipe()\n"
        "while not os.path.exists('stop'): sum(range(1000))\n"
        "os.close(write)\n"
        "print(os.read(read, 1))\n"
    )
    assert run_while_exports_come(start, tmp_path, ["/usr/bin/python3", "-c", code]).stdout == "b''\n"


@pytest.mark.parametrize("milliseconds", range(110, 500, 30))
def test_exit_while_libraries_load(run, program, library, milliseconds):
    """main may end at any moment of the helper's start. Exit handlers of the libraries that the helper is just
    initialising run then. The helper is slowed down, so that such moments occur."""
    slow = program("slow_helper.so")
    outcome = run(
        [program("burn"), str(milliseconds), "1"],
        env={
            "LD_PRELOAD": f"{library} {slow}",
            # freed memory is unmapped or overwritten: its use is a crash
            "MALLOC_PERTURB_": "165",
            "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=64",
        },
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)


@pytest.mark.parametrize("lifetime, sent", [("60000", False), ("0", True)])
def test_a_short_process_loads_and_sends_nothing(run, program, lifetime, sent):
    outcome = run(
        [program("burn"), "60", "1"], env={"OTEL_PROFILER_MIN_LIFETIME": lifetime, "LD_DEBUG": "files"}
    )
    assert ("libotelprof-flush.so" in outcome.stderr) == sent
    assert bool(outcome.requests) == sent


def test_short_is_less_than_a_second_by_default(run, program):
    """A second of wall time: on a busy machine the program may take that long, and is started again."""
    for _ in range(20):
        start = time.monotonic()
        outcome = run([program("burn"), "1", "1"], env={"OTEL_PROFILER_MIN_LIFETIME": "", "LD_DEBUG": "files"})
        if time.monotonic() - start < 1:
            assert "libotelprof-flush.so" not in outcome.stderr and not outcome.requests
            break


def test_a_process_of_more_than_a_second_is_sent(run, program):
    outcome = run([program("burn"), "1300", "1"], env={"OTEL_PROFILER_MIN_LIFETIME": ""})
    assert outcome.instance("burn").cpu_total() > 0


@pytest.mark.system
@pytest.mark.parametrize("how", ["user", "cancelled", "number"] + [
    pytest.param(kind, marks=pytest.mark.skipif(os.getuid() != 0, reason=f"only root may enter a {kind} namespace"))
    for kind in ("mount", "time")])
def test_a_namespace_is_entered_alone(run, program, enterable, how):
    """The helper, which has loaded nothing yet, ends before the call, and another helper profiles afterwards."""
    enterable(how)
    outcome = run([program("enters_namespace"), "350", how], env={**EXACT_CPU, "OTEL_PROFILER_MIN_LIFETIME": "300"})
    assert outcome.stdout == "alone\n"
    assert outcome.instance("enters_namespace").cpu_of("burns_in_namespace") == pytest.approx(350e6, abs=START_NS)


@pytest.mark.parametrize("setting", [{}, {"OTEL_PROFILER_EXCLUDE": "*"}, {"OTEL_PROFILER_ALLOC_INTERVAL": "none"}])
def test_errno_is_zero_where_main_begins(run, program, setting):
    assert run([program("errno_at_start")], env=setting).returncode == 0


def test_the_helper_is_withdrawn_by_one_thread_at_a_time(run, program):
    outcome = run([program("unshares_beside"), "60"], timeout=120,
                  env={"OTEL_PROFILER_MIN_LIFETIME": "10000"})
    assert (outcome.returncode, outcome.stdout) == (0, "60\n"), outcome.stderr


def test_a_helper_that_begins_late_is_waited_for_until_it_is_gone(run, program, library, tmp_path):
    """The kernel counts a thread a little longer than libc does. The program waits for its id to disappear, which no
    thread knows before the helper has begun."""
    trace = tmp_path / "trace"
    env = {"LD_PRELOAD": f"{library}:{program('late_threads.so')}", "OTEL_PROFILER_EXCLUDE": "none",
           "OTEL_PROFILER_MIN_LIFETIME": "10000"}
    run(["strace", "-f", "-qq", "-e", "trace=tgkill", "-o", trace, *(f"-E{name}={value}" for name, value in env.items()),
         program("unshares_once")], profiled=False)
    looks = re.findall(r"tgkill\(\d+, (\d+), 0", trace.read_text())
    assert looks and "0" not in looks, trace.read_text()


def test_a_withdrawn_helper_does_not_come_back_into_an_exit(run, program, library):
    outcome = run([program("exits_beside_unshare")],
                  env={"LD_PRELOAD": f"{library}:{program('slow_unshare.so')}",
                       "OTEL_PROFILER_MIN_LIFETIME": "10000"})
    assert (outcome.returncode, outcome.stdout) == (0, "2 threads\n"), outcome.stderr


def test_an_exit_hears_that_there_is_no_helper(run, program, library):
    """exit waits for a helper that another thread is about to start, and cannot."""
    outcome = run([program("exits_without_helper")], timeout=60, log_to_stderr=True,
                  env={"LD_PRELOAD": f"{library}:{program('no_second_helper.so')}",
                       "OTEL_PROFILER_MIN_LIFETIME": "1000", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "600000",
                       "OTEL_LOG_LEVEL": "debug"})
    assert (outcome.returncode, outcome.stdout) == (0, "ends\n"), outcome.stderr
    assert "no helper thread could be created" in outcome.stderr


AWAY = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_PROFILER_MIN_LIFETIME": "0"}


def test_the_log_is_where_the_program_was_started(run, tmp_path):
    """The program may change its directory, and rely on what it finds there."""
    (tmp_path / "elsewhere").mkdir()
    code = f"import os\nos.chdir('elsewhere')\n{WORKS}print(os.listdir('.'))"
    outcome = run(["/usr/bin/python3", "-c", code], cwd=tmp_path, env={**AWAY, "OTEL_PROFILER_LOG_FILE": "log"})
    assert outcome.stdout == "[]\n"
    assert "profiles cannot be sent" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("kind", ["link", "folder", "in no folder"])
def test_a_log_file_that_is_none(run, tmp_path, kind):
    """Lines for such a file go to stderr."""
    log = tmp_path / "log"
    if kind == "link":
        log.symlink_to(tmp_path / "target")
    elif kind == "folder":
        log.mkdir()
    else:
        log = log / "log"
    outcome = run(["/usr/bin/python3", "-c", WORKS], env={**AWAY, "OTEL_PROFILER_LOG_FILE": str(log)})
    first, second = outcome.stderr.splitlines()
    assert f"OTEL_PROFILER_LOG_FILE: {log} " in first and first.endswith("; using stderr")
    assert "profiles cannot be sent" in second
    assert not (tmp_path / "target").exists()
