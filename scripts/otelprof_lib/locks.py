"""Finds which locks threads waited for, which threads held them, and where.

Contention (`lock`) counts waits that have ended; time off CPU (`off_cpu`) includes waits that go on. A lock is an
address in a process.
"""

from dataclasses import dataclass, field
from itertools import zip_longest

from .aggregate import INSTANCE
from .foreign import printable
from .formats import duration, function_name, percent, readable_count
from .labels import counted
from .waits import HOLDER_ID, HOLDER_NAME, HOLDER_STACK, LOCK, LOCK_NAME, THREAD_ID, THREAD_NAME, lock_name, place

MOST_HOLDERS = 3
MOST_PLACES = 3
LEAST_SHARE = 0.0005
MOST_CALLERS = 4  # callers of the function where a holder was seen


@dataclass
class Lock:
    address: str
    process: str  # "" where a file has one process
    name: str = ""  # name of the lock's variable
    delay: float = 0
    contentions: int = 0
    off_cpu: float = 0
    holders: dict = field(default_factory=dict)  # seconds by (id, name); ("", "") where the holder is not known
    seen: dict = field(default_factory=dict)  # seconds by (id, name), then stack
    places: dict = field(default_factory=dict)  # seconds by function

    @property
    def waited(self):
        return max(self.delay, self.off_cpu)


def _add(sums, key, value):
    sums[key] = sums.get(key, 0) + value


def holder(labels):
    """Returns (id, name) as texts."""
    return labels.get(HOLDER_ID, ""), labels.get(HOLDER_NAME, "")


def names_of_threads(profiles):
    """Returns names by (instance, thread id): a sample may lack the name of its holder where other samples of that
    thread have it."""
    names = {}
    for profile in profiles.values():
        for labels in map(dict, dict.fromkeys(labels for _, labels in profile.samples)):
            for number, name in ((labels.get(THREAD_ID), labels.get(THREAD_NAME)), holder(labels)):
                if number and name:
                    names[labels.get(INSTANCE, ""), number] = name
    return names


def holder_name(found):
    number, name = found
    return printable(f"{name} (thread {number})" if name else f"thread {number}")


def process_name(labels):
    name, pid = (labels.get(key, "") for key in ("process.executable.name", "process.pid"))
    return printable(f"{name} {pid}".strip())


def seen_in(stack):
    """Returns a holder's stack as a line: the innermost function first, with its nearest callers."""
    names = [printable(name) for name in reversed(stack.split(";"))]
    more = len(names) - 1 - MOST_CALLERS
    return ", from ".join(names[: 1 + MOST_CALLERS]) + (f" and {more} more" if more > 0 else "")


def locks(profiles):
    """Returns each lock that a sample has waited for, the one with the longest waits first."""
    found = {}
    if not any(kind in profiles for kind in ("lock", "off_cpu")):
        return []
    names = names_of_threads(profiles)
    for kind in ("lock", "off_cpu"):
        profile = profiles.get(kind)
        for (stack, labels), value in profile.samples.items() if profile else ():
            labels = dict(labels)
            if LOCK not in labels:
                continue
            key = labels.get(INSTANCE, ""), labels[LOCK]
            number = labels.get(HOLDER_ID, "")
            held_by = number, names.get((key[0], number), "")
            lock = found.setdefault(key, Lock(labels[LOCK], process_name(labels)))
            lock.name = lock.name or labels.get(LOCK_NAME, "")
            if kind == "lock":
                lock.delay += value
            else:
                lock.off_cpu += value
            if kind == "lock" or "lock" not in profiles or not lock.delay:
                _add(lock.holders, held_by, value)
                _add(lock.places, function_name(place(stack)), value)
            if HOLDER_STACK in labels:
                _add(lock.seen.setdefault(held_by, {}), labels[HOLDER_STACK], value)
    for (_, labels), count in profiles["lock"].counts.items() if "lock" in profiles else ():
        labels = dict(labels)
        key = labels.get(INSTANCE, ""), labels.get(LOCK)
        if key in found:
            found[key].contentions += count
    return sorted(found.values(), key=lambda lock: (-lock.waited, lock.process, lock.address))


