"""A handler of the program that jumps out of the profiler's work leaves the program, and the thread's profile, as they
would be without the jump."""

import pytest

EVERY_ALLOCATION = {"OTEL_PROFILER_TYPES": "alloc", "OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_MAX_STACK_DEPTH": "8",
                    "OTEL_PROFILER_MIN_LIFETIME": "0"}
JUMPS, ALLOCATIONS = 20, 1000


@pytest.mark.parametrize("way", ["overflow", "overflow-unmasked"])
def test_no_record_begins_where_the_stack_ends(run, program, way):
    """The handler that catches the overflow, and leaves by a jump, finds no signal blocked by us."""
    plain = run([program("jumps_out_of_sample"), way], profiled=False)
    outcome = run([program("jumps_out_of_sample"), way], env=EVERY_ALLOCATION)
    assert plain.stdout == f"blocked:\n{JUMPS} jumps\n"
    assert (outcome.stdout, outcome.returncode) == (plain.stdout, 0), outcome.stderr
    measured = outcome.instance("jumps_out_of_sample")
    assert measured.value_of("allocates_after", "alloc_objects") == ALLOCATIONS, measured.dropped
    assert measured.dropped["stack_end"] >= JUMPS


def test_allocations_after_a_jump_out_of_a_record_are_sampled(run, program):
    """Another thread sends a signal that the record does not block, until its handler has jumped out 20 times."""
    outcome = run([program("jumps_out_of_sample"), "sent"], env=EVERY_ALLOCATION)
    blocked, jumps = outcome.stdout.splitlines()
    assert outcome.returncode == 0 and int(jumps.split()[0]) >= JUMPS, outcome.stderr
    assert blocked == "blocked: 11", "the program's own"
    measured = outcome.instance("jumps_out_of_sample")
    assert measured.value_of("allocates_after", "alloc_objects") == ALLOCATIONS, measured.dropped
