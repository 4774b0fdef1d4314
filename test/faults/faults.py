"""Makes the profiler's own system calls and allocations fail, one at a time, in a program that does a
little of everything (victim.c), and compares what the program does with a run without the profiler. What
reaches the receiver must be valid too. The long form is `make faults`, the short one a part of
`make test-all`."""

import errno
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from profiled import BUILD, LIBRARY, Receiver  # noqa: E402
from validator import problems  # noqa: E402

INJECT = BUILD / "test/faults/inject"
TRIES_TO_MEET = 3
VICTIM = BUILD / "test/faults/victim"
FAILING_LIBRARY = BUILD / "test/faults/libotelprof.so"

# Sets the CPU time in each part of the program: enough for some samples, little enough for many runs.
MILLISECONDS = "15"
TIMEOUT = 300  # generous: a run takes half a second, and a minute under a load of hundreds
WORKERS = 2

SETTINGS = {
    "OTEL_PROFILER_MIN_LIFETIME": "0",
    "OTEL_PROFILER_CPU_FREQUENCY": "1000",
    "OTEL_PROFILER_ALLOC_INTERVAL": "1000",
    "OTEL_PROFILER_MAX_OVERHEAD": "none",
    "OTEL_PROFILE_EXPORT_INTERVAL": "150",
    "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "3000",
}

ERRORS = ("ENOMEM", "EMFILE", "EPERM", "EINTR", "EAGAIN")

MMAP, MPROTECT, MUNMAP, BRK, CLONE, FUTEX, OPENAT, SOCKET, CLONE3, RSEQ = (
    9, 10, 11, 12, 56, 202, 257, 41, 435, 334
)
# Lists calls that have no way to fail, whatever is wrong with the kernel or allowed by a sandbox.
CANNOT_FAIL = {
    15: "rt_sigreturn", 39: "getpid", 60: "exit", 186: "gettid", 219: "restart_syscall",
    231: "exit_group",
}
# Lists the error of a call in the short form, where it is not EPERM.
LIKELY = {
    MMAP: "ENOMEM", MPROTECT: "ENOMEM", BRK: "ENOMEM", CLONE: "EAGAIN", CLONE3: "EAGAIN",
    OPENAT: "EMFILE", SOCKET: "EMFILE", FUTEX: "EINTR",
}

# Lists a call that fails only where it always fails, since its arguments are valid: see deny_call().
ONLY_DENIED = {14: "rt_sigprocmask"}

# Matches what an export may lack after the failure of a call that would have provided it.
UNKNOWN = re.compile(r"^resource attribute \S+ is missing|otelprof.self.cpu_time=0|file name '' is not")

# Lists what libraries do on their own, and no code of ours can prevent: text of a difference -> why.
KNOWN = {
    "Error in GnuTLS initialization": "GnuTLS's constructor says on stderr that it found no memory",
}

# process: 0 for the program, then its children in order. role: "app" or "helper" (inject.c explains).
Call = namedtuple("Call", "process role number site nth stack")  # the order that inject takes
Result = namedtuple("Result", "stdout stderr status")


def is_possible(call):
    """glibc ends the process on purpose when a thread's rseq cannot be registered as the first
    thread's was, and when its own futex calls fail as the kernel never fails them."""
    if call.number in CANNOT_FAIL or call.number in ONLY_DENIED or call.number == RSEQ:
        return False
    return call.number != FUTEX or call.stack.startswith("syscall<")


def is_deniable(call):
    return call.number not in CANNOT_FAIL and call.number != RSEQ


def clean_environment():
    return {
        k: v for k, v in os.environ.items()
        if not k.startswith(("OTEL_", "LD_PRELOAD", "DEBUGINFOD"))
    }


def run(command, environment, prepare=None):
    """Runs the program; returns a Result; status "hangs" if it did not end."""
    process = subprocess.Popen(
        [str(part) for part in command], env={**clean_environment(), **environment},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace", start_new_session=True, preexec_fn=prepare,
    )
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        return Result(stdout, stderr, "hangs")
    return Result(stdout, stderr, process.returncode)


