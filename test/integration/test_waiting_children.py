"""Forked children that only wait have their waits in the profile, although their helper starts late."""

import pytest
from profiled import Outcome
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.timing

WAITS = {"OTEL_PROFILER_TYPES": "off_cpu", "OTEL_PROFILE_EXPORT_INTERVAL": "200"}


@pytest.mark.fast
def test_a_child_that_hardly_works_is_sampled_while_it_waits(start, program, tmp_path):
    """Nothing but its waits shows that the child lives: it allocates nothing, and uses no CPU time."""
    running = start([program("child_waits"), tmp_path / "end"], env=WAITS)

    def child_waited_ns():
        exported = Outcome(0, "", "", list(running.receiver.requests)).instances()
        return sum(it.value_of("child_waits", "off_cpu") for it in exported if it.pid != running.process.pid)

    eventually(child_waited_ns, "a wait of the child, in an export of its own", unless=running.process.poll)
    (tmp_path / "end").touch()
    outcome = running.finish(TIMEOUT_S)
    child = {i.pid: i for i in outcome.instances()}[int(outcome.stdout)]
    assert child.value_of("child_waits", "off_cpu") > 0


def test_a_childs_earlier_waits_are_not_charged_to_its_end(run, program):
    """Its helper starts in exit, and finds the child there: where it waited before is not known."""
    outcome = run([program("child_waits")], env={**WAITS, "OTEL_PROFILER_MIN_LIFETIME": "0"})
    child = {i.pid: i for i in outcome.instances()}[int(outcome.stdout)]
    assert child.marked["off_cpu", "otelprof.stack.unsampled"] > 0.4e9
