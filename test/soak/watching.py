"""Reads a process from outside, and receives its exports."""

import os
import re
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from profiled import BUILD, HELPERS, LIBRARY, attributes_of, check_conformance, decode  # noqa: E402, F401
from otlp_sink import OtlpSink  # noqa: E402: profiled has said where it is

from growth import Figure  # noqa: E402

VALIDATED_EVERY = 20  # exports: the others are only decoded

# Lists reasons that lose nothing of the process itself, and why.
EXPLAINED = {
    "overrun": "the time is in that sample",
    "busy": "the time is in the next sample",
    "truncated": "the sample is kept and marked",
    "foreign_stack": "one of the truncated",
    "unloading": "one of the truncated",
    "child": "its parent loaded a library, or exported, for longer than a fork waits: on a busy machine",
}

MIB = 1 << 20
# Lists what is read, and how much noise its median may have. Our own memory is what a forked child finds zeroed (the
# kernel calls it "wf"): no program here has such memory of its own. Two arenas of stacks fill and empty in turns,
# minutes apart; pages once touched stay until then.
FIGURES = {
    "our own mappings' memory": (4 * MIB, "KiB"),
    "anonymous memory": (8 * MIB, "KiB"),
    "mappings": (24, ""),
    "descriptors": (0, ""),
    "the helper's descriptors": (0, ""),
    "threads": (0, ""),
}


def figures(**more):
    """Returns name -> Figure; `more`: further names with their (bound, unit)."""
    return {name: Figure(name, *rule) for name, rule in {**FIGURES, **more}.items()}


def helper_of(pid):
    """Returns the helper thread's id, or None."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        if Path(f"/proc/{pid}/task/{tid}/comm").read_text().rstrip("\n") in HELPERS:
            return tid
    return None


def memory_of(pid):
    """Returns (number of mappings, anonymous bytes, bytes that a forked child would find zeroed)."""
    count = anonymous = ours = resident = 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            count += 1
        elif line.startswith("Rss:"):
            resident = int(line.split()[1]) * 1024
        elif line.startswith("Anonymous:"):
            anonymous += int(line.split()[1]) * 1024
        elif line.startswith("VmFlags:") and " wf" in line:
            ours += resident
    return count, anonymous, ours


def look(pid):
    """Returns name -> value of FIGURES; None if the process has ended."""
    try:
        mappings, anonymous, ours = memory_of(pid)
        helper = helper_of(pid)
        return {
            "our own mappings' memory": ours,
            "anonymous memory": anonymous,
            "mappings": mappings,
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "the helper's descriptors": len(os.listdir(f"/proc/{pid}/task/{helper}/fd")) if helper else None,
            "threads": len(os.listdir(f"/proc/{pid}/task")),
        }
    except OSError:
        return None


class Sink(OtlpSink):
    """Counts the contents of every export; keeps no export."""

    def __init__(self):
        self.exports = {}  # pid -> number
        self.bytes = 0
        self.dropped = {}  # pid -> {reason: count}, the latest
        self.problems = []
        self.lock = threading.Lock()
        super().__init__(self._take_body)

    def _take_body(self, body, headers):
        try:
            self.take(decode(body, headers["Content-Type"]), len(body))
        except Exception as error:  # noqa: BLE001: whatever it is, it is the verdict
            self.problems.append(f"an export: {error}")

    def take(self, request, size):
        with self.lock:
            self.bytes += size
            total = sum(self.exports.values())
            for resource_profiles in request.resource_profiles:
                pid = attributes_of(resource_profiles.resource)["process.pid"]
                self.exports[pid] = self.exports.get(pid, 0) + 1
                dropped = self.dropped.setdefault(pid, {})
                for profile in (p for s in resource_profiles.scope_profiles for p in s.profiles):
                    dropped.update(dropped_in(request.dictionary, profile))
        if total % VALIDATED_EVERY == 0:
            check_conformance(request)

    def lost(self):
        """Returns sentences about what was dropped without an explanation."""
        sums = self.dropped_sums()
        return [f"dropped: {reason}, {count} times" for reason, count in sums.items() if reason not in EXPLAINED]

    def dropped_sums(self):
        sums = {}
        for counts in self.dropped.values():
            for reason, count in counts.items():
                sums[reason] = sums.get(reason, 0) + count
        return {reason: count for reason, count in sums.items() if count}


def dropped_in(dictionary, profile):
    prefix = "otelprof.dropped."
    for index in profile.attribute_indices:
        attribute = dictionary.attribute_table[index]
        key = dictionary.string_table[attribute.key_strindex]
        if key.startswith(prefix):
            yield key.removeprefix(prefix), attribute.value.int_value


class Verdict:
    """Holds the result: `problems` is empty if all is well; `lines` are the figures; `values` are all readings."""

    def __init__(self):
        self.problems = []
        self.lines = []
        self.values = {}  # process -> {figure: values}

    def judge(self, seen, whose):
        self.keep(seen, whose)
        for figure in seen.values():
            problem = figure.problem()
            self.lines.append(f"{'GREW ' if problem else 'ok   '} {figure}")
            if problem:
                self.problems.append(problem)

    def keep(self, seen, whose):
        self.lines.append(f"{whose}:")
        self.values[whose] = {name: figure.values for name, figure in seen.items()}

    def show(self, seen, whose):
        """Shows figures that are only for comparison."""
        self.keep(seen, whose)
        self.lines += [f"      {figure}" for figure in seen.values()]

    def expect(self, holds, what):
        if not holds:
            self.problems.append(what)


def clean_environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_PRELOAD"))}


def warnings_in(log):
    text = Path(log).read_text() if Path(log).exists() else ""
    return [line for line in text.splitlines() if " warn: " in line or " error: " in line]