def victim(*before):
    return [*before, VICTIM, MILLISECONDS]


def without_us():
    return run(victim(), {})


def differences(seen, expected):
    """Returns how a run differs from one without the profiler; empty if it does not."""
    return [
        f"{what} is {getattr(seen, what)!r}, not {getattr(expected, what)!r}"
        for what in Result._fields if getattr(seen, what) != getattr(expected, what)
    ]


class Bench:
    """Holds one worker's receiver and scratch folder."""

    def __init__(self):
        self.receiver = Receiver()
        self.receiver.server.handle_error = lambda *_: None  # connections are broken on purpose
        self.folder = tempfile.TemporaryDirectory()
        self.report = Path(self.folder.name) / "report"
        self.log = Path(self.folder.name) / "log"

    def close(self):
        self.receiver.close()
        self.folder.cleanup()

    def settings(self):
        return {
            **SETTINGS, "OTEL_EXPORTER_OTLP_ENDPOINT": self.receiver.url,
            "OTEL_PROFILER_LOG_FILE": str(self.log),
        }

    def start_over(self):
        self.receiver.requests.clear()
        self.report.unlink(missing_ok=True)
        self.log.unlink(missing_ok=True)

    def report_lines(self):
        return self.report.read_text().splitlines() if self.report.exists() else []

    def injected(self, *arguments):
        """Runs the program under inject.c; returns (Result, lines of its report)."""
        self.start_over()
        command = [INJECT, arguments[0], self.report, *arguments[1:], "/usr/bin/env",
                   f"LD_PRELOAD={LIBRARY}", *victim()]
        result = run(command, self.settings())
        return result, self.report_lines()

    def invalid(self):
        """Returns what is wrong with the exports that came, apart from what could not be known."""
        found = [p for request in list(self.receiver.requests) for p in problems(request)]
        return [p for p in found if not UNKNOWN.search(p)][:5]

    def log_text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""


# --- system calls ---

def list_calls(bench):
    """Returns every system call of the profiler in one run, a Call each."""
    result, lines = bench.injected("list")
    calls = []
    for line in lines:
        process, role, number, site, nth, stack = line.split(" ", 5)
        calls.append(Call(int(process), role, int(number), site, int(nth), stack))
    return result, calls


def first_of_each(calls, what):
    """Returns the first call with each value of what(call), by process."""
    first = {}
    for call in sorted(calls, key=lambda call: call.process):
        first.setdefault(what(call), call)
    return list(first.values())


def one_for_each_site(calls):
    """Returns the first call of each place in the code."""
    return first_of_each(calls, lambda call: (call.role, call.number, call.site))


def one_for_each_path(calls):
    """Returns the first call of each way through the code to it, in each process."""
    return first_of_each(calls, lambda call: call._replace(nth=0))


class Outcome:
    """Holds the outcome of one fault. `problems` is empty if the program noticed nothing, apart from what is known:
    then `known` has it."""

    def __init__(self, name, met, problems, log):
        self.name, self.met, self.problems, self.log = name, met, problems, log
        self.known = next((why for what, why in KNOWN.items() if what in str(problems)), None)
        if self.known:
            self.problems = []

    def __str__(self):
        head = f"{'FAILED' if self.problems else 'ok'} {self.name}{'' if self.met else ' (not met)'}"
        lines = self.problems + ([f"log: {self.log[-400:]!r}"] if self.problems and self.log else [])
        return "\n       ".join([head, *lines])


def once_met(fault):
    """Tries a fault again if its call did not come: runs have more calls or fewer, by what was sampled."""
    for _ in range(TRIES_TO_MEET):
        outcome = fault()
        if outcome.met or outcome.problems:
            break
    return outcome


def judge(bench, name, seen, expected):
    result, lines = seen
    met = next((line[4:] for line in lines if line.startswith("met ")), None)
    found = differences(result, expected) + bench.invalid()
    return Outcome(f"{name}: {met}" if met else name, met is not None, found, bench.log_text())


