"""No handler of ours reads thread-local storage on a thread whose register for it is not libc's (Wine, DynamoRIO)."""

import pytest

pytestmark = pytest.mark.fast

FASTEST = {"OTEL_PROFILER_CPU_FREQUENCY": "4000", "OTEL_PROFILER_MIN_LIFETIME": "0"}
AREAS = ("zero", "garbage", "lookalike", "unmapped")
TYPES = {"cpu": {}, "all": {"OTEL_PROFILER_TYPES": "all"}, "alloc": {"OTEL_PROFILER_TYPES": "alloc"}, "excluded": {"OTEL_PROFILER_EXCLUDE": "*"}}


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("area", AREAS)
def test_timers_and_handlers_leave_a_foreign_thread_alone(run, program, area, types):
    plain = run([program("foreign_base"), area], profiled=False)
    assert plain.stdout == "done, handled 2, on the alternate stack 2\n"
    profiled = run([program("foreign_base"), area], env={**FASTEST, **TYPES[types]})
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, 0), profiled.stderr


def test_their_samples_are_dropped_and_counted(run, program):
    measured = run([program("foreign_base"), "garbage"], env=FASTEST).instance("foreign_base")
    assert measured.dropped["foreign_thread"] > 0


@pytest.mark.parametrize("area", AREAS)
def test_a_fatal_signal_there_ends_the_process_as_without_us(run, program, area):
    outcome = run([program("foreign_base"), area, "SIGTERM"], env=FASTEST)
    assert outcome.returncode == -15
