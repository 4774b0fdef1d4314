"""Time off CPU is as long as the kernel reports, and belongs to the place of the wait, whatever the threads do."""

import json
import signal
import time
from pathlib import Path

import pytest
from attributed_samples import attributed_samples
from control_group import processor_quota
from waiting import eventually

pytestmark = pytest.mark.timing

OFF_CPU = {"OTEL_PROFILER_TYPES": "off_cpu"}
UNSAMPLED = "otelprof.stack.unsampled"
# Lists what each function of test/programs/known_waits.c waits for.
KINDS = {
    "sleeps_here": {"sleep"},
    "polls_here": {"poll"},
    "reads_here": {"io", "thread"},
    "waits_for_condition_here": {"cond"},
    "locks_here": {"lock", "thread"},
    "joins_here": {"thread"},
    "waits_for_child_here": {"process"},
    "syncs_here": {"sync", "io", "other"},
}
# pthread_create and page faults wait for these on a busy machine.
ANYWHERE = {"futex", "memory", "other"}
MOST_CREATION_NS = 10e6  # by which the program's figures and the profile's may differ for each thread


def times_in(outcome, kinds):
    """{function: (nanoseconds in samples with a stack, all nanoseconds, kinds of waits)}"""
    found = {name: [0, 0, set()] for name in kinds}
    for sample in attributed_samples(outcome, "off_cpu"):
        for name in found.keys() & set(sample.stack):
            found[name][1] += sample.value
            if not sample.attributes.get(UNSAMPLED):
                found[name][0] += sample.value
                found[name][2].add(sample.attributes["otelprof.wait.kind"])
    return found


@pytest.mark.parametrize(
    "kind, threads, rounds, ms, interval",
    [("all", 1, 20, 50, 10000), ("all", 1, 1, 1500, 400), ("all", 16, 4, 50, 1000), ("sleep", 1000, 4, 250, 10000)],
    ids=["short", "longer_than_the_interval", "sixteen", "a_thousand"],
)
def test_waits_are_as_long_as_the_kernel_reports(run, program, kind, threads, rounds, ms, interval, tmp_path):
    """Waits with a stack are never longer than the kernel reports; together with waits without a stack, the threads'
    last moments, they are never shorter."""
    outcome = run([program("known_waits"), kind, threads, rounds, ms], cwd=tmp_path,
                  env={**OFF_CPU, "OTEL_PROFILE_EXPORT_INTERVAL": str(interval)})
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    truth = json.loads(outcome.stdout)
    told = times_in(outcome, truth)
    # a thread that waits in vfork until the child has begun is in clone, which has no unwind tables
    cut = sum(sample.value for sample in attributed_samples(outcome, "off_cpu")
              if sample.attributes.get("otelprof.stack.truncated"))
    for name, (least, most) in truth.items():
        sampled, everything, kinds = told[name]
        slack = threads * MOST_CREATION_NS + cut
        assert sampled <= most * 1.03 + slack, (name, told, truth)
        assert everything >= least * 0.97 - slack, (name, told, truth)
        assert kinds <= KINDS[name] | ANYWHERE, (name, kinds)
        if least > 1e9 and threads == 1:  # of many threads, not each is polled each time
            assert sampled >= least / 3, (name, told, truth)


def test_a_wait_that_never_ends_is_in_each_export(start, program, tmp_path):
    """Each export has the part of the wait that fell into it, while the wait goes on."""
    program = start([program("known_waits"), "sleep", 3, 1, 100000], cwd=tmp_path,
                    env={**OFF_CPU, "OTEL_PROFILE_EXPORT_INTERVAL": "300"})
    eventually(lambda: len(program.receiver.requests) >= 4, "four exports", unless=program.process.poll)
    program.process.kill()
    outcome = program.finish(60)
    exports = {sample.export for sample in attributed_samples(outcome, "off_cpu") if "sleeps_here" in sample.stack}
    assert exports == set(range(len(outcome.requests))) and len(exports) >= 4
    lived = sum(profile.duration_nano for request in outcome.requests for resource in request.resource_profiles
                for scope in resource.scope_profiles for profile in scope.profiles
                if request.dictionary.string_table[profile.sample_type.type_strindex] == "off_cpu")
    assert times_in(outcome, ["sleeps_here"])["sleeps_here"][0] == pytest.approx(3 * lived, rel=0.03, abs=0.3e9)


