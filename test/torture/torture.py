"""Runs the torture programs under the profiler and judges the results: the long form is `make torture`, the short one
is part of `make test-all`."""

import gzip
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from profiled import BUILD, LIBRARY, attributes_of, check_conformance, decode  # noqa: E402
from otlp_sink import OtlpSink  # noqa: E402

# Maps a program to its settings besides the highest rate. An interval of 1 samples every allocation.
PROGRAMS = {
    "throw_deep": {"OTEL_PROFILER_ALLOC_INTERVAL": "512"},
    "dlopen_storm": {"OTEL_PROFILER_ALLOC_INTERVAL": "4096"},
    "malloc_storm": {"OTEL_PROFILER_ALLOC_INTERVAL": "1"},
    "fork_storm": {"OTEL_PROFILER_ALLOC_INTERVAL": "4096"},
    "key_storm": {"OTEL_PROFILER_ALLOC_INTERVAL": "64"},
    "signal_alloc": {"OTEL_PROFILER_ALLOC_INTERVAL": "1"},
    "fibres": {"OTEL_PROFILER_ALLOC_INTERVAL": "1"},
    "recursion": {"OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_MAX_STACK_DEPTH": "1024"},
    "stack_min": {"OTEL_PROFILER_ALLOC_INTERVAL": "1"},
    "smashed": {"OTEL_PROFILER_ALLOC_INTERVAL": "1"},
    "contexts": {"OTEL_PROFILER_ALLOC_INTERVAL": "1024"},
    "embeds_python": {"OTEL_PROFILER_ALLOC_INTERVAL": "4096"},
}
# Lists the storms of python_storm.py, each of which runs as a program.
PYTHON_STORMS = ("interpreters", "codes", "recursion", "signals", "forks", "garbage", "greenlets", "endings")
PROGRAMS |= {f"python_{name}": {"OTEL_PROFILER_ALLOC_INTERVAL": "4096"} for name in PYTHON_STORMS}
PYTHON = os.environ.get("TORTURE_PYTHON", "/usr/bin/python3").split()
COMMON = {
    "OTEL_PROFILER_CPU_FREQUENCY": "4000",
    "OTEL_PROFILER_MAX_OVERHEAD": "none",
    # two threads on two idle processors use two seconds of CPU time in one, and a process that lives less sends nothing
    "OTEL_PROFILER_MIN_LIFETIME": "100",
    "OTEL_PROFILE_EXPORT_INTERVAL": "500",
    "OTEL_PROFILER_MAX_SAMPLES": "1000000",
    "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000",
}
TICKS_PER_SECOND = 250  # the rate at which most kernels sample CPU timers, whatever rate is requested


class Result:
    """Holds one program's run: `problems` is empty if all is well."""

    def __init__(self, name):
        self.name = name
        self.problems = []
        self.seconds = 0.0
        self.profiled = 0.0
        self.exports = 0
        self.truncated = 0.0  # part of the profiled seconds
        self.unsampled = 0.0  # part without a sample that has a function
        self.cpu_of = {}  # function whose share is printed -> seconds profiled
        self.dropped = {}

    def expect(self, holds, what):
        if not holds:
            self.problems.append(what)

    def __str__(self):
        lost = " ".join(f"{reason}={count}" for reason, count in sorted(self.dropped.items()))
        verdict = "ok    " if not self.problems else "FAILED"
        return (
            f"{verdict} {self.name:14} {self.seconds:7.1f} s CPU, {self.profiled:7.1f} s profiled, "
            f"{self.exports:5} exports, {100 * self.truncated / (self.profiled or 1):5.2f} % truncated, "
            f"{100 * self.unsampled / (self.profiled or 1):5.2f} % unsampled  {lost}"
        )


