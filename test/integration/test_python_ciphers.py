"""Stacks with functions of Python around code that the walker cannot follow are finished by libunwind."""

import pytest
from profiled import ROOT
from python_stacks import python_frames, stacks_of

pytestmark = pytest.mark.timing

PROGRAM = ROOT / "test" / "programs" / "python_ciphers.py"


def test_stacks_that_are_finished_later_keep_their_functions_of_python(run):
    outcome = run(["/usr/bin/python3", PROGRAM, "3"],
                  env={"OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILER_CPU_FREQUENCY": "499"})
    assert (outcome.returncode, outcome.stderr) == (0, "")
    finished = named = within = total = 0
    for stack in stacks_of(outcome.requests):
        names = [frame.name for frame in python_frames(stack)]
        total += stack.value
        within += stack.value * (names == ["encrypts", "main", "<module>"])
        if any(frame.name.startswith("EVP_EncryptUpdate") for frame in stack.frames):
            finished += stack.value
            named += stack.value * (names == ["encrypts", "main", "<module>"])
    assert finished > 100
    assert named > 0.98 * finished, f"{named} of {finished}"
    assert within > 0.95 * total, f"{within} of {total}"  # includes stacks of which no copy could be kept
