"""Text of others on a terminal: names of profiled programs, what a process says of itself, paths, the system's errors.

Everything that this command says goes through `printable`, and its one-line messages through `say`: nothing in them can begin
another line, steer the terminal, or turn a line's letters round. The library has the same rule in common/shown_text.h.
"""

import sys


def printable(text):
    """As one line; what cannot be shown is shown by its number."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def printable_lines(text):
    """With its ends of lines, as it has several."""
    return "\n".join(map(printable, text.split("\n")))


def say(text):
    print(f"otelprof: {printable(str(text))}", file=sys.stderr, flush=True)
