"""Between entering and leaving our handler no thread allocates, locks or enters the loader: a tracer watches each
instruction (test/programs/watch_handler.c)."""

import os
import subprocess
from collections import namedtuple

import pytest
from profiled import BUILD, LIBRARY

pytestmark = [pytest.mark.load, pytest.mark.hard]

SIGPROF = 27
UNNAMED = 61  # SIGRTMAX-3: the signal that is taken beside dlmopen
CLOCK_GETTIME, RT_SIGRETURN, RT_SIGPROCMASK, TIMER_SETTIME, MMAP, MUNMAP, MADVISE, RT_SIGPENDING = (
    228, 15, 14, 223, 9, 11, 28, 127
)
# Lists leaf functions of libc: none allocates, locks or waits.
LEAVES = ("__errno_location", "clock_gettime", "__restore_rt", "syscall", "mmap", "madvise", "memcpy",
          "memset", "memcmp", "__mem", "__mmap", "__madvise",
          "munmap", "__munmap")  # two threads may map the same table: one of them unmaps its copy

# glibc's lock-free look-up, documented for use in handlers, under the names that symbol tables give it.
FIND_OBJECT = {"_dl_find_object", "__GI__dl_find_object", "_dl_find_object_slow"}

Seen = namedtuple("Seen", "calls locks system_calls handlers status output")


def watch(library, count, *command, number=SIGPROF):
    environment = {
        **os.environ, "OTEL_PROFILER_SIGNAL": str(number), "OTEL_PROFILER_CPU_FREQUENCY": "4000", "OTEL_PROFILES_EXPORTER": "console",
        "OTEL_PROFILER_LOG_FILE": "/dev/null", "OTEL_PROFILER_MAX_OVERHEAD": "none",
    }
    done = subprocess.run(
        [BUILD / "test/programs/watch_handler", str(number), str(count), library, *command],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
        timeout=120,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    calls, locks, system_calls, handlers = set(), set(), set(), 0
    for line in lines:
        if line[:1] == ["call"]:
            calls.add((" ".join(line[1:-2]), line[-2]))
        elif line[:1] == ["lock"]:
            locks.add((" ".join(line[1:-2]), line[-2]))
        elif line[:1] == ["syscall"]:
            system_calls.add(int(line[1]))
        elif line[:1] == ["handlers"]:
            handlers = int(line[1])
    return Seen(calls, locks, system_calls, handlers, done.returncode, done.stdout)


def is_leaf(function):
    return function.split("@")[0].startswith(LEAVES)


def is_expected(file, function, loader):
    if file.startswith("libc.so"):
        return is_leaf(function) or function in loader
    if file.startswith("ld-linux"):
        return function in loader
    return file.startswith(("libotelprof.so", "[vdso"))


def expect_harmless(seen, loader=frozenset()):
    """Asserts that only our own code runs, leaf functions of libc, and the named functions of the loader."""
    strange = {(file, function) for file, function in seen.calls if not is_expected(file, function, loader)}
    assert not strange, seen.output
    assert {file for file, _ in seen.locks} <= {"libotelprof.so"}, "a lock of somebody else's"
    assert seen.system_calls <= {
        CLOCK_GETTIME, RT_SIGRETURN, RT_SIGPROCMASK, TIMER_SETTIME, MMAP, MUNMAP, MADVISE, RT_SIGPENDING
    }, seen.output
    assert ("libotelprof.so", "cfi_rule") in seen.calls, "the first, cold samples are among them"


@pytest.mark.parametrize(
    "program, arguments, status",
    [("burn", ["2500", "16"], 7), ("cpu_shares", ["4", "2"], 0)],
)
def test_the_handler_is_harmless(program, arguments, status):
    seen = watch(LIBRARY, 60, BUILD / "test/programs" / program, *arguments)
    assert seen.status == status
    assert seen.handlers >= 30, seen.output
    expect_harmless(seen)


@pytest.mark.parametrize("program, count, number", [("throw_deep", 60, SIGPROF), ("dlopen_storm", 200, UNNAMED)])
def test_beside_the_loader_and_exceptions(program, count, number):
    """Code that was not there at the start, or is no code at all (return addresses that an exception has
    overwritten), is searched by the one function of the loader that is made for handlers, and by no other."""
    for seconds in (4, 12, 36):  # on a busy machine few signals come within a second
        seen = watch(LIBRARY, count, BUILD / "test/torture" / program, str(seconds), number=number)
        assert seen.status == 0
        if seen.handlers >= 30:
            break
    assert seen.handlers >= 30, seen.output
    expect_harmless(seen, loader=FIND_OBJECT)


def test_the_watcher_sees_forbidden_calls():
    library = BUILD / "test/programs/bad_handler.so"
    seen = watch(library, 20, BUILD / "test/programs/burn", "500", "4")
    assert seen.handlers == 20
    functions = {function for _, function in seen.calls}
    assert "__libc_malloc" in functions or "malloc" in functions
    assert any("pthread_mutex_lock" in function for function in functions)
    assert any(file.startswith("ld-linux") for file, _ in seen.calls)
    assert ("bad_handler.so", "on_signal") in seen.locks
    with pytest.raises(AssertionError):
        expect_harmless(seen)
