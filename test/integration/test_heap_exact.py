"""With every allocation sampled, the profiles equal the program's own books, to the byte: random calls of every entry
point on eight threads, under four allocators. test/heap/run is the long form."""

import re
import sys

import pytest

import allocators
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "heap"))

from heap import ALLOCATION_KINDS, ALLOCATORS, differences, random_heap, run_random_heap  # noqa: E402

pytestmark = pytest.mark.load

CALLS = 200_000
OTHERS = [name for name in ALLOCATORS if name != "libc"]


@pytest.fixture(autouse=True)
def sound_allocator(request):
    """Skips an allocator that breaks the program without the profiler."""
    name = request.node.callspec.params.get("allocator") if hasattr(request.node, "callspec") else None
    if name == "mimalloc" and not allocators.stands_alone(name, random_heap(CALLS, 1, name)):
        pytest.skip("this mimalloc breaks the program without us, too")


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_books_and_profile_agree(allocator, tmp_path):
    result, _ = run_random_heap(CALLS, 1, allocator, tmp_path)
    found = differences(result)
    assert not found, "\n".join(found)
    books = result.books()
    assert sum(site["objects"] for site in books.values()) > CALLS / 3, "the program did its work"
    assert sum(site["live_objects"] for site in books.values()) > 1000, "and left something live"
    assert "warn" not in result.log and "error" not in result.log, result.log


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_other_seeds(seed, tmp_path):
    result, _ = run_random_heap(CALLS // 4, seed, "libc", tmp_path)
    found = differences(result)
    assert not found, "\n".join(found)


def test_a_large_interval_goes_in_parts(tmp_path):
    """No part is larger than requested; together they are the whole, once."""
    whole, _ = run_random_heap(CALLS // 4, 5, "libc", tmp_path)
    parts, _ = run_random_heap(CALLS // 4, 5, "libc", tmp_path,
                               environment={"OTEL_PROFILER_MAX_PROFILE_SIZE": "10000"})
    assert not differences(whole) and not differences(parts), differences(parts)
    assert max(whole.sizes) > 10000 >= max(parts.sizes)
    assert len(parts.sizes) > len(whole.sizes)


@pytest.mark.parametrize("allocator", OTHERS)
def test_an_allocator_before_us_is_reported_once(allocator, tmp_path):
    """The allocator's functions are the program's, not ours: no allocation is seen, and the profile claims none."""
    result, _ = run_random_heap(CALLS, 1, allocator, tmp_path, ours_first=False)
    assert result.returncode == 0, result.stderr
    told = [line for line in result.log.splitlines() if re.search(r"malloc|allocat", line)]
    assert len(told) == 1, result.log
    assert "profiled" in told[0], told
    assert result.instance is not None, "its CPU time is profiled all the same"
    sent = [kind for kind in ALLOCATION_KINDS if result.instance.stacks(kind)]
    assert not sent, f"{sent} were sent"
