"""In a sandbox, a system call of ours that is refused does no harm."""

import os
import re
import sys
from pathlib import Path

import pytest
from endpoint import Process
from profiled import AWAITED, BUILD, FORKS, ROOT
from waiting import TIMEOUT_S, eventually

sys.path.insert(0, str(ROOT / "test" / "faults"))

import faults  # noqa: E402

pytestmark = pytest.mark.system

SANDBOX = BUILD / "test/faults/sandbox.so"
NUMBERS = dict(re.findall(r"#define __NR_(\w+) (\d+)", Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").read_text()))


@pytest.fixture(scope="module")
def bench():
    made = faults.Bench()
    yield made
    made.close()


@pytest.fixture(scope="module")
def needed(bench):
    """Returns the system calls that the program makes without the profiler, by number."""
    bench.start_over()
    result = faults.run([faults.INJECT, "all", bench.report, "/usr/bin/env", *faults.victim()], {})
    assert result.status == 7
    return [line.split()[0] for line in bench.report_lines()]


def run_in_sandbox(bench, needed, preload, **environment):
    bench.start_over()
    return faults.run(faults.victim(), {
        **bench.settings(), "LD_PRELOAD": " ".join(str(library) for library in preload),
        "SANDBOX_ALLOW": ",".join(needed), **environment,
    })


def test_the_program_fits_into_its_sandbox(bench, needed):
    seen = run_in_sandbox(bench, needed, [SANDBOX], SANDBOX_ACTION="kill")
    assert not faults.differences(seen, faults.without_us())


def preloads(order):
    """Returns the order of the preloads: constructors run from the last one on."""
    return [faults.LIBRARY, SANDBOX] if order == "before us" else [SANDBOX, faults.LIBRARY]


# every pair of an order, of the threads that are behind the filter, and of what it does
@pytest.mark.parametrize("order, threads", [("before us", "all"), ("after us", "one")])
def test_calls_that_the_program_does_not_make_kill(bench, needed, order, threads):
    seen = run_in_sandbox(bench, needed, preloads(order), SANDBOX_ACTION="kill", SANDBOX_THREADS=threads)
    assert not faults.differences(seen, faults.without_us()), bench.log_text()
    assert not bench.invalid()


@pytest.mark.parametrize("order, threads", [("before us", "one"), ("after us", "all")])
def test_calls_that_the_program_does_not_make_are_refused(bench, needed, order, threads):
    preload = preloads(order)
    seen = run_in_sandbox(bench, needed, preload, SANDBOX_ACTION="errno", SANDBOX_THREADS=threads)
    assert not faults.differences(seen, faults.without_us()), bench.log_text()
    assert not bench.invalid()


def test_a_child_that_puts_itself_into_a_sandbox_lives(run, program):
    """The child works and ends as without the profiler; the parent is profiled as before."""
    outcome = run([program("sandboxed_child"), "400"])
    assert (outcome.stdout, outcome.returncode) == ("child 500\n", 7), outcome.stderr
    assert [instance.executable for instance in outcome.instances()] == ["sandboxed_child"]
    assert outcome.instance("sandboxed_child").cpu_of("works") > 0.2e9


def test_a_filter_that_the_kernel_refuses_has_no_effect(run, program):
    """A child that was forked after the refusal has a helper of its own, and reports what it did."""
    outcome = run([program("refused_filter"), "400"], env={"OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert outcome.returncode == 7, outcome.stderr
    assert sum(instance.cpu_of("works") > 0.2e9 for instance in outcome.instances()) == 1


# Every end in a sandbox of the thread alone, without the helper, whichever call makes the sandbox. Where all threads
# are in a sandbox there is no helper any more, except in a mild one, which lets it work on.
LOCKED_UP = [
    ("prctl", "exit"), ("seccomp", "_exit"), ("prctl", "return"), ("seccomp", "fork"), ("prctl", "thread"),
    ("seccomp", "signal"), ("prctl", "ignore"),
    ("all", "exit"), ("all", "_exit"), ("all", "fork"), ("all", "thread"),
    ("mild", "return"), ("mild", "fork"), ("mild", "signal"),
]


@pytest.mark.parametrize("way, end", LOCKED_UP)
def test_a_program_whose_filter_kills_calls_that_it_does_not_make(run, program, way, end):
    """The profiler makes no call in its sandbox unless that is allowed; what it recorded before is reported."""
    outcome = run([program("locks_itself_up"), way, end], env={
        "OTEL_PROFILER_CPU_FREQUENCY": "1000", "OTEL_PROFILE_EXPORT_INTERVAL": "100",
        "OTEL_PROFILER_ALLOC_INTERVAL": "4096",
    })
    assert (outcome.stdout, outcome.returncode) == ("worked\n", -15 if end == "signal" else 7), outcome.stderr
    instance = outcome.instance("locks_itself_up")
    assert instance.cpu_of("works_before") > 0.2e9
    if way == "mild":
        assert instance.cpu_of("works_after") > 0.2e9
    else:
        assert instance.cpu_of("works_after") == 0


def asked_behind_a_filter(start, program, folder, way, call):
    """Returns whether the process responded; a filter that kills for `call` came while it did. The process lives."""
    go, stop, process = folder / "go", folder / "stop", Process(folder / "socket")
    running = start([program("refuses_a_call"), way, "kill", NUMBERS[call], go, stop],
                    env={"OTEL_PROFILER_LISTEN": f"unix:{folder}/socket", "OTEL_PROFILE_EXPORT_INTERVAL": "200"})
    process.until_it_answers()
    go.touch()
    eventually(lambda: os.pread(running.out.fileno(), 2, 0) == b"in", "the sandbox", unless=running.process.poll)
    try:
        answered = process.until_it_answers().status == 200 if call == "creat" else process.ask("/status").status == 200
    except OSError:
        answered = False
    stop.touch()
    assert running.finish(TIMEOUT_S).returncode == 7
    return answered


@pytest.mark.parametrize("call", ["sendmsg", "socket"])
def test_a_request_to_a_sandboxed_process_does_not_end_it(start, program, tmp_path, call):
    """The server ends before the filter comes, if the filter would kill for one of its calls. test_seccomp_filter.c
    has all of these calls."""
    assert not asked_behind_a_filter(start, program, tmp_path, "all", call)


@pytest.mark.parametrize("way", ["one", "all"])
def test_a_sandbox_that_lets_it_answer_is_no_end(start, program, tmp_path, way):
    assert asked_behind_a_filter(start, program, tmp_path, way, "creat")
    for used in ("go", "stop"):
        (tmp_path / used).unlink()
    assert not asked_behind_a_filter(start, program, tmp_path, way, "accept4")


@pytest.mark.parametrize("way", ["one", "all"])
@pytest.mark.parametrize("call", ["rt_sigaction", "socket", "prctl", "timer_create", "epoll_create1"])
def test_a_filter_that_kills_for_a_call_of_our_start_ends_no_program_that_installs_it(start, program, tmp_path, way, call):
    asked_behind_a_filter(start, program, tmp_path, way, call)


@pytest.mark.parametrize("interval", ["1", "4096"])
def test_no_thread_is_at_a_sample_in_a_sandbox_that_kills_for_it(run, program, tmp_path, interval):
    """Other threads allocate while one puts all of them into the sandbox."""
    for _ in range(4):
        outcome = run([program("locks_up_beside_malloc")], cwd=tmp_path, env={
            **AWAITED, "OTEL_PROFILER_ALLOC_INTERVAL": interval, "OTEL_PROFILER_MAX_OVERHEAD": "none",
            "OTEL_PROFILER_CPU_FREQUENCY": "1000"})
        assert outcome.returncode == 7, outcome.stderr
        assert outcome.instance("locks_up_beside_malloc").cpu_total() > 0


@pytest.mark.parametrize("end, lifetime", [("exit", "0"), ("_exit", "60000"), ("return", "60000"), ("ignore", "0")])
def test_a_child_makes_no_call_that_its_own_sandbox_kills_for(run, program, end, lifetime):
    """The child has a helper of its own, or none: then it does not know whether other threads are in the sandbox."""
    done = run([program("locks_itself_up"), "prctl", end, "child"], env={"OTEL_PROFILER_MIN_LIFETIME": lifetime})
    assert (done.stdout, done.returncode) == ("worked\n", 7), done.stderr


def test_a_child_in_a_container_makes_no_call_that_its_own_sandbox_kills_for(run, program):
    """The kernel tells of two filters what it tells of one: that there is one more is known by the call that installs it."""
    container = ",".join(NUMBERS.values())
    done = run([program("in_filter"), container, program("child_forbids_threads")], env={"OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert (done.stdout, done.returncode) == ("child 7\n", 0), done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root may chroot")
@pytest.mark.parametrize("cpu_seconds", ["0.1", "1.5"])
def test_a_root_without_files(run, tmp_path, cpu_seconds):
    """The program enters it at once after the start; a process that lives long enough is profiled all the same."""
    code = (
        "import os, sys, time\n"
        f"os.chroot({str(tmp_path)!r})\n"
        "os.chdir('/')\n"
        "while time.process_time() < float(sys.argv[1]): sum(range(1000))"
    )
    command = ["/usr/bin/python3", "-S", "-c", code, cpu_seconds]
    lifetime_ms = "60000" if cpu_seconds == "0.1" else "1000"  # a busy machine takes longer
    done = run(command, env={"OTEL_PROFILER_MIN_LIFETIME": lifetime_ms}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    if cpu_seconds == "0.1":
        assert not done.requests
    else:
        assert done.instance("python3").cpu_total() > 0.7e9


@pytest.mark.skipif(os.getuid() != 0, reason="only root may chroot")
@pytest.mark.parametrize("waits", ["0", "0.6"])
def test_a_forked_child_in_a_root_without_files(run, tmp_path, waits):
    """Daemons do so: the child has no helper yet."""
    code = (
        f"{FORKS}import sys, time\n"
        "child = os.fork()\n"
        "if child:\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "time.sleep(float(sys.argv[1]))\n"
        f"os.chroot({str(tmp_path)!r})\n"
        "os.chdir('/')\n"
        "while time.process_time() < 1.2: [bytearray(5000) for _ in range(1000)]"
    )
    done = run(["/usr/bin/python3", "-S", "-c", code, waits],
               env={"OTEL_PROFILER_MIN_LIFETIME": "300"}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.instance("python3").cpu_total() > 0.7e9


def test_a_bare_child_that_puts_itself_into_a_sandbox_lives(run, program):
    """The child is not profiled behind the filter, as before."""
    outcome = run([program("bare_child_in_sandbox")])
    assert (outcome.stdout, outcome.returncode) == ("7\n", 0), outcome.stderr


@pytest.mark.parametrize(("how", "status", "lifetime"), [
    ("exit", 7, "0"), ("exit_in_sandbox", 7, "0"), ("killed", -31, "0"), ("strict_exit", 7, "0"), ("strict_killed", -9, "0"),
    ("exit", 7, "60000"), ("killed", -31, "60000"),
])
def test_a_process_ends_with_its_main_thread(run, program, how, status, lifetime):
    """This holds though our thread is there still; and what the program did is reported."""
    outcome = run([program("ends_alone"), how], env={"OTEL_PROFILER_MIN_LIFETIME": lifetime}, timeout=120)
    assert (outcome.stdout, outcome.returncode) == ("", status), outcome.stderr
    if lifetime == "0":
        assert outcome.instance("ends_alone").cpu_of("works_first") > 0.2e9


@pytest.mark.parametrize("how, other", [("exit", "thread"), ("killed", "returns")])
def test_other_threads_go_on_without_the_main_thread(run, program, how, other):
    """The status is that of the last thread, or of the main thread, as the kernel has it."""
    plain = run([program("ends_alone"), how, other], profiled=False, timeout=120)
    outcome = run([program("ends_alone"), how, other], timeout=120)
    assert (outcome.stdout, outcome.returncode) == ("went on\n", plain.returncode), outcome.stderr
    assert outcome.instance("ends_alone").cpu_of("works_on") > 0.2e9


@pytest.mark.parametrize("level", ["info", "debug"])
def test_a_program_in_a_sandbox_without_threads_is_not_disturbed(run, program, level):
    outcome = run([program("forbids_threads"), "/usr/bin/python3", "-c", "print(6 * 7)"], log_to_stderr=True,
                  env={"OTEL_LOG_LEVEL": level})
    assert (outcome.stdout, outcome.returncode) == ("42\n", 0), outcome.stderr
    assert ("no helper thread could be created" in outcome.stderr) == (level == "debug")


@pytest.mark.parametrize("lifetime", ["0", "10000"])
def test_a_process_ends_with_a_last_thread_in_a_sandbox(run, program, lifetime):
    """The last thread is the program's, not the helper's, which would keep the process alive for good."""
    outcome = run([program("ends_last_in_sandbox")], timeout=120, env={"OTEL_PROFILER_MIN_LIFETIME": lifetime})
    assert (outcome.returncode, outcome.stdout) == (0, "in a sandbox\n"), outcome.stderr
