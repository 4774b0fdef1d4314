"""Which functions differ between two profiles by more than chance.

Two runs of one program never give the same numbers. How far they are apart by chance alone follows from the number of
samples that each function has, not from their values: ten samples of a second each say as little as ten of a
millisecond. docs/views.md explains the statistic.
"""

import math
from dataclasses import dataclass

from .aggregate import Frame, self_and_total

CERTAINTY = 0.01  # the chance that a comparison of two runs of one program names any function
LEAST_SAMPLES = 10  # in both files together: fewer cannot be told from chance
HALF_A_SAMPLE = 0.5
MOST_CHANGES = 200


@dataclass
class Cell:
    """What a part of a profile accounts for, and the samples that this was learnt from."""

    value: float
    samples: float

    def without(self, other):
        return Cell(max(0, self.value - other.value), max(0, self.samples - other.samples))

    @property
    def weight(self):
        return self.value / self.samples if self.samples else 0


NOTHING = Cell(0, 0)


@dataclass
class Change:
    frame: Frame
    before: float  # values
    after: float
    relative: float  # of the function itself: -1 it is gone, inf it is new
    p: float  # Holm's


@dataclass
class Comparison:
    changes: list  # the largest first
    compared: int  # functions
    samples: tuple  # of both profiles: independent ones


# --- the number of samples ---


def _sampled_objects(value, objects, period):
    """How many of the objects were sampled, as a rule: each byte or nanosecond is, by a chance of 1 in the period."""
    return objects * -math.expm1(-value / objects / period) if objects else 0


def _merged(profile):
    """Periods that a sample of CPU time is worth: the kernel merges expiries. So many fewer samples there are."""
    periods = profile.total * 1e9 / profile.sampling.period
    signals = periods - profile.sampling.overruns
    return periods / signals if 0 < signals < periods else 1


def cells(profile):
    """By function: what is its own."""
    period = profile.sampling.period or 1
    if not profile.counts:
        per_sample = period * _merged(profile) / 1e9
        return {frame: Cell(own, own / per_sample) for frame, (own, _) in self_and_total(profile.stacks).items() if own}
    factor = 1e9 if profile.unit == "duration" else 1
    found = {}
    for stack, value in profile.stacks.items():
        cell = found.setdefault(stack[0], Cell(0, 0))
        cell.value += value
        cell.samples += _sampled_objects(value * factor, profile.objects.get(stack, 0), period)
    return found


def _sum(parts):
    parts = list(parts)
    return Cell(sum(it.value for it in parts), sum(it.samples for it in parts))


# --- one function ---


def _deviance(observed, expected):
    """G squared, twice the logarithm of the likelihood ratio, with Yates's correction: each observed number is taken
    half a sample nearer to the expected one. Without it few samples would say too much."""
    sum_of = 0.0
    for seen, wanted in zip(observed, expected):
        nearer = seen + math.copysign(min(HALF_A_SAMPLE, abs(wanted - seen)), wanted - seen)
        sum_of += nearer * math.log(nearer / wanted) if nearer > 0 else 0
    return 2 * sum_of


def _weights(before, after, whole_before, whole_after):
    """Value per sample on both sides; where there is no sample, as much as on the other side."""
    scale = whole_before.weight / whole_after.weight
    return before.weight or after.weight * scale, after.weight or before.weight / scale


def _odds(part, rest):
    return part / rest if rest else math.inf


def _p(deviance):
    """That chi-squared with one degree of freedom is at least this."""
    return math.erfc(math.sqrt(max(0, deviance) / 2))


def _ratio(one, other):
    if one == other:
        return 1.0
    return one / other if other else math.inf


def _bound(ratio, least):
    """The smallest change that counts, in the direction of a ratio; None if the ratio is no larger."""
    if 1 / least <= ratio <= least:
        return None
    return least if ratio > 1 else 1 / least


