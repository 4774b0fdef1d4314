"""Python's functions are in the stacks of a program that loads Python while it runs."""

from pathlib import Path

import pytest
from profiled import BUILD, EXACT_CPU, TAKES_CPU_SAMPLE
from python_stacks import PYENV, python_frames, stacks_of

pytestmark = pytest.mark.system

PROGRAM = BUILD / "test" / "programs" / "embeds_python"
RUNS = ("main", "sub", "thread", "again", "sub_again", "thread_again")
CPU_ONLY = {**EXACT_CPU, "OTEL_PROFILER_TYPES": "cpu"}


def libraries():
    """Returns Debian's libpython, and pyenv's, which need the path of their library: path -> environment."""
    found = {path: {} for path in Path("/usr/lib").glob("*-linux-gnu/libpython3.1[1-5].so.1.0")}
    found.update((path, {"PYTHONHOME": str(path.parent.parent)}) for path in PYENV.glob("*/lib/libpython3.1[1-5].so.1.0"))
    return found


LIBRARIES = libraries()


def chosen_samples(outcome):
    """Returns the samples that the program takes: for each, its functions of Python, innermost first."""
    return [tuple(frame.name for frame in python_frames(stack)) for stack in stacks_of(outcome.requests)
            if any(frame.name == "getppid" for frame in stack.frames)]


def test_there_is_a_library():
    assert LIBRARIES


@pytest.mark.parametrize("library", [path if path.is_relative_to("/usr") else pytest.param(path, marks=pytest.mark.system)
                                     for path in LIBRARIES], ids=str)
def test_a_python_that_is_loaded_late_is_seen_wherever_it_runs(run, library):
    """Python runs on the main thread, in a subinterpreter, on a thread of the program's; and again, finalized and
    reloaded."""
    outcome = run([PROGRAM, library], env=CPU_ONLY | LIBRARIES[library])
    assert outcome.returncode == 0, outcome.stderr
    assert sorted(chosen_samples(outcome)) == sorted((f"runs_{run}", "<module>") for run in RUNS)


def test_python_can_be_turned_off(run):
    code = "import ctypes, sys\nlibrary = ctypes.PyDLL(sys.argv[1])\nlibrary.hold_cpu_samples()\nsum(range(10**6))\nlibrary.take_cpu_sample()"
    for setting in ("true", "false"):
        outcome = run(["/usr/bin/python3", "-c", code, TAKES_CPU_SAMPLE], env=CPU_ONLY | {"OTEL_PROFILER_PYTHON": setting})
        assert outcome.returncode == 0, outcome.stderr
        assert any(map(python_frames, stacks_of(outcome.requests))) == (setting == "true")
