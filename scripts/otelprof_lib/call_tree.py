"""Makes the tree of a profile's calls as columns, which a browser lays out: one entry a node, each after its caller.

The columns are `parents`, `frames` (indices that the caller gives out), `own` and, where objects are counted, `objects`;
`unseen` is the value of what is left out directly below a node. The page computes what a node has with all below it, its depth
and its place: that is quick there, and slow here.
"""

ROOT = 0


def _shared_depths(paths):
    """Returns how many frames each path has in common with the one before it."""
    before, depths = (), []
    for path in paths:
        shared = 0
        for here, there in zip(path, before):
            if here != there:
                break
            shared += 1
        depths.append(shared)
        before = path
    return depths


def _chains(paths, depths, values):
    """Yields the unbranched parts of paths as (value with all below, number of the first path with the part, first depth,
    end): all nodes of a part have one value. A tree may have more nodes than fit into memory, but at most two parts for
    each path."""
    chains, open_chains = [], []

    def close_below(depth):
        while open_chains and open_chains[-1][-1] > depth:
            value, number, begin, end = open_chains.pop()
            chains.append((value, number, max(begin, depth), end))
            if begin < depth:
                open_chains.append([value, number, begin, depth])
            elif open_chains:
                open_chains[-1][0] += value

    for number, (path, shared, value) in enumerate(zip(paths, depths, values)):
        close_below(shared)
        if len(path) > shared:
            open_chains.append([value, number, shared, len(path)])
        elif open_chains:
            open_chains[-1][0] += value
    close_below(0)
    return chains


def _largest(paths, depths, values, most):
    """Returns for each path how many of its frames are among the largest nodes. A caller is no smaller than its
    callee, and comes before it."""
    ends = list(depths)
    # sums of the same values differ by the order in which they are added up
    for _, number, begin, end in sorted(_chains(paths, depths, values), key=lambda it: (-round(it[0], 9), it[1], it[2])):
        ends[number] = min(end, begin + most)
        most -= ends[number] - begin
        if not most:
            break
    return ends


class CallTree:
    """Is a tree of calls. `index`: a mapping from frame to index, which adds frames that it lacks. Beyond `most`
    nodes the smallest are left out."""

    def __init__(self, profile, index, root, most):
        self.parents = [-1]
        self.frames = [index[root]]
        self.left_out = 0
        self._leaves = {}  # node by stack; ~node: the stack is left out, and node is its last caller that is not
        stacks = {**profile.stacks, **profile.objects} if profile.counts else profile.stacks
        self._grow(stacks, profile.stacks, index.__getitem__, most)
        self._fill(profile)

    def _grow(self, stacks, values, place, most):
        """Adds stacks, the outermost frame first and sorted, so that a stack shares with the one before it all that
        it shares with any."""
        by_path = sorted((tuple(map(place, reversed(stack))), at) for at, stack in enumerate(stacks))
        paths, numbers = [path for path, _ in by_path], [at for _, at in by_path]
        del by_path
        depths = _shared_depths(paths)
        self.left_out = max(0, 1 + sum(map(len, paths)) - sum(depths) - most)
        ends = map(len, paths)
        if self.left_out:
            stack_at = list(stacks)
            ends = _largest(paths, depths, [values.get(stack_at[at], 0) for at in numbers], most - 1)
        leaves = [ROOT] * len(paths)
        nodes = [ROOT]
        for path, shared, end, at in zip(paths, depths, ends, numbers):
            del nodes[shared + 1 :]
            self._add_below(nodes, path[shared:end])
            leaves[at] = nodes[-1] if len(nodes) > len(path) else ~nodes[-1]
        self._leaves = dict(zip(stacks, leaves))

    def _add_below(self, nodes, frames):
        """Adds frames below a node. `nodes`: the path from the root; it grows."""
        for frame in frames:
            self.parents.append(nodes[-1])
            nodes.append(len(self.frames))
            self.frames.append(frame)

    def _fill(self, profile):
        self.own, self.unseen = self._columns(profile.stacks)
        self.objects, _ = self._columns(profile.objects) if profile.counts else ([], [])

    def _columns(self, values):
        """Returns from a value by stack the value at each node, and the value left out below it."""
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
