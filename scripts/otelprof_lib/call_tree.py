"""The tree of a profile's calls as columns, which a browser lays out: one entry a node, each after the one that calls it.

`parents`, `frames` (indices that the caller gives out), `own` and, where objects are counted, `objects`; `unseen` is the value
of what is left out directly below a node. What a node has with all below it, its depth and its place are for the page to
compute: that is quick there, and slow here.
"""

ROOT = 0


class CallTree:
    """`index`: a mapping from frame to index, which makes those that it lacks."""

    def __init__(self, profile, index, root):
        self.parents = [-1]
        self.frames = [index[root]]
        self.left_out = 0
        self._leaves = {}  # node by stack; ~node: that is left out, and node is the last of its callers that is not
        self._grow({**profile.stacks, **profile.objects} if profile.counts else profile.stacks, index.__getitem__)
        self._fill(profile)

    def _grow(self, stacks, place):
        """Outermost frame first and sorted, so that a stack shares with the one before it all that it shares with any."""
        paths = sorted((tuple(map(place, reversed(stack))), at) for at, stack in enumerate(stacks))
        leaves = [ROOT] * len(paths)
        before, nodes = (), [ROOT]
        for path, at in paths:
            shared = 0
            for here, there in zip(path, before):
                if here != there:
                    break
                shared += 1
            del nodes[shared + 1 :]
            self._add_below(nodes, path[shared:])
            leaves[at] = nodes[-1]
            before = path
        self._leaves = dict(zip(stacks, leaves))

    def _add_below(self, nodes, frames):
        """`nodes`: the way from the root; it grows."""
        for frame in frames:
            self.parents.append(nodes[-1])
            nodes.append(len(self.frames))
            self.frames.append(frame)

    def _fill(self, profile):
        self.own, self.unseen = self._columns(profile.stacks)
        self.objects, _ = self._columns(profile.objects) if profile.counts else ([], [])

    def _columns(self, values):
        """Of a value by stack: what is at each node, and what is left out below it."""
        seen, unseen = ([0] * len(self.parents) for _ in range(2))
        for stack, value in values.items():
            node = self._leaves[stack]
            if node >= 0:
                seen[node] += value
            else:
                unseen[~node] += value
        return seen, unseen

    def leaf(self, stack):
        return self._leaves[stack]

    def values(self):
        """Of each node with all below it."""
        values = list(map(sum, zip(self.own, self.unseen)))
        for node in range(len(values) - 1, ROOT, -1):
            values[self.parents[node]] += values[node]
        return values

    def keep_largest(self, most, profile):
        """Leaves the smallest nodes out. What calls one of them is no smaller, and stands before it."""
        if len(self.parents) <= most:
            return
        values = self.values()
        kept = sorted(sorted(range(len(values)), key=values.__getitem__, reverse=True)[:most])
        self.left_out = len(values) - most
        places = self._places(kept)
        self._leaves = {stack: places[node] for stack, node in self._leaves.items()}
        self.parents = [places[self.parents[node]] if node else -1 for node in kept]
        self.frames = [self.frames[node] for node in kept]
        self._fill(profile)

    def _places(self, kept):
        """By node: the new one."""
        places = [None] * len(self.parents)
        for place, node in enumerate(kept):
            places[node] = place
        for node, place in enumerate(places):
            if place is None:
                above = places[self.parents[node]]
                places[node] = above if above < 0 else ~above
        return places
