"""fork makes the child an instance of its own, with nothing of its parent's."""

import os
import json
import re
import shutil
import subprocess

import pytest
from profiled import AWAITED, EXACT_CPU, LIBRARY, ROOT, START_NS, WITHOUT_LAUNCHER, under_policy

pytestmark = pytest.mark.fast

# The helper's CPU time after its last reading of that time: a few milliseconds, and more on a busy machine.
ENCODES_AND_SENDS_NS = 100e6


@pytest.mark.parametrize("end", ["exit", "quick", "_exit", "number"])
def test_child_reports_as_itself(run, program, end):
    # at the default interval an object of 4 MiB is missed once in 3,000
    profiled = run([program("fork_child"), end], env={"OTEL_PROFILER_ALLOC_INTERVAL": "65536", **EXACT_CPU})
    truth = json.loads(profiled.stdout)
    assert truth["status"] == 3
    instances = {i.pid: i for i in profiled.instances()}
    assert set(instances) == {truth["parent"], truth["child"]}
    parent, child = instances[truth["parent"]], instances[truth["child"]]
    assert parent.instance_id != child.instance_id

    assert parent.cpu_of("parent_burns") == pytest.approx(50e6, abs=START_NS)
    assert parent.cpu_of("child_burns") == 0
    assert parent.value_of("parent_allocates", "alloc_space") == pytest.approx(160 << 20, rel=0.01)

    assert child.cpu_of("parent_burns") == 0
    assert child.cpu_of("child_burns") == pytest.approx(40e6, abs=START_NS)
    assert child.cpu_of("child_thread_burns") == pytest.approx(30e6, abs=START_NS)
    assert child.value_of("parent_allocates", "alloc_space") == 0
    assert child.value_of("parent_allocates", "inuse_space") == 0
    assert child.value_of("child_allocates", "alloc_space") == pytest.approx(160 << 20, rel=0.01)


def test_child_that_ends_unseen_loses_only_itself(run, program):
    """exec gives no time for a last export; the parent's report stays right."""
    profiled = run([program("fork_child"), "exec"], env=EXACT_CPU)
    truth = json.loads(profiled.stdout)
    assert truth["status"] == 3
    parent = {i.pid: i for i in profiled.instances()}[truth["parent"]]
    assert parent.cpu_of("parent_burns") == pytest.approx(50e6, abs=START_NS)
    for instance in profiled.instances():
        if instance.pid != truth["parent"]:
            assert instance.cpu_of("parent_burns") == 0


