"""Runs a program that keeps books of its heap under the profiler, and compares the profile with them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from profiled import BUILD, LIBRARY, Instance, Receiver, attributes_of, check_conformance  # noqa: E402

import allocators  # noqa: E402

# Maps an allocator to what is preloaded, and to options of random_heap for its faults.
ALLOCATORS = {
    "libc": ("", []),
    "jemalloc": (allocators.PATHS["jemalloc"], []),
    "tcmalloc": (allocators.PATHS["tcmalloc"], []),
    # 2.0.9 aligns 256 B at 256 to 128, and aborts where operator new should throw
    "mimalloc": (allocators.PATHS["mimalloc"], ["no-alignment", "no-throw"]),
}
# Maps a value of a profile to its name in the books.
KINDS = {
    "alloc_objects": "objects",
    "alloc_space": "bytes",
    "inuse_objects": "live_objects",
    "inuse_space": "live_bytes",
}
ALLOCATION_KINDS = tuple(KINDS)
LOSSES = ("table_full", "no_memory", "no_thread", "live_full", "stack_store_full", "queue_full", "rejected")


def operator_new_is_hooked():
    """Returns False for allocators with an operator new of their own, which hooks of malloc alone do not see."""
    symbols = subprocess.run(["nm", "-D", LIBRARY], capture_output=True, text=True, check=True)
    return " T _Znwm\n" in symbols.stdout


def preload(allocator, ours_first=True):
    theirs = ALLOCATORS[allocator][0]
    both = [str(LIBRARY), theirs] if ours_first else [theirs, str(LIBRARY)]
    return ":".join(part for part in both if part)


class Profile:
    """Holds one process and its results; `instance` is None if nothing came."""

    def __init__(self, returncode, stdout, stderr, log, instance, dropped, sizes):
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
        self.log = log
        self.instance = instance
        self.dropped = dropped  # reason -> count
        self.sizes = sizes  # sizes of the requests, in bytes

    def books(self):
        return json.loads(self.stdout.splitlines()[-1])


def dropped_in(dictionary, profile):
    for index in profile.attribute_indices:
        attribute = dictionary.attribute_table[index]
        key = dictionary.string_table[attribute.key_strindex]
        if key.startswith("otelprof.dropped."):
            yield key.removeprefix("otelprof.dropped."), attribute.value.int_value


def instance_of(requests, pid, dropped):
    instance = None
    for request in requests:
        check_conformance(request)
        for resource_profiles in request.resource_profiles:
            attributes = attributes_of(resource_profiles.resource)
            if attributes["process.pid"] != pid:
                continue
            instance = instance or Instance(attributes)
            for profile in (p for scope in resource_profiles.scope_profiles for p in scope.profiles):
                instance.add(request.dictionary, profile)
                for reason, count in dropped_in(request.dictionary, profile):
                    dropped[reason] = count  # counted since the start
    return instance


def profile(command, environment, scratch, preloaded=None, timeout=600, receiver=None):
    """Runs `command`, with a receiver of its own if none is given; `scratch` is for the log."""
    shared = receiver is not None
    receiver = receiver or Receiver()
    receiver.requests.clear()
    log = Path(scratch) / "otelprof.log"
    log.unlink(missing_ok=True)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_PRELOAD"))}
    child = subprocess.Popen(
        [str(part) for part in command],
        env={
            **clean, "LD_PRELOAD": preloaded or str(LIBRARY),
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_PROFILER_LOG_FILE": str(log),
            "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000",
            "OTEL_PROFILER_MAX_OVERHEAD": "none",
            **environment,
        },
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:
        stdout, stderr = child.communicate(timeout=timeout)
    finally:
        child.kill()
        child.wait()
        if not shared:
            receiver.close()
    text = log.read_text() if log.exists() else ""
    dropped = {}
    instance = instance_of(receiver.requests, child.pid, dropped)
    sizes = [request.ByteSize() for request in receiver.requests]
    return Profile(child.returncode, stdout, stderr, text, instance, dropped, sizes)


def random_heap(calls, seed, allocator):
    """Returns the command."""
    options = list(ALLOCATORS[allocator][1])
    if allocator != "libc" and not operator_new_is_hooked():
        options.append("no-new")
    return [BUILD / "test/programs/random_heap", calls, seed, *options]


def run_random_heap(calls, seed, allocator, scratch, ours_first=True, environment=()):
    """Runs random_heap with every allocation sampled; returns (its profile, how long it took)."""
    start = time.monotonic()
    result = profile(
        random_heap(calls, seed, allocator),
        {"OTEL_PROFILER_ALLOC_INTERVAL": "1", **dict(environment)}, scratch, preload(allocator, ours_first),
    )
    return result, time.monotonic() - start


def by_site(instance, kind):
    """Returns {site: sum over the stacks that lead through it}."""
    sums = {}
    for stack, value in instance.stacks(kind).items():
        site = next((name for name in stack if name.startswith(("site_", "vain_"))), "")
        sums[site] = sums.get(site, 0) + value
    return sums


def differences(result):
    """Returns how the profile differs from the program's books, as sentences; [] if all agrees, to the byte."""
    if result.returncode != 0 or result.instance is None:
        return [f"ended with {result.returncode}, {result.stderr[-300:]!r}, {result.log[-300:]!r}"]
    lost = {reason: n for reason, n in result.dropped.items() if reason in LOSSES}
    found = [f"dropped: {lost}"] if lost else []
    books = result.books()
    for kind, column in KINDS.items():
        measured = by_site(result.instance, kind)
        for site, truth in books.items():
            got = measured.get(site, 0)
            if got != truth[column]:
                found.append(f"{kind} of {site}: {got} instead of {truth[column]} ({got - truth[column]:+})")
        for site in measured:
            if site.startswith("site_") and site not in books:
                found.append(f"{kind} of {site}, which does not exist")
        # What is in no site is the C++ library's and the threads': it does not grow with the calls.
        if kind == "alloc_objects" and measured.get("", 0) > 1000:
            found.append(f"{measured['']} allocations outside of the sites")
    return found
