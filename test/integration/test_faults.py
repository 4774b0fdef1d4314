"""Each of the profiler's own system calls and allocations fails once for each place in the code; the program notices
nothing. `make faults` is the long form."""

import sys

import pytest
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "faults"))

from faults import (  # noqa: E402
    Bench, deny_calls, differences, fail_allocations, fail_calls, list_allocations, list_calls,
    one_allocation_for_each_site, short_faults, without_us,
)

pytestmark = pytest.mark.load


@pytest.fixture(scope="module")
def expected():
    result = without_us()
    assert result.status == 7 and result.stderr == ""
    return result


@pytest.fixture(scope="module")
def bench():
    made = Bench()
    yield made
    made.close()


@pytest.fixture(scope="module")
def calls(bench, expected):
    """Returns every system call of the profiler in one run of the program."""
    result, found = list_calls(bench)
    assert not differences(result, expected) and not bench.invalid()
    assert len(bench.receiver.requests) >= 2, "the program's profile, and its child's"
    return found


def expect_nothing_noticed(outcomes, met):
    noticed = [str(outcome) for outcome in outcomes if outcome.problems]
    assert not noticed, "\n".join(noticed)
    missed = [str(outcome) for outcome in outcomes if not outcome.met]
    assert len(missed) <= (1 - met) * len(outcomes), "\n".join(missed)


def test_all_our_calls_are_seen(calls):
    """The list has calls of the constructor, of hooks, of the handler, around fork, at the end; and of the helper."""
    for role, function in [
        ("app", "capture_start"), ("app", "heap_sample"), ("app", "sampler_on_signal"),
        ("app", "before_fork"), ("app", "after_fork_in_child"), ("app", "helper_finish"),
        ("app", "helper_start"), ("helper", "_dl_map_object"), ("helper", "harvest_all"),
        ("helper", "transport_step"), ("helper", "elf_file_open"),
    ]:
        assert [c for c in calls if c.role == role and function in c.stack], function


def test_each_call_fails_once(calls, expected):
    faults = short_faults(calls)
    assert len(faults) > 100
    expect_nothing_noticed(fail_calls(faults, expected), met=0.9)


def test_each_call_is_denied(calls, expected):
    expect_nothing_noticed(deny_calls(calls, ["EPERM"], expected), met=0.9)


@pytest.fixture(scope="module")
def allocations(bench, expected):
    """Returns allocations of the helper thread: one for each place in the code, in their order."""
    result, found = list_allocations(bench)
    assert not differences(result, expected) and not bench.invalid()
    chosen = one_allocation_for_each_site(found)
    assert len({a.site.split("+")[0] for a in chosen}) >= 5, "of many libraries"
    return [str(allocation.number) for allocation in chosen]


def test_each_allocation_fails_once(allocations, expected):
    expect_nothing_noticed(fail_allocations(allocations, expected), met=0.9)


def test_memory_runs_out_for_good(allocations, expected):
    choices = [f"{number}-" for number in allocations[::3]]
    expect_nothing_noticed(fail_allocations(choices, expected), met=0.9)
