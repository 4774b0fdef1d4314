"""Python's functions in the stacks of a program that loads Python while it runs."""

from pathlib import Path

import pytest
from profiled import BUILD
from python_stacks import PYENV, python_frames, stacks_of

pytestmark = pytest.mark.timing

PROGRAM = BUILD / "test" / "programs" / "embeds_python"
RUNS = ("main", "sub", "thread", "again", "sub_again", "thread_again")
CPU_ONLY = {"OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILER_CPU_FREQUENCY": "999"}


def libraries():
    """Debian's, and pyenv's, which need to be told where their library of Python is: path -> environment."""
    found = {path: {} for path in Path("/usr/lib").glob("*-linux-gnu/libpython3.1[1-5].so.1.0")}
    found.update((path, {"PYTHONHOME": str(path.parent.parent)}) for path in PYENV.glob("*/lib/libpython3.1[1-5].so.1.0"))
    return found


LIBRARIES = libraries()


def counts_of(outcome):
    """Samples by the run whose function is in the stack."""
    counts = dict.fromkeys(RUNS, 0)
    for stack in stacks_of(outcome.requests):
        names = {frame.name for frame in python_frames(stack)}
        for run in RUNS:
            counts[run] += stack.value * (f"runs_{run}" in names)
    return counts


def test_there_is_a_library():
    assert LIBRARIES


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_a_python_that_is_loaded_late_is_seen_wherever_it_runs(run, library):
    """On the main thread, in a subinterpreter, on a thread of the program's; and again, finalized and loaded anew."""
    outcome = run([PROGRAM, library, "0.7"], env=CPU_ONLY | LIBRARIES[library])
    assert outcome.returncode == 0, outcome.stderr
    counts = counts_of(outcome)
    total = sum(counts.values())
    assert all(count > 0.1 * total for count in counts.values()), counts


def test_python_can_be_turned_off(run):
    code = "import time\nend = time.thread_time() + 0.5\nwhile time.thread_time() < end: sum(range(100))"
    for setting in ("true", "false"):
        outcome = run(["/usr/bin/python3", "-c", code], env=CPU_ONLY | {"OTEL_PROFILER_PYTHON": setting})
        assert outcome.returncode == 0, outcome.stderr
        assert any(map(python_frames, stacks_of(outcome.requests))) == (setting == "true")
