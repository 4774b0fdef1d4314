"""Reads what `switches` recorded of a program's threads: switches.c."""

from collections import defaultdict


class Thread:
    """Is one thread, from its first record to its last. Times in seconds."""

    def __init__(self, fields):
        self.pid, self.tid = int(fields[0]), int(fields[1])
        first, last, self.off, self.preempted = (int(field) * 1e-9 for field in fields[2:6])
        self.wall = last - first
        self.times = int(fields[6])  # how often it left the processor
        self.name = fields[7].strip()
        self.stacks = defaultdict(float)  # frames, leaf first -> seconds: of `off`


def frames_of(text):
    """Returns (address in the file, function, file) of each frame."""
    frames = []
    for frame in filter(None, text.strip().split(";")):
        address, function, file = frame.split(" ", 2)
        frames.append((int(address, 16), function, file))
    return tuple(frames)


def read(path):
    """Returns (pid, tid) -> Thread. Raises where the kernel lost records."""
    threads = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            what, _, rest = line.partition(" ")
            if what == "thread":
                thread = Thread(rest.split(" ", 7))
                threads[thread.pid, thread.tid] = thread
            elif what == "stack":
                pid, tid, nanoseconds, text = rest.split(" ", 3)
                threads[int(pid), int(tid)].stacks[frames_of(text)] += int(nanoseconds) * 1e-9
            elif int(rest):
                raise RuntimeError(f"the kernel lost {rest.strip()} records")
    return threads
