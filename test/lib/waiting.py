"""Waits for what a test needs, with one limit for the whole suite.

A limit only ends a test that waits in vain, so it is far above what a loaded machine takes. A machine that is slower
still, an emulated one or one with a sanitizer, sets TEST_TIMEOUT_FACTOR.
"""

import os
import time

TIMEOUT_S = 300 * float(os.environ.get("TEST_TIMEOUT_FACTOR", "1"))
POLL_S = 0.02


def eventually(condition, what, timeout_s=TIMEOUT_S, unless=lambda: None, holds=bool):
    """Polls condition() until its value is true, or until holds(value) is, and returns the value.

    Fails with `what` and the last value: when the time is over, or once unless() returns anything but None or False.
    So `unless=process.poll` notices that the program has ended; what it did before its end still counts.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        reason = unless()
        if holds(found := condition()):
            return found
        if reason is not None and reason is not False:
            raise AssertionError(f"waited in vain for {what}: {reason!r}; the last value: {found!r}")
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited in vain for {what}: {timeout_s:g} s are over; the last value: {found!r}")
        time.sleep(POLL_S)
