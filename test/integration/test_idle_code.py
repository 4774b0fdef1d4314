"""Pages of the exporter's libraries are not resident between exports, unless other code wrote into them."""

import re
from pathlib import Path

import pytest
from waiting import eventually

pytestmark = pytest.mark.fast

OFTEN = {"OTEL_PROFILE_EXPORT_INTERVAL": "1000"}


def file_pages(pid):
    """Returns library -> KiB of its mappings' resident pages that are the file's."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)", line)
        if head:
            name = Path(head[1]).name.split(".so")[0]
        elif line.startswith("Rss:"):
            found[name] = found.get(name, 0) + int(line.split()[1])
        elif line.startswith("Anonymous:"):
            found[name] -= int(line.split()[1])
    return found


def when(condition, pid):
    """Returns the first file_pages() for which the condition holds."""
    return eventually(lambda: file_pages(pid), "other resident pages", holds=condition)


def is_idle(pages):
    return "libcurl" in pages and not any(pages[name] for name in ("libcurl", "libprotobuf-c", "libnghttp2"))


def test_code_of_the_exporter_is_given_back(start):
    program = start(["/usr/bin/python3", "-c", "import time; time.sleep(100)"], env=OFTEN)
    pages = when(is_idle, program.process.pid)
    assert pages["libc"] > 0


def test_code_that_the_program_uses_too_stays(start, program):
    """The program has loaded the libraries before the exporter."""
    late = dict(OFTEN, OTEL_PROFILER_MIN_LIFETIME="2000")
    running = start(["/usr/bin/python3", "-c", "import ssl, time; time.sleep(100)"], env=late)
    pages = when(is_idle, running.process.pid)
    assert pages["libcrypto"] > 0 and pages["libssl"] > 0


def test_patches_of_a_library_stay(run, program):
    done = run([program("patches_library")], env={**OFTEN, "OTEL_PROFILER_ALLOC_INTERVAL": "1"})
    assert done.stdout == "kept\n"
    assert len(done.requests) >= 3
