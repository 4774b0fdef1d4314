"""The live heap at its peak is exported as programs with a known peak have it."""

import json

import pytest

from profiled import attributes_of, value_of
from sampling_theory import bound, standard_error

HOLD_MS = 1500  # the helper needs some 100 ms to read the last peak
GOOD_OBJECTS, GOOD_BYTES = 500, 2000
HIGH_BYTES = 3000
EXACT = {"OTEL_PROFILER_ALLOC_INTERVAL": "1"}


@pytest.fixture
def peaks(run, program):
    """peaks(hold, threads, rest, **environment) -> the program's output, and its outcome."""

    def run_through(hold, threads, rest, **environment):
        settings = {
            "OTEL_PROFILER_TYPES": "heap,heap_peak", "OTEL_PROFILER_MIN_LIFETIME": "0",
            "OTEL_PROFILE_EXPORT_INTERVAL": "86400000", **environment,
        }
        outcome = run([program("heap_peaks"), str(hold), str(threads), str(rest)], env=settings)
        assert outcome.returncode == 0, outcome.stderr
        return json.loads(outcome.stdout), outcome

    return run_through


def process_with(outcome, function):
    """Returns the process with that function: the program has `rise_high`, its forked child `rise_in_child`."""
    found = [instance for instance in outcome.instances() if function in instance.names()]
    assert len(found) == 1
    return found[0]


def peak_profiles(outcome, instance):
    """Returns (type, sum, attributes) of each, in their order."""
    found = []
    for request in outcome.requests:
        strings = request.dictionary.string_table
        for resource_profiles in request.resource_profiles:
            if attributes_of(resource_profiles.resource)["service.instance.id"] != instance.instance_id:
                continue
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    kind = strings[profile.sample_type.type_strindex]
                    if not kind.startswith("peak_"):
                        continue
                    listed = [request.dictionary.attribute_table[index] for index in profile.attribute_indices]
                    known = {strings[each.key_strindex]: value_of(each.value) for each in listed}
                    found.append((kind, sum(sum(sample.values) for sample in profile.samples), known))
    return found


@pytest.mark.parametrize("threads", [1, 4])
def test_the_highest_of_several_peaks_is_reported(peaks, threads):
    """The highest peak is over before the last export."""
    told, outcome = peaks("export", threads, 0, **EXACT)
    program = process_with(outcome, "rise_high")
    assert program.value_of("rise_high", "peak_space") == told["high"]
    assert program.value_of("rise_high", "peak_objects") == told["objects"]
    assert program.value_of("keep_for_good", "peak_space") == told["good"]
    assert program.value_of("keep_for_good", "peak_objects") == GOOD_OBJECTS
    assert program.value_of("rise_low", "peak_space") == 0
    assert program.value_of("rise_high", "inuse_space") == 0
    assert program.dropped.get("peak_full", 0) == 0


@pytest.mark.timing
def test_a_peak_is_within_five_percent_of_the_highest_that_was_seen(peaks):
    """The peak is over long before the only export: the helper is woken by the peak, and reads the heap meanwhile."""
    told, outcome = peaks(HOLD_MS, 2, 0, **EXACT)
    program = process_with(outcome, "rise_high")
    for kind, total, known in peak_profiles(outcome, program):
        if kind == "peak_space":
            assert 0.95 * known["otelprof.heap.peak.highest"] <= total <= known["otelprof.heap.peak.highest"]
            assert known["otelprof.heap.peak.highest"] >= told["high"]


def test_a_peak_that_was_not_read_in_time_has_its_height(peaks):
    """The peak lasts for no time at all: the kept heap may be anything below, and the export gives the peak's height."""
    told, outcome = peaks(0, 1, 0, **EXACT)
    program = process_with(outcome, "keep_for_good")
    totals = {kind: total for kind, total, _ in peak_profiles(outcome, program)}
    for _, _, known in peak_profiles(outcome, program):
        assert known["otelprof.heap.peak.highest"] >= told["high"] + told["good"]
        assert known["otelprof.heap.peak.time"] > 1_500_000_000 * 10**9
    assert told["good"] <= totals["peak_space"]


def test_a_peak_never_falls_from_export_to_export(peaks):
    told, outcome = peaks("export", 1, "export", **EXACT)
    program = process_with(outcome, "rise_high")
    spaces = [total for kind, total, _ in peak_profiles(outcome, program) if kind == "peak_space"]
    highest = [known["otelprof.heap.peak.highest"] for _, _, known in peak_profiles(outcome, program)]
    assert len(spaces) >= 7, "six that the program asks for, and the last"
    assert spaces == sorted(spaces) and highest == sorted(highest)
    assert spaces[0] < told["high"] <= spaces[-1]
    assert len(set(spaces)) >= 2, "and it has risen in between"


def test_a_child_begins_with_no_peak(peaks):
    told, outcome = peaks("export", 1, "export", **EXACT)
    child = process_with(outcome, "rise_in_child")
    assert child.value_of("rise_in_child", "peak_space") == told["child"]
    assert child.value_of("rise_high", "peak_space") == 0
    assert child.value_of("keep_for_good", "peak_space") == 0
    for _, total, known in peak_profiles(outcome, child):
        assert known["otelprof.heap.peak.highest"] < told["high"]
        assert total < told["high"]


def test_a_sampled_peak_is_within_its_error(peaks):
    interval = 65536
    told, outcome = peaks("export", 8, 0, OTEL_PROFILER_ALLOC_INTERVAL=str(interval))
    program = process_with(outcome, "rise_high")
    error = standard_error(told["objects"], HIGH_BYTES, interval) * HIGH_BYTES
    assert abs(program.value_of("rise_high", "peak_space") - told["high"]) < bound() * error + 0.05 * told["high"]
    assert program.value_of("rise_low", "peak_space") == 0


def test_without_the_word_there_is_no_peak(peaks):
    told, outcome = peaks(0, 1, 0, OTEL_PROFILER_TYPES="heap", **EXACT)
    program = process_with(outcome, "keep_for_good")
    assert peak_profiles(outcome, program) == []
    assert program.value_of("keep_for_good", "inuse_space") == told["good"]


def test_mappings_that_change_their_size_are_in_the_peak_as_they_are(run, program):
    """A mapping that had become larger counts with its first size, and so does one that had lost its beginning."""
    settings = {"OTEL_PROFILER_TYPES": "heap,heap_peak,mmap", "OTEL_PROFILER_MIN_LIFETIME": "0", **EXACT}
    outcome = run([program("resizes_mappings")], env=settings)
    told = int(outcome.stdout)
    measured = outcome.instance("resizes_mappings")
    assert measured.value_of("maps", "inuse_space") == told
    assert measured.value_of("maps", "peak_space") == told
    highest = {known["otelprof.heap.peak.highest"] for _, _, known in peak_profiles(outcome, measured)}
    assert highest == {measured.total("inuse_space")}
