"""A program under a real-time policy is profiled, too, by a helper that is an ordinary thread."""

import os

import pytest
from profiled import EXACT_CPU, START_NS, WITHOUT_LAUNCHER, under_policy

pytestmark = pytest.mark.system

POLICIES = [("SCHED_FIFO", 5), ("SCHED_RR", 99), ("SCHED_BATCH", 0)]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may choose a real-time policy")
@pytest.mark.parametrize("policy, priority", POLICIES)
def test_a_program_started_under_another_policy(run, program, policy, priority):
    """Threads that are created as usual inherit the policy."""
    number = getattr(os, policy)
    command = under_policy(number, priority, [program("policies"), "300"])
    outcome = run(command, env={**EXACT_CPU, **WITHOUT_LAUNCHER}, log_to_stderr=True)
    assert outcome.returncode == 0
    assert outcome.stderr == ""
    assert outcome.stdout == f"policies: {number}, otelprof: {os.SCHED_OTHER}\n"
    assert outcome.instance("policies").cpu_of("burns_cpu") == pytest.approx(300e6, abs=START_NS)
