"""Chance may fail right work within one budget, and a deviation beyond chance fails."""

import random
from math import erfc, exp, factorial, sqrt

import pytest
from sampling_theory import RUN_BUDGET, VERDICT_BUDGET, Comparison, bound, most_by_chance


def beyond(z):
    """Returns the probability that an estimate is off by more than z standard errors."""
    return erfc(z / sqrt(2))


def verdict_of(deviations):
    comparison = Comparison()
    for number, z in enumerate(deviations):
        comparison.add(f"site {number}", 1000 + 100 * z, 1000, 100)
    comparison.verdict()


@pytest.mark.parametrize("estimates", [1, 4, 30, 100])
def test_a_verdict_keeps_its_budget(estimates):
    third = VERDICT_BUDGET / 3
    expected = estimates * beyond(3)
    most = most_by_chance(expected, third)
    many = sum(exp(-expected) * expected**k / factorial(k) for k in range(most + 1, most + 40))
    alarms = estimates * beyond(bound(estimates, third)) + many + beyond(bound(1, third))
    assert 0 < alarms <= 1.001 * VERDICT_BUDGET <= RUN_BUDGET / 50


def test_what_chance_explains_passes():
    draw = random.Random(1)
    for _ in range(1000):
        verdict_of([draw.gauss(0, 1) for _ in range(30)])


@pytest.mark.parametrize("deviations", [[7.0] + [0.0] * 29, [3.5, -3.5] * 3 + [0.0] * 24, [1.2] * 30],
                         ids=["one far off", "six beyond three", "all to one side"])
def test_what_chance_does_not_explain_fails(deviations):
    with pytest.raises(AssertionError, match="standard errors|off to one side"):
        verdict_of(deviations)


def test_an_exact_value_is_compared_exactly():
    comparison = Comparison()
    comparison.add("site", 1002, 1000, 0)
    with pytest.raises(AssertionError, match="instead of exactly"):
        comparison.verdict()
