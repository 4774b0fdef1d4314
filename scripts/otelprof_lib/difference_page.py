"""The flame graph of two profiles: what is the same is grey, what changed has a colour.

A frame is as wide as it is in the middle of both, at the same scale: what only one of them has is seen as well. What
has changed below a frame is the sum over those functions that differ by more than chance, by themselves or with their
callees: noise has no colour.
"""

from .aggregate import Profile
from .flamegraph import page_of, write_text
from .page_data import page_data

KIND = "diff"


def _middle(sides, scales):
    """One profile with the mean of both."""
    result = Profile(sides[0].title, sides[0].unit, noun=sides[0].noun)
    for profile, scale in zip(sides, scales):
        for stack, value in profile.stacks.items():
            key = stack, ()
            result.samples[key] = result.samples.get(key, 0) + value * scale / 2
    return result


def _scales(sides, exposures):
    """What makes both comparable: the values of A stay as they are."""
    if exposures:
        return 1, exposures[0] / exposures[1]
    return 1, sides[0].total / (sides[1].total or 1)


class _Tree:
    """Values by the path from the root, of those stacks that are wanted."""

    def __init__(self, profile, scale, is_wanted=lambda stack: True):
        self._root = [0, {}]
        for stack, value in profile.stacks.items():
            if is_wanted(stack):
                self._add(stack, value * scale)

    def _add(self, stack, value):
        node = self._root
        node[0] += value
        for frame in reversed(stack):
            node = node[1].setdefault(frame, [0, {}])
            node[0] += value

    def values(self, parents, frames):
        """Of the page's nodes, each after the one that calls it."""
        found = []
        for parent, frame in zip(parents, frames):
            found.append(found[parent][1].get(frame, [0, {}]) if found else self._root)
            yield found[-1][0]


def _changes(tree, sides, scales, changes):
    """Columns beside those of the tree: A, B, and by how much the named functions below each have more in B."""

    def both(is_wanted):
        return [list(_Tree(profile, scale, is_wanted).values(*tree)) for profile, scale in zip(sides, scales)]

    own, with_callees = ({it.frame for it in changes if it.of == of} for of in ("self", "total"))
    before, after = both(lambda stack: True)
    changed = both(lambda stack: stack[0] in own or not with_callees.isdisjoint(stack))
    return {"changes": {"before": before, "after": after, "gain": [there - here for here, there in zip(*changed)]}}


def write_difference(path, title, sides, comparison, exposures, rows, note):
    """`rows`: the table of the changes; `note`: what is said above it."""
    scales = _scales(sides, exposures)
    tables = {"changes": {"rows": rows, "note": note, "of": [KIND]}}
    data = page_data(
        title, {KIND: _middle(sides, scales)}, tables, also=lambda *tree: _changes(tree, sides, scales, comparison.changes)
    )
    data["profiles"][0]["headline"] = f"{sides[0].title}, the middle of A and B"
    write_text(path, page_of(data))
