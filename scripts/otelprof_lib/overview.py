"""Shows how threads spent their time: a row for each name of a thread, a column for each activity and each cause of a
wait."""

from .aggregate import INSTANCE
from .foreign import printable
from .formats import percent, readable
from .labels import counted
from .waits import IDLE_STATE, NOT_SEEN, ON_CPU, RUN_QUEUE, THREAD_ID, THREAD_NAME, has_wall, times

MOST_COLUMNS = 9  # beyond them the smallest kinds of waits are one column
EXECUTABLE = "process.executable.name"
ALWAYS = (ON_CPU, RUN_QUEUE)
OTHERS = "other"
UNKNOWN = "(unknown)"  # threads that ended before a sample met them share a row; so does [other]


def _name(labels):
    thread = labels.get(THREAD_NAME) or ("(no name)" if THREAD_ID in labels else UNKNOWN)
    return f"{labels[EXECUTABLE]}: {thread}" if EXECUTABLE in labels else thread


def _rows(profiles):
    """Returns by name: seconds by state, and the identities of the threads."""
    rows = {}
    for what, (_, labels), value in times(profiles):
        labels = dict(labels)
        sums, threads = rows.setdefault(_name(labels), ({}, set()))
        sums[what] = sums.get(what, 0) + value
        if THREAD_ID in labels:
            threads.add((labels.get(INSTANCE), labels[THREAD_ID]))
    return rows


def _columns(sums):
    """Returns the states to show: those of a running thread, then waits, the longest first, then states that are no
    wait."""
    waits = sorted((state for state in sums if state not in (*ALWAYS, NOT_SEEN, IDLE_STATE, OTHERS)), key=lambda state: (-sums[state], state))
    kept = waits[:MOST_COLUMNS]
    others = [OTHERS] if len(waits) > len(kept) or OTHERS in sums else []
    return [*ALWAYS, *kept, *others, *(state for state in (NOT_SEEN, IDLE_STATE) if state in sums)]


def _line(columns, sums):
    total = sum(sums.values())
    shown = {column: sums.get(column, 0) for column in columns}
    if OTHERS in shown:
        shown[OTHERS] += sum(value for state, value in sums.items() if state not in shown)
    cells = (percent(shown[column], total) if shown[column] else "-" for column in columns)
    return f"{readable('seconds', total):>12}" + "".join(f"  {cell:>{_width(column)}}" for cell, column in zip(cells, columns))


def _width(column):
    return max(7, len(column))


def _busy(sums):
    return sum(value for state, value in sums.items() if state != IDLE_STATE)


def overview(profiles, rows):
    """Returns the table; "" where not all of the time is in the file."""
    if not has_wall(profiles):
        return ""
    threads = _rows(profiles)
    whole = {}
    for sums, _ in threads.values():
        for what, value in sums.items():
            whole[what] = whole.get(what, 0) + value
    columns = _columns(whole)
    heads = "".join(f"  {column:>{_width(column)}}" for column in columns)
    lines = ["where the time of the threads went", f"{'wall time':>12}{heads}  threads  name"]
    count = len(set().union(*(found for _, found in threads.values())))  # a renamed thread has two rows
    if len(threads) > 1:
        lines.append(f"{_line(columns, whole)}  {count:>7}  (all)")
    order = sorted(threads.items(), key=lambda item: (-_busy(item[1][0]), item[0]))
    lines += [f"{_line(columns, sums)}  {len(found) or '-':>7}  {printable(name)}" for name, (sums, found) in order[:rows]]
    if len(threads) > rows:
        lines.append(f"{'':>12}  and {counted(len(threads) - rows, 'other')}")
    return "\n".join(lines)
