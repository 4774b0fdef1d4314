"""Finds the functions that differ between two profiles by more than chance.

Two runs of one program never give the same numbers. How far they are apart by chance alone follows from the number of
samples that each function has, not from their values: ten samples of a second each show as little as ten of a
millisecond. docs/views.md explains the statistic.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from .aggregate import Frame

CERTAINTY = 0.01  # the chance that a comparison of two runs of one program names any function
LEAST_SAMPLES = 10  # in both files together: fewer cannot be distinguished from chance
HALF_A_SAMPLE = 0.5
MOST_CHANGES = 200
FAMILIES = 2  # families of comparisons: self and total
POWER = 0.8  # probability with which the smallest visible change is found
SHARES = (0.5, 0.1, 0.01)  # shares of the total for which that change is computed
ALIKE = 0.9  # part of the largest gain: callers gain about what their callee gains
MOST_LOG_RATIO = 3.0  # of a visible change: beyond it the normal approximation fails
NO_SAMPLE = 1e-6  # what rounding leaves of no sample


@dataclass
class Cell:
    """Holds what a part of a profile accounts for, and the number of samples that show it."""

    value: float
    samples: float

    def add(self, other):
        self.value += other.value
        self.samples += other.samples

    def without(self, other):
        samples = self.samples - other.samples
        return Cell(max(0, self.value - other.value), samples) if samples > NO_SAMPLE else Cell(0, 0)

    @property
    def weight(self):
        return self.value / self.samples if self.samples else 0


NOTHING = Cell(0, 0)


@dataclass
class Change:
    frame: Frame
    before: float  # value in A; `after`: in B
    after: float
    relative: float  # change of the function itself: -1: removed, inf: new
    p: float  # adjusted by Holm, for both families
    of: str = "self"  # or "total": with callees; "rest": of the total what no function that is named before explains


@dataclass
class Comparison:
    changes: list  # the largest first
    compared: int  # number of functions
    samples: tuple  # samples of both profiles: independent ones
    visible: list  # (share of the total, smallest relative change that would have been named; None: no change would)


# --- the number of samples ---


def _sampled_objects(value, objects, period):
    """Returns how many of the objects were sampled, as a rule: each byte or nanosecond is sampled with the chance 1
    in the period."""
    return objects * -math.expm1(-value / objects / period) if objects else 0


def _merged(profile):
    """Returns how many periods a sample of CPU time is worth: the kernel merges expiries, so that there are fewer
    samples."""
    periods = profile.total * 1e9 / profile.sampling.period
    signals = periods - profile.sampling.overruns
    return periods / signals if 0 < signals < periods else 1


def _stack_cells(profile):
    """Returns cells by stack."""
    period = profile.sampling.period or 1
    if not profile.counts:
        per_sample = period * _merged(profile) / 1e9
        return {stack: Cell(value, value / per_sample) for stack, value in profile.stacks.items()}
    factor = 1e9 if profile.unit == "duration" else 1
    return {
        stack: Cell(value, _sampled_objects(value * factor, profile.objects.get(stack, 0), period))
        for stack, value in profile.stacks.items()
    }


def cells(by_stack):
    """Returns cells by function, for self values."""
    found = {}
    for stack, part in by_stack.items():
        if part.value:
            found.setdefault(stack[0], Cell(0, 0)).add(part)
    return found


class Totals:
    """Holds, by function, what it has with its callees, in those stacks of one profile that no named function
    explains."""

    def __init__(self, by_stack):
        self._stacks = dict(by_stack)
        self._through = {}
        self.cells = {}
        for stack, part in by_stack.items():
            for frame in set(stack):
                self._through.setdefault(frame, []).append(stack)
                self.cells.setdefault(frame, Cell(0, 0)).add(part)
        self.whole = _sum(by_stack.values())
        self._first = dict(self.cells)

    def is_whole(self, frame):
        """Whether no stack through it was taken out."""
        return self.cells.get(frame) is self._first.get(frame)

    def take_out(self, frame):
        for stack in self._through.pop(frame, ()):
            part = self._stacks.pop(stack, None)
            if part:
                self.whole = self.whole.without(part)
                for other in set(stack):
                    self.cells[other] = self.cells[other].without(part)


def _sum(parts):
    parts = list(parts)
    return Cell(sum(it.value for it in parts), sum(it.samples for it in parts))


# --- one function ---


def _deviance(observed, expected):
    """Returns G squared, twice the logarithm of the likelihood ratio, with Yates's correction: each observed number
    is taken half a sample nearer to the expected one. Without the correction few samples would mean too much."""
    sum_of = 0.0
    for seen, wanted in zip(observed, expected):
        nearer = seen + math.copysign(min(HALF_A_SAMPLE, abs(wanted - seen)), wanted - seen)
        sum_of += nearer * math.log(nearer / wanted) if nearer > 0 else 0
    return 2 * sum_of


def _weights(before, after, whole_before, whole_after):
    """Returns the value per sample on both sides; where there is no sample, the other side's. None: there is no
    value, which subtraction can leave of very large numbers."""
    if not whole_before.weight or not whole_after.weight or not (before.weight or after.weight):
        return None
    scale = whole_before.weight / whole_after.weight
    return before.weight or after.weight * scale, after.weight or before.weight / scale


def _odds(part, rest):
    return part / rest if rest else math.inf


def _p(deviance):
    """Returns the chance that chi-squared with one degree of freedom is at least this."""
    return math.erfc(math.sqrt(max(0, deviance) / 2))


def _ratio(one, other):
    if one == other:
        return 1.0
    return one / other if other else math.inf


def _bound(ratio, least):
    """Returns the smallest change that counts, in the direction of a ratio; None if the ratio is no larger."""
    if 1 / least <= ratio <= least:
        return None
    return least if ratio > 1 else 1 / least


def share_test(before, after, whole_before, whole_after, least):
    """Returns (ratio of the odds that a sample is the function's, chance of such a ratio if `least` is the true one)."""
    rest_before, rest_after = whole_before.without(before), whole_after.without(after)
    ratio = _ratio(_odds(after.value, rest_after.value), _odds(before.value, rest_before.value))
    bound = _bound(ratio, least)
    if bound is None or rest_before.samples + rest_after.samples < LEAST_SAMPLES:  # there is hardly anything else
        return ratio, 1.0
    own = _weights(before, after, whole_before, whole_after)
    rest = _weights(rest_before, rest_after, whole_before, whole_after)
    if not own or not rest:
        return ratio, 1.0
    odds = bound * (own[0] / rest[0]) / (own[1] / rest[1])  # odds of samples instead of values
    both = before.samples + after.samples
    # the likeliest table with these odds and these sums: the smaller root of a quadratic equation
    linear = both + whole_before.samples + odds * (whole_after.samples - both)
    root = math.sqrt(max(0, linear * linear - 4 * (1 - odds) * both * whole_before.samples))
    first = 2 * both * whole_before.samples / (linear + root)
    table = (first, both - first, whole_before.samples - first, whole_after.samples - both + first)
    seen = (before.samples, after.samples, rest_before.samples, rest_after.samples)
    return ratio, _p(_deviance(seen, [max(it, 1e-300) for it in table]))


def rate_test(before, after, whole_before, whole_after, exposures, least):
    """Tests values per unit of `exposures` likewise."""
    ratio = _ratio(after.value / exposures[1], before.value / exposures[0])
    bound = _bound(ratio, least)
    if bound is None:
        return ratio, 1.0
    own = _weights(before, after, whole_before, whole_after)
    if not own:
        return ratio, 1.0
    expected = exposures[0] / own[0], bound * exposures[1] / own[1]
    both = before.samples + after.samples
    return ratio, _p(_deviance((before.samples, after.samples), [both * it / sum(expected) for it in expected]))


# --- all functions ---


def holm(chances):
    """Adjusts chances for their number: each, and all smaller ones, holds for all together."""
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
    adjusted = [min(1.0, FAMILIES * chance) for chance in holm([chance for *_, chance in tested])]
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
    """Finds functions by share, one after the other: the gain of one in shares is a loss of all others, so each that
    is found is taken out before the others are compared again."""
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
        # one of two functions gains what the other loses: a new or removed one is reported then, or the one that
        # gains
        change = min(
            found, key=lambda it: (-round(abs(gain(it)), 9), bool(it.before and it.after), -gain(it), it.frame)
        )
        named.append(change)
        wholes = tuple(whole.without(part) for whole, part in zip(wholes, pairs.pop(change.frame)))
    return named


def _test(wholes, exposures, least):
    if exposures:
        return lambda before, after: rate_test(before, after, *wholes, exposures, least)
    return lambda before, after: share_test(before, after, *wholes, least)


def _innermost(found, pairs, divisors, are_shares):
    """Returns the change of the function with the smallest total, since its callers gain as much. For shares, takes
    one of about the largest gain: the others' may be its mirror."""

    def gain(change):
        return change.after / divisors[1] - change.before / divisors[0]

    def size(change):
        return sum(part.value / divisor for part, divisor in zip(pairs[change.frame], divisors))

    most = max(abs(gain(it)) for it in found)
    alike = [it for it in found if not are_shares or abs(gain(it)) >= ALIKE * most]
    return min(alike, key=lambda it: (gain(it) < 0, round(size(it), 9), it.frame))


def _by_total(sides, exposures, least, leaves, by_self):
    """Finds functions by total, one after the other: the stacks through a function that is found are taken out before
    the others are compared again. So a caller is named only for what its named callees do not explain. A function
    without callees is taken out where it changes as its self time, which has named it, does; it is not named again."""
    before, after = sides
    named = []
    while len(named) < MOST_CHANGES and min(before.whole.samples, after.whole.samples) >= 1:
        pairs = _pairs(before.cells, after.cells)
        wholes = before.whole, after.whole
        significant = _changes(pairs, _test(wholes, exposures, least))
        found = [it for it in significant if it.frame not in leaves or it.relative * by_self.get(it.frame, 0) > 0]
        if not found:
            break
        change = _innermost(found, pairs, exposures or [whole.value for whole in wholes], not exposures)
        change.of = "total" if all(side.is_whole(change.frame) for side in sides) else "rest"
        named.append(change)
        for side in sides:
            side.take_out(change.frame)
    return [it for it in named if it.frame not in leaves]


def visible(share, samples, compared, is_rate, least):
    """Returns the smallest relative change of a function with this share of the total that is named with the chance
    POWER, as the first of so many functions; None if it has too few samples to be compared."""
    parts = [share * count for count in samples]
    if not compared or sum(parts) < LEAST_SAMPLES or min(parts) < 1:
        return None
    rest = [] if is_rate else [(1 - share) * count for count in samples]
    error = math.sqrt(sum(1 / count for count in parts + rest))
    normal = NormalDist()
    distance = normal.inv_cdf(1 - CERTAINTY / FAMILIES / compared / 2) + normal.inv_cdf(POWER)
    if distance * error > MOST_LOG_RATIO:
        return None
    return least * math.exp(distance * error) - 1


def compare(before, after, least, exposures=None):
    """Compares two Profiles. `least`: the smallest ratio that counts as change; `exposures`: what the values are
    divided by; None: shares of the total."""
    by_stack = _stack_cells(before), _stack_cells(after)
    sides = tuple(map(cells, by_stack))
    wholes = tuple(_sum(side.values()) for side in sides)
    pairs = _pairs(*sides)
    changes = _by_rate(pairs, wholes, exposures, least) if exposures else _by_share(pairs, wholes, least)
    totals = tuple(map(Totals, by_stack))
    compared = len(_pairs(*(side.cells for side in totals)))
    # a function without callees has the same total as self: it is named once
    leaves = {
        frame
        for frame in {**sides[0], **sides[1]}
        if all(total.cells.get(frame, NOTHING) == side.get(frame, NOTHING) for side, total in zip(sides, totals))
    }
    by_total = _by_total(totals, exposures, least, leaves, {it.frame: it.relative for it in changes})
    samples = tuple(whole.samples for whole in wholes)
    return Comparison(
        [*changes, *by_total],
        compared,
        samples,
        [(share, visible(share, samples, compared, bool(exposures), least)) for share in SHARES],
    )
