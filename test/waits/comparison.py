"""Compares the kernel's account of a thread with the profiler's."""

import re
from collections import defaultdict
from dataclasses import dataclass, field

from profiled import HELPERS

TOLERANCE = 0.05
UNSEEN = 0.5  # share of a thread's waits: then its stacks are those of the rest
LONG_S = 3.0  # in a shorter life too much comes before our start, and after our end
OWN = ("libotelprof.so", "libotelprof-flush.so")
LIBC = ("libc.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2")


@dataclass
class Row:
    """Is one thread: seconds of its life, off the CPU and ready by the kernel, and by the profiler."""

    pid: int
    tid: int
    name: str
    wall: float
    kernel: float
    reported: float
    cpu_reported: float
    times: int  # how often it left the processor
    unseen: float = 0.0
    kinds: dict = field(default_factory=dict)

    def error(self):
        """Returns the error as a part of the thread's waits."""
        return (self.reported - self.kernel) / self.kernel if self.kernel else 0.0


def rows_of(kernel, reported, unknown):
    """Returns a Row for each thread that lived long; none of the profiler's, and none whose begin no hook saw."""
    rows = []
    for key, thread in sorted(kernel.items()):
        mine = reported.get(key)
        if thread.name in HELPERS or thread.wall < LONG_S or (not mine and re.match(unknown, thread.name)):
            continue
        seconds = mine.seconds if mine else {}
        row = Row(*key, thread.name, thread.wall, thread.off + thread.preempted,
                  seconds.get("off_cpu", 0.0) + seconds.get("sched_delay", 0.0), seconds.get("samples", 0.0), thread.times)
        if mine:
            row.kinds, row.unseen = dict(mine.kinds), mine.unseen
        rows.append(row)
    return rows


def of_file(path):
    return path.rpartition("/")[2]


def callers(stack):
    """Returns the program's own frames: without ours, libc's that lead to the wait, and frames in no file."""
    frames = [frame for frame in stack if of_file(frame[2]) not in (*OWN, "?", "")]
    start = next((i for i, frame in enumerate(frames) if of_file(frame[2]) not in LIBC), 0)
    return tuple(frames[start:])


def is_cut(stack):
    """Returns whether outer frames are missing: a whole stack has libc's function that begins a thread, or a process."""
    return not stack or of_file(stack[-1][2]) not in LIBC


def same(one, other):
    """Compares two stacks without those leaf frames; a cut stack equals another as far as it goes."""
    if min(len(one), len(other)) == 0:
        return len(one) == len(other)
    if any(abs(a[0] - b[0]) > 1 for a, b in zip(one, other)):
        return False
    return len(one) == len(other) or is_cut(min(one, other, key=len))


def merged(threads):
    found = defaultdict(float)
    for stacks in threads:
        for stack, seconds in stacks.items():
            found[callers(stack)] += seconds
    return found


def likeness(kernel, reported, rows):
    """Returns the share that both have under the same stacks, and the largest stacks of the kernel's that differ: of
    all threads that were seen waiting, since few samples of one thread prove little."""
    seen = [(row.pid, row.tid) for row in rows if row.kernel and row.unseen < UNSEEN * row.kernel]
    kernel = merged(kernel[key].stacks for key in seen)
    reported = merged(reported[key].stacks for key in seen)
    total_kernel, total_reported = sum(kernel.values()), sum(reported.values())
    if not total_kernel or not total_reported:
        return None, []
    shortest = sorted(reported, key=len)
    kernel, reported = by_likeness(kernel, shortest), by_likeness(reported, shortest)
    common, unlike = 0.0, []
    for stack in {*kernel, *reported}:
        share, mine = kernel.get(stack, 0.0) / total_kernel, reported.get(stack, 0.0) / total_reported
        common += min(share, mine)
        if abs(share - mine) > TOLERANCE:
            unlike.append((share, mine, stack))
    return common, sorted(unlike, reverse=True)


def by_likeness(stacks, shortest):
    """Groups each under the shortest stack of ours that it equals, as far as that goes."""
    found = defaultdict(float)
    for stack, seconds in stacks.items():
        found[next((short for short in shortest if same(stack, short)), stack)] += seconds
    return found
