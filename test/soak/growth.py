"""Decides by a rule whether a figure that was read again and again has grown.

The first third is warm-up: caches fill, tables reach their size. Of what follows,

1. the median of the last third may not exceed the median of the second by more than the figure's
   bound, which is stated where the figure is (for what is counted in pieces it is 0);
2. nor may it creep: of the medians of WINDOWS equal windows over both thirds, the rank correlation
   with time (Spearman) may not reach CREEP, unless the whole rise from the first window to the last
   is at most a quarter of the bound. The largest rise between two neighbours is taken out before: one
   step (a library of whose functions one is met for the first time, whose symbols are read) is no
   creeping, and is judged by the first rule. Twenty windows of mere noise reach 0.75 once in ten
   thousand runs.

Figures are medians because some moments are dear by nature (an export under way), and they are no
trend."""

from statistics import median

WINDOWS = 20
CREEP = 0.75
FEWEST = 3  # readings in a third, below which there is no verdict


def ranks(values):
    """Returns ranks: 1 for the least; equals share the mean of theirs."""
    order = sorted(values)
    return [(order.index(v) + 1 + len(order) - order[::-1].index(v)) / 2 for v in values]


def rank_correlation(values):
    """Returns the rank correlation of the values with their order in time: -1 to 1; 0 if all are equal."""
    times, by_size = ranks(range(len(values))), ranks(values)
    mean = (len(values) + 1) / 2
    spread = sum((a - mean) ** 2 for a in times) * sum((b - mean) ** 2 for b in by_size)
    if not spread:
        return 0.0
    return sum((a - mean) * (b - mean) for a, b in zip(times, by_size)) / spread**0.5


def windows_of(values, count):
    edges = [round(i * len(values) / count) for i in range(count + 1)]
    return [median(values[a:b]) for a, b in zip(edges, edges[1:]) if b > a]


def without_largest_rise(values):
    rises = [b - a for a, b in zip(values, values[1:])]
    largest = max([0, *rises])
    at = rises.index(largest) + 1 if largest else len(values)
    return values[:at] + [value - largest for value in values[at:]]


class Figure:
    """Is one figure over time. `bound`: by how much its median may differ between two thirds."""

    def __init__(self, name, bound, unit=""):
        self.name = name
        self.bound = bound
        self.unit = unit
        self.values = []

    def add(self, value):
        if value is not None:
            self.values.append(value)

    def thirds(self):
        """Returns the medians of the first, second and last third."""
        return windows_of(self.values, 3)

    def creep(self):
        """Returns (rank correlation of the windows after the warm-up, the rise from the first to the last)."""
        windows = without_largest_rise(windows_of(self.values[round(len(self.values) / 3):], WINDOWS))
        return rank_correlation(windows), windows[-1] - windows[0]

    def problem(self):
        """Returns a sentence if the figure grows, or if there are too few readings; else ''."""
        if len(self.values) < 3 * FEWEST:
            return f"{self.name}: looked at {len(self.values)} times, which tells nothing"
        _, second, last = self.thirds()
        if last > second + self.bound:
            return f"{self.name}: {self.show(second)} in the second third, {self.show(last)} in the last"
        correlation, rise = self.creep()
        if correlation >= CREEP and rise > self.bound / 4:
            return f"{self.name}: creeps, by {self.show(rise)} after the warm-up (rank correlation {correlation:.2f})"
        return ""

    def show(self, value):
        if self.unit == "KiB":
            return f"{value / 1024:.0f} KiB"
        return f"{value:g}"

    def __str__(self):
        if len(self.values) < 3 * FEWEST:
            return f"{self.name:32} {len(self.values)} looks"
        first, second, last = (self.show(v) for v in self.thirds())
        correlation, _ = self.creep()
        return (
            f"{self.name:32} start {self.show(self.values[0]):>10}  thirds {first:>10} {second:>10} {last:>10}"
            f"  end {self.show(self.values[-1]):>10}  most {self.show(max(self.values)):>10}"
            f"  bound {self.show(self.bound):>9}  trend {correlation:+.2f}"
        )
