#!/usr/bin/python3
"""Checks whether the estimates are unbiased: many seeded runs at several intervals, and the mean error of each site's
objects and bytes against its standard error. `test_heap_unbiased.py` is the short form.

Per site and interval the errors of all runs are summed up; runs are independent, so the sum's variance is the sum of
the variances that Poisson sampling has (sampling_theory.py).
"""

import argparse
import json
import math
import sys
import tempfile

from heap import BUILD, KINDS, Receiver, by_site, profile
from sampling_theory import Comparison, score_of_few_missed, standard_error

KIB = 1024
INTERVALS = (4 * KIB, 64 * KIB, 512 * KIB)
# Sets the bytes of each site, so that sites of small objects get samples at every interval.
BYTES = {4 * KIB: 512 * KIB, 64 * KIB: 4 * KIB * KIB, 512 * KIB: 16 * KIB * KIB}


class Deviation:
    """Sums the errors of many estimates of one quantity."""

    def __init__(self):
        self.truth = 0
        self.error = 0.0
        self.variance = 0.0
        self.runs = 0
        self.drawn = None  # (size, interval, 1 or size: the unit), where all objects are of one size

    def add(self, measured, truth, variance, drawn=None):
        self.drawn = drawn
        self.truth += truth
        self.error += measured - truth
        self.variance += variance
        self.runs += 1

    def in_standard_errors(self):
        if self.drawn:
            size, interval, unit = self.drawn
            measured = (self.truth + self.error) / unit
            score = score_of_few_missed(self.truth / unit, size, interval, measured)
            if score is not None:
                return score
        # a value that is sampled with certainty has a rounding error: half a unit a run, and stack, at most
        return self.error / math.sqrt(self.variance + self.runs / 12)


def truth_of(text):
    """Returns {site: [(size, objects, live objects)]}."""
    sites = {}
    for key, (objects, live) in json.loads(text).items():
        site, size = key.split()
        sites.setdefault(site, []).append((int(size), objects, live))
    return sites


def add_run(deviations, interval, result):
    assert result.returncode == 0 and result.instance, f"{result.returncode} {result.stderr}"
    for kind in KINDS:
        measured = by_site(result.instance, kind)
        in_bytes = kind.endswith("space")
        whole = deviations.setdefault((interval, kind, "all"), Deviation())
        sums = [0, 0, 0.0]
        for site, sizes in truth_of(result.stdout.splitlines()[-1]).items():
            truth, variance = 0, 0.0
            for size, objects, live in sizes:
                count = live if kind.startswith("inuse") else objects
                scale = size if in_bytes else 1
                truth += count * scale
                variance += (standard_error(count, size, interval) * scale) ** 2
            got = measured.get(site, 0)
            drawn = (sizes[0][0], interval, sizes[0][0] if in_bytes else 1) if len(sizes) == 1 else None
            deviations.setdefault((interval, kind, site), Deviation()).add(got, truth, variance, drawn)
            sums = [sums[0] + got, sums[1] + truth, sums[2] + variance]
        whole.add(*sums)


def measure(intervals, runs, first_seed=1, progress=None):
    """Returns {(interval, kind, site or "all"): Deviation}."""
    deviations = {}
    receiver = Receiver()
    with tempfile.TemporaryDirectory() as scratch:
        for interval in intervals:
            for seed in range(first_seed, first_seed + runs):
                result = profile(
                    [BUILD / "test/programs/size_sites", BYTES[interval], seed],
                    {"OTEL_PROFILER_ALLOC_INTERVAL": str(interval),
                     "OTEL_PROFILER_TYPES": "alloc,heap"},
                    scratch, receiver=receiver,
                )
                add_run(deviations, interval, result)
            if progress:
                progress(f"{runs} runs at {interval} B")
    receiver.close()
    return deviations


def judge(deviations):
    """Fails on what chance does not explain. Objects and bytes of a site of one size are one draw:
    the bytes speak for both, except where sizes are mixed."""
    comparisons = {}
    for (interval, kind, site), deviation in deviations.items():
        one_draw = site not in ("all", "site_mixed") and kind.endswith("objects")
        if site == "all" or one_draw:
            continue
        comparison = comparisons.setdefault(kind.split("_")[0], Comparison())
        comparison.add(f"{site} at {interval}: {kind}", deviation.in_standard_errors(), 0, 1.0, 0)
    for comparison in comparisons.values():
        comparison.verdict()


def print_table(deviations):
    print(f"{'interval':>9} {'site':12}" + "".join(f"{kind:>26}" for kind in KINDS))
    rows = {}
    for (interval, kind, site), deviation in deviations.items():
        rows.setdefault((interval, site), {})[kind] = deviation
    beyond = 0
    for (interval, site), kinds in sorted(rows.items()):
        line = f"{interval:>9} {site:12}"
        for kind in KINDS:
            d = kinds[kind]
            z = d.in_standard_errors()
            beyond += abs(z) > 3
            line += f"{100 * d.error / d.truth:>+13.4f} % {z:>+6.2f} se"
        print(line)
    print(f"{beyond} of {4 * len(rows)} beyond three standard errors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="at each interval (200)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run (1)")
    options = parser.parse_args()
    deviations = measure(INTERVALS, options.runs, options.seed, lambda text: print(text, flush=True))
    print_table(deviations)
    try:
        judge(deviations)
    except AssertionError as error:
        print(f"FAILED\n{error}")
        return 1
    print("ok: within what chance explains")
    return 0


if __name__ == "__main__":
    sys.exit(main())
