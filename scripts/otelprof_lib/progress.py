"""Shows how far a long reading has come: one line on a terminal, removed at the end."""

import sys
import time

from .foreign import printable

QUIET_SECONDS = 1  # shorter readings show nothing
STEP_SECONDS = 0.2
WIDTH = 79


class Progress:
    """Is a context in which `at` may be called often."""

    def __init__(self, path, size):
        self._text = printable(f"otelprof: reading {path}")
        self._size = size
        self._next = time.monotonic() + QUIET_SECONDS
        self._is_shown = False

    def __enter__(self):
        return self

    def at(self, position):
        """Shows progress. `position`: a function that returns how many bytes are read."""
        now = time.monotonic()
        if now < self._next or not sys.stderr.isatty():
            return
        self._next = now + STEP_SECONDS
        self._is_shown = True
        share = f": {100 * position() // self._size:3} %"
        line = self._text[: WIDTH - len(share)] + share
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_):
        if self._is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