class Spool:
    """Keeps exports in a file as they come. Their number depends on how long the CPU time takes: a program that gets
    a twentieth of a processor exports twenty times as often."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()
        self.lock = threading.Lock()
        self.sink = OtlpSink(self._keep)
        self.url = self.sink.url

    def _keep(self, body, headers):
        with self.lock:
            if self.file.closed:  # from a child that outlives the program
                return
            pickle.dump((body, headers.get("Content-Encoding"), headers["Content-Type"]), self.file)

    def read(self):
        """Stops receiving; yields one decoded request at a time."""
        self.sink.close()
        with self.lock:
            self.file.seek(0)
            try:
                while True:
                    body, encoding, content_type = pickle.load(self.file)
                    yield decode(gzip.decompress(body) if encoding == "gzip" else body, content_type)
            except EOFError:
                self.file.close()


def is_checked(number):
    """Returns whether every field of an export is checked: the first hundred, and ever fewer of the others."""
    return number < 100 or number % (number // 100) == 0


def values_of(profile, dictionary):
    for index in profile.attribute_indices:
        attribute = dictionary.attribute_table[index]
        yield dictionary.string_table[attribute.key_strindex], attribute.value.int_value


def is_marked(sample, dictionary, mark):
    keys = (dictionary.attribute_table[i].key_strindex for i in sample.attribute_indices)
    return any(dictionary.string_table[key] == f"otelprof.stack.{mark}" for key in keys)


def stacks_with(dictionary, names):
    """Returns {name: the stacks with that function in them}. A name in C++ has its parameters."""
    bare = [dictionary.string_table[function.name_strindex].partition("(")[0] for function in dictionary.function_table]
    in_location = [{bare[line.function_index] for line in location.lines} & names
                   for location in dictionary.location_table]
    found = {name: set() for name in names}
    for number, stack in enumerate(dictionary.stack_table):
        for name in set().union(*(in_location[index] for index in stack.location_indices)):
            found[name].add(number)
    return found


def add_cpu(result, profile, dictionary):
    stacks = stacks_with(dictionary, set(result.cpu_of))
    for sample in profile.samples:
        cpu = sample.values[0] * profile.period / 1e9
        result.profiled += cpu
        result.truncated += cpu * is_marked(sample, dictionary, "truncated")
        result.unsampled += cpu * is_marked(sample, dictionary, "unsampled")
        for name, with_it in stacks.items():
            result.cpu_of[name] += cpu * (sample.stack_index in with_it)


def read_profiles(requests, pid, result):
    """Sums up what process `pid` exported; children of a fork are instances of their own."""
    for number, request in enumerate(requests):
        if is_checked(number):
            check_conformance(request)
        dictionary = request.dictionary
        for resource_profiles in request.resource_profiles:
            if attributes_of(resource_profiles.resource)["process.pid"] != pid:
                continue
            result.exports += 1
            for profile in (p for s in resource_profiles.scope_profiles for p in s.profiles):
                for key, value in values_of(profile, dictionary):
                    if key.startswith("otelprof.dropped."):
                        result.dropped[key.removeprefix("otelprof.dropped.")] = value
                if dictionary.string_table[profile.sample_type.type_strindex] == "samples":
                    add_cpu(result, profile, dictionary)


def tolerance_of(seconds):
    """Returns 2 % of the CPU time, and four standard errors of a share at worst (one half)."""
    return seconds * (0.02 + 4 * 0.5 / (seconds * TICKS_PER_SECOND) ** 0.5)


def judge_shares(result, true_shares):
    """Judges shares. Threads of a few milliseconds end between two samples: that time may be of any function."""
    tolerance = tolerance_of(result.profiled)
    for name, truth in true_shares.items():
        measured = result.cpu_of[name]
        result.expect(
            -tolerance <= truth - measured <= tolerance + result.unsampled,
            f"{name}: {measured:.2f} s instead of {truth:.2f} s (of {result.profiled:.2f} s)",
        )


def shares_reported(lines):
    """Returns {function: seconds}."""
    told = (line.split()[1:] for line in lines if line.startswith("share "))
    return {name: int(nanoseconds) / 1e9 for name, nanoseconds in told}


def is_there(name):
    """Returns whether a storm can run: greenlets are a package of PyPI's."""
    return name != "python_greenlets" or subprocess.run([*PYTHON, "-c", "import greenlet"], capture_output=True, check=False).returncode == 0


def command_of(name):
    if name.startswith("python_"):
        return [*PYTHON, Path(__file__).with_name("python_storm.py"), name.removeprefix("python_")]
    return [BUILD / "test/torture" / name]


def start(name, seconds, environment, output, errors):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_PRELOAD"))}
    return subprocess.Popen(
        [*command_of(name), str(seconds)],
        env={**clean, **environment}, stdout=output, stderr=errors,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    )


def ended(child, seconds):
    """Returns its status and usage. The programs' own watchdogs come first, but do not cover the last moment of an
    end."""
    last_resort = threading.Timer(seconds * 12 + 120, child.kill)
    last_resort.start()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    last_resort.cancel()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage


def text_of(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def torture(name, seconds, judges_shares=True):
    """Runs one program for so many seconds of CPU; returns a Result.

    Shares are for long runs: where the machine stalls, one sample stands for a tenth of a second of CPU time, and in
    two seconds that is more than any tolerance by the number of samples. test_cpu_truth.py judges shares in the tests."""
    result = Result(name)
    spool = Spool()
    environment = {
        **COMMON, **PROGRAMS[name], "LD_PRELOAD": str(LIBRARY),
        "OTEL_EXPORTER_OTLP_ENDPOINT": spool.url,
    }
    # (not pipes: one that is full, or that a child's child holds, is waited for without end)
    with tempfile.TemporaryFile() as output_file, tempfile.TemporaryFile() as errors_file:
        child = start(name, seconds, environment, output_file, errors_file)
        status, usage = ended(child, seconds)
        output, errors = text_of(output_file), text_of(errors_file)

    lines = output.splitlines()
    result.seconds = usage.ru_utime + usage.ru_stime
    result.expect(status == 0, f"ended with {status}")
    result.expect(lines and lines[-1] == "ok", f"said {output[-300:]!r}")
    result.expect(" warn: " not in errors and " error: " not in errors, errors[-300:])
    shares = shares_reported(lines)
    result.cpu_of = dict.fromkeys(shares, 0.0)
    read_profiles(spool.read(), child.pid, result)
    result.expect(result.exports, "no profile came")
    if judges_shares and not result.problems:
        judge_shares(result, shares)
    return result
