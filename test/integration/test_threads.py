"""Threads start, wait and end in every way, profiled and unharmed."""

import re
import shutil
import signal

import pytest
from profiled import AWAITED, EXACT_CPU, HELPERS, LIBRARY, START_NS

pytestmark = pytest.mark.fast


def test_every_way_to_end(run, program):
    plain = run([program("thread_ends")], profiled=False)
    profiled = run([program("thread_ends")], env=EXACT_CPU)
    assert profiled.stdout == plain.stdout
    assert profiled.returncode == plain.returncode == 0
    measured = profiled.instance("thread_ends")
    for name in ("burn_then_return", "burn_then_exit", "burn_then_cancelled"):
        assert measured.cpu_of(name) == pytest.approx(40e6, abs=START_NS), name


@pytest.mark.parametrize("kind", ["idle", pytest.param("busy", marks=pytest.mark.timing)])
def test_no_call_is_interrupted(run, program, kind):
    """Eighteen calls that SA_RESTART does not cover run in threads that only wait and in threads that work between
    short waits: no EINTR, as without the profiler."""
    plain = run([program("no_eintr"), kind], profiled=False)
    profiled = run([program("no_eintr"), kind], env={"OTEL_PROFILER_CPU_FREQUENCY": "4000"})
    assert plain.stdout.count("waited, 0 interrupted") == len(plain.stdout.splitlines()) == 18
    seen, expected = profiled.stdout.splitlines(), plain.stdout.splitlines()
    assert seen[:-1] == expected[:-1]
    # the kernel's io_uring runs a timer's late work in the middle of its wait (docs/compatibility.md): of 2,500 waits
    # beside work a few may end early, of those of a thread that does nothing else none
    waited, interrupted = re.fullmatch(r"io_uring_enter: (.*), (\d+) interrupted", seen[-1]).groups()
    assert waited == "waited" and int(interrupted) <= (25 if kind == "busy" else 0)
    assert profiled.instance("no_eintr").cpu_of("burn") > 1e9, "while others were being sampled"


def test_helper_is_named_and_invisible(run, program):
    code = (
        "import os, time\n"
        "for _ in range(6000):\n"
        "    time.sleep(0.01)\n"
        "    names = sorted(open(f'/proc/self/task/{t}/comm').read().strip() for t in os.listdir('/proc/self/task'))\n"
        f"    if set(names) & set({HELPERS}): break\n"
        "print(names)\n"
        "[sum(range(1000)) for _ in range(30000)]"
    )
    profiled = run(["/usr/bin/python3", "-c", code])
    assert profiled.stdout.strip() in [str([name, "python3"]) for name in HELPERS]
    measured = profiled.instance("python3")
    assert not any("otelprof" in name for name in measured.threads())
    assert not any(name.startswith(("otelprof_flush", "curl_")) for name in measured.names())


def test_helper_blocks_all_signals(run):
    code = (
        "import os, time\n"
        "texts = []\n"
        "while not texts:\n"
        "    time.sleep(0.01)\n"
        "    texts = [open(f'/proc/self/task/{t}/status').read() for t in os.listdir('/proc/self/task')]\n"
        f"    texts = [text for text in texts if text.split('\\n')[0].removeprefix('Name:\\t') in {HELPERS}]\n"
        "print(texts[0].split('SigBlk:\\t')[1].split()[0])\n"
    )
    profiled = run(["/usr/bin/python3", "-c", code])
    blocked = int(profiled.stdout, 16)
    # all signals except SIGKILL, SIGSTOP and the two that glibc keeps for itself
    never = sum(1 << (number - 1) for number in (9, 19, 32, 33))
    assert blocked | never == (1 << 64) - 1


def test_a_process_ends_with_its_last_thread(run, program):
    """Our own thread must not keep the process alive."""
    plain = run([program("last_thread")], profiled=False, timeout=120)
    profiled = run([program("last_thread")], timeout=120, env=EXACT_CPU)
    assert (profiled.returncode, profiled.stdout) == (plain.returncode, plain.stdout)
    assert profiled.instance("last_thread").cpu_of("go_on") == pytest.approx(50e6, abs=START_NS)
    nobody = run(
        [program("last_thread")], timeout=120, env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_PROFILER_MIN_LIFETIME": "0"}
    )
    assert (nobody.returncode, nobody.stdout) == (plain.returncode, plain.stdout)


@pytest.mark.parametrize("lifetime", ["0", "1000"])
def test_a_main_thread_that_ends_last_ends_the_process(run, program, lifetime):
    """The main thread ends the process itself, not a thread of ours in its place, which has none of its objects and
    blocks every signal."""
    plain = run([program("main_ends_last")], profiled=False, timeout=120)
    assert plain.stdout == (
        "thread-local object destroyed by the main thread: 1\n"
        "exit handler on the main thread: 1, SIGUSR1 blocked: 0\n"
    )
    for _ in range(5):
        profiled = run(
            [program("main_ends_last")], timeout=120, env={"OTEL_PROFILER_MIN_LIFETIME": lifetime}
        )
        assert (profiled.returncode, profiled.stdout) == (plain.returncode, plain.stdout)