def _largest(sums, most):
    """Returns [(key, value)], always the largest, others if their share is visible with one digit after its point."""
    least = sum(sums.values()) * LEAST_SHARE
    found = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:most]
    return [item for place, item in enumerate(found) if place == 0 or item[1] >= least]


def _figures(lock, has_contentions, has_off_cpu):
    """Returns a lock's figures with their titles, as (title, width, text)."""
    if has_contentions:
        yield "delay", 12, duration(lock.delay)
        yield "contentions", 11, readable_count(lock.contentions)
        yield "mean", 9, duration(lock.delay / lock.contentions) if lock.contentions else "-"
    if has_off_cpu:
        yield "off CPU", 12, duration(lock.off_cpu)


def _name(lock):
    name = lock_name(lock.address, lock.name)
    return f"{name} of {lock.process}" if lock.process else name


def _holders(lock):
    """Returns (share, name, where it was last seen or "") of the holders."""
    whole = sum(lock.holders.values())
    for found, value in _largest(lock.holders, MOST_HOLDERS):
        stacks = lock.seen.get(found)
        seen = seen_in(_largest(stacks, 1)[0][0]) if stacks and found[0] else ""
        yield percent(value, whole), holder_name(found) if found[0] else "not known", seen


def _places(lock):
    """Returns (share, function) of the functions that waited for the lock."""
    whole = sum(lock.places.values())
    for name, value in _largest(lock.places, MOST_PLACES):
        yield percent(value, whole), name


def _block(lock, shown):
    """Returns a lock as lines."""
    figures = "  ".join(f"{text:>{width}}" for _, width, text in _figures(lock, *shown))
    yield f"{figures}  {_name(lock)}"
    for title, (share, name, seen) in zip_longest(["held by"], _holders(lock), fillvalue=""):
        yield f"{title:>21}  {share:>6}  {name}"
        if seen:
            yield f"{'':>31}last seen in {seen}"
    more = len(lock.holders) - MOST_HOLDERS
    if more > 0:
        yield f"{'':>31}and {counted(more, 'other')}"
    for title, (share, name) in zip_longest(["waited for in"], _places(lock), fillvalue=""):
        yield f"{title:>21}  {share:>6}  {name}"


def _shown(profiles, found):
    """Returns whether there are contentions, and whether there is time off CPU."""
    return "lock" in profiles, any(lock.off_cpu for lock in found)


def lock_table(profiles, rows):
    """Returns the locks as text; "" where no sample waited for one."""
    found = locks(profiles)
    if not found:
        return ""
    shown = _shown(profiles, found)
    heads = "  ".join(f"{title:>{width}}" for title, width, _ in _figures(found[0], *shown))
    lines = ["locks", f"{heads}  lock"]
    for lock in found[:rows]:
        lines += _block(lock, shown)
    if len(found) > rows:
        lines.append(f"{'':>12}  and {counted(len(found) - rows, 'other lock')}")
    return "\n".join(lines)


def lock_rows(profiles, most):
    """Returns the locks for a page: titles, then rows of texts."""
    found = locks(profiles)
    if not found:
        return []
    shown = _shown(profiles, found)
    rows = [[*(title for title, *_ in _figures(found[0], *shown)), "lock", "held by", "last seen in", "waited for in"]]
    for lock in found[:most]:
        holders = list(_holders(lock))
        rows.append([
            *(text for *_, text in _figures(lock, *shown)), _name(lock), ", ".join(f"{name} {share}" for share, name, _ in holders),
            next((seen for *_, seen in holders if seen), ""), ", ".join(f"{name} {share}" for share, name in _places(lock))])
    return rows
