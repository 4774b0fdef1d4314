"""The heap's peak is exported before memory runs out."""

import resource
import signal

import pytest
from control_group import memory_limit
from waiting import eventually

pytestmark = pytest.mark.timing

MIB = 1 << 20
PEAK = {
    "OTEL_PROFILER_TYPES": "heap,heap_peak", "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_LOG_LEVEL": "debug",
    "OTEL_PROFILE_EXPORT_INTERVAL": "86400000",
}
NO_CORE = {resource.RLIMIT_CORE: (0, 0)}


def until_it_exports(running):
    eventually(lambda: running.receiver.requests, "an export", unless=running.process.poll)


def test_a_process_that_the_kernel_kills_has_exported_its_peak(start, program, tmp_path):
    limit, held = 400, 372  # nine tenths of the limit are 360
    with memory_limit(limit * MIB) as words:
        if not words:
            pytest.skip("no control group with a limit of memory can be made here")
        running = start([*words, program("fills_memory"), str(held), tmp_path / "go"], env=PEAK, log_to_stderr=True)
        until_it_exports(running)
        (tmp_path / "go").touch()
        outcome = running.finish(300)
    assert outcome.returncode == -signal.SIGKILL
    assert "that the control group allows; the heap's peak is exported early" in outcome.stderr
    instance = outcome.instance("fills_memory")
    assert instance.value_of("fill", "peak_space") > 0.8 * held * MIB


def test_a_limit_of_the_process_is_reported_too(start, program, tmp_path):
    running = start([program("fills_memory"), str(1 << 14), tmp_path / "go"], env=PEAK, log_to_stderr=True,
                    limits={**NO_CORE, resource.RLIMIT_AS: (2048 * MIB, 2048 * MIB)})
    until_it_exports(running)
    (tmp_path / "go").touch()
    outcome = running.finish(300)
    assert outcome.returncode == -signal.SIGABRT
    assert "that RLIMIT_AS allows; the heap's peak is exported early" in outcome.stderr
    assert outcome.instance("fills_memory").value_of("fill", "peak_space") > 1024 * MIB


def test_intervals_are_whole_with_an_early_export(start, program, tmp_path):
    """Each interval begins where the one before has ended."""
    running = start([program("fills_memory"), str(1 << 14), tmp_path / "go"], env={**PEAK, "OTEL_PROFILER_TYPES": "alloc,heap,heap_peak"},
                    limits={**NO_CORE, resource.RLIMIT_AS: (2048 * MIB, 2048 * MIB)})
    until_it_exports(running)
    (tmp_path / "go").touch()
    outcome = running.finish(300)
    spans = []
    for request in outcome.requests:
        strings = request.dictionary.string_table
        profiles = [profile for r in request.resource_profiles for s in r.scope_profiles for profile in s.profiles]
        spans += [(it.time_unix_nano, it.duration_nano) for it in profiles if strings[it.sample_type.type_strindex] == "alloc_space"]
    assert len(spans) >= 2
    for (begun, lasted), (next_begun, _) in zip(spans, spans[1:]):
        assert begun + lasted == next_begun
