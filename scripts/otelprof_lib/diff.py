"""Implements `otelprof diff`: shows what changed between two files."""

import math

from .about import file_title
from .aggregate import aggregate
from .arguments import positive
from .capture_file import BadFile
from .difference import compare
from .difference_page import write_difference
from .foreign import printable, say
from .formats import fixed, function_name, readable, readable_count
from .kinds import KINDS, missing
from .labels import counted
from .names import print_table
from .repeats import each_once
from .same_modules import with_modules_of

# Only in these kinds is a sample an observation of its own: a thread that waits once, for long, is sampled at each
# poll.
COUNTED = ("cpu", "alloc", "heap", "heap_peak", "lock")
LEAST_CHANGE = 5  # percent
DIGITS = 1


def _profile(path, name):
    profiles = aggregate(each_once(path))
    if name not in profiles:
        raise BadFile(missing(path, name, profiles))
    return profiles[name]


def _exposures(options, sides):
    """Returns what values are divided by; None: by the total."""
    if KINDS[options.kind].is_snapshot:
        return 1, 1  # live memory is compared without division
    if options.by == "cpu":
        return None
    for path, profile in zip((options.before, options.after), sides):
        if profile.sampling.seconds <= 0:
            raise BadFile(f"{path} does not say how long it took: use --by cpu")
    return tuple(profile.sampling.seconds for profile in sides)


# --- the table ---


def _scaled(profile, value, exposure):
    if exposure is None:
        return f"{fixed(100 * value / profile.total, DIGITS)}%"
    return readable(profile.unit, value / exposure) + ("" if exposure == 1 else "/s")


def _difference(change, sides, exposures):
    """Returns the difference of the scaled values, as a text with its sign."""
    if exposures is None:
        points = 100 * (change.after / sides[1].total - change.before / sides[0].total)
        return f"{points:+.{DIGITS}f}%"
    gain = change.after / exposures[1] - change.before / exposures[0]
    return ("-" if gain < 0 else "+") + readable(sides[0].unit, abs(gain))


def _relative(change):
    if not (change.before and change.after):
        return "gone" if change.before else "new"
    return "-" if math.isinf(change.relative) else f"{100 * change.relative:+.{DIGITS}f}%"


def _chance(p):
    return "<1e-99" if p < 1e-99 else f"{p:.0e}"


def table_rows(comparison, sides, exposures):
    """Returns titles, then rows of texts."""
    rows = [["A", "B", "B - A", "alone", "of", "chance", "function"]]
    for change in comparison.changes:
        rows.append(
            [
                _scaled(sides[0], change.before, exposures and exposures[0]),
                _scaled(sides[1], change.after, exposures and exposures[1]),
                _difference(change, sides, exposures),
                _relative(change),
                change.of,
                _chance(change.p),
                function_name(change.frame),
            ]
        )
    return rows


def _headline(names, sides, comparison):
    for letter, path, profile, samples in zip("AB", names, sides, comparison.samples):
        count = readable_count(round(samples))
        yield f"{letter}: {readable(profile.unit, profile.total)} in about {count} samples, {printable(path)}"


def _visible(comparison):
    """Returns the smallest change that the files could have shown."""
    parts = [
        ("none" if change is None else f"{100 * change:.0f} %") + f" at {100 * share:g} %"
        for share, change in comparison.visible
    ]
    return f"smallest change that is named 4 times in 5, by the function's share:\n{', '.join(parts)} of the total"


def _verdict(comparison, least):
    others = comparison.compared - len({change.frame for change in comparison.changes})
    if comparison.changes:
        return f"no change in {others} other functions: chance alone, or {least:g} % or less"
    return f"no change: none of {others} functions differs by more than chance and {least:g} %"


def _outcome(comparison, least):
    """Returns what the comparison found, as a line for the page."""
    changed = len({change.frame for change in comparison.changes})
    return f"{counted(changed, 'function')} changed by more than chance and {least:g} %" if changed else _verdict(comparison, least)


def _scale(options, exposures):
    if exposures == (1, 1):
        return "as they are"
    return "of the total" if exposures is None else "per second"


def text(options, sides, comparison, exposures):
    lines = [*_headline((options.before, options.after), sides, comparison), ""]
    if comparison.changes:
        titles, *rows = table_rows(comparison, sides, exposures)
        lines.append(f"{sides[0].title}, {_scale(options, exposures)}")
        for *cells, name in [titles, *rows[: options.rows]]:
            widths = [5 if title == "of" else 10 if exposures else 8 for title in titles]
            lines.append(" ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths)) + f"  {name}")
        if len(rows) > options.rows:
            lines.append(f"and {len(rows) - options.rows} more")
        lines.append("")
    return "\n".join([*lines, _verdict(comparison, options.least_change), _visible(comparison)])


def diff(options):
    before, after = (_profile(path, options.kind) for path in (options.before, options.after))
    sides = before, with_modules_of(before, after)
    exposures = _exposures(options, sides)
    comparison = compare(*sides, 1 + options.least_change / 100, exposures)
    print_table(text(options, sides, comparison, exposures))
    if options.output:
        names = [file_title(path) for path in (options.before, options.after)]
        if names[0] == names[1]:
            names = [file_title(path, 2) for path in (options.before, options.after)]
        title = "{} (A) and {} (B)".format(*map(printable, names))
        found = _outcome(comparison, options.least_change)
        note = "\n".join([*_headline(names, sides, comparison), _verdict(comparison, options.least_change), _visible(comparison)])
        write_difference(
            options.output, title, sides, comparison, exposures, table_rows(comparison, sides, exposures), note, found
        )
        say(f"flame graph in {options.output}")
    return 0


def percentage(text):
    value = float(text)
    if not 0 <= value < 1000:
        raise ValueError
    return value


percentage.__name__ = "percentage"  # argparse shows this name


def add_arguments(sub):
    sub.add_argument("before", metavar="A", help="the file of before")
    sub.add_argument("after", metavar="B", help="the file of after")
    sub.add_argument("--kind", choices=COUNTED, default="cpu", help="what to compare (default cpu)")
    sub.add_argument(
        "--by",
        choices=("cpu", "time"),
        default="cpu",
        help="at the same total, of CPU time or of bytes (cpu, the default), or in the same time",
    )
    sub.add_argument(
        "--least-change",
        type=percentage,
        default=LEAST_CHANGE,
        metavar="PERCENT",
        help=f"a function that changed by less is as it was (default {LEAST_CHANGE})",
    )
    sub.add_argument("-n", "--rows", type=positive, default=20, help="rows of the table (default 20)")
    sub.add_argument("-o", "--output", metavar="HTML", help="write a differential flame graph as well")