def test_a_process_ends_although_its_exporter_has_given_up(run, program, tmp_path):
    """The helper has nothing to do then, but must not keep the process alive either."""
    shutil.copy(LIBRARY, tmp_path)
    shutil.copy(program("no_exporter.so"), tmp_path / "libotelprof-flush.so")
    plain = run([program("last_thread")], profiled=False, timeout=120)
    preload = {"LD_PRELOAD": str(tmp_path / LIBRARY.name), "OTEL_PROFILER_MIN_LIFETIME": "0"}
    profiled = run([program("last_thread")], timeout=120, env=preload)
    assert (profiled.returncode, profiled.stdout) == (plain.returncode, plain.stdout)


def test_destructors_are_still_the_thread(run, program):
    """A thread_local's and a key's destructor run after the start routine has returned: their time and allocations
    count."""
    profiled = run([program("thread_kinds"), "destructors"], env={**EXACT_CPU, "OTEL_PROFILER_ALLOC_INTERVAL": "1"})
    assert (profiled.stdout, profiled.returncode) == ("done\n", 0)
    measured = profiled.instance("thread_kinds")
    for name in ("burn_in_local_destructor", "burn_in_key_destructor"):
        assert measured.cpu_of(name) == pytest.approx(30e6, abs=START_NS), name
    assert measured.value_of("allocate_in_destructor", "alloc_space") == 64 << 20


def test_a_thread_started_by_another_librarys_constructor(run, program):
    preload = f"{LIBRARY}:{program('early_thread.so')}"
    profiled = run([program("thread_kinds"), "early"], env={**EXACT_CPU, "LD_PRELOAD": preload})
    assert (profiled.stdout, profiled.returncode) == ("done\n", 0)
    assert profiled.instance("thread_kinds").cpu_of("burn_early") == pytest.approx(50e6, abs=START_NS)


def test_c11_threads(run, program):
    profiled = run([program("thread_kinds"), "c11"], env=EXACT_CPU)
    assert (profiled.stdout, profiled.returncode) == ("42\n-7\ndone\n", 0)
    measured = profiled.instance("thread_kinds")
    assert measured.cpu_of("burn_c11") == pytest.approx(60e6, abs=2 * START_NS)


def test_names_are_followed_as_they_change(run, program, tmp_path):
    profiled = run([program("thread_kinds"), "names"], cwd=tmp_path, env=EXACT_CPU | AWAITED)
    assert {"first name", "second name", "third name"} <= profiled.instance("thread_kinds").threads()


def test_ten_thousand_live_threads(run, program):
    plain = run([program("thread_kinds"), "crowd"], profiled=False, timeout=120)
    profiled = run(
        [program("thread_kinds"), "crowd"], timeout=120, env={"OTEL_PROFILER_CPU_FREQUENCY": "999"}
    )
    assert plain.returncode == profiled.returncode == 0
    measured = profiled.instance("thread_kinds")
    # sampled time and the remainders at the threads' ends: 10,000 times 0.2 ms at least
    used = int(profiled.stdout.splitlines()[0])
    work = measured.cpu_of("crowd_thread")
    assert 1.9e9 < work < used + 0.1e9, (work, used)


def test_exec_out_of_a_busy_process(run, program):
    """In thirty runs the program is neither killed by a timer's late signal, nor stopped by a blocked one."""
    profiled = run(
        [program("thread_kinds"), "exec", "30"], env={"OTEL_PROFILER_CPU_FREQUENCY": "4000"}
    )
    assert (profiled.stdout, profiled.returncode) == ("done\n", 0)


def test_ids_are_set_while_samples_are_taken(run, program):
    """libc has every thread set its ids, too, by a signal that sigfillset() leaves out. The handler's stack has no
    room for another frame; memory next to it is kept small here, so that an overflow shows."""
    outcome = run([program("sets_ids"), "2000"], timeout=60, log_to_stderr=True, env={
        "OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILER_CPU_FREQUENCY": "4000", "OTEL_PROFILER_MAX_STACK_DEPTH": "1",
    })
    assert (outcome.returncode, outcome.stderr) == (0, "")
    unblockable = 1 << (signal.SIGKILL - 1) | 1 << (signal.SIGSTOP - 1)
    assert int(outcome.stdout, 16) | unblockable == (1 << 64) - 1
    assert outcome.instance("sets_ids").cpu_total() > 0
