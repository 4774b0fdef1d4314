"""A process exports at ends without exit handlers, too: signals that the program leaves to their default action, and
_exit."""

import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from processes import cpu_seconds
from profiled import EXACT_CPU, FORKS, LIBRARY, START_NS, TAKES_CPU_SAMPLE
from waiting import eventually

pytestmark = pytest.mark.fast

ENDS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def burning(start, program, command=None, env=None, **options):
    """Returns a started program that has used 0.2 s of CPU, and lived for at least as long."""
    running = start(command or [program("burn"), "600000", "4", "10"], env={**EXACT_CPU, **(env or {})}, **options)
    eventually(lambda: cpu_seconds(running.process.pid), "0.2 s of CPU", unless=running.process.poll, holds=lambda used: used >= 0.2)
    return running


def main_thread_ns(pid):
    """Returns the CPU time of a process's first thread so far, as the kernel has it."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])


@pytest.mark.parametrize("number", ENDS)
def test_the_last_interval_is_sent(start, program, number):
    running = burning(start, program)
    used = main_thread_ns(running.process.pid)
    running.process.send_signal(number)
    outcome = running.finish(300)
    assert outcome.returncode == -number
    assert outcome.instance("burn").cpu_of("burns_cpu") > used - 2 * START_NS


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1])
def test_other_signals_end_as_they_do(start, program, number):
    running = burning(start, program, limits={resource.RLIMIT_CORE: (0, 0)})
    running.process.send_signal(number)
    assert running.finish(300).returncode == -number


def test_a_receiver_that_is_away_holds_up_nothing(start, program):
    running = burning(start, program, env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    running.process.send_signal(signal.SIGTERM)
    assert running.finish(300).returncode == -signal.SIGTERM


def test_a_short_life_ends_without_an_export(start, program):
    running = burning(start, program, env={"OTEL_PROFILER_MIN_LIFETIME": "600000"})
    running.process.send_signal(signal.SIGTERM)
    outcome = running.finish(300)
    assert outcome.returncode == -signal.SIGTERM
    assert outcome.instances() == []


def test_ignored_signals_stay_ignored(start, program):
    running = burning(start, program, ["sh", "-c", f"trap '' TERM INT; exec {program('burn')} 1000 4"])
    running.process.send_signal(signal.SIGTERM)
    running.process.send_signal(signal.SIGINT)
    outcome = running.finish(300)
    assert (outcome.returncode, outcome.stdout) == (7, "burnt\n")


@pytest.mark.parametrize("profiled", [False, True])
def test_the_program_sees_default_actions(run, program, profiled):
    outcome = run([program("asks_actions")], profiled=profiled)
    assert outcome.stdout == "asked\n"
    assert outcome.returncode == -signal.SIGTERM


@pytest.mark.parametrize("how", ["sigaction", "siginfo", "signal"])
def test_a_default_that_is_set_anew_brings_the_last_export(run, program, how):
    """PHP's handler, for example, ends the process by the signal that it handles."""
    plain = run([program("resets_action"), how], profiled=False)
    assert plain.returncode == -signal.SIGTERM
    outcome = run([program("resets_action"), how], env=EXACT_CPU)
    assert outcome.returncode == -signal.SIGTERM
    total = outcome.instance("resets_action").cpu_total()
    assert total == pytest.approx(int(outcome.stdout), abs=START_NS)


def test_a_waiting_program_sees_no_interrupted_call(start):
    """With the default action the program never returns from its call: nor does it with our handler."""
    code = "import os, time; print('waits', flush=True); time.sleep(60) or os.write(1, b'back')"
    running = start(["/usr/bin/python3", "-c", code])
    eventually(lambda: os.path.getsize(running.out.name), "its word", unless=running.process.poll)
    running.process.send_signal(signal.SIGTERM)
    outcome = running.finish(300)
    assert (outcome.returncode, outcome.stdout) == (-signal.SIGTERM, "waits\n")


def test_handlers_of_the_program_get_their_signals(start):
    code = (
        "import signal, sys\n"
        "def on_term(*_):\n"
        "    print('tidied up', flush=True)\n"
        "    sys.exit(5)\n"
        "signal.signal(signal.SIGTERM, on_term)\n"
        "while True: sum(range(1000))\n"
    )
    running = burning(start, None, ["/usr/bin/python3", "-c", code])
    used = main_thread_ns(running.process.pid)
    running.process.send_signal(signal.SIGTERM)
    outcome = running.finish(300)
    assert (outcome.returncode, outcome.stdout) == (5, "tidied up\n")
    assert outcome.instance("python3").cpu_total() > used - START_NS


