"""The application wins, whatever it does with the profiling signal, and both keep working."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from processes import cpu_seconds
from profiled import EXACT_CPU, LIBRARY, ROOT, START_NS
from waiting import eventually

pytestmark = pytest.mark.fast

LIBPROFILER = "/usr/lib/x86_64-linux-gnu/libprofiler.so.0"


@pytest.fixture
def owner(run, program):
    def run_mode(mode, **environment):
        plain = run([program("signal_owner"), mode], profiled=False)
        profiled = run([program("signal_owner"), mode], env={"OTEL_LOG_LEVEL": "debug", **EXACT_CPU, **environment},
                       log_to_stderr=True)
        assert (plain.stdout, plain.returncode) == ("ok\n", 0)
        assert (profiled.stdout, profiled.returncode) == ("ok\n", 0), profiled.stderr
        return profiled, profiled.instance("signal_owner")

    return run_mode


@pytest.mark.parametrize(
    "mode", ["sigaction", "signal", "bsd_signal", "sysv_signal", "sigset", "ignore"]
)
def test_the_program_takes_the_signal_and_we_another(owner, mode):
    outcome, measured = owner(mode)
    moved = re.findall(r"sampled by signal (\d+)", outcome.stderr)
    assert moved and all(int(number) > 33 for number in moved), outcome.stderr
    assert measured.cpu_of("own_work") > 59e6
    assert sampled_at_all(measured)


def sampled_at_all(measured):
    """Returns whether stacks begin where the work is done: time without samples has no such stack."""
    return any(stack and stack[0] == "own_work" for stack in measured.stacks("samples"))


def test_a_handler_set_by_a_bare_system_call_is_noticed(owner):
    outcome, measured = owner("raw", OTEL_PROFILE_EXPORT_INTERVAL="50")
    assert "sampled by signal" in outcome.stderr
    assert measured.cpu_of("own_work") > 59e6
    assert sampled_at_all(measured)


@pytest.mark.parametrize("mode", ["number", "default_number"])
def test_an_action_set_by_number_is_the_programs_at_once(owner, mode):
    """The action is set by syscall(): no signal of ours comes to its handler, and none ends it where that is the
    default action."""
    _, measured = owner(mode)
    assert measured.cpu_of("own_work") > 59e6
    assert sampled_at_all(measured)


def test_the_default_action_is_reported_and_kept(owner):
    outcome, measured = owner("default")
    assert "sampled by" not in outcome.stderr
    assert measured.cpu_of("own_work") > 59e6


def test_handlers_for_every_signal_leave_none_for_us(owner):
    outcome, measured = owner("every")
    assert "handles every signal" in outcome.stderr
    assert measured.cpu_total() > 59e6, "the time is not lost"


@pytest.mark.parametrize("mode", ["waiting", "descriptor", "waiting_for_it", "masked"])
def test_no_thread_that_waits_for_signals_gets_ours(owner, mode):
    _, measured = owner(mode)
    assert measured.cpu_of("own_work") > 19e6


def test_a_wait_without_a_limit_waits_for_ever(owner):
    """Signals of ours that come meanwhile shorten the wait by nothing."""
    owner("patient")


def test_a_sigprof_for_the_process_waits_for_the_programs_thread(run, program):
    """The helper unblocks the signal while it reads names; a signal that is the program's is not for the helper."""
    outcome = run([program("takes_prof")], env={"OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert (outcome.returncode, outcome.stdout) == (0, "1000 taken\n"), outcome.stderr


@pytest.mark.parametrize("how", [
    "kill handler", "raise handler", "queue handler", "child handler", "timer handler", "kill number",
    "raise descriptor", "kill handler beside", "raise number beside", "queue descriptor beside",
    "thread_queue handler beside", "thread_timer handler beside", "thread_queue number",
])
def test_a_pending_sigprof_of_the_programs_is_not_lost(run, program, how):
    """A blocked signal was pending when the program took the signal for itself: the program gets that one, and none
    of ours."""
    command = [program("keeps_pending"), *how.split()]
    plain = run(command, profiled=False)
    assert plain.returncode == 0 and plain.stdout.endswith("1 in all\n")
    profiled = run(command, env=EXACT_CPU)
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, 0), profiled.stderr
    assert profiled.instance("keeps_pending").cpu_total() > 19e6, "it was profiled"


def test_behind_a_filter_no_call_reads_the_pending_signals(run, program):
    outcome = run([program("keeps_pending"), "kill", "handler", "behind"])
    assert outcome.returncode == 0 and outcome.stdout.endswith(" in all\n"), outcome.stderr


EVERY_SAMPLE = {"OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_CPU_FREQUENCY": "4000"}


@pytest.mark.parametrize("work", ["allocates", "works"])
def test_a_signal_is_left_to_the_thread_that_the_kernel_chose(run, program, work):
    """Another thread that is sampled meanwhile unblocks its signals only later: its allocations, its CPU time."""
    outcome = run([program("left_to_main"), work], env=EVERY_SAMPLE)
    assert (outcome.stdout, outcome.returncode) == ("the main thread has had one\n", 0), outcome.stderr


@pytest.mark.parametrize("work", ["allocates", "works"])
def test_behind_a_filter_no_call_finds_out_for_which_thread_a_signal_is(run, program, work):
    outcome = run([program("left_to_main"), work, "behind"], env=EVERY_SAMPLE)
    assert outcome.returncode == 0 and outcome.stdout, outcome.stderr


def test_wrong_pointers_are_the_kernels_to_refuse(owner):
    owner("pointers")


def test_a_thread_is_sampled_whatever_its_alternate_stack_has_room_for(owner):
    """The kernel writes the frame of our signal elsewhere."""
    outcome, measured = owner("small_stack")
    assert "no_signal_stack" not in outcome.stderr
    assert measured.cpu_total() == pytest.approx(100e6, abs=START_NS), "neither lost nor counted twice"
    assert sampled_at_all(measured)


def test_an_alternate_stack_too_small_is_inherited(run, program):
    outcome = run([program("small_stacks"), "inherited"], env=EXACT_CPU)
    assert outcome.returncode == 0, outcome.stderr
    child, used = map(int, outcome.stdout.split())
    totals = {i.pid: i.cpu_total() for i in outcome.instances()}
    assert len(totals) == 2 and all(total > 49e6 for total in totals.values()), totals
    # Starting and ending take CPU time, too, on a busy virtual machine more than the work: the kernel's own account
    # gives the bound. It includes the helper's time.
    assert totals[child] < used + START_NS, (totals, used)


def test_an_alternate_stack_that_is_refused_costs_no_samples(run, program):
    outcome = run([program("small_stacks"), "refused"], env=EXACT_CPU)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.instance("small_stacks").cpu_of("works_on") == pytest.approx(50e6, abs=START_NS)


def shared_signal_stack(run, program, mode):
    outcome = run(
        [program("shared_signal_stack"), mode],
        env={"OTEL_LOG_LEVEL": "debug", **EXACT_CPU},
        log_to_stderr=True,
    )
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr
    measured = outcome.instance("shared_signal_stack")
    assert measured.cpu_total() > 8 * 49e6
    return outcome, measured


@pytest.mark.parametrize("mode", ["all", "some"])
def test_threads_that_share_an_alternate_stack_are_sampled_on_their_own(run, program, mode):
    outcome, measured = shared_signal_stack(run, program, mode)
    assert "no_signal_stack" not in outcome.stderr
    assert measured.cpu_of("sums_up") > 8 * 45e6


def test_the_signal_can_be_chosen(run, program):
    """test_config.c tests the names of signals."""
    code = (
        "caught = int(open('/proc/self/status').read().split('SigCgt:\\t')[1].split()[0], 16)\n"
        "print([n for n in range(1, 65) if caught >> (n - 1) & 1 and n > 2 and n not in (15, 32, 33)])\n"
    )
    env = {"OTEL_PROFILER_SIGNAL": "SIGRTMIN+5", **EXACT_CPU}
    assert run(["/usr/bin/python3", "-c", code], env=env).stdout.strip() == "[39]"
    outcome = run([program("burn"), "40", "1"], env=env)
    assert any(stack[0] == "burns_cpu" for stack in outcome.instance("burn").stacks("samples"))


def test_a_signal_that_cannot_be_used_is_refused(run, program):
    outcome = run(
        [program("burn"), "40", "4"], env={"OTEL_PROFILER_SIGNAL": "11", **EXACT_CPU}, log_to_stderr=True
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert 'OTEL_PROFILER_SIGNAL="11" is not a signal' in outcome.stderr
    assert outcome.instance("burn").cpu_of("burns_cpu") == pytest.approx(40e6, abs=START_NS)


@pytest.mark.timing
@pytest.mark.parametrize("order", ["peer first", "peer last"])
def test_beside_another_profiler_that_uses_the_same_signal(run, program, tmp_path, order):
    """gperftools' CPU profiler is preloaded before and after ours: both see all."""
    profile = tmp_path / "peer.prof"
    libraries = [LIBPROFILER, str(LIBRARY)]
    preload = ":".join(libraries if order == "peer first" else reversed(libraries))
    outcome = run(
        [program("burn"), "800", "4"],
        env={"LD_PRELOAD": preload, "CPUPROFILE": str(profile)},
        log_to_stderr=True,
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7), outcome.stderr
    assert outcome.instance("burn").cpu_of("burns_cpu") > 0.9 * 0.8e9
    text = subprocess.run(
        [shutil.which("google-pprof") or "google-pprof", "--text", program("burn"), profile],
        capture_output=True, text=True, check=False,
    ).stdout
    assert "burns_cpu" in text
    samples = int(re.search(r"^\s*(\d+)\s.*burns_cpu", text, re.M)[1])
    assert samples == pytest.approx(80, rel=0.35), "at its 100 Hz"


def test_a_program_with_functions_of_its_own_in_front_of_ours(run, program):
    """The program's functions find ours behind them, and ours must not call them again."""
    outcome = run([program("wraps_calls")])
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 7), outcome.stderr


@pytest.mark.parametrize("address", ["10000", "7ffffffff008"])
def test_a_handler_can_report_a_stack_pointer_to_nowhere(run, program, address):
    """Its allocations and its CPU time are sampled; the smashed stack below it is not touched."""
    outcome = run([program("wild_stack"), address], env=EXACT_CPU)
    assert (outcome.stdout, outcome.returncode) == ("reported\n", 0), outcome.stderr


@pytest.mark.timing
@pytest.mark.parametrize("types", ["cpu", "alloc"])
def test_timers_that_come_late_are_reported(run, types):
    """Merged expiries are CPU time without stacks of its own: here the program blocks every signal by number, and on
    a busy machine the tick comes in other threads' turns. Without timers nothing can be late."""
    code = """
import ctypes, time
def mask(how):
    everything = ctypes.c_uint64(2**64 - 1)
    assert ctypes.CDLL(None).syscall(14, how, ctypes.byref(everything), None, 8) == 0  # rt_sigprocmask
mask(0)
while time.thread_time() < 1.5: pass
mask(1)
while time.thread_time() < 1.6: pass
"""
    env = {"OTEL_LOG_LEVEL": "debug", "OTEL_PROFILER_TYPES": types}
    outcome = run(["/usr/bin/python3", "-c", code], env=env, log_to_stderr=True)
    assert outcome.returncode == 0
    late = re.findall("expiries of CPU timers came late", outcome.stderr)
    assert len(late) == (types == "cpu"), outcome.stderr
    if types == "cpu":
        assert 0.95 * 1.6e9 < outcome.instance("python3").cpu_total() < 1.4 * 1.6e9


def test_a_program_built_for_gprof(run, tmp_path):
    """libc takes SIGPROF for the program before main, by no function that is hooked: the program has its signal for
    itself from then on, and its time is sampled by another."""
    source = tmp_path / "counted.c"
    source.write_text(
        '#include "cpu_sample.h"\n'
        "SAMPLED_BURNER(works, 50)\n"
        "int main(void) { works(); }\n"
    )
    subprocess.run(["gcc", "-O1", "-pg", f"-I{ROOT}/test/programs", source, "-o", tmp_path / "counted"], check=True)
    outcome = run([tmp_path / "counted"], cwd=tmp_path, env={"OTEL_LOG_LEVEL": "debug", **EXACT_CPU}, log_to_stderr=True)
    assert outcome.returncode == 0
    assert [line for line in outcome.stderr.splitlines() if "handles the profiling signal" in line]
    assert outcome.instance("counted").cpu_of("works") == pytest.approx(50e6, abs=START_NS)
    assert (tmp_path / "gmon.out").exists()


@pytest.mark.timing
@pytest.mark.parametrize("timer, number", [("ITIMER_PROF", "SIGPROF"), ("ITIMER_VIRTUAL", "SIGVTALRM")])
def test_a_timer_left_running_does_not_expire_of_the_last_export(run, timer, number):
    """Python takes its handlers back before its end, and leaves the timer. If the last export's CPU time counted, the
    timer would end the program: the export takes more than what is left of the interval."""
    code = f"""
import signal, time
signal.signal(signal.{number}, lambda *_: None)
end = time.thread_time() + 0.05
while time.thread_time() < end:
    pass
made = [[b"x" * 100] for _ in range(20000)]
signal.setitimer(signal.{timer}, 0.002)
signal.signal(signal.{number}, signal.SIG_DFL)
"""
    command = ["/usr/bin/python3", "-S", "-c", code + "import os; os._exit(7)"]
    plain = run(command, profiled=False)
    env = {**EXACT_CPU, "OTEL_PROFILE_EXPORT_INTERVAL": "86400000", "OTEL_PROFILER_ALLOC_INTERVAL": "64"}  # many names to read
    outcome = run(command, env=env)
    assert plain.returncode == outcome.returncode == 7
    assert outcome.instance("python3").cpu_total() > 49e6


@pytest.mark.parametrize("lifetime", ["0", "1000"])
@pytest.mark.parametrize("when", ["fork", "late"])
def test_a_handler_that_interrupts_malloc_may_fork(run, program, lifetime, when):
    """In a program of one thread fork takes no locks; our thread must not make it take those that the interrupted
    malloc holds, not even in an exit handler (late)."""
    outcome = run([program("interrupted_malloc"), when],
                  env={"OTEL_PROFILER_MIN_LIFETIME": lifetime, "OTEL_PROFILE_EXPORT_INTERVAL": "100"})
    assert (outcome.returncode, outcome.stdout) == (0, "300 children\n"), outcome.stderr


@pytest.mark.parametrize("lifetime", ["0", "1000"])
def test_a_handler_that_interrupts_malloc_may_end_the_program(run, program, lifetime):
    """Exit handlers free memory, likewise. (They may find the heap as the interrupted malloc left it, and abort: so
    they do without the profiler, in one of a hundred runs.) Most runs hung before."""
    for _ in range(8):
        outcome = run([program("interrupted_malloc"), "exit"], env={"OTEL_PROFILER_MIN_LIFETIME": lifetime})
        assert outcome.returncode in (3, -signal.SIGABRT), outcome.stderr


def test_an_exit_waits_for_no_lock_that_the_helper_has_left(run, program):
    """libc was made to believe in one thread while the helper, which waits for its time, was inside of the loader: the
    helper left the loader's lock without a wake, and exit() hung."""
    outcome = run([program("exit_beside_loader")], env={"OTEL_PROFILER_MIN_LIFETIME": "600000"})
    assert outcome.returncode == 3, outcome.stderr


# --- under a tracer ---


@pytest.mark.parametrize("how", ["another", "call", "blocked", "end", "at_once"])
def test_a_tracer_may_deliver_our_signal_late(run, program, how):
    """The kernel then treats the signal as the tracer's, or as its own, for which the default action would end the
    program: under ltrace every program ended. The signal may come when the timers are gone (blocked: it is pending
    while the profiler gives the signal up; end: after that), and ended a program in exit()."""
    outcome = run([program("holds_signals_back"), how, program("burn"), "60", "4"], env=EXACT_CPU)
    delivered, end = outcome.stdout.replace("burnt\n", "").splitlines()
    assert end == "exited 7", outcome.stdout
    assert int(delivered.split()[0]) > 0
    assert outcome.instance("burn").cpu_total() > 59e6, "time without stacks"


def test_a_signal_that_another_process_sends_ends_a_traced_program(start, program):
    """The signal is not our timer's, whether a tracer is there or not: the program ends as without the profiler."""
    tracer = start([program("holds_signals_back"), "at_once", program("burn"), "60000", "4"])
    children = Path(f"/proc/{tracer.process.pid}/task/{tracer.process.pid}/children")
    traced = eventually(lambda: [int(pid) for pid in children.read_text().split()], "a child", unless=tracer.process.poll)[0]
    eventually(lambda: os.readlink(f"/proc/{traced}/exe").endswith("/burn") and cpu_seconds(traced) > 0.3,
               "0.3 s of the traced program's CPU", unless=tracer.process.poll)
    os.kill(traced, signal.SIGPROF)
    assert tracer.finish(300).stdout.splitlines()[-1] == f"killed {int(signal.SIGPROF)}"


def in_one_line(function, trace):
    """Joins lines: ltrace prints a call in two lines if a signal comes in it."""
    return re.sub(rf"({function}\(.*) <no return \.\.\.>\n(?:.*\n)*?<\.\.\. {function} resumed> ", r"\1", trace)


@pytest.mark.system
@pytest.mark.skipif(not shutil.which("ltrace"), reason="needs ltrace")
def test_ltrace_prints_the_same_as_without_us(run, program, tmp_path):
    """ltrace delivers a signal later that comes while the program is at one of its breakpoints."""
    command = ["ltrace", "-e", "clock_gettime+puts", "-o", tmp_path / "trace", program("burn"), "300", "4"]
    ends = []
    for profiled in (False, True):
        outcome = run(command, profiled=profiled, timeout=120)
        lines = in_one_line("puts", (tmp_path / "trace").read_text()).splitlines()
        ends.append((outcome.returncode, outcome.stdout, [" ".join(line.split()) for line in lines if "+++" in line or "puts" in line]))
    assert ends[0] == ends[1] and "exited (status 7)" in ends[0][2][-1]
