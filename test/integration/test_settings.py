"""Settings change while the program runs: off and on again, on every thread."""

import json

import pytest
from profiled import BUILD, EXACT_CPU, START_NS

LIBRARY = BUILD / "test/settings/libotelprof.so"
THREADS = 4  # one of these threads begins while sampling is off


@pytest.fixture
def changed(run, program):
    """Runs a program that turns the profiler off, and on again at another frequency."""
    outcome = run([program("changes_settings")],
                  env={"LD_PRELOAD": str(LIBRARY), "OTEL_PROFILER_ALLOC_INTERVAL": "1", **EXACT_CPU})
    assert outcome.returncode == 0, outcome.stderr
    return json.loads(outcome.stdout), outcome.instance("changes_settings")


def test_nothing_is_sampled_while_it_is_off(changed):
    told, instance = changed
    assert not told["sampled_while_off"]
    assert instance.value_of("work_before", "samples") > 0
    assert instance.value_of("work_while_off", "samples") == 0
    assert instance.value_of("allocate_while_off", "alloc_objects") == 0


def test_samples_resume_on_every_thread(changed):
    told, instance = changed
    for number in range(THREADS):
        assert instance.value_of(f"work_after_{number}", "samples") > 0
    assert instance.value_of("allocate_before", "alloc_objects") == told["before"]
    assert instance.value_of("allocate_after", "alloc_objects") == told["after"]


def test_time_while_it_is_off_is_not_charged(changed):
    told, instance = changed
    assert instance.cpu_total() == pytest.approx(told["on_ns"], abs=2 * START_NS)


def test_objects_freed_while_it_is_off_leave_the_live_heap(changed):
    told, instance = changed
    assert instance.value_of("allocate_before", "inuse_objects") == told["before_live"]
    assert instance.value_of("allocate_while_off", "inuse_objects") == 0
    assert instance.value_of("allocate_after", "inuse_objects") == told["after"]


def test_the_new_frequency_is_the_profiles_period(changed):
    told, instance = changed
    assert instance.period == 10**9 // told["frequency"]


@pytest.mark.parametrize("at_start, profiled", [("on", True), ("off", False)])
def test_a_profiler_that_starts_off_samples_nothing(run, program, at_start, profiled):
    """No sample of any kind is taken, from the first instruction on, unless a request turns the profiler on: none
    does."""
    outcome = run([program("burn"), "40", "2"], env={**EXACT_CPU, "OTEL_PROFILER_START": at_start, "OTEL_PROFILER_TYPES": "all",
                                                 "OTEL_PROFILER_ALLOC_INTERVAL": "1"})
    assert (outcome.returncode, outcome.stderr) == (7, "")
    assert bool(outcome.requests) == profiled