@pytest.mark.parametrize("percent", [100, 40], ids=["one_processor", "throttled"])
def test_cpu_waits_and_delay_are_the_time_that_a_thread_lived(run, program, percent):
    """Threads that work, sleep, lock, write and read, on one processor or a part of one."""
    with processor_quota(percent) as start:
        if start is None and percent < 100:
            pytest.skip("no control group with a quota of CPU time can be made here")
        outcome = run([*(start or []), program("accounts_for_time")],
                      env={"OTEL_PROFILER_TYPES": "cpu,off_cpu,sched_delay",
                           "OTEL_PROFILER_CPU_FREQUENCY": "4000"})  # counts of events are whole numbers
    assert outcome.returncode == 0, outcome.stderr
    period = outcome.instance("accounts_for").period
    told = {}
    for sample in attributed_samples(outcome, "samples", "off_cpu", "sched_delay"):
        worth = sample.value * (period if sample.kind == "samples" else 1)
        times = told.setdefault(sample.attributes.get("thread.name"), {})
        times[sample.kind] = times.get(sample.kind, 0) + worth
    for name, (least, most) in json.loads(outcome.stdout).items():
        assert least * 0.98 <= sum(told[name].values()) <= most * 1.02, (name, told[name], least, most)
        assert told[name]["off_cpu" if name != "works" else "samples"] > 0
    assert sum(times.get("sched_delay", 0) for times in told.values()) > 0


def test_a_stop_of_the_process_is_no_wait(start, program, tmp_path):
    """The stop begins in a sleep of the helper, as nearly all do; at most a poll's period of the stop is charged."""
    program = start([program("known_waits"), "sleep", 1, 1, 100000], cwd=tmp_path,
                    env={**OFF_CPU, "OTEL_PROFILE_EXPORT_INTERVAL": "700"})
    process = program.process
    states = lambda: {path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{process.pid}/task").glob("*/stat")}
    for count in (1, 2):
        eventually(lambda: len(program.receiver.requests) >= count, "an export", unless=process.poll)
    eventually(lambda: states() == {"S"}, "no thread runs", unless=process.poll)
    begun = time.monotonic()
    process.send_signal(signal.SIGSTOP)
    eventually(lambda: states() == {"T"}, "all are stopped")
    eventually(lambda: time.monotonic() > begun + 1.5, "a stop that is long enough")
    least = time.monotonic() - begun
    process.send_signal(signal.SIGCONT)
    eventually(lambda: states() <= {"S", "R"}, "all go on")
    most, exported = time.monotonic() - begun, len(program.receiver.requests)
    eventually(lambda: len(program.receiver.requests) > exported + 1, "the stop's export", unless=process.poll)
    process.kill()
    stopped = [sample for sample in attributed_samples(program.finish(60), "off_cpu")
               if "sleeps_here" in sample.stack and sample.attributes["otelprof.wait.kind"] == "stopped"]
    assert least - 0.3 <= sum(sample.value for sample in stopped) / 1e9 <= most + 0.3


@pytest.mark.fast
def test_an_exit_that_waits_for_the_last_export_waits_for_the_profiler(run, program):
    """The wait for the last export is not the program's: no function of the program is charged."""
    outcome = run([program("holder_moves")], env={**OFF_CPU, "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000"})
    assert outcome.returncode == 0, outcome.stderr
    stacks = {sample.stack for sample in attributed_samples(outcome, "off_cpu")}
    assert not {stack for stack in stacks if "main" in stack and stack[0] in {"syscall", "futex_wait"}}
    assert {stack for stack in stacks if "waits_for_lock" in stack}


def test_a_wait_that_was_left_by_a_longjmp_is_over(run, program):
    """The wait is over from the next export on at the latest, though the thread makes no call that would end it."""
    outcome = run([program("leaves_wait")],
                  env={"OTEL_PROFILER_TYPES": "off_cpu,threads", "OTEL_PROFILE_EXPORT_INTERVAL": "300"})
    assert outcome.returncode == 0, outcome.stderr
    mine = [sample for sample in attributed_samples(outcome, "off_cpu", "threads")
            if sample.attributes.get("thread.name") == "leaves"]
    states = [sample.attributes["otelprof.thread.state"] for sample in mine if sample.kind == "threads"]
    assert "running" in states
    left = max(sample.export for sample in mine if "sleeps_before" in sample.stack)
    slept = {sample.export for sample in mine if sample.kind == "threads" and "sleeps_by_itself" in sample.stack}
    assert slept and left < min(slept)
    assert any(sample.value > 0 for sample in mine if sample.kind == "off_cpu" and "sleeps_by_itself" in sample.stack)
