"""Shows what each thread does at the time of the last profile of all threads: a line or a stack for threads that do
the same.

Threads that wait for each other's locks are reported.
"""

from dataclasses import dataclass, field

from .aggregate import INSTANCE
from .foreign import printable
from .formats import duration, function_name, readable_count
from .labels import counted, whole_number
from .locks import holder, holder_name, process_name, seen_in
from .waits import HOLDER_STACK, LOCK, LOCK_NAME, THREAD_ID, THREAD_NAME, THREAD_STATE, WAIT_KIND, WAIT_TIME, is_idle, lock_name, place

MOST_NAMES = 5
# Threads are sampled one after the other: only a wait that lasts longer proves something about two of them.
STUCK_SECONDS = 1


def _named(name, numbers):
    return printable(f"{name} ({numbers})" if name else f"thread {numbers}")


@dataclass
class Thread:
    stack: tuple
    labels: dict

    @property
    def number(self):
        return self.labels.get(THREAD_ID, "")

    @property
    def name(self):
        return _named(self.labels.get(THREAD_NAME), self.number)

    @property
    def seconds(self):
        """Returns how long the thread has waited so far; 0: not known."""
        return whole_number(self.labels.get(WAIT_TIME, "")) / 1e9

    @property
    def lock(self):
        return self.labels.get(LOCK)

    @property
    def lock_name(self):
        return lock_name(self.lock, self.labels.get(LOCK_NAME))

    @property
    def holder(self):
        return holder(self.labels)


@dataclass
class Group:
    """Holds threads of one process that do the same."""

    threads: list = field(default_factory=list)

    @property
    def first(self):
        return self.threads[0]

    @property
    def text(self):
        """Returns what the threads do."""
        labels = self.first.labels
        kind = labels.get(WAIT_KIND, "")
        if not kind and not self.first.seconds:
            return printable(labels.get(THREAD_STATE, "unknown"))
        what = f"{'idle' if is_idle(labels) else 'blocked'} in {kind or 'a system call'}"
        if self.first.lock:
            what += f" {self.first.lock_name}"
        seconds = sorted({thread.seconds for thread in self.threads} - {0})
        ends = dict.fromkeys(duration(end) for end in (*seconds[:1], *seconds[-1:]))  # one text if both look the same
        return printable(what + (f" for {' to '.join(ends)}" if ends else ""))

    @property
    def held(self):
        """Returns which thread holds what they wait for; "" if that is not known."""
        return f"held by {holder_name(self.first.holder)}" if self.first.lock and self.first.holder[0] else ""

    @property
    def names(self):
        """Returns the threads' names, such as worker-1 (12), pool (13, 14)."""
        numbers = {}
        for thread in self.threads[:MOST_NAMES]:
            numbers.setdefault(thread.labels.get(THREAD_NAME, ""), []).append(thread.number)
        more = len(self.threads) - MOST_NAMES
        names = ", ".join(_named(name, ", ".join(found)) for name, found in numbers.items())
        return names + (f" and {counted(more, 'other')}" if more > 0 else "")


def threads(profile):
    return [Thread(stack, dict(labels)) for stack, labels in sorted(profile.samples)]


def groups(profile):
    """Returns the groups: those that wait the longest for a lock first, idle ones last."""
    found = {}
    for thread in threads(profile):
        labels = thread.labels
        same = tuple(labels.get(key) for key in (INSTANCE, THREAD_STATE, WAIT_KIND, LOCK)) + thread.holder
        found.setdefault((thread.stack, is_idle(labels), same), Group()).threads.append(thread)

    def order(group):
        longest = max(thread.seconds for thread in group.threads)
        return is_idle(group.first.labels), not group.first.lock, -longest, -len(group.threads), group.first.name

    return sorted(found.values(), key=order)


# --- threads that wait for each other ---


def _circle(start, waiting):
    """Returns the threads from `start` to the holder of its lock, and so on, back to `start`; [] if they do not lead
    back."""
    circle, at = [], start
    while at in waiting and waiting[at] not in circle:
        circle.append(waiting[at])
        at = (at[0], waiting[at].holder[0])
        if at == start:
            return circle
    return []


