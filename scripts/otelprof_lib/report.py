"""Tables of the hottest functions, and of labels."""

from decimal import ROUND_HALF_UP, Context, Decimal

from .aggregate import by_function, nameless, self_and_total
from .labels import NOUNS, SPAN, TRACE, check_name, counted, values_of

BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
COUNTS = ("", "k", "M", "G", "T")
# half up, as the flame graph's toFixed, so that both show the same; with room for any sum
ROUNDING = Context(prec=400, rounding=ROUND_HALF_UP)


def _with_prefix(value, units, step):
    index = 0
    while value >= step and index + 1 < len(units):
        value /= step
        index += 1
    return value, units[index]


def _fixed(value, digits):
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), context=ROUNDING))


def readable(unit, value):
    if unit == "seconds":
        return f"{_fixed(value, 3)} s"
    value, prefix = _with_prefix(value, BYTES, 1024)
    return f"{_fixed(value, 1)} {prefix}"


def readable_count(value):
    """1234567 as 1.2M; small ones as they are."""
    short, prefix = _with_prefix(value, COUNTS, 1000)
    return f"{_fixed(short, 1)}{prefix}" if prefix else f"{value}"


def printable(name):
    """Names come from the profiled files: none may steer the terminal, or turn a line's letters round."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name)


def function_name(frame):
    """With its module, unless that is all that is known."""
    alone = not frame.module or frame == nameless(frame.module)
    return printable(frame.name if alone else f"{frame.name} ({frame.module})")


def headline(profile):
    line = f"{profile.title}: {readable(profile.unit, profile.total)}"
    if profile.objects:
        line += f" in {readable_count(sum(profile.objects.values()))} objects"
    return line


def _share(unit, value, total):
    return f"{readable(unit, value):>12} {_fixed(100 * value / total, 1):>6}%"


def table(profile, rows):
    """One profile as lines of text."""
    total = profile.total or 1
    objects = self_and_total(profile.objects)
    counts_title = f" {'objects':>9} {'total':>9}" if objects else ""
    lines = [headline(profile), f"{'self':>20} {'total':>20}{counts_title}  function"]
    for frame, own, whole in by_function(profile)[:rows]:
        counts = ""
        if objects:
            counts = "".join(f" {readable_count(n):>9}" for n in objects.get(frame, (0, 0)))
        lines.append(
            f"{_share(profile.unit, own, total)} {_share(profile.unit, whole, total)}"
            f"{counts}  {function_name(frame)}"
        )
    return "\n".join(lines)


# --- labels ---


def _groups(samples, name):
    """Value by stack, by a label's value; None for samples without it."""
    groups = {}
    for (stack, labels), value in samples.items():
        stacks = groups.setdefault(dict(labels).get(name), {})
        stacks[stack] = stacks.get(stack, 0) + value
    return groups


def _group_name(value):
    """A label may have no text; that is not to have no label."""
    return "(none)" if value is None else printable(value) or '""'


def _hottest(stacks):
    """The function with the most of its own, and its share."""
    sums = self_and_total(stacks)
    frame = min(sums, key=lambda frame: (-sums[frame][0], frame))
    return f"{_fixed(100 * sums[frame][0] / (sum(stacks.values()) or 1), 1):>6}%  {function_name(frame)}"


def group_table(profile, name, rows):
    """One profile by the values of a label, each with the function where most of it was spent."""
    counts = _groups(profile.counts, name)
    groups = [(sum(stacks.values()), value, stacks) for value, stacks in _groups(profile.samples, name).items()]
    groups.sort(key=lambda group: (-group[0], group[1] or ""))
    shown = [(_group_name(value), total, stacks, counts.get(value, {})) for total, value, stacks in groups[:rows]]
    width = max(len(name), *(len(value) for value, *_ in shown))
    counts_title = f" {'objects':>9}" if counts else ""
    lines = [headline(profile), f"{'total':>20}{counts_title}  {printable(name):<{width}}    self  hottest function"]
    for value, total, stacks, objects in shown:
        count = f" {readable_count(sum(objects.values())):>9}" if counts else ""
        lines.append(f"{_share(profile.unit, total, profile.total or 1)}{count}  {value:<{width}} {_hottest(stacks)}")
    if len(groups) > rows:
        lines.append(f"{'':>20} and {counted(len(groups) - rows, 'other')}")
    return "\n".join(lines)


def linked(profiles):
    """How much of each profile is linked to spans; "" if nothing is."""
    shares = []
    for profile in profiles.values():
        own = sum(value for (_, labels), value in profile.samples.items() if TRACE in dict(labels))
        if own:
            shares.append(f"{_fixed(100 * own / profile.total, 1)}% of {profile.title}")
    if not shares:
        return ""
    spans, traces = (counted(len(values_of(profiles, name)), NOUNS[name]) for name in (SPAN, TRACE))
    return f"linked: {', '.join(shares)}, to {spans} of {traces}"


# --- all of it ---


def report(profiles, rows, kinds=None, group_by=None, is_part=False):
    """The tables; of a part of a file without how much of it is linked."""
    shown = {kind: profile for kind, profile in profiles.items() if not kinds or kind in kinds}
    if not shown:
        return "no samples"
    if group_by:
        check_name(shown, group_by)
        tables = [group_table(profile, group_by, rows) for profile in shown.values()]
    else:
        tables = [table(profile, rows) for profile in shown.values()]
    return "\n\n".join(filter(None, (*tables, "" if is_part else linked(shown))))
