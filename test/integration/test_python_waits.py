"""Functions of Python in the stacks of threads that wait, and of memory: with their files and lines."""

import pytest
from profiled import ROOT
from python_stacks import interpreters, python_frames, stacks_of

pytestmark = pytest.mark.timing

PROGRAM = ROOT / "test" / "programs" / "python_waits.py"
LINES = {line.split("# ")[1].split()[0]: number
         for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith(" here")}
WAITS = {"sleeps", "takes_lock", "reads_pipe", "holds_lock"}
MEMORY = {"keeps"}
CALLED_BY_MAIN = {"holds_lock", "keeps"}
ALL = interpreters()


def innermost_of(outcome, kind, names):
    """{function: {(its line, the program's functions that called it)}} of those functions, where they are innermost."""
    found = {}
    for stack in stacks_of(outcome.requests, kind):
        innermost, *others = python_frames(stack) or [None]
        if innermost and innermost.file == str(PROGRAM) and innermost.name in names:
            callers = tuple(frame.name for frame in others if frame.file == str(PROGRAM))
            found.setdefault(innermost.name, set()).add((innermost.line, callers))
    return found


def written(names):
    """The same, as the program's text has it."""
    return {name: {(LINES[name], ("main", "<module>") if name in CALLED_BY_MAIN else ())} for name in names}


@pytest.mark.parametrize("python", ALL)
def test_waits_and_memory_name_functions_of_python(run, python):
    """Of other threads, which stand still when they are looked at, as of one's own."""
    outcome = run([*ALL[python], PROGRAM],
                  env={"OTEL_PROFILER_TYPES": "off_cpu,threads,alloc,heap", "OTEL_PROFILE_EXPORT_INTERVAL": "500"})
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert innermost_of(outcome, "off_cpu", WAITS) == written(WAITS)
    assert innermost_of(outcome, "threads", WAITS) == written(WAITS)
    assert innermost_of(outcome, "alloc_space", MEMORY) == written(MEMORY)
    assert innermost_of(outcome, "inuse_space", MEMORY) == written(MEMORY)
