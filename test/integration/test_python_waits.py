"""Stacks of waiting threads, and of memory, have functions of Python with their files and lines."""

import pytest
from profiled import ROOT
from python_stacks import PYTHONS, interpreters, python_frames, stacks_of
from waiting import TIMEOUT_S, eventually

PROGRAM = ROOT / "test" / "programs" / "python_waits.py"
LINES = {line.split("# ")[1].split()[0]: number
         for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith(" here")}
WAITS = {"sleeps", "takes_lock", "reads_pipe", "holds_lock"}
MEMORY = {"keeps"}
KINDS = {"off_cpu": WAITS, "threads": WAITS, "alloc_space": MEMORY, "inuse_space": MEMORY}
CALLED_BY_MAIN = {"holds_lock", "keeps"}
ALL = interpreters()


def innermost_of(requests, kind, names):
    """Returns {function: {(its line, the program's functions that called it)}} for those functions, where they are
    innermost."""
    found = {}
    for stack in stacks_of(requests, kind):
        innermost, *others = python_frames(stack) or [None]
        if innermost and innermost.file == str(PROGRAM) and innermost.name in names:
            callers = tuple(frame.name for frame in others if frame.file == str(PROGRAM))
            found.setdefault(innermost.name, set()).add((innermost.line, callers))
    return found


def written(names):
    """Returns such a table as the program's text has it."""
    return {name: {(LINES[name], ("main", "<module>") if name in CALLED_BY_MAIN else ())} for name in names}


@pytest.mark.parametrize("python", PYTHONS)
def test_waits_and_memory_name_functions_of_python(start, python):
    """Threads are blocked when they are read, both other threads and the caller."""
    program = start([*ALL[python], PROGRAM],
                    env={"OTEL_PROFILER_TYPES": "off_cpu,threads,alloc,heap", "OTEL_PROFILE_EXPORT_INTERVAL": "200"})

    def found():
        requests = list(program.receiver.requests)
        return {kind: innermost_of(requests, kind, names) for kind, names in KINDS.items()}

    expected = {kind: written(names) for kind, names in KINDS.items()}
    eventually(found, "all waits and what is kept", unless=program.process.poll,
               holds=lambda all_of: all(all_of[kind].keys() == names for kind, names in KINDS.items()))
    program.process.kill()
    assert program.finish(TIMEOUT_S).stderr == ""
    assert found() == expected
