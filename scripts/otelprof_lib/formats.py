"""Formats numbers and names for tables and the flame graph's page alike."""

from decimal import ROUND_HALF_UP, Context, Decimal

from .aggregate import nameless
from .foreign import printable

BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
COUNTS = ("", "k", "M", "G", "T")
# rounds half up, as the flame graph's toFixed does, so that both show the same; with room for any sum
ROUNDING = Context(prec=400, rounding=ROUND_HALF_UP)


def _with_prefix(value, units, step):
    index = 0
    while value >= step and index + 1 < len(units):
        value /= step
        index += 1
    return value, units[index]


def fixed(value, digits):
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), context=ROUNDING))


def readable_count(value):
    """Shortens 1234567 to 1.2M; small numbers are unchanged."""
    short, prefix = _with_prefix(value, COUNTS, 1000)
    return f"{fixed(short, 1)}{prefix}" if prefix else f"{value}"


def duration(seconds):
    """Formats 0.0123 as 12.3 ms."""
    value, unit = next(((seconds * factor, unit) for factor, unit in ((1, "s"), (1e3, "ms")) if seconds * factor >= 1), (seconds * 1e6, "us"))
    return f"{fixed(value, 1)} {unit}"


def exact(unit, value):
    """Returns a whole number: nanoseconds for time."""
    return round(value * 1e9) if unit in ("seconds", "duration") else round(value)


def readable(unit, value):
    if unit == "seconds":
        return f"{fixed(value, 3)} s"
    if unit == "duration":
        return duration(value)
    if unit == "count":
        return readable_count(value)
    value, prefix = _with_prefix(value, BYTES, 1024)
    return f"{fixed(value, 1)} {prefix}"


def percent(part, whole):
    return f"{fixed(100 * part / (whole or 1), 1)}%"


def function_name(frame):
    """Returns the name with its module, unless only the module is known."""
    is_told = f" {frame.module}:" in frame.name  # with a line of that file
    alone = not frame.module or is_told or frame.name == nameless(frame.module).name
    return printable(frame.name if alone else f"{frame.name} ({frame.module})")


def headline(profile):
    line = f"{profile.title}: {readable(profile.unit, profile.total)}"
    if profile.counts:
        line += f" in {readable_count(sum(profile.counts.values()))} {profile.noun}"
    return line
