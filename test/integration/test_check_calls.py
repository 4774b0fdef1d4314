"""Each system call of ours is on the list, and is asked of a filter before the filter comes.

The programs run under test/faults/inject.c, which compares each call that the profiler makes with
shim/process/allowed_calls.def and with the questions of shim/process/seccomp_filter.c. Twice the program installs a
filter of its own, which lets everything pass, after our start: on one thread, and on all. `make check-calls` does the
same with all integration tests.
"""

import subprocess
import sys

import pytest
from grpc_server import OK as GRPC_OK
from grpc_server import GrpcServer
from http_server import OK, HttpServer
from profiled import BUILD, LIBRARY, ROOT
from test_filters import NUMBERS

sys.path.insert(0, str(ROOT / "test" / "faults"))

import faults  # noqa: E402

pytestmark = pytest.mark.system

NAMES = {int(number): name for name, number in NUMBERS.items()}
PROGRAMS = BUILD / "test/programs"
SANDBOX = BUILD / "test/faults/sandbox.so"
VICTIM = [BUILD / "test/faults/victim", "15"]
PYTHON = """
import hashlib, os, subprocess, threading
def work():
    for _ in range(2000):
        hashlib.sha256(b'x' * 9999)
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
child = os.fork()
if not child:
    work()
    os._exit(5)
os.waitpid(child, 0)
subprocess.call(['/bin/sh', '-c', 'exit 6'])
"""
PERL = ["/usr/bin/perl", "-e", "$x += sqrt $_ for 1 .. 1e6; exit(system('exit 3') >> 8)"]
SETTINGS = {
    "http": (VICTIM, {}),
    "debug": (VICTIM, {"OTEL_LOG_LEVEL": "debug"}),
    "stderr": (VICTIM, {"OTEL_PROFILER_LOG_FILE": "", "OTEL_LOG_LEVEL": "debug"}),
    "file": (VICTIM, {"OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_FILE": "{folder}/profiles.jsonl"}),
    "console": (VICTIM, {"OTEL_PROFILES_EXPORTER": "console"}),
    "grpc": (VICTIM, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}),
    "zstd": (VICTIM, {"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd", "OTEL_PROFILER_LISTEN": "unix:{folder}/socket"}),
    "port": (VICTIM, {"OTEL_PROFILER_LISTEN": "127.0.0.1:0"}),
    "control file": (VICTIM, {"OTEL_PROFILER_CONTROL_FILE": "{folder}/control"}),
    "no name": (VICTIM, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://no.such.name.invalid:4318"}),
    "nobody listens": (VICTIM, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:9"}),
    "one type": (VICTIM, {"OTEL_PROFILER_TYPES": "cpu"}),
    "excluded": (VICTIM, {"OTEL_PROFILER_EXCLUDE": "*"}),
    "python": (["/usr/bin/python3", "-S", "-c", PYTHON], {}),
    "perl": (PERL, {}),
}
# forks, ends, ids, waits, locks, threads, signals, loading
ALONE = ["forks_and_computes", "fork_in_thread", "ends_in_fork", "prefork_tree", "child_waits", "bare_child", "clones_at_once",
         "aborts", "thread_ends", "sets_ids", "unshares_once", "policies", "holds_locks", "waits_often", "odd_waits",
         "polls_by_kernel", "blocked_signals", "handlers_on_stacks", "throw_across", "maps_memory", "heap_peaks", "unusual_rule"]
CASES = {**SETTINGS, **{name: ([PROGRAMS / name], {}) for name in ALONE}}


def checked(report, command, environment, own_filter=None, library=LIBRARY):
    """-> the status, and the calls that are reported, as sentences."""
    preload = [SANDBOX, library] if own_filter else [library]
    sandbox = {"SANDBOX_ALLOW": "0", "SANDBOX_ACTION": "allow", "SANDBOX_THREADS": own_filter} if own_filter else {}
    given = {**environment, **sandbox, "LD_PRELOAD": " ".join(map(str, preload))}
    done = subprocess.run([faults.INJECT, "check", report, "/usr/bin/env", *(f"{name}={value}" for name, value in given.items()),
                           *command], env=faults.clean_environment(), cwd=report.parent, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=300, check=False)
    found = []
    for line in report.read_text().splitlines():
        what, role, number, arguments, stack = line.split(" ", 4)
        found.append(f"{role}: {NAMES.get(int(number), number)}({arguments}): {what}: {stack}")
    return done.returncode, found


# Every program behind a filter of its own, and some without.
RUNS = [*((name, ("one", "all")[number % 2]) for number, name in enumerate(CASES)),
        ("http", "all"), ("http", None), ("python", None), ("prefork_tree", None), ("sets_ids", None)]


@pytest.mark.parametrize("name, own_filter", RUNS)
def test_each_call_is_listed_and_asked_about(tmp_path, name, own_filter):
    command, settings = CASES[name]
    receiver = GrpcServer(*[GRPC_OK] * 500) if name == "grpc" else HttpServer(*[OK] * 500)
    try:
        _, found = checked(tmp_path / "report", command, {
            **faults.SETTINGS, "OTEL_PROFILER_EXCLUDE": "none", "OTEL_PROFILER_TYPES": "all",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.port}", "OTEL_PROFILER_LOG_FILE": str(tmp_path / "log"),
            **{variable: value.format(folder=tmp_path) for variable, value in settings.items()}}, own_filter)
        assert not found, "\n".join(found)
        assert receiver.calls or name not in ("http", "python", "zstd", "grpc")
    finally:
        receiver.stop()


STRAY = """
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) static void strays(void) {
    syscall(SYS_getpgid, 0);
    syscall(SYS_madvise, 0L, 0L, MADV_HUGEPAGE);
    syscall(SYS_madvise, 0L, 0L, MADV_DONTNEED);
}
__attribute__((destructor)) static void end(void) { strays(); }
"""


@pytest.mark.parametrize("own_filter", [None, "all"])
def test_a_stray_call_is_reported(tmp_path, own_filter):
    """A library of our name makes a call that is not listed, and one whose advice nobody asks about."""
    (tmp_path / "stray.c").write_text(STRAY)
    library = tmp_path / "libotelprof.so"
    subprocess.run(["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-o", library, tmp_path / "stray.c"],
                   check=True)
    status, found = checked(tmp_path / "report", ["/bin/true"], {}, own_filter, library)
    assert status == 0
    assert [line.split("(")[0] for line in found] == ["app: getpgid"] + ["app: madvise"] * bool(own_filter), found