def fail_call(bench, call, error, expected):
    """Fails this one call."""
    seen = bench.injected("fail", *call[:5], getattr(errno, error))
    name = f"{error} for call {call.number} #{call.nth} of process {call.process}'s {call.role}"
    return judge(bench, name, seen, expected)


def deny_call(bench, number, error, expected):
    """Fails every call of the profiler with that number, as a sandbox would."""
    seen = bench.injected("deny", number, getattr(errno, error))
    return judge(bench, f"{error} for every call {number}", seen, expected)


def in_parallel(work, items, tell):
    """Returns [work(bench, item)], by WORKERS, each with a bench of its own."""
    benches = [Bench() for _ in range(WORKERS)]
    free = list(benches)

    def one(item):
        bench = free.pop()
        try:
            outcome = work(bench, item)
        finally:
            free.append(bench)
        tell(outcome)
        return outcome

    with ThreadPoolExecutor(WORKERS) as pool:
        outcomes = list(pool.map(one, items))
    for bench in benches:
        bench.close()
    return outcomes


def fail_calls(faults, expected, tell=lambda outcome: None):
    """faults: pairs of a Call and the name of an error. Returns a list of Outcome."""
    return in_parallel(
        lambda bench, f: once_met(lambda: fail_call(bench, *f, expected)), faults, tell
    )


def deny_calls(calls, errors, expected, tell=lambda outcome: None):
    numbers = sorted({call.number for call in calls if is_deniable(call)})
    pairs = [(number, error) for number in numbers for error in errors]
    return in_parallel(lambda bench, p: deny_call(bench, p[0], p[1], expected), pairs, tell)


def is_left_to_chance(call):
    """Returns whether a call comes by chance: where the helper's heap grows, which fail_alloc.c tests better; and
    every call of the helper of process 1, which ends by _exit, at any moment."""
    return call.role == "helper" and ("helper_heap_take" in call.stack or call.process == 1)


def short_faults(calls):
    return [
        (call, LIKELY.get(call.number, "EPERM")) for call in one_for_each_site(calls)
        if is_possible(call) and not is_left_to_chance(call)
    ]


def all_faults(calls):
    """Returns (faults of one call for each path, those of all the others)."""
    possible = [call for call in calls if is_possible(call) and not is_left_to_chance(call)]
    paths = one_for_each_path(possible)
    others = sorted(set(possible) - set(paths))
    return tuple([(call, error) for call in part for error in ERRORS] for part in (paths, others))


# --- allocations ---

Allocation = namedtuple("Allocation", "number site")


def run_failing_allocations(bench, which):
    """Returns (Result, lines written)."""
    bench.start_over()
    choice = {"FAIL_ALLOCATION": which} if which else {}
    result = run(victim(), {
        **bench.settings(), **choice, "FAIL_ALLOCATION_LOG": str(bench.report),
        "LD_PRELOAD": str(FAILING_LIBRARY),
    })
    return result, bench.report_lines()


def list_allocations(bench):
    """Returns the allocations of the helper thread in one run; of a child's too, which numbers on."""
    result, lines = run_failing_allocations(bench, "")
    found = {}
    for line in lines:
        number, site = line.split()
        found.setdefault(int(number), Allocation(int(number), site))
    return result, [found[number] for number in sorted(found)]


def one_allocation_for_each_site(allocations):
    first = {}
    for allocation in allocations:
        first.setdefault(allocation.site, allocation)
    return list(first.values())


def fail_allocation(bench, which, expected):
    """Fails an allocation. which: "N", or "N-" for that and all after it."""
    result, lines = run_failing_allocations(bench, which)
    found = differences(result, expected) + bench.invalid()
    return Outcome(f"allocation {which}", "failed" in lines, found, bench.log_text())


def fail_allocations(choices, expected, tell=lambda outcome: None):
    return in_parallel(
        lambda bench, which: once_met(lambda: fail_allocation(bench, which, expected)), choices, tell
    )
