"""Makes a file of many distinct stacks, deep as those of real servers: the page must stay quick with it.

    python3 many_stacks.py FILE [STACKS]

Each stack goes from a thread's start through frameworks, handlers and libraries down to a leaf. Some functions are called from
everywhere, a few take most of the time, and no two stacks are equal. The same seed gives the same file.
"""

import random
import sys
from pathlib import Path

STACKS = 200_000
FUNCTIONS = 6000
MODULES = 40
THREADS = 64
DEPTHS = (18, 60)
KINDS = (("samples", "count", 10_000_000), ("alloc_space", "bytes", 1))


class _Paths:
    """Is a growing tree of calls: a new stack leaves an old one somewhere, and goes on by itself."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.stacks = [(0,)]
        self._known = {(0,)}

    def _function(self):
        return 1 + int((FUNCTIONS - 1) * self.chance.random() ** 3)  # some functions are called from everywhere

    def grow(self):
        base = self.stacks[int(len(self.stacks) * self.chance.random() ** 2)]
        kept = self.chance.randint(max(1, len(base) // 2), len(base))
        deepest = self.chance.randint(*DEPTHS)
        steps = max(1, min(self.chance.randint(1, 6), deepest - kept)) if len(base) > DEPTHS[0] else DEPTHS[0]
        made = base[:kept] + tuple(self._function() for _ in range(steps))
        if made not in self._known:
            self._known.add(made)
            self.stacks.append(made)

    def first(self, count):
        while len(self.stacks) <= count:
            self.grow()
        return self.stacks[1:]


def _tables(message):
    """Makes locations of functions, by number, and attributes of threads, by number."""
    dictionary = message.dictionary
    modules = [message.mapping(f"/usr/lib/libmodule{number}.so") for number in range(MODULES)]
    for number in range(FUNCTIONS):
        name = message.string(f"shop::module{number % MODULES}::Handler<Request, {number}>::process_part_{number}")
        file = message.string(f"/src/shop/module{number % MODULES}/part_{number // MODULES}.cc")
        dictionary.function_table.add(name_strindex=name, filename_strindex=file)
        location = dictionary.location_table.add(address=4096 + number, mapping_index=modules[number % MODULES])
        location.lines.add(function_index=number + 1, line=10 + number % 400)
    return [message.attribute("thread.name", f"worker-{number}") for number in range(THREADS)]


def write_into(message, stacks=STACKS, seed=1):
    """`message`: a Message of conftest.py. Returns the sums of the values of each kind."""
    threads = _tables(message)
    paths = _Paths(seed)
    table = message.dictionary.stack_table
    for path in paths.first(stacks):
        table.add(location_indices=[1 + function for function in reversed(path)])
    sums = []
    for kind, unit, period in KINDS:
        profile = message.profile(kind, unit, period, {}).scope.profiles[-1]
        profile.time_unix_nano, profile.duration_nano = 1_700_000_000_000_000_000, 60_000_000_000
        values = [1 + int(40 * paths.chance.random() ** 6) for _ in range(stacks)]
        for number, value in enumerate(values):
            profile.samples.add(stack_index=1 + number, values=[value], attribute_indices=[threads[number % THREADS]])
        sums.append(sum(values))
    return sums


def main(path, stacks=STACKS):
    from conftest import Message

    message = Message()
    print(write_into(message, int(stacks)))
    Path(path).write_bytes(message.bytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
