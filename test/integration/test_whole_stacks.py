"""What is marked on a stack is right, and what is right is not marked (shim/capture/stack_end.h)."""

import json


def test_our_own_work_is_not_the_programs(run, program):
    """Where each allocation is sampled most of the time is ours. A timer that expires meanwhile comes in
    with our system calls' end: what it finds is no function of libc that the program's would have called."""
    done = run([program("allocates_always")],
               env={"OTEL_PROFILER_ALLOC_INTERVAL": "256", "OTEL_PROFILER_CPU_FREQUENCY": "999"})
    assert (done.stdout, done.returncode) == ("done\n", 0)
    measured = done.instance("allocates_always")
    stacks = measured.stacks("samples")
    assert "syscall" not in {stack[0] for stack in stacks}
    assert stacks.get(("[libotelprof]",), 0) > 0, "the time is in the profile, as ours"
    assert not [stack for stack in stacks if "[libotelprof]" in stack and len(stack) > 1]


def test_time_that_no_sample_met_is_marked(run, program):
    """Threads of 30 us end between two ticks: under their start routine is all of their time, and no stack."""
    done = run([program("short_threads"), "20000", "30"], timeout=120)
    truth = json.loads(done.stdout)
    measured = done.instance("short_threads")
    unsampled = measured.marked.get(("samples", "otelprof.stack.unsampled"), 0) * measured.period
    assert unsampled > 0.5 * truth["ns"], "few of them were ever met"
    assert measured.whole_share() < 0.5
