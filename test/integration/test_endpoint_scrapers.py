"""Scrapers get from a process what they request and assume, as read in their sources (Grafana Alloy's
pyroscope.scrape and Parca, August 2026)."""

import contextlib
import time

import pytest
from endpoint import ALL_TYPES, Process, at_port, asked, half_named  # noqa: F401 # fixtures
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

# the paths that both request by default, the name that they give each, and the types that they know by that name
SCRAPED = {
    "allocs": ("memory", {"alloc_objects:count:space:bytes", "alloc_space:bytes:space:bytes", "inuse_objects:count:space:bytes",
                          "inuse_space:bytes:space:bytes"}),
    "heap": ("memory", {"alloc_objects:count:space:bytes", "alloc_space:bytes:space:bytes", "inuse_objects:count:space:bytes",
                        "inuse_space:bytes:space:bytes"}),  # only where a job names this path
    "block": ("block", {"delay:nanoseconds:contentions:count"}),
    "mutex": ("mutex", {"contentions:count:contentions:count", "delay:nanoseconds:contentions:count"}),
    "goroutine": ("goroutine", {"threads:count:threads:count"}),  # for Go, goroutines
    "profile?seconds=1": ("process_cpu", {"samples:count:cpu:nanoseconds", "cpu:nanoseconds:cpu:nanoseconds"}),
}
SINCE_START = ["allocs", "heap", "block", "mutex"]

# two functions of Python that have no address of their own: one loop calls both by one line
TWINS = """
import os, sys, threading
def make():
    return [bytes(1000) for _ in range(50)]
def first_twin(): return make()
def second_twin(): make(); return make()
while not os.path.exists(sys.argv[1]):
    for twin in (first_twin, second_twin):
        twin()
"""


def types_of(profile):
    text, message = profile.text, profile.message
    period = f"{text(message.period_type.type)}:{text(message.period_type.unit)}"
    return {f"{kind}:{unit}:{period}" for kind, unit in profile.types}


@pytest.mark.parametrize("path", SCRAPED)
def test_types_have_the_names_that_scrapers_know(asked, path):
    running = asked(OTEL_PROFILER_ALLOC_INTERVAL="1")
    profile = running.process.profile(path)
    assert types_of(profile) == SCRAPED[path][1]
    in_periods = profile.text(profile.message.period_type.unit) != "count"
    assert profile.message.period > 1 if in_periods and "cpu" in path else profile.message.period >= 1
    running.over()


@pytest.mark.parametrize("path", SCRAPED)
def test_scrapers_accept_the_responses_as_profiles(at_port, path):
    """Alloy accepts no other media type and no text, and its client would decompress a body that is marked as
    compressed; Parca requires consecutive ids."""
    running = at_port(OTEL_PROFILER_ALLOC_INTERVAL="1")
    answer = running.process.ask(f"/debug/pprof/{path}", headers={"Accept-Encoding": "gzip", "User-Agent": "Alloy/v1.0 (linux; docker)"})
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/octet-stream"
    assert "Content-Encoding" not in answer.headers and answer.body[:2] == b"\x1f\x8b"
    message = answer.profile().message
    for table in (message.mapping, message.location, message.function):
        assert [it.id for it in table] == list(range(1, len(table) + 1))
    assert message.sample or path in ("block", "mutex", "profile?seconds=1")  # no thread need have waited yet, nor run in that time
    running.over()


@pytest.mark.parametrize("name", SINCE_START)
def test_sums_since_the_start_are_of_the_moment_at_which_they_are_asked_for(asked, name):
    """Scrapers sort profiles by that time, and refuse old ones; a profile with a duration would be taken as a
    difference."""
    running = asked(OTEL_PROFILER_ALLOC_INTERVAL="1")
    began = time.clock_gettime_ns(time.CLOCK_REALTIME)
    profile = running.process.profile(name)
    ended = time.clock_gettime_ns(time.CLOCK_REALTIME)
    assert began <= profile.message.time_nanos <= ended and profile.message.duration_nanos == 0
    comments = [profile.text(it) for it in profile.message.comment]
    assert len(comments) == 1 and comments[0].startswith("sums since 20") and comments[0].endswith("Z")
    running.over()


