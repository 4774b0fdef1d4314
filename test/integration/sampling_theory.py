"""Computes by how much an estimate of Poisson sampling by bytes may be wrong.

An allocation of S bytes at a mean interval R is sampled with probability p = 1 - exp(-S/R) and then stands for 1/p
objects and S/p bytes. The estimate of n such allocations has the standard error sqrt(n (1-p) / p) objects, S times
that in bytes.
"""

import math
from statistics import NormalDist


def standard_error(objects, size, interval):
    """Returns the standard error of the estimated number of objects."""
    if size == 0 or objects == 0 or interval <= 1:
        return 0.0
    p = -math.expm1(-size / interval)
    return math.sqrt(objects * (1 - p) / p)


FEW = 20  # expected number of missed objects: above it the normal distribution is close enough


def score_of_few_missed(objects, size, interval, measured):
    """Returns the error of an estimate of objects much larger than the interval, in standard errors of an equally
    improbable error of a normal distribution; None where many objects are missed.

    The number of missed objects is Poisson's. Of 28 objects of eight intervals each, one is missed in one case of a
    hundred, which would be ten standard errors."""
    expected = objects * math.exp(-size / interval)
    if expected == 0 or expected > FEW:
        return None
    missed = max(0, round(objects + measured * math.expm1(-size / interval)))
    exactly = [expected**k / math.factorial(k) * math.exp(-expected) for k in range(missed + 60)]
    as_far = exactly[missed] / 2 + sum(exactly[missed + 1:])
    return NormalDist().inv_cdf(min(max(as_far, 1e-15), 1 - 1e-15))


# Chance may refuse one run of all tests in a million. Some forty verdicts a run are about estimates; each gets a
# hundredth of the budget, because few samples have longer tails than the normal distribution.
RUN_BUDGET = 1e-6
VERDICT_BUDGET = RUN_BUDGET / 100


def bound(estimates=1, budget=VERDICT_BUDGET):
    """Returns the deviation in standard errors that no estimate may exceed, where that many estimates share one
    budget."""
    return NormalDist().inv_cdf(1 - budget / estimates / 2)


def most_by_chance(expected, budget):
    """Returns the number that a Poisson variable exceeds with a probability below the budget."""
    most, probability = 0, math.exp(-expected)
    beyond = -math.expm1(-expected)
    while beyond > budget:
        most += 1
        probability *= expected / most
        beyond -= probability
    return most


class Comparison:
    """Collects deviations in standard errors; `verdict` fails on what chance does not explain.

    A third of the verdict's budget goes to each check: no estimate is too far off, few are beyond three standard
    errors, and their mean is near zero. Of thirty estimates one may be off by 6.5, five may be beyond three, and the
    check finds a bias of 1.1 standard errors in all of them.
    """

    SOFT = 3

    def __init__(self):
        self.deviations = {}
        self.random = []  # estimates whose error is more than rounding
        self.wrong = []

    def add(self, what, measured, truth, error, rounding=1.0):
        """`error`: the standard error; 0 means that the value is exact, up to `rounding`."""
        distance = measured - truth
        slack = max(0.0, abs(distance) - rounding - 1e-9 * abs(truth))
        if slack == 0:
            self.deviations[what] = 0.0 if error == 0 else distance / error
        elif error < 1e-9 * max(1.0, abs(truth)):
            self.wrong.append(f"{what}: {measured} instead of exactly {truth}")
        else:
            self.deviations[what] = distance / error
        if error > 3 * rounding:
            self.random.append(distance / error)

    def verdict(self):
        listed = sorted(self.deviations.items(), key=lambda item: -abs(item[1]))
        shown = "\n".join(self.wrong + [f"{what}: {z:+.2f} standard errors" for what, z in listed[:8]])
        assert not self.wrong, shown
        third = VERDICT_BUDGET / 3
        assert all(abs(z) <= bound(len(listed), third) for _, z in listed), shown
        expected = len(listed) * 2 * NormalDist().cdf(-self.SOFT)
        assert sum(abs(z) > self.SOFT for _, z in listed) <= most_by_chance(expected, third), shown
        if self.random:
            mean = sum(self.random) / math.sqrt(len(self.random))
            assert abs(mean) <= bound(1, third), f"all are off to one side ({mean:+.2f})\n{shown}"
