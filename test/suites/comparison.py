"""Runs one part of a suite on every side, and distinguishes tests whose verdict the preload changed from unstable
ones.

A part in which something differs is run again, on all sides in turns. A verdict that a test also had without the
preload is flaky with it. A verdict that was never seen without, and more than once with, is ours; a verdict that was
seen once and not again is reported as just that.
"""

import collections
import dataclasses
from pathlib import Path
from typing import Callable

from sides import WITHOUT
from verdicts import FAILED, MISSING, PASSED, SKIPPED

WHOLE = "(its end)"  # how the part's command ended is compared like a test
OURS, FLAKY, ONCE = "ours", "flaky", "once"
FLAKY_FACTOR = 4  # a race in bash's nameref tests is lost in one run of twenty, with and without us


@dataclasses.dataclass(frozen=True)
class Part:
    """Is one command of a suite. {scratch} in it is a folder of the side."""

    name: str
    command: tuple
    folder: Path
    read: Callable[[str], dict]
    env: dict = dataclasses.field(default_factory=dict)
    limit_s: int = 300
    report: str = ""  # the file in {scratch} that `read` gets, instead of the output
    at_once: bool = True  # whether it runs in the second round, too


@dataclasses.dataclass
class Difference:
    test: str
    kind: str
    seen: dict  # side -> verdicts, one a run

    def __str__(self):
        each = "; ".join(f"{side}: {', '.join(verdicts)}" for side, verdicts in self.seen.items())
        return f"{self.test}: {each}"


def run_part(part, side):
    """Runs a part; returns test -> verdict."""
    report = side.scratch / (part.report or "report")
    report.unlink(missing_ok=True)
    command = [str(word).replace("{scratch}", str(side.scratch)) for word in part.command]
    ended, text = side.run(command, part.folder, part.limit_s, part.env)
    if part.report and not report.exists():
        return {WHOLE: ended}  # the command ended badly
    return {**part.read(report.read_text(errors="replace") if part.report else text), WHOLE: ended}


def kind_of(seen):
    """Returns OURS, FLAKY, ONCE, or "" where nothing differed. `seen`: side -> verdicts."""
    without = set(seen[WITHOUT])
    new = [verdict for side, verdicts in seen.items() if side != WITHOUT for verdict in verdicts
           if verdict not in without]
    if new:
        return OURS if len(new) > 1 else ONCE
    return FLAKY if len({verdict for verdicts in seen.values() for verdict in verdicts}) > 1 else ""


def differences(runs):
    """Returns the differences. `runs`: side -> results, one a run."""
    tests = dict.fromkeys(test for results in runs.values() for result in results for test in result)
    for test in tests:
        seen = {side: [result.get(test, MISSING) for result in results] for side, results in runs.items()}
        kind = kind_of(seen)
        if kind:
            yield Difference(test, kind, seen)


def is_decided(difference):
    """Returns whether a side never agreed with the side without: more runs would show no more."""
    without = set(difference.seen[WITHOUT])
    return difference.kind == FLAKY or any(without.isdisjoint(seen) for seen in difference.seen.values())


def compare(part, sides, again):
    """Returns (side -> counts of the first run, differences). Runs `again` times more if anything differs, and
    FLAKY_FACTOR times as often where a test is neither always the same nor always different with the preload."""
    runs = {side.name: [run_part(part, side)] for side in sides}
    for number in range(again * FLAKY_FACTOR):
        found = list(differences(runs))
        if all(difference.kind == FLAKY for difference in found):
            break
        if number >= again and all(map(is_decided, found)):
            break
        for side in sides:
            runs[side.name].append(run_part(part, side))
    return {name: counts_of(results[0]) for name, results in runs.items()}, list(differences(runs))


def counts_of(result):
    counts = collections.Counter(verdict.split(",")[0] for test, verdict in result.items() if test != WHOLE)
    return collections.Counter({verdict: counts[verdict] for verdict in (PASSED, FAILED, SKIPPED)})
