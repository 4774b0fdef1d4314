"""The allocators' own stress tests pass while as many allocations as possible are sampled: alignment, contents,
stress-ng."""

import shutil
import sys

import pytest

import allocators
from profiled import BUILD, ROOT

sys.path.insert(0, str(ROOT / "test" / "heap"))

from heap import ALLOCATORS, preload, profile  # noqa: E402

pytestmark = pytest.mark.load

STRESSORS = {
    "malloc": ["--malloc", "2", "--malloc-bytes", "64M", "--malloc-pthreads", "4", "--malloc-ops", "8000"],
    "bigheap": ["--bigheap", "1", "--bigheap-growth", "65536", "--bigheap-ops", "2000"],
    "mmap": ["--mmap", "1", "--mmap-bytes", "32M", "--mmap-ops", "10"],
}


@pytest.mark.parametrize("interval", [1, 64 * 1024])
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_alignment_and_contents(allocator, interval, tmp_path):
    environment = {"OTEL_PROFILER_ALLOC_INTERVAL": str(interval), "OTEL_PROFILER_CPU_FREQUENCY": "999"}
    command = [BUILD / "test/programs/all_alignments", 1]
    if allocator == "mimalloc":
        environment["ANY_ALIGNMENT"] = "1"
        if not allocators.stands_alone(allocator, command, environment):
            pytest.skip("this mimalloc breaks the program without us, too")
    result = profile(
        command, environment, tmp_path, preload(allocator)
    )
    assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr
    assert "warn" not in result.log, result.log
    assert result.instance.total("alloc_space") > 10**8, "it was profiled"


@pytest.mark.skipif(not shutil.which("stress-ng"), reason="stress-ng is not installed")
@pytest.mark.parametrize("stressor", STRESSORS)
def test_stress_ng_verifies(stressor, tmp_path):
    """stress-ng checks what it wrote; it and its workers live through being sampled all the time."""
    result = profile(
        ["stress-ng", *STRESSORS[stressor], "--verify", "--timeout", "3", "--temp-path", tmp_path],
        {"OTEL_PROFILER_ALLOC_INTERVAL": "512", "OTEL_PROFILER_CPU_FREQUENCY": "999",
         "OTEL_PROFILER_MIN_LIFETIME": "100"},
        tmp_path,
    )
    said = (result.stdout + result.stderr).replace("failed: 0", "")  # newer versions count so
    assert result.returncode == 0, said
    assert "successful run completed" in said, said
    assert "fail" not in said, said
    assert " error: " not in result.log, result.log
