"""Stacks as lines, what flamegraph.pl and its kin read: `main;middle;leaf 123`, outermost first."""

from .foreign import printable
from .formats import exact


def _name(frame):
    return printable(frame.name).replace(";", ":")


def write_collapsed(file, profile):
    """Of time in nanoseconds, of memory in bytes."""
    lines = {}
    for stack, value in profile.stacks.items():
        line = ";".join(map(_name, reversed(stack)))
        lines[line] = lines.get(line, 0) + exact(profile.unit, value)
    for line, value in sorted(lines.items()):
        file.write(f"{line} {value}\n")
