"""Finds what threads did with their time: on a CPU, ready for one, or waiting, and for what.

CPU time, run-queue delay and time off CPU are three profiles. Together they are the wall-clock time of the threads:
one profile in which a stack that was not on a CPU ends in a frame with the reason.
"""

import re

from .aggregate import LIBC, WAIT_KIND, Frame, Profile
from .foreign import printable
from .python_frames import innermost, is_interpreter

IDLE = "otelprof.idle"
WAIT_TIME = "otelprof.wait.duration"
THREAD_ID = "thread.id"
THREAD_NAME = "thread.name"
THREAD_STATE = "otelprof.thread.state"
LOCK = "otelprof.lock.address"
LOCK_NAME = "otelprof.lock.name"
HOLDER_ID = "otelprof.lock.holder.thread.id"
HOLDER_NAME = "otelprof.lock.holder.thread.name"
HOLDER_STACK = "otelprof.lock.holder.stack"

WALL = "wall"
ON_CPU = "on CPU"
RUN_QUEUE = "run queue"
IDLE_STATE = "idle"
NOT_SEEN = "not seen"  # a wait that began and ended between two polls
# the module of the frames with the reason why a thread was not on a CPU
NOT_RUNNING = "not running"


# matches functions of languages' libraries between a program and a function of libc that waits
WRAPPERS = re.compile(r"<?(?:std|core|alloc|parking_lot|parking_lot_core|lock_api)::|__gthread_|__glibcxx_")


def place(stack):
    """Returns the function that waits: the innermost of the program's own, or else the innermost that is not libc's.
    The interpreter's work for a function of Python counts as that function's."""
    within = innermost(stack)
    outside = [frame for depth, frame in enumerate(stack) if frame.module != LIBC and not (depth < within and is_interpreter(frame))]
    return next((frame for frame in outside if not WRAPPERS.match(frame.name)), (outside or stack)[0])


def is_idle(labels):
    return dict(labels).get(IDLE) == "true"


def lock_name(address, name):
    """Returns the lock's variable, if it is one."""
    return printable(f"{name} ({address})" if name else address)


def state(kind, labels):
    """Returns what a thread did in a sample of cpu, sched_delay or off_cpu: a readable word."""
    if kind == "cpu":
        return ON_CPU
    if kind == "sched_delay":
        return RUN_QUEUE
    return IDLE_STATE if is_idle(labels) else printable(dict(labels).get(WAIT_KIND) or NOT_SEEN)


def times(profiles):
    """Yields (state, key, seconds) of each sample that is time of a thread."""
    for kind in ("cpu", "sched_delay", "off_cpu"):
        if kind in profiles:
            for key, value in profiles[kind].samples.items():
                yield state(kind, key[1]), key, value


def has_wall(profiles):
    return "cpu" in profiles and "off_cpu" in profiles


def wall(profiles):
    """Returns the time of the threads as one profile."""
    result = Profile("wall time", "seconds")
    for what, (stack, labels), value in times(profiles):
        why = () if what == ON_CPU else (Frame(what, NOT_RUNNING),)
        key = (*why, *stack), labels
        result.samples[key] = result.samples.get(key, 0) + value
    return result


def with_wall(profiles):
    """Returns the profiles with the time of the threads as one profile, first, where all of it is there."""
    return {WALL: wall(profiles), **profiles} if has_wall(profiles) else profiles


def without_idle(profiles):
    """Returns profiles without the waits for work of threads that hardly do anything else."""
    busy = {name: profile.of(lambda labels: (IDLE, "true") not in labels) for name, profile in profiles.items()}
    return {name: profile for name, profile in busy.items() if profile.samples}


def idle_part(profile):
    """Returns how much of a profile is idle."""
    idle = {labels for labels in {labels for _, labels in profile.samples} if is_idle(labels)}
    return sum(value for (_, labels), value in profile.samples.items() if labels in idle) if idle else 0


def reasons(profile):
    """Returns by frame the cause of most of its waits; {} where samples have no causes."""
    sums = {}
    for (stack, labels), value in profile.samples.items():
        kind = dict(labels).get(WAIT_KIND) or NOT_SEEN
        for frame in set(stack):
            of_frame = sums.setdefault(frame, {})
            of_frame[kind] = of_frame.get(kind, 0) + value
    if all(kinds.keys() == {NOT_SEEN} for kinds in sums.values()):
        return {}
    return {frame: printable(min(kinds, key=lambda kind: (-kinds[kind], kind))) for frame, kinds in sums.items()}
