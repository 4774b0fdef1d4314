"""Prints tables of the hottest functions, and of labels."""

from .aggregate import by_function, self_and_total
from .foreign import printable
from .formats import function_name, headline, percent, readable, readable_count
from .labels import NOUNS, SPAN, TRACE, check_name, counted, values_of
from .languages import hint
from .locks import lock_table
from .marks import explained
from .overview import overview
from .threads import thread_table
from .waits import WALL, idle_part, reasons, with_wall


def _share(unit, value, total):
    return f"{readable(unit, value):>12} {percent(value, total):>7}"


def table(profile, rows, explain=False):
    """Returns one profile as lines of text; with `explain` the cause of most waits of each function."""
    total = profile.total or 1
    objects = self_and_total(profile.objects)
    width = max(9, len(profile.noun))
    counts_title = f" {profile.noun:>{width}} {'total':>9}" if objects else ""
    why = reasons(profile) if explain else {}
    why_width = max(map(len, (*why.values(), "waits for"))) if why else 0
    why_title = f"  {'waits for':<{why_width}}" if why else ""
    lines = [headline(profile), f"{'self':>20} {'total':>20}{counts_title}{why_title}  function"]
    for frame, own, whole in by_function(profile)[:rows]:
        counts = ""
        if objects:
            of_own, of_all = map(readable_count, objects.get(frame, (0, 0)))
            counts = f" {of_own:>{width}} {of_all:>9}"
        reason = f"  {why.get(frame, ''):<{why_width}}" if why else ""
        lines.append(
            f"{_share(profile.unit, own, total)} {_share(profile.unit, whole, total)}"
            f"{counts}{reason}  {function_name(frame)}"
        )
    return "\n".join(lines)


# --- labels ---


def _groups(samples, name):
    """Returns the value by stack, by a label's value; None for samples without the label."""
    groups = {}
    for (stack, labels), value in samples.items():
        stacks = groups.setdefault(dict(labels).get(name), {})
        stacks[stack] = stacks.get(stack, 0) + value
    return groups


def _group_name(value):
    """Returns a label's name for a row: a label may have an empty text, which differs from no label."""
    return "(none)" if value is None else printable(value) or '""'


def _hottest(stacks):
    """Returns the function with the largest self value, and its share."""
    sums = self_and_total(stacks)
    frame = min(sums, key=lambda frame: (-sums[frame][0], frame))
    return f"{percent(sums[frame][0], sum(stacks.values())):>7}  {function_name(frame)}"


def group_table(profile, name, rows):
    """Returns one profile by the values of a label, each with its hottest function."""
    counts = _groups(profile.counts, name)
    groups = [(sum(stacks.values()), value, stacks) for value, stacks in _groups(profile.samples, name).items()]
    groups.sort(key=lambda group: (-group[0], group[1] or ""))
    shown = [(_group_name(value), total, stacks, counts.get(value, {})) for total, value, stacks in groups[:rows]]
    width = max(len(name), *(len(value) for value, *_ in shown))
    counts_width = max(9, len(profile.noun))
    counts_title = f" {profile.noun:>{counts_width}}" if counts else ""
    lines = [headline(profile), f"{'total':>20}{counts_title}  {printable(name):<{width}}    self  hottest function"]
    for value, total, stacks, objects in shown:
        count = f" {readable_count(sum(objects.values())):>{counts_width}}" if counts else ""
        lines.append(f"{_share(profile.unit, total, profile.total or 1)}{count}  {value:<{width}} {_hottest(stacks)}")
    if len(groups) > rows:
        lines.append(f"{'':>20} and {counted(len(groups) - rows, 'other')}")
    return "\n".join(lines)


def linked(profiles):
    """Returns how much of each profile is linked to spans; "" if nothing is."""
    shares = []
    for profile in profiles.values():
        own = sum(value for (_, labels), value in profile.samples.items() if TRACE in dict(labels))
        if own:
            shares.append(f"{percent(own, profile.total)} of {profile.title}")
    if not shares:
        return ""
    spans, traces = (counted(len(values_of(profiles, name)), NOUNS[name]) for name in (SPAN, TRACE))
    return f"linked: {', '.join(shares)}, to {spans} of {traces}"


# --- the whole report ---


def _idle_line(profiles):
    """Returns how much of what is shown is idle; "" if nothing is."""
    shares = [f"{percent(idle_part(profile), profile.total)} of {profile.title}" for profile in profiles.values() if idle_part(profile)]
    return f"idle: {', '.join(shares)} (--hide-idle leaves it out)" if shares else ""


def _table_of(name, profile, rows):
    return thread_table(profile, rows) if name == "threads" else table(profile, rows, explain=name == "off_cpu")


def report(profiles, rows, kinds=None, group_by=None, is_part=False):
    """Returns the tables; for a part of a file without how much is linked. Without `kinds` all but WALL."""
    shown = {kind: profile for kind, profile in with_wall(profiles).items() if (kind in kinds if kinds else kind != WALL)}
    if not shown:
        return "no samples"
    if group_by:
        check_name(shown, group_by)
        tables = [group_table(profile, group_by, rows) for profile in shown.values()]
        return "\n\n".join(filter(None, (*tables, "" if is_part else linked(shown))))
    times = "" if kinds else overview(profiles, rows)
    tables = [_table_of(kind, profile, rows) for kind, profile in shown.items()]
    locks = lock_table(profiles, rows) if not kinds or "lock" in kinds else ""
    return "\n\n".join(filter(None, (times, *tables, locks, _idle_line(shown), explained(shown), hint(shown), "" if is_part else linked(shown))))
