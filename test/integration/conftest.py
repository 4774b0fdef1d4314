"""Fixtures of the integration tests (profiled.py says what they give)."""

import ctypes
import itertools
import os
import struct

import pytest

from profiled import BUILD, LIBRARY, Run

SYS_SCHED_SETATTR = 314
SLICE_NS = 10_000_000


def pytest_sessionstart():
    """Lets what the tests start run for two ticks at a stretch (Linux 6.12; older kernels refuse).

    The kernel checks CPU timers on its tick, of 1 to 10 ms. Tests run beside each other. Where the kernel switches
    threads after 1.5 ms, all ticks of some seconds may fall into turns of other programs: then no profiler that works
    by CPU timers gets a sample, and tests of where CPU time is spent have nothing to compare.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = struct.pack("IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, SLICE_NS, 0, 0)
    libc = ctypes.CDLL(None)
    libc.syscall(SYS_SCHED_SETATTR, 0, ctypes.create_string_buffer(attributes, 48), 0)


@pytest.fixture
def start(tmp_path):
    """start(command, ...) -> a running program with finish(timeout)."""
    numbers = itertools.count()
    started = []

    def begin(command, profiled=True, cwd=None, stdin="", env=None, limits=None, log_to_stderr=False):
        scratch = tmp_path / f"run{next(numbers)}"
        scratch.mkdir()
        program = Run(
            command, profiled, cwd, stdin, env or {}, limits or {}, log_to_stderr, scratch
        )
        started.append(program)
        return program

    yield begin
    for program in started:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()


@pytest.fixture
def run(start):
    """run(command, timeout=300, ...) -> its outcome; profiled=False runs the command without the profiler."""

    def run_to_end(command, timeout=300, **options):
        return start(command, **options).finish(timeout)

    return run_to_end


@pytest.fixture
def serve(request):
    """serve(*scripts, ...) -> a running server, of the class that the test's module calls SERVER."""
    started = []

    def begin(*scripts, **options):
        started.append(request.module.SERVER(*scripts, **options))
        return started[-1]

    yield begin
    for server in started:
        server.stop()


@pytest.fixture
def burn(run, program):
    """burn(environment, milliseconds) -> the lines that the profiler logged while a program burnt that much CPU time,
    or while `command` ran. Asserts that the program itself noticed nothing."""

    def profile(environment, milliseconds, command=None, timeout=300):
        burning = [program("burn"), str(milliseconds), "4"]
        outcome = run(command or burning, env=environment, log_to_stderr=True, timeout=timeout)
        assert (outcome.stdout, outcome.returncode) == (("", 0) if command else ("burnt\n", 7))
        lines = outcome.stderr.splitlines()
        assert all(line.startswith("libotelprof[") and line.isprintable() and len(line) < 600 for line in lines), lines
        return lines

    return profile


@pytest.fixture
def enterable(run, program):
    """enterable(how) skips a test where the kernel refuses that namespace to the program even without the profiler
    (in a container, in a chroot). In CI a refusal is a failure: nothing is skipped there."""

    def look(how):
        said = run([program("enters_namespace"), "0", how], profiled=False).stdout.strip()
        if said != "alone" and os.environ.get("CI") == "true":
            pytest.fail(f"CI may not refuse the namespace: {said}")
        if said != "alone":
            pytest.skip(f"this system refuses the namespace without us, too: {said}")

    return look


@pytest.fixture
def program():
    """program(name) -> the path of a built test program."""
    return lambda name: str(BUILD / "test" / "programs" / name)


@pytest.fixture
def library():
    return str(LIBRARY)