@pytest.mark.parametrize("name", [*SINCE_START, "goroutine"])
def test_a_difference_has_its_time(asked, name):
    running = asked()
    began = time.clock_gettime_ns(time.CLOCK_REALTIME)
    profile = running.process.profile(f"{name}?seconds=1")
    ended = time.clock_gettime_ns(time.CLOCK_REALTIME)
    message = profile.message
    assert message.duration_nanos >= 1e9 and not message.comment
    assert began <= message.time_nanos and message.time_nanos + message.duration_nanos <= ended
    running.over()


def test_code_without_a_name_keeps_its_address(asked, half_named):
    """Pyroscope drops the addresses of a mapping that claims to have all functions: the frame would be lost."""
    running = asked(OTEL_PROFILER_ALLOC_INTERVAL="1", path=half_named)

    def mapping_of_ours(profile):
        return {it.id: it for it in profile.message.mapping if profile.text(it.filename) == "half_named"}

    def with_and_without_a_name(profile):
        return {bool(it.line) for it in profile.message.location if it.mapping_id in mapping_of_ours(profile)} == {True, False}

    profile = eventually(lambda: running.process.profile("allocs"), "code with and without a name", holds=with_and_without_a_name)
    ours = mapping_of_ours(profile)
    assert [it.has_functions for it in ours.values()] == [False]
    nameless = {it.mapping_id for it in profile.message.location if not it.line}
    assert all(it.has_functions == (it.id not in nameless) for it in profile.message.mapping)
    running.over()


# --- differences ---


def by_identity(profile, kind):
    """Returns {(addresses, labels): (value, functions)}: the identity of a sample for Alloy, which subtracts by it."""
    column, found = profile.column(kind), {}
    for sample in profile.message.sample:
        addresses = tuple(profile.locations[index].address for index in sample.location_id)
        labels = tuple(sorted((profile.text(it.key), profile.text(it.str), it.num) for it in sample.label))
        assert (addresses, labels) not in found, "two stacks would be one"
        found[addresses, labels] = sample.value[column], profile.stack(sample)
    return found


@contextlib.contextmanager
def twins(start, tmp_path):
    """Starts a program of Python that listens."""
    stop = tmp_path / "stop"
    environment = {"OTEL_PROFILER_LISTEN": f"unix:{tmp_path}/socket", "OTEL_PROFILER_ALLOC_INTERVAL": "1000", **ALL_TYPES}
    program = start(["/usr/bin/python3", "-c", TWINS, stop], env=environment)
    process = Process(tmp_path / "socket")
    process.until_it_answers()
    yield process
    stop.touch()
    assert program.finish(TIMEOUT_S).returncode == 0


def of_both(process, least):
    """Returns the allocations, once there are more of each twin than these."""
    return eventually(lambda: process.profile("allocs"), f"more allocations than {least}",
                      holds=lambda profile: all(profile.value_of(name, "alloc_space") > value for name, value in least.items()))


def test_functions_of_python_are_told_apart_by_addresses(start, tmp_path):
    """The difference that Alloy computes is what was allocated in between, function by function."""
    names = ("first_twin", "second_twin")
    with twins(start, tmp_path) as process:
        before = of_both(process, dict.fromkeys(names, 0))
        after = of_both(process, {name: before.value_of(name, "alloc_space") for name in names})
    old, new = by_identity(before, "alloc_space"), by_identity(after, "alloc_space")
    assert all(new[key][0] >= value for key, (value, _) in old.items() if value)
    for name in names:
        difference = sum(value - old.get(key, (0,))[0] for key, (value, stack) in new.items() if name in stack)
        assert difference == after.value_of(name, "alloc_space") - before.value_of(name, "alloc_space")


@pytest.mark.parametrize("name", ["allocs", "block", "mutex", "goroutine"])
def test_a_stack_stays_one_when_its_code_gets_better_names(asked, name):
    """Debug information is read after the first response: the code of a file is identified by its build id."""
    running = asked(OTEL_PROFILER_ALLOC_INTERVAL="1")
    for _ in range(3):
        profile = running.process.profile(name)
        by_identity(profile, profile.default_type)
    mapped = [(it.mapping_id, it.address) for it in profile.message.location if it.mapping_id]
    assert len(set(mapped)) == len(mapped)
    running.over()