def deadlocks(profile):
    """Returns lists of threads each of which waits for a lock of the next, and the last for one of the first."""
    waiting = {
        (thread.labels.get(INSTANCE, ""), thread.number): thread
        for thread in threads(profile) if thread.lock and thread.holder[0] and thread.seconds >= STUCK_SECONDS
    }
    found = []
    for start in sorted(waiting):
        circle = _circle(start, waiting)
        if circle and not any(thread in other for other in found for thread in circle):
            found.append(circle)
    return found


def _deadlock_lines(circle):
    yield "DEADLOCK: these threads wait for each other" if len(circle) > 1 else "DEADLOCK: a thread waits for itself"
    for thread in circle:
        yield (f"    {thread.name} has waited {duration(thread.seconds)} for {thread.lock_name}, held by "
               f"{holder_name(thread.holder)}, in {function_name(place(thread.stack))}")


# --- as text ---


def _heading(profile):
    by_state = {}
    for thread in threads(profile):
        word = "idle" if is_idle(thread.labels) else thread.labels.get(THREAD_STATE, "unknown")
        by_state[word] = by_state.get(word, 0) + 1
    states = ", ".join(f"{count} {printable(word)}" for word, count in sorted(by_state.items(), key=lambda item: (-item[1], item[0])))
    return f"{profile.title}: {readable_count(profile.total)}" + (f" ({states})" if states else "")


def _deadlocks_text(profile):
    return [line for circle in deadlocks(profile) for line in _deadlock_lines(circle)]


def thread_table(profile, rows):
    """Returns a line for threads that do the same, and where."""
    found = groups(profile)
    shown = [(group.text, group.held, function_name(place(group.first.stack)), group) for group in found[:rows]]
    width = max(len("what they do"), *(len(what) for what, *_ in shown))
    lines = [_heading(profile), *_deadlocks_text(profile), f"{'threads':>12}  {'what they do':<{width}}  function"]
    for what, held, function, group in shown:
        lines.append(f"{len(group.threads):>12}  {what:<{width}}  {function}: {group.names}")
        if held:
            lines.append(f"{'':>12}    {held}")
    if len(found) > rows:
        more = sum(len(group.threads) for group in found[rows:])
        lines.append(f"{more:>12}  others")
    return "\n".join(lines)


def _where_is_holder(group, by_thread):
    """Returns what the holder does now, if it is in the profile; otherwise where it was last seen."""
    now = by_thread.get((group.first.labels.get(INSTANCE), group.first.holder[0]))
    if now:
        return f", which is {now.text}, in {function_name(place(now.first.stack))}"
    stack = group.first.labels.get(HOLDER_STACK)
    return f", last seen in {seen_in(stack)}" if stack else ""


def _dumped(group, by_thread):
    process = process_name(group.first.labels)
    yield f"{group.names}{f' of {process}' if process else ''}: {group.text}"
    if group.held:
        yield f"    {group.held}{_where_is_holder(group, by_thread)}"
    for frame in group.first.stack:
        yield f"        {function_name(frame)}"


def thread_dump(profile):
    """Returns each group with its whole stack, innermost first."""
    found = groups(profile)
    by_thread = {(thread.labels.get(INSTANCE), thread.number): group for group in found for thread in group.threads}
    blocks = [[_heading(profile), *_deadlocks_text(profile)], *(list(_dumped(group, by_thread)) for group in found)]
    return "\n\n".join("\n".join(block) for block in blocks)


def thread_rows(profile, most):
    """Returns the threads for a page: titles, then rows of texts."""
    rows = [["threads", "what they do", "held by", "names", "in"]]
    for group in groups(profile)[:most]:
        stack = ", from ".join(function_name(frame) for frame in group.first.stack)
        rows.append([str(len(group.threads)), group.text, group.held.removeprefix("held by "), group.names, stack])
    return rows


def idle_rows(profile, most):
    """Returns which of those rows are of idle threads: their indices."""
    return [place for place, group in enumerate(groups(profile)[:most], 1) if is_idle(group.first.labels)]


def deadlock_text(profile):
    return "\n".join(_deadlocks_text(profile))
