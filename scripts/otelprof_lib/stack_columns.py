"""Packs distinct stacks as columns, from which a served page grows its trees of calls.

`sizes`: how many frames each stack has; `frames`: the frames of one stack after those of another, the innermost
first.
"""

from itertools import chain


class StackColumns:
    """Holds the stacks of several profiles, each once."""

    def __init__(self, profiles):
        places = {}
        self._stacks = places
        self._samples = {}
        for name, profile in profiles.items():
            # samples that only count objects have a value of 0
            values = {**dict.fromkeys(profile.counts, 0), **profile.samples} if profile.counts else profile.samples
            self._samples[name] = values, [places.setdefault(stack, len(places)) for stack, _ in values]

    def count_frames(self):
        return sum(map(len, self._stacks))

    def samples_of(self, name):
        """Returns all samples of a profile, and for each of them the index of its stack."""
        return self._samples[name]

    def columns(self, index):
        """Returns the columns. `index`: a mapping from a frame to its index, which adds the frames that it lacks."""
        return {"sizes": list(map(len, self._stacks)), "frames": list(map(index.__getitem__, chain.from_iterable(self._stacks)))}
