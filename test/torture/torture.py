"""Runs the torture programs under the profiler and judges what came of it: the long form is
`make torture`, the short one is part of `make test`."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from profiled import BUILD, LIBRARY, Instance, Receiver, attributes_of, check_conformance  # noqa: E402

# Name -> what it wants besides the highest rate. An interval of 1 samples every allocation.
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
}
COMMON = {
    "OTEL_PROFILER_CPU_FREQUENCY": "4000",
    "OTEL_PROFILE_EXPORT_INTERVAL": "500",
    "OTEL_PROFILER_MAX_SAMPLES": "1000000",
    "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000",
}
TICKS_PER_SECOND = 250  # what most kernels sample CPU timers at, whatever rate is asked for


class Result:
    """One program's run: `problems` is empty if all is well."""

    def __init__(self, name):
        self.name = name
        self.problems = []
        self.seconds = 0.0
        self.profiled = 0.0
        self.exports = 0
        self.truncated = 0.0
        self.dropped = {}

    def expect(self, holds, what):
        if not holds:
            self.problems.append(what)

    def __str__(self):
        lost = " ".join(f"{reason}={count}" for reason, count in sorted(self.dropped.items()))
        verdict = "ok    " if not self.problems else "FAILED"
        return (
            f"{verdict} {self.name:14} {self.seconds:7.1f} s CPU, {self.profiled:7.1f} s profiled, "
            f"{self.exports:5} exports, {100 * self.truncated:5.2f} % truncated  {lost}"
        )


def strings_of(profile, dictionary):
    for index in profile.attribute_indices:
        attribute = dictionary.attribute_table[index]
        yield dictionary.string_table[attribute.key_strindex], attribute.value.int_value


def is_truncated(sample, dictionary):
    keys = (dictionary.attribute_table[i].key_strindex for i in sample.attribute_indices)
    return any(dictionary.string_table[key] == "otelprof.stack.truncated" for key in keys)


def read_profiles(requests, pid, result):
    """The instance of process `pid`; children of a fork are instances of their own."""
    instance, all_values, truncated = None, 0, 0
    for request in requests:
        check_conformance(request)
        dictionary = request.dictionary
        for resource_profiles in request.resource_profiles:
            attributes = attributes_of(resource_profiles.resource)
            if attributes["process.pid"] != pid:
                continue
            instance = instance or Instance(attributes)
            result.exports += 1
            for profile in (p for s in resource_profiles.scope_profiles for p in s.profiles):
                instance.add(dictionary, profile)
                for key, value in strings_of(profile, dictionary):
                    if key.startswith("otelprof.dropped."):
                        result.dropped[key.removeprefix("otelprof.dropped.")] = value
                if dictionary.string_table[profile.sample_type.type_strindex] != "samples":
                    continue
                for sample in profile.samples:
                    all_values += sample.values[0]
                    truncated += sample.values[0] * is_truncated(sample, dictionary)
    result.truncated = truncated / max(all_values, 1)
    return instance


def tolerance_of(seconds):
    """2 % of the CPU time, and four standard errors of a share at worst (one half)."""
    return seconds * (0.02 + 4 * 0.5 / (seconds * TICKS_PER_SECOND) ** 0.5)


def judge_shares(result, instance, lines):
    tolerance = tolerance_of(result.profiled)
    for line in lines:
        _, name, nanoseconds = line.split()
        truth = int(nanoseconds) / 1e9
        measured = instance.cpu_of(name) / 1e9
        result.expect(
            abs(measured - truth) <= tolerance,
            f"{name}: {measured:.2f} s instead of {truth:.2f} s (of {result.profiled:.2f} s)",
        )


def start(name, seconds, environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_PRELOAD"))}
    return subprocess.Popen(
        [BUILD / "test/torture" / name, str(seconds)],
        env={**clean, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    )


def torture(name, seconds):
    """Runs one program for so many seconds of CPU; a Result."""
    result = Result(name)
    receiver = Receiver()
    environment = {
        **COMMON, **PROGRAMS[name], "LD_PRELOAD": str(LIBRARY),
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
    }
    child = start(name, seconds, environment)
    output = child.stdout.read()
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    child.stderr.close()
    time.sleep(0.1)
    receiver.close()

    lines = output.splitlines()
    result.seconds = usage.ru_utime + usage.ru_stime
    result.expect(child.returncode == 0, f"ended with {child.returncode}")
    result.expect(lines and lines[-1] == "ok", f"said {output[-300:]!r}")
    result.expect(" warn: " not in errors and " error: " not in errors, errors[-300:])
    instance = read_profiles(receiver.requests, child.pid, result)
    result.expect(instance is not None, "no profile came")
    if instance and not result.problems:
        result.profiled = instance.cpu_total() / 1e9
        judge_shares(result, instance, [line for line in lines if line.startswith("share ")])
    return result
