"""The helper has memory of its own: shim/capture/helper_heap/helper_heap.h."""

import re
import subprocess
import sys

import pytest
from profiled import BUILD, ROOT

pytestmark = pytest.mark.system

OFTEN = {"OTEL_PROFILE_EXPORT_INTERVAL": "100", "OTEL_PROFILER_MIN_LIFETIME": "0"}


def test_the_programs_allocator_has_no_arena_of_ours(run, program):
    """So no thread of the program, exit handlers and fork() included, can wait for a lock that the helper holds, or
    free the helper's memory."""
    outcome = run([program("arenas"), "600"], env=OFTEN)
    assert (outcome.stdout, outcome.returncode) == ("1\n", 0), outcome.stderr
    assert len(outcome.requests) > 2


def test_no_library_of_ours_calls_malloc_usable_size():
    """libc would report sizes of the helper's objects as if they were libc's own."""
    listed = subprocess.run(["ldd", str(BUILD / "libotelprof-flush.so")], capture_output=True, text=True,
                            check=True).stdout
    libraries = re.findall(r"=> (/\S+)", listed)
    assert len(libraries) > 10
    for library in [str(BUILD / "libotelprof-flush.so"), *libraries]:
        symbols = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True,
                                 check=True).stdout
        assert "malloc_usable_size" not in symbols, library


def test_core_dumps_stay_small(run):
    """Core dumps leave out the profiler's memory, except for what helps to find a mistake of ours: the helper's
    stack, of 2 MiB, and the data of the libraries that it loads."""
    command = [sys.executable, str(ROOT / "test/programs/dumped.py"), "1.5"]
    without = int(run(command, profiled=False).stdout)
    outcome = run(command, env={**OFTEN, "OTEL_PROFILER_TYPES": "cpu,alloc,heap,mmap"})
    assert outcome.requests
    assert int(outcome.stdout) - without < 6 << 10, "KiB"
