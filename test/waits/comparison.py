"""The kernel's account of a thread beside the profiler's."""

from collections import defaultdict
from dataclasses import dataclass, field

TOLERANCE = 0.05
LONG_S = 0.5  # threads that lived shorter are told by their sums alone
OWN = ("libotelprof.so", "libotelprof-flush.so")
LIBC = ("libc.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2")
HELPER = "otelprof"


@dataclass
class Row:
    """One thread: seconds of its life, off the CPU and ready by the kernel, and what we said of both."""

    pid: int
    tid: int
    name: str
    wall: float
    kernel: float
    told: float
    cpu_told: float
    similar: float = -1.0  # share of its time off the CPU with the same stacks; -1: no stacks taken
    kinds: dict = field(default_factory=dict)
    unlike: list = field(default_factory=list)

    def error(self):
        """In parts of what the thread waited."""
        return (self.told - self.kernel) / self.kernel if self.kernel else 0.0


def rows_of(kernel, told):
    """A Row for each thread that lived long and waited; none of ours."""
    rows = []
    for key, thread in sorted(kernel.items()):
        if thread.name == HELPER or thread.wall < LONG_S:
            continue
        mine = told.get(key)
        seconds = mine.seconds if mine else {}
        row = Row(*key, thread.name, thread.wall, thread.off + thread.preempted,
                  seconds.get("off_cpu", 0.0) + seconds.get("sched_delay", 0.0), seconds.get("samples", 0.0))
        if mine:
            row.kinds = dict(mine.kinds)
        if thread.stacks and mine:
            row.similar, row.unlike = likeness(thread.stacks, mine.stacks)
        rows.append(row)
    return rows


def of_file(path):
    return path.rpartition("/")[2]


def callers(stack):
    """The program's own frames: without ours, libc's that lead to the wait, and what lies in no file."""
    frames = [frame for frame in stack if of_file(frame[2]) not in (*OWN, "?", "")]
    start = next((i for i, frame in enumerate(frames) if of_file(frame[2]) not in LIBC), 0)
    return tuple(frames[start:])


def is_cut(stack):
    """Whether its outer frames are missing: libc's function that begins a thread, or a process, is one of them."""
    return not stack or of_file(stack[-1][2]) not in LIBC


def same(one, other):
    """Two stacks without those leaf frames; one that is cut is the same as far as it goes."""
    if min(len(one), len(other)) == 0:
        return len(one) == len(other)
    if any(abs(a[0] - b[0]) > 1 for a, b in zip(one, other)):
        return False
    return len(one) == len(other) or is_cut(min(one, other, key=len))


def merged(stacks):
    found = defaultdict(float)
    for stack, seconds in stacks.items():
        found[callers(stack)] += seconds
    return found


def likeness(kernel, told):
    """The share that both have under the same stacks, and the largest of the kernel's that differ."""
    kernel, told = merged(kernel), merged(told)
    total_kernel, total_told = sum(kernel.values()) or 1.0, sum(told.values()) or 1.0
    common, unlike, left = 0.0, [], dict(told)
    for stack, seconds in sorted(kernel.items(), key=lambda item: -item[1]):
        share = seconds / total_kernel
        matches = [mine for mine in left if same(stack, mine)]
        mine = sum(left.pop(match) for match in matches) / total_told
        common += min(share, mine)
        if abs(share - mine) > TOLERANCE:
            unlike.append((share, mine, stack))
    unlike += [(0.0, seconds / total_told, stack) for stack, seconds in left.items() if seconds / total_told > TOLERANCE]
    return common, unlike
