"""Tables of the hottest functions."""

from decimal import ROUND_HALF_UP, Context, Decimal

from .aggregate import by_function, nameless, self_and_total

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


def report(profiles, rows, kinds=None):
    shown = [profile for kind, profile in profiles.items() if not kinds or kind in kinds]
    if not shown:
        return "no samples"
    return "\n\n".join(table(profile, rows) for profile in shown)
