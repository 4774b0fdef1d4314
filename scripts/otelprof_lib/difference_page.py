"""Makes the flame graph of two profiles: unchanged frames are grey, changed ones have a colour.

A frame is as wide as in the mean of both profiles, at one scale: frames that only one profile has are visible as
well. The change below a frame is the sum over those functions that differ by more than chance, by themselves or with
their callees: noise has no colour.
"""

from .aggregate import Profile
from .flamegraph import page_of, write_text
from .page_data import page_data

KIND = "diff"


def _middle(sides, scales):
    """Returns one profile with the mean of both."""
    result = Profile(sides[0].title, sides[0].unit, noun=sides[0].noun)
    for profile, scale in zip(sides, scales):
        for stack, value in profile.stacks.items():
            key = stack, ()
            result.samples[key] = result.samples.get(key, 0) + value * scale / 2
    return result


def _scales(sides, exposures):
    """Returns factors that make both comparable: the values of A stay unchanged."""
    if exposures:
        return 1, exposures[0] / exposures[1]
    return 1, sides[0].total / (sides[1].total or 1)


class _Tree:
    """Holds values by the path from the root, of the wanted stacks."""

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
        """Returns the values of the page's nodes, each after its caller."""
        found = []
        for parent, frame in zip(parents, frames):
            found.append(found[parent][1].get(frame, [0, {}]) if found else self._root)
            yield found[-1][0]


def _changes(tree, sides, scales, changes):
    """Returns columns beside those of the tree: A, B, and how much more the named functions below each node have in
    B."""

    def both(is_wanted):
        return [list(_Tree(profile, scale, is_wanted).values(*tree)) for profile, scale in zip(sides, scales)]

    own, with_callees = ({it.frame for it in changes if (it.of == "self") == is_own} for is_own in (True, False))
    before, after = both(lambda stack: True)
    changed = both(lambda stack: stack[0] in own or not with_callees.isdisjoint(stack))
    return {"changes": {"before": before, "after": after, "gain": [there - here for here, there in zip(*changed)]}}


def write_difference(path, title, sides, comparison, exposures, rows, note, found):
    """Writes the page. `rows`: the table of the changes; `note`: the text above it; `found`: the outcome, in a line."""
    scales = _scales(sides, exposures)
    tables = {"changes": {"rows": rows, "note": note, "of": [KIND]}}
    data = page_data(
        title, {KIND: _middle(sides, scales)}, tables, also=lambda *tree: _changes(tree, sides, scales, comparison.changes),
        about={"text": found, "more": note},
    )
    data["profiles"][0]["headline"] = f"{sides[0].title}, the middle of A and B"
    data["profiles"][0]["scale"] = scales[1]  # B's figures are multiplied by it in the page's columns
    write_text(path, page_of(data))