def share_test(before, after, whole_before, whole_after, least):
    """(ratio of the odds that a sample is the function's, chance to see such a one if `least` is the true one)"""
    rest_before, rest_after = whole_before.without(before), whole_after.without(after)
    ratio = _ratio(_odds(after.value, rest_after.value), _odds(before.value, rest_before.value))
    bound = _bound(ratio, least)
    if bound is None or rest_before.samples + rest_after.samples < LEAST_SAMPLES:  # there is hardly anything else
        return ratio, 1.0
    own = _weights(before, after, whole_before, whole_after)
    rest = _weights(rest_before, rest_after, whole_before, whole_after)
    odds = bound * (own[0] / rest[0]) / (own[1] / rest[1])  # of samples instead of values
    both = before.samples + after.samples
    # the likeliest table with these odds and these sums: the smaller root of a quadratic equation
    linear = both + whole_before.samples + odds * (whole_after.samples - both)
    root = math.sqrt(max(0, linear * linear - 4 * (1 - odds) * both * whole_before.samples))
    first = 2 * both * whole_before.samples / (linear + root)
    table = (first, both - first, whole_before.samples - first, whole_after.samples - both + first)
    seen = (before.samples, after.samples, rest_before.samples, rest_after.samples)
    return ratio, _p(_deviance(seen, [max(it, 1e-300) for it in table]))


def rate_test(before, after, whole_before, whole_after, exposures, least):
    """The same of values per unit of `exposures`."""
    ratio = _ratio(after.value / exposures[1], before.value / exposures[0])
    bound = _bound(ratio, least)
    if bound is None:
        return ratio, 1.0
    own = _weights(before, after, whole_before, whole_after)
    expected = exposures[0] / own[0], bound * exposures[1] / own[1]
    both = before.samples + after.samples
    return ratio, _p(_deviance((before.samples, after.samples), [both * it / sum(expected) for it in expected]))


# --- all functions ---


def holm(chances):
    """Adjusted for how many there are: each, and all with smaller ones, holds for all together."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    adjusted = [1.0] * len(chances)
    largest = 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(chances) - place) * chances[index]))
        adjusted[index] = largest
    return adjusted


def _pairs(before, after):
    both = {frame: (before.get(frame, NOTHING), after.get(frame, NOTHING)) for frame in {**before, **after}}
    return {frame: pair for frame, pair in both.items() if sum(it.samples for it in pair) >= LEAST_SAMPLES}


def _changes(pairs, test):
    tested = [(frame, *pair, *test(*pair)) for frame, pair in pairs.items()]
    adjusted = holm([chance for *_, chance in tested])
    return [
        Change(frame, before.value, after.value, ratio - 1, p)
        for (frame, before, after, ratio, _), p in zip(tested, adjusted)
        if p < CERTAINTY
    ]


def _by_rate(pairs, wholes, exposures, least):
    found = _changes(pairs, lambda before, after: rate_test(before, after, *wholes, exposures, least))
    return sorted(found, key=lambda it: (-abs(it.after / exposures[1] - it.before / exposures[0]), it.frame))[
        :MOST_CHANGES
    ]


def _by_share(pairs, wholes, least):
    """One after the other: what one function gains in shares all others lose, so each that is found is taken out
    before the others are looked at again."""
    pairs = dict(pairs)
    named = []

    def gain(change):
        return change.after / whole_after.value - change.before / whole_before.value

    while len(named) < MOST_CHANGES:
        whole_before, whole_after = wholes
        if min(whole_before.samples, whole_after.samples) < 1:
            break
        found = _changes(pairs, lambda before, after: share_test(before, after, *wholes, least))
        if not found:
            break
        # one of two functions gains what the other loses: what is new or gone is told then, or what gains
        change = min(
            found, key=lambda it: (-round(abs(gain(it)), 9), bool(it.before and it.after), -gain(it), it.frame)
        )
        named.append(change)
        wholes = tuple(whole.without(part) for whole, part in zip(wholes, pairs.pop(change.frame)))
    return named


def compare(before, after, least, exposures=None):
    """Of two Profiles. `least`: the smallest ratio that counts as change; `exposures`: what the values are divided by;
    None: shares of the total."""
    sides = cells(before), cells(after)
    wholes = tuple(_sum(side.values()) for side in sides)
    pairs = _pairs(*sides)
    changes = _by_rate(pairs, wholes, exposures, least) if exposures else _by_share(pairs, wholes, least)
    return Comparison(changes, len(pairs), tuple(whole.samples for whole in wholes))
