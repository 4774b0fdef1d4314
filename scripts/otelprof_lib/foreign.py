"""Makes foreign text safe for a terminal: names of profiled programs, responses of processes, paths, the system's errors.

All output of this command goes through `printable`, and its one-line messages through `say`: nothing in them can begin
another line, steer the terminal, or reverse a line's letters. The library has the same rule in common/shown_text.h.
"""

import sys


def printable(text):
    """Returns a text as one line; letters that cannot be shown become their numbers."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def printable_lines(text):
    """Returns a text of several lines likewise, with its ends of lines."""
    return "\n".join(map(printable, text.split("\n")))


def say(text):
    print(f"otelprof: {printable(str(text))}", file=sys.stderr, flush=True)
