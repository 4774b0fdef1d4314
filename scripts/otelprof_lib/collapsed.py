"""Writes stacks as lines for flamegraph.pl and similar tools: `main;middle;leaf 123`, outermost first."""

from .foreign import printable
from .formats import exact


def _name(frame):
    return printable(frame.name).replace(";", ":")


def write_collapsed(file, profile):
    """Writes time in nanoseconds, memory in bytes."""
    lines = {}
    for stack, value in profile.stacks.items():
        line = ";".join(map(_name, reversed(stack)))
        lines[line] = lines.get(line, 0) + exact(profile.unit, value)
    for line, value in sorted(lines.items()):
        file.write(f"{line} {value}\n")
