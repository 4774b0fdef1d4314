"""Explains the rows of a table that are no functions, such as [libc.so.6]: what to install, or which setting to use.

notes.js says the same where such a frame stands in the flame graph.
"""

from .aggregate import TRUNCATED, nameless, self_and_total
from .foreign import printable
from .formats import percent
from .waits import NOT_SEEN, WALL, state

LEAST = 0.05  # of a profile: smaller rows need no explanation
MOST = 3  # lines
OF_GLIBC = ("libc.so", "libm.so", "ld-linux")
REMEDIES = {
    TRUNCATED.name: "callers are missing: the stack is deeper than OTEL_PROFILER_MAX_STACK_DEPTH, or goes through code that cannot be unwound",
    "[anonymous]": "code in no file, such as a JIT compiler's: docs/interpreters.md has the option that gives it names",
    "[unknown]": "an address in no file that the process had loaded",
    "[libotelprof]": "the profiler's own work",
    NOT_SEEN: "waits that began and ended between two polls of the thread",
}


def _is_nameless(frame):
    return bool(frame.module) and frame.name == nameless(frame.module).name and not frame.module.startswith("[")


def _remedy(frame):
    """Returns what a row stands for and what to do about it; "" for a function."""
    if not _is_nameless(frame):
        return REMEDIES.get(frame.name, "") if frame.module in ("", frame.name) else ""
    if frame.module.startswith(OF_GLIBC):
        return "no names: install its debug symbols (Debian, Ubuntu: apt install libc6-dbg)"
    return "no names: install its debug symbols (-dbgsym, -debuginfo), or build it without strip"


def _marks(kind, profile):
    """Yields (name, value, remedy) of each row that is no function."""
    for frame, (own, whole) in self_and_total(profile.stacks).items():
        if remedy := _remedy(frame):
            yield frame.name, whole if frame == TRUNCATED else own, remedy
    if kind == "off_cpu":
        unseen = sum(value for (_, labels), value in profile.samples.items() if state(kind, labels) == NOT_SEEN)
        yield NOT_SEEN, unseen, REMEDIES[NOT_SEEN]


def explained(profiles):
    """Returns a line for each of the largest such rows of the profiles: "[libm.so.6]: 54.5% of CPU time; ..."."""
    found = {}
    for kind, profile in profiles.items():
        if kind == WALL or not profile.total:
            continue
        for name, value, remedy in _marks(kind, profile):
            if value >= LEAST * profile.total and value > found.get(name, (0,))[0] * profile.total:
                found[name] = value / profile.total, percent(value, profile.total), profile.title, remedy
    largest = sorted(found.items(), key=lambda item: (-item[1][0], item[0]))[:MOST]
    return "\n".join(f"{printable(name)}: {share} of {title}; {remedy}" for name, (_, share, title, remedy) in largest)
