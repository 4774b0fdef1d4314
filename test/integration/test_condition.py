"""OTEL_PROFILER_CONDITION selects the intervals that are exported; each export has all of its interval."""

import json

import pytest
from endpoint import asked  # noqa: F401 # a fixture
from profiled import decode
from waiting import eventually

pytestmark = pytest.mark.timing

DAY = {"OTEL_PROFILE_EXPORT_INTERVAL": "86400000", "OTEL_PROFILER_ALLOC_INTERVAL": "1"}
NEVER = "cpu>1000000%"
APART = 0.4e9  # nanoseconds: less than any step takes. A loaded machine may stop the profiler between reading two clocks
OBJECTS = 100  # objects of each step of test/programs/flushes_steps.c


class Stepped:
    """Runs a program of steps, with an interval for each, and keeps its exports."""

    def __init__(self, run, program, condition, steps, **environment):
        self.outcome = run([program("flushes_steps"), *steps],
                           env={**DAY, "OTEL_PROFILER_CONDITION": condition, **environment}, log_to_stderr=True)
        assert self.outcome.returncode in (0, 1), self.outcome.stderr
        self.flushes = json.loads(self.outcome.stdout)
        self.instance = self.outcome.instance("flushes_steps")

    def intervals(self):
        """Returns (start, end) of each export."""
        return sorted({(profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano)
                       for request in self.outcome.requests for of in request.resource_profiles
                       for scope in of.scope_profiles for profile in scope.profiles if profile.duration_nano})

    def is_interval(self, interval, step):
        """Returns whether the export began with the export behind the step before, and ended with that behind this
        step."""
        ends = ((0, self.flushes[0][0]), *self.flushes)[step:step + 2]
        return all(asked - APART <= moment <= made + APART for moment, (asked, made) in zip(interval, ends))


@pytest.fixture
def stepped(run, program):
    return lambda *arguments, **environment: Stepped(run, program, *arguments, **environment)


def test_of_a_program_that_works_and_rests_only_the_work_is_exported(stepped):
    """The work at rest is in no later export, and the skipped intervals are counted."""
    it = stepped("cpu>2%", ["work", "rest", "work", "rest", "work"])
    assert it.instance.value_of("works", "alloc_objects") - it.instance.value_of("pthread_create", "alloc_objects") == 3 * OBJECTS
    assert it.instance.value_of("rests", "alloc_objects") == 0
    assert it.instance.dropped["condition"] > 0
    first, second, third = it.intervals()[:3]
    assert it.is_interval(first, 0) and it.is_interval(second, 2) and it.is_interval(third, 4)


BURNS_AND_EXECUTES = """
import os, sys, time
while time.process_time() < 2: pass
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_cpu_time_from_before_an_exec_is_in_no_interval(run, program):
    """One thread alone cannot use more than one processor."""
    outcome = run(["/usr/bin/python3", "-c", BURNS_AND_EXECUTES, program("flushes_steps"), "rest"],
                  env={**DAY, "OTEL_PROFILER_CONDITION": "cpu>110%"}, log_to_stderr=True)
    assert outcome.returncode in (0, 1), outcome.stderr
    assert json.loads(outcome.stdout) and outcome.requests == []


def test_it_holds_for_every_exporter(stepped, tmp_path):
    file = tmp_path / "exports.jsonl"
    it = stepped("cpu>2%", ["work", "rest", "work", "rest"], OTEL_PROFILES_EXPORTER="otlp,otlp_file,console",
                 OTEL_PROFILER_FILE=str(file))
    written = [decode(line.encode(), "application/json") for line in file.read_text().splitlines()]
    assert len(written) == len(it.outcome.requests) >= 2
    assert "works" in it.outcome.stderr and "rests" not in it.outcome.stderr


@pytest.mark.fast
def test_the_live_heap_is_whole_where_memory_is_above_the_bound(stepped):
    """Objects of an interval that was not exported are in the heap of the next export, and not among its allocations."""
    it = stepped("rss>128MiB", ["keep", "rest", "grow", "shrink", "rest"])
    assert it.instance.value_of("keeps", "inuse_objects") == OBJECTS
    assert it.instance.value_of("keeps", "alloc_objects") == 0
    assert len(it.outcome.requests) == 1


def test_any_of_two_is_enough(stepped):
    it = stepped("rss>128MiB, cpu>2%", ["keep", "rest", "work", "rest", "grow", "shrink"])
    assert it.instance.value_of("rests", "alloc_objects") == it.instance.value_of("keeps", "alloc_objects") == 0
    assert it.instance.value_of("works", "alloc_objects") >= OBJECTS
    assert len(it.outcome.requests) >= 2


def allocations_beyond(process, before):
    """Returns the exported allocations, once there are more than `before`."""
    return eventually(lambda: process.profile("allocs").value_of("churns", "alloc_objects"), f"more than {before} allocations",
                      holds=lambda now: now > before)


@pytest.mark.fast
@pytest.mark.parametrize("never", [NEVER, "span>1ms"])
def test_a_condition_that_never_holds_exports_nothing_and_requests_get_all(asked, never):
    """This holds also when an export is requested, and at the end; a program without spans has no long span."""
    running = asked(OTEL_PROFILER_CONDITION=never, OTEL_PROFILE_EXPORT_INTERVAL="200", OTEL_PROFILER_ALLOC_INTERVAL="1")
    process = running.process
    allocations_beyond(process, allocations_beyond(process, 0))
    assert process.profile("heap").value_of("keeps_memory", "inuse_objects") == 1000
    assert process.ask("/otlp?seconds=1").exports()
    assert process.ask("/flush", "POST").status == 200
    status = process.status()
    assert status["settings"]["OTEL_PROFILER_CONDITION"] == never
    assert status["dropped"]["condition"] > 0
    outcome = running.over()
    assert (outcome.returncode, outcome.requests) == (7, [])


@pytest.mark.fast
def test_it_changes_while_the_program_runs(asked):
    """What was held back before is in no later export."""
    running = asked(OTEL_PROFILER_CONDITION=NEVER, OTEL_PROFILER_ALLOC_INTERVAL="1", OTEL_PROFILE_EXPORT_INTERVAL="3600000")
    process = running.process
    assert process.ask("/flush", "POST").status == 200
    held_back = allocations_beyond(process, 0)
    assert process.control("OTEL_PROFILER_CONDITION=span>90s,cpu>1000000%").status == 200
    assert process.status()["settings"]["OTEL_PROFILER_CONDITION"] == "cpu>1000000%,span>90s"
    assert process.control("OTEL_PROFILER_CONDITION=none").status == 200
    allocations_beyond(process, held_back)
    instance = running.over().instance("works_and_waits")
    assert instance.value_of("churns", "alloc_objects") > 0
    assert instance.value_of("keeps_memory", "alloc_objects") == 0
    assert instance.value_of("keeps_memory", "inuse_objects") == 1000
    assert instance.dropped["condition"] > 0


@pytest.mark.fast
@pytest.mark.parametrize("value", ["span>1", "cpu<80%"])
def test_a_wrong_condition_is_reported_and_everything_is_exported(burn, value):
    lines = burn({"OTEL_PROFILER_CONDITION": value}, 300)
    assert len(lines) == 1 and f'OTEL_PROFILER_CONDITION="{value}" is not none, nor a list of ' in lines[0]
