"""Programs under a real-time policy are profiled too, by a helper that is an ordinary thread."""

import os

import pytest

POLICIES = [("SCHED_FIFO", 5), ("SCHED_RR", 99), ("SCHED_BATCH", 0)]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may choose a real-time policy")
@pytest.mark.parametrize("policy, priority", POLICIES)
def test_a_program_started_under_another_policy(run, program, policy, priority):
    """The policy is inherited over exec, and by threads that are created as usual."""
    number = getattr(os, policy)
    code = (
        "import os, sys\n"
        f"os.sched_setscheduler(0, {number}, os.sched_param({priority}))\n"
        "os.execv(sys.argv[1], sys.argv[1:])\n"
    )
    env = {"OTEL_PROFILER_EXCLUDE": "python3*"}
    command = ["/usr/bin/python3", "-c", code, program("policies"), "300"]
    outcome = run(command, env=env, log_to_stderr=True)
    assert outcome.returncode == 0
    assert outcome.stderr == ""
    assert outcome.stdout == f"policies: {number}, otelprof: {os.SCHED_OTHER}\n"
    assert outcome.instance("policies").cpu_of("burns_cpu") > 0.2e9