def test_children_killed_by_signals_keep_their_status(run):
    code = (
        "import os, signal\n"
        "for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT,"
        " signal.SIGPROF, signal.SIGUSR1):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        os.kill(os.getpid(), number)\n"
        "        os._exit(0)\n"
        "    print(int(number), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    profiled = run(["sh", "-c", 'ulimit -c 0; exec "$0" "$@"', "/usr/bin/python3", "-c", code])
    for line in profiled.stdout.splitlines():
        number, status = (int(word) for word in line.split())
        assert status == -number
    assert len(profiled.stdout.splitlines()) == 6


def test_fork_in_a_threaded_program(run):
    """Children of a program whose other threads allocate and burn all the time end as they should."""
    code = (
        "import os, threading\n"
        "stop = False\n"
        "def churn():\n"
        "    while not stop:\n"
        "        [bytearray(5000) for _ in range(50)]\n"
        "threads = [threading.Thread(target=churn) for _ in range(3)]\n"
        "[t.start() for t in threads]\n"
        "bad = 0\n"
        "for i in range(60):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        data = [bytearray(3000) for _ in range(300)]\n"
        "        os._exit(len(data) % 256)\n"
        "    bad += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 300 % 256\n"
        "stop = True\n"
        "[t.join() for t in threads]\n"
        "print('bad', bad)\n"
    )
    profiled = run(
        ["/usr/bin/python3", "-c", code],
        env={"OTEL_PROFILER_CPU_FREQUENCY": "999", "OTEL_PROFILER_ALLOC_INTERVAL": "1024"},
        timeout=120,
    )
    assert profiled.stdout == "bad 0\n"


@pytest.mark.parametrize("lifetime", ["0", "20", "60"])
def test_forks_while_the_helper_loads_its_libraries(run, lifetime):
    """A child must not inherit a loader in the middle of its work: the child would hang in its first dlopen."""
    outcome = run(
        ["/usr/bin/python3", str(ROOT / "test/programs/fork_while_loading.py"), "60"],
        env={"OTEL_PROFILER_MIN_LIFETIME": lifetime}, timeout=60,
    )
    assert (outcome.returncode, outcome.stdout) == (0, "60\n"), outcome.stderr


def test_a_child_of_a_process_without_an_exporter_does_not_wait_for_one(run, tmp_path):
    """Its parent could not load the exporter and samples nothing any more: the child has nothing to send."""
    library = tmp_path / LIBRARY.name
    shutil.copy(LIBRARY, library)
    code = f"""
import os
def burn():
    for _ in range(1000): sum(range(1000))
while len(os.listdir('/proc/self/task')) > 1: burn()
os.symlink({str(LIBRARY.with_name("libotelprof-flush.so"))!r}, {str(tmp_path / "libotelprof-flush.so")!r})
pid = os.fork()
burn()
pid and print(os.waitpid(pid, 0)[1])
"""
    outcome = run(["/usr/bin/python3", "-S", "-c", code], log_to_stderr=True,
                  env={"LD_PRELOAD": str(library), "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "300"})
    assert (outcome.returncode, outcome.stdout, outcome.requests) == (0, "0\n", [])
    (line,) = outcome.stderr.splitlines()
    assert "libotelprof-flush.so cannot be loaded" in line


@pytest.mark.parametrize("mode", ["alone", "joined"])
def test_child_of_a_thread_ends_with_that_thread(run, program, mode):
    """The forking thread is the child's main thread and may be its last: the helper must not keep the child alive."""
    plain = run([program("fork_in_thread"), mode], profiled=False, timeout=120)
    assert "child ended with 0" in plain.stdout
    profiled = run([program("fork_in_thread"), mode], timeout=120, env=EXACT_CPU)
    assert (profiled.returncode, profiled.stdout) == (plain.returncode, plain.stdout)
    children = [i for i in profiled.instances() if i.cpu_of("work_of_the_child")]
    assert len(children) == 1
    assert children[0].cpu_of("work_of_the_child") == pytest.approx(40e6, abs=START_NS)


def test_the_remains_of_parents_do_not_add_up(run, program, tmp_path):
    """A process after many generations of forks has no more of the profiler's memory than the first."""
    generations = 8
    profiled = run(
        [program("fork_chain"), generations], cwd=tmp_path, env={**AWAITED, "OTEL_PROFILER_ALLOC_INTERVAL": "1000"},
    )
    assert profiled.returncode == 0
    assert len(profiled.instances()) == generations
    for instance in profiled.instances():
        assert instance.value_of("work", "alloc_space") > 0, "each names what it found"
    kibibytes = [int(line) for line in profiled.stdout.splitlines()]
    assert kibibytes[0] > 1000, "the exporter's: or the test shows nothing"
    # a fork in the middle of an export leaves some hundred KiB; names are read once more, too
    assert kibibytes[-1] <= kibibytes[0] + 4096, kibibytes


@pytest.mark.parametrize("how", ["clone", "vfork", "vfork-works"])
@pytest.mark.parametrize("lifetime", ["0", "50"])
def test_children_without_our_thread(run, program, how, lifetime):
    """vfork and a bare clone(2) give our variables to a process that has no helper."""
    outcome = run([program("borrowed_memory"), how], env={**EXACT_CPU, "OTEL_PROFILER_MIN_LIFETIME": lifetime}, timeout=120)
    said = "allocated\n" if how == "vfork-works" else "unshared\n"
    assert (outcome.returncode, outcome.stdout) == (3, said), outcome.stderr
    assert max(i.cpu_of("works_on") for i in outcome.instances()) == pytest.approx(60e6, abs=START_NS)


@pytest.mark.parametrize("how", ["fork", "syscall", "clone"])
def test_a_fork_while_the_exporter_is_in_the_loader(run, program, how):
    """glibc does not free the loader's lock in a child: the child would hang in its first dlopen."""
    preload = f"{LIBRARY}:{program('slow_loader.so')}"
    outcome = run([program("fork_beside_loader"), how], timeout=120,
                  env={"LD_PRELOAD": preload, "OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert (outcome.returncode, outcome.stdout) == (0, "held\nended with 3\n"), outcome.stderr


def test_a_fork_waits_for_a_helper_that_is_kept_from_leaving_the_loader(run, program):
    """On a busy machine that is longer than a fork waits for anything else."""
    preload = f"{LIBRARY}:{program('slow_iterations.so')}"
    outcome = run([program("forks_beside_iterations"), 2], timeout=300,
                  env={"LD_PRELOAD": preload, "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "100"})
    assert (outcome.returncode, outcome.stdout) == (0, "2\n"), outcome.stderr


def test_children_survive_libraries_that_are_loaded_beside_their_fork(run, program):
    """The children's loader is as another thread had it: a dlopen of our helper would end them with 127."""
    outcome = run([program("forks_beside_loading"), 40], env={"OTEL_PROFILER_MIN_LIFETIME": "0"}, timeout=300)
    assert (outcome.returncode, outcome.stdout) == (0, "40\n"), outcome.stderr


def test_a_child_never_calls_a_loader_that_another_thread_was_in(run, program):
    """The child is not profiled, and both the child and its parent log that."""
    command = [program("forks_in_constructor"), program("slow_constructor.so")]
    outcome = run(command, log_to_stderr=True, timeout=120,
                  env={"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_LOG_LEVEL": "debug"})
    assert (outcome.returncode, outcome.stdout) == (0, "ended with 3\n"), outcome.stderr
    assert "forked while a library was being loaded or unloaded; it is not profiled" in outcome.stderr
    assert "debug: otelprof.dropped.child: 1 so far" in outcome.stderr
    assert len(outcome.instances()) == 1


def test_libraries_of_the_parent_serve_its_child_without_the_loader(run, program, tmp_path):
    preload = f"{LIBRARY}:{program('watches_dlopen.so')}"
    log = tmp_path / "loaded"
    outcome = run([program("fork_child"), "exit"],
                  env={"LD_PRELOAD": preload, "LOADED_LOG": str(log), "OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert log.read_text() == "asked\n"
    assert len([i for i in outcome.instances() if i.cpu_total()]) == 2


def test_a_lock_that_is_never_released_holds_up_one_fork_alone(run, program):
    """A child inherits the loader's lock held: a thread that loads a library there waits for ever."""
    outcome = run(
        [program("fork_under_lock"), 600, 40], timeout=60,
        env={"OTEL_PROFILER_MIN_LIFETIME": "100", "OTEL_PROFILER_ALLOC_INTERVAL": "10000"},
    )
    assert outcome.stdout == "40\n"


def assert_no_lock_of_time_zones(*objects):
    """If our helper held that lock at a fork, the child's copy would stay held for ever: its localtime() would hang."""
    lines = subprocess.run(["nm", "-D", "--undefined-only", *objects], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    imports = {line.split()[-1].split("@")[0] for line in lines if line.strip()}
    assert "malloc" in imports
    assert not imports & {"gmtime", "gmtime_r", "localtime", "localtime_r", "mktime", "timegm", "strftime", "tzset"}


def test_no_lock_of_time_zones():
    assert_no_lock_of_time_zones(LIBRARY, LIBRARY.with_name("libotelprof-flush.so"))


@pytest.mark.parametrize("how", ["clone", "_Fork"])
def test_a_child_that_no_fork_handler_sees(run, program, how):
    """The kernel has emptied there what capture keeps of its threads."""
    outcome = run([program("bare_child"), how], env={"OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert (outcome.returncode, outcome.stdout) == (0, "7\n"), outcome.stderr


@pytest.mark.system
@pytest.mark.skipif(os.getuid() != 0, reason="only root may choose a real-time policy")
@pytest.mark.parametrize("how", ["syscall", "clone"])
def test_a_bare_child_before_the_helper_has_begun(run, program, how):
    """In a copy of a thread that has not begun, libc waits for the thread's begin for ever. The program has one
    processor to itself, so that the helper begins when the program waits and not before."""
    command = under_policy(os.SCHED_FIFO, 5, [program("clones_at_once"), how], one_processor=True)
    outcome = run(command, env=WITHOUT_LAUNCHER)
    assert (outcome.returncode, outcome.stdout) == (0, "ended with 3\n"), outcome.stderr


def test_a_child_given_up_for_a_helper_in_a_library_is_counted_and_forked_again(run, program):
    """So the programs of these tests have children that are profiled, however late the helper is (forked.h). The first
    of them fork while the helper waits inside of a library, as one that gets no processor does."""
    given_up = 3
    outcome = run([program("forks_beside_reader")], log_to_stderr=True, env={
        **EXACT_CPU, "LD_PRELOAD": f"{program('stuck_reader.so')}:{LIBRARY}", "STUCK_FORKS": str(given_up),
        "OTEL_PROFILE_EXPORT_INTERVAL": "100", "OTEL_LOG_LEVEL": "debug"})
    assert outcome.returncode == 0, outcome.stderr
    lines = outcome.stderr.splitlines()
    left = [line for line in lines if "this process was forked while" in line]
    assert len([line for line in left if "while the exporter was inside of a library; it is not profiled" in line]) >= given_up
    instances = {i.pid: i for i in outcome.instances()}
    child = instances.pop(int(outcome.stdout))
    assert child.cpu_of("child_burns") == pytest.approx(40e6, abs=START_NS)
    (parent,) = instances.values()
    assert parent.dropped["child"] == len(left)


WAITS = ["accept4", "epoll_wait", "recvfrom", "recvmsg", "waitpid", "setitimer"]


@pytest.mark.parametrize("call", WAITS)
def test_a_child_that_never_calls_malloc_is_profiled(run, program, call):
    """A call that a worker makes for its next piece of work starts the helper: the helper has all of the child's work
    by the time that a signal ends the child."""
    outcome = run([program("works_in_child"), call], env=EXACT_CPU)
    assert outcome.returncode == 0, outcome.stderr
    pid, used = (int(word) for word in outcome.stdout.split())
    child = {i.pid: i for i in outcome.instances()}[pid]
    assert child.cpu_total() == pytest.approx(used, abs=START_NS)
    for name in ("works_before", "works_after"):
        assert child.cpu_of(name) == pytest.approx(30e6, abs=START_NS), name


def test_a_child_that_makes_no_call_at_all_counts_its_lost_samples(run, program):
    outcome = run([program("works_in_child"), "none"], env={**EXACT_CPU, "OTEL_LOG_LEVEL": "debug"}, log_to_stderr=True)
    assert outcome.returncode == 0, outcome.stderr
    pid, used = (int(word) for word in outcome.stdout.split())
    said = re.search(rf"libotelprof\[{pid}\] debug: .*; (\d+) ms of CPU time are in no profile", outcome.stderr)
    lost = int(said[1]) if said else 0
    # the parent exports what the child sampled, if its helper had begun before the fork
    exported = sum(i.cpu_ns for i in outcome.instances() if i.pid == pid) / 1e6
    assert used / 1e6 - 3 <= lost + exported <= used / 1e6 * 1.1 + 50


def test_every_process_of_a_tree_has_its_cpu_time(run, program):
    """Each profile of master, workers, and a worker's child sums up to what the kernel charges that process with,
    except for the helper's own CPU time, which the profile has up to the last export's encoding."""
    outcome = run([program("prefork_tree")], timeout=120, env=EXACT_CPU)
    assert outcome.returncode == 0, outcome.stderr
    instances = {i.pid: i for i in outcome.instances()}
    names = []
    for line in outcome.stdout.splitlines():
        name, pid, used, charged = (word if word[0].isalpha() else int(word) for word in line.split())
        names.append(name)
        assert pid in instances, f"{name} is not profiled"
        total = instances[pid].cpu_total()
        own = instances[pid].own_cpu_ns
        assert total == pytest.approx(used, abs=START_NS), f"{name}: {total / 1e9:.3f} s of {used / 1e9:.3f} s"
        assert total <= charged + START_NS, name
        assert total + own >= charged - ENCODES_AND_SENDS_NS, name
    assert len(names) == 9 and len(instances) == 9


def test_the_time_of_fork_belongs_to_fork(run, program):
    """A timer that expires inside of the fork is delivered after it, in libc's function that runs fork handlers."""
    preload = f"{LIBRARY}:{program('samples_in_masks.so')}"
    profiled = run([program("forks_late")], env={**EXACT_CPU, "LD_PRELOAD": preload}).instance("forks_late")
    stacks = [stack for stack in profiled.stacks("samples") if "forks" in stack]
    assert any(stack[0] in ("fork", "__fork", "__libc_fork") and stack[1] == "forks" for stack in stacks), stacks
    assert not profiled.names() & {"__run_postfork_handlers", "__run_prefork_handlers", "__run_fork_handlers"}
