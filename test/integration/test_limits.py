"""Whatever limits a program has, it gets all of them, and does what it does without the profiler."""

import os
import re
import resource
import stat
import sys

import pytest
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "faults"))

from faults import LIBRARY, Bench, differences, run, victim, without_us  # noqa: E402

pytestmark = pytest.mark.system

MiB, KiB = 1 << 20, 1 << 10
NOBODY = 65534

# Some of these limits suffice for the program, and some do not.
LIMITS = [
    *(("NOFILE", count) for count in (9, 10, 12)),
    # threads in progress in the remaining address space decide the outcome below 28 MiB and around 140
    *(("AS", size * MiB) for size in (28, 32, 48, 64, 96, 300, 500, 639, 640)),
    *(("DATA", size * MiB) for size in (32, 64, 128, 199, 200)),
    *(("STACK", size * KiB) for size in (32, 64, 128, 192, 256, 512, 1024)),
    *(("SIGPENDING", count) for count in range(4)),
    ("FSIZE", 0), ("MEMLOCK", 0), ("MSGQUEUE", 0), ("CPU", 30), ("RTPRIO", 0), ("RTTIME", 0),
]


@pytest.fixture(scope="module")
def bench():
    made = Bench()
    yield made
    made.close()


def with_limit(name, value):
    what = getattr(resource, f"RLIMIT_{name}")
    return lambda: resource.setrlimit(what, (value, value))


def expect_the_same(bench, prepare, arguments=(), **environment):
    """Runs the program under the profiler and without; returns the common outcome."""
    bench.start_over()
    command = [*victim(), *arguments]
    plain = run(command, {}, prepare)
    seen = run(command, {**bench.settings(), "LD_PRELOAD": str(LIBRARY), **environment}, prepare)
    assert not differences(seen, plain), bench.log_text()
    assert not bench.invalid()
    return plain


@pytest.mark.parametrize("name, value", LIMITS)
def test_limited(bench, name, value):
    expect_the_same(bench, with_limit(name, value), ["short"])
    if (name, value) in [("AS", 640 * MiB), ("DATA", 200 * MiB), ("NOFILE", 10)]:
        assert bench.receiver.requests, "enough for us too"
    if (name, value) in [("AS", 639 * MiB), ("DATA", 199 * MiB)]:
        assert f"RLIMIT_{name} is {value // MiB} MiB" in bench.log_text()
        assert not bench.receiver.requests


@pytest.mark.parametrize("count", range(4, 9))
def test_few_descriptors(bench, count):
    """The helper may hold the last descriptors for a moment, as a thread of the program could; then opening a file
    fails in the program. Everything else is as without the profiler."""
    bench.start_over()
    prepare = with_limit("NOFILE", count)
    plain = run(victim(), {}, prepare)
    seen = run(victim(), {**bench.settings(), "LD_PRELOAD": str(LIBRARY)}, prepare)
    opened = re.compile(r"(library|descriptor) \S+")
    assert opened.sub("", seen.stdout) == opened.sub("", plain.stdout), bench.log_text()
    assert (seen.stderr, seen.status) == (plain.stderr, plain.status) == ("", 7)


def everybody_may_enter(path):
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)


@pytest.mark.skipif(not everybody_may_enter(LIBRARY), reason="another user could not read the build: it is below a private folder")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user who has no other process")
@pytest.mark.parametrize("processes", [1, 2, 5, 8])
def test_few_processes(bench, processes):
    """A helper that cannot be created does no harm. (A helper that takes the last place that the program would have
    needed does: 3 and 4.)"""

    def prepare():
        nobody_else = 1000000 + os.getpid()  # all processes of one user count together, those of other tests, too
        with_limit("NPROC", processes)()
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(nobody_else, nobody_else, nobody_else)

    plain = expect_the_same(bench, prepare, OTEL_PROFILER_LOG_FILE="/dev/null")
    assert ("threads -1" in plain.stdout) == (processes <= 2)


def test_the_program_does_all_that_it_prints():
    assert "threads 3" in without_us().stdout