@pytest.mark.system
def test_process_1_of_a_namespace_is_left_alone(start, program):
    """The kernel gives process 1 no signal that it does not handle: it would deliver one to a handler of ours."""
    running = start(["unshare", "--pid", "--fork", "--kill-child", program("burn"), "1000", "4"])
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    (child,) = eventually(lambda: [int(pid) for pid in children.read_text().split()], "a child", unless=running.process.poll)
    eventually(lambda: cpu_seconds(child), "0.2 s of the child's CPU", unless=running.process.poll, holds=lambda used: used >= 0.2)
    with open(f"/proc/{child}/status", encoding="ascii") as file:
        status = dict(line.split(":", 1) for line in file)
    assert status["NSpid"].split()[-1] == "1"
    assert int(status["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1 == 0
    assert running.finish(300).stdout == "burnt\n"


@pytest.mark.system
@pytest.mark.skipif(os.getuid() != 0, reason="only root may make a namespace of processes")
@pytest.mark.parametrize("how", ["fork", "syscall", "clone"])
def test_a_child_that_is_process_1_of_a_namespace_is_left_alone(run, program, how):
    """The child is sent SIGTERM, from outside and by itself, and sleeps on."""
    outcome = run([program("first_process"), how])
    assert (outcome.returncode, outcome.stdout) == (0, "process 1 slept\nended with 5\n"), outcome.stderr


MULTIPROCESS = f"""{FORKS}
import ctypes, multiprocessing, os, time
sample = ctypes.PyDLL({str(TAKES_CPU_SAMPLE)!r}).take_cpu_sample

def work(number, results):
    while time.thread_time() < 0.1 + number * 0.05: sum(range(1000))
    sample()
    os.write(2, b"%d %d\\n" % (os.getpid(), time.thread_time_ns()))
    results.put(number)

context = multiprocessing.get_context("fork")
queue = context.Queue()
children = [context.Process(target=work, args=(n, queue)) for n in range(4)]
for child in children: child.start()
print(sorted(queue.get() for _ in children))
for child in children: child.join()
"""


def test_children_of_multiprocessing_are_profiled(run):
    """Such children end by os._exit."""
    outcome = run(["/usr/bin/python3", "-c", MULTIPROCESS], env=EXACT_CPU)
    assert outcome.stdout == "[0, 1, 2, 3]\n", outcome.stderr
    used = dict(map(int, line.split()) for line in outcome.stderr.splitlines())
    totals = {i.pid: i.cpu_total() for i in outcome.instances()}
    assert len(used) == 4
    for pid, nanoseconds in used.items():
        assert totals[pid] > nanoseconds - START_NS, (totals, used)


def test_a_signal_in_the_middle_of_a_fork(run, program):
    """The thread that ends the process holds the locks of a fork; the helper is not kept waiting."""
    preload = f"{LIBRARY}:{program('raises_in_fork.so')}"
    outcome = run([program("ends_in_fork")], env={**EXACT_CPU, "LD_PRELOAD": preload}, timeout=120)
    assert outcome.returncode == -signal.SIGTERM
    assert outcome.instance("ends_in_fork").cpu_of("works_before") == pytest.approx(50e6, abs=START_NS)


# --- after main ---

@pytest.mark.parametrize("setting", [{}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_PROFILER_EXCLUDE": "*"}], ids=str)
def test_the_end_does_not_depend_on_the_stack_pointer_that_main_leaves(run, program, setting):
    """Free Pascal's main returns with another stack pointer than at its call."""
    outcome = run([program("returns_askew")], env={**EXACT_CPU, **setting})
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (7, "at the end\n", "")
    if not setting:
        assert outcome.instance("returns_askew").cpu_of("burns_in_main") == pytest.approx(50e6, abs=START_NS)


PASCAL = """
program pascal;
{$linklib c}
function getpid: longint; cdecl; external 'c';
var i, x: longword;
begin
  x := getpid;
  for i := 1 to 400000000 do x := x * 1664525 + 1013904223;
  writeln('done ', x = 0);
end.
"""


@pytest.mark.system
@pytest.mark.skipif(not shutil.which("fpc"), reason="needs Free Pascal (Debian: fp-compiler, fp-units-rtl)")
@pytest.mark.parametrize("setting", [{}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_PROFILER_EXCLUDE": "*"}], ids=str)
def test_a_free_pascal_program_that_uses_libc_ends_as_without_us(run, tmp_path, setting):
    (tmp_path / "pascal.pas").write_text(PASCAL)
    subprocess.run(["fpc", "-O2", "pascal.pas"], cwd=tmp_path, capture_output=True, check=True)
    outcome = run([tmp_path / "pascal"], env=setting)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "done FALSE\n", "")
    if not setting:
        assert outcome.instance("pascal").cpu_total() > 0


# --- inside the dynamic loader, which has yet to load the exporter ---

IN_LOADER = {**EXACT_CPU, "OTEL_PROFILER_MIN_LIFETIME": "1000", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "600000"}


def test_a_signal_inside_the_loader_ends_the_process_behind_it(run, program):
    """Its handler once waited for the helper, and the helper for the loader: for the shutdown timeout and ten
    seconds, in every third run of a program that loads and unloads. The profile was lost."""
    outcome = run([program("ends_in_loader"), "term", program("ends_in_loader.so")], env=IN_LOADER)
    assert (outcome.returncode, outcome.stdout) == (-signal.SIGTERM, "goes on\n"), outcome.stderr
    assert outcome.instance("ends_in_loader").cpu_total() > 49e6


def test_an_exit_inside_the_loader_waits_for_no_thread_that_waits_for_it(run, program):
    """Such an exit hung likewise. Where the helper was in the loader first, there is a profile."""
    outcome = run([program("ends_in_loader"), "exit", program("ends_in_loader.so")], env=IN_LOADER, log_to_stderr=True)
    assert outcome.returncode == 7, outcome.stderr
    assert "ends inside the dynamic loader" in outcome.stderr or outcome.instances(), outcome.stderr
