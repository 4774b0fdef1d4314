"""Which locks threads waited for, who held them, and where.

Contention (`lock`) counts waits that have ended; time off CPU (`off_cpu`) has those that go on, too. A lock is an
address in a process.
"""

from dataclasses import dataclass, field

from .aggregate import INSTANCE
from .formats import duration, function_name, percent, printable, readable, readable_count
from .labels import counted
from .waits import HOLDER_ID, HOLDER_NAME, HOLDER_STACK, LOCK

MOST_HOLDERS = 3
MOST_PLACES = 3
MOST_CALLERS = 4  # of where a holder was seen


@dataclass
class Lock:
    address: str
    process: str  # "" where a file has one process
    delay: float = 0
    contentions: int = 0
    off_cpu: float = 0
    holders: dict = field(default_factory=dict)  # seconds by (id, name); ("", "") where it is not known
    seen: dict = field(default_factory=dict)  # seconds by (id, name), then stack
    places: dict = field(default_factory=dict)  # seconds by function

    @property
    def waited(self):
        return max(self.delay, self.off_cpu)


def _add(sums, key, value):
    sums[key] = sums.get(key, 0) + value


def holder(labels):
    """(id, name) as texts."""
    return labels.get(HOLDER_ID, ""), labels.get(HOLDER_NAME, "")


def holder_name(found):
    number, name = found
    return printable(f"{name} (thread {number})" if name else f"thread {number}")


def process_name(labels):
    name, pid = (labels.get(key, "") for key in ("process.executable.name", "process.pid"))
    return printable(f"{name} {pid}".strip())


def seen_in(stack):
    """A holder's stack as a line: innermost first, of its callers those that are near."""
    names = [printable(name) for name in reversed(stack.split(";"))]
    more = len(names) - 1 - MOST_CALLERS
    return ", from ".join(names[: 1 + MOST_CALLERS]) + (f" and {more} more" if more > 0 else "")


def locks(profiles):
    """Each lock that a sample has waited for, the one with the longest waits first."""
    found = {}
    for kind in ("lock", "off_cpu"):
        profile = profiles.get(kind)
        for (stack, labels), value in profile.samples.items() if profile else ():
            labels = dict(labels)
            if LOCK not in labels:
                continue
            key = labels.get(INSTANCE, ""), labels[LOCK]
            lock = found.setdefault(key, Lock(labels[LOCK], process_name(labels)))
            if kind == "lock":
                lock.delay += value
            else:
                lock.off_cpu += value
            if kind == "lock" or "lock" not in profiles or not lock.delay:
                _add(lock.holders, holder(labels), value)
                _add(lock.places, function_name(stack[0]), value)
            if HOLDER_STACK in labels:
                _add(lock.seen.setdefault(holder(labels), {}), labels[HOLDER_STACK], value)
    for (_, labels), count in profiles["lock"].counts.items() if "lock" in profiles else ():
        labels = dict(labels)
        key = labels.get(INSTANCE, ""), labels.get(LOCK)
        if key in found:
            found[key].contentions += count
    return sorted(found.values(), key=lambda lock: (-lock.waited, lock.process, lock.address))


def _largest(sums, most):
    """[(key, value)]"""
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:most]


def _holder_lines(lock):
    whole = sum(lock.holders.values())
    title = "held by"
    for found, value in _largest(lock.holders, MOST_HOLDERS):
        name = holder_name(found) if found[0] else "not known"
        yield f"{title:>21}  {percent(value, whole):>6}  {name}"
        stacks = lock.seen.get(found)
        if stacks and found[0]:
            yield f"{'':>21}          last seen in {seen_in(_largest(stacks, 1)[0][0])}"
        title = ""
    if len(lock.holders) > MOST_HOLDERS:
        yield f"{'':>21}          and {counted(len(lock.holders) - MOST_HOLDERS, 'other')}"


def _place_lines(lock):
    whole = sum(lock.places.values())
    title = "waited for in"
    for name, value in _largest(lock.places, MOST_PLACES):
        yield f"{title:>21}  {percent(value, whole):>6}  {name}"
        title = ""


def _block(lock, has_contentions, has_off_cpu):
    cells = []
    if has_contentions:
        mean = duration(lock.delay / lock.contentions) if lock.contentions else "-"
        cells += [f"{readable('seconds', lock.delay):>12}", f"{readable_count(lock.contentions):>11}", f"{mean:>9}"]
    if has_off_cpu:
        cells.append(f"{readable('seconds', lock.off_cpu):>12}")
    place = f"{lock.address} of {lock.process}" if lock.process else lock.address
    return [f"{'  '.join(cells)}  {printable(place)}", *_holder_lines(lock), *_place_lines(lock)]


def lock_table(profiles, rows):
    """The locks as text; "" where no sample waited for one."""
    found = locks(profiles)
    if not found:
        return ""
    has_contentions, has_off_cpu = "lock" in profiles, any(lock.off_cpu for lock in found)
    heads = [*([f"{'delay':>12}", f"{'contentions':>11}", f"{'mean':>9}"] if has_contentions else []),
             *([f"{'off CPU':>12}"] if has_off_cpu else [])]
    lines = ["locks", f"{'  '.join(heads)}  lock"]
    for lock in found[:rows]:
        lines += _block(lock, has_contentions, has_off_cpu)
    if len(found) > rows:
        lines.append(f"{'':>12}  and {counted(len(found) - rows, 'other lock')}")
    return "\n".join(lines)
