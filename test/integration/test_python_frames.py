"""Python's functions in the stacks of Python programs agree with what the programs know of themselves."""

import json
import re
import subprocess

import pytest
from profiled import EXACT_CPU, TAKES_CPU_SAMPLE
from python_stacks import (
    LIBRARY, PROGRAMS, PYTHONS, STEPPER, Judge, interpreters, is_loop, python_frames, stacks_of, stepped_stacks,
)

pytestmark = pytest.mark.system

SHARES = PROGRAMS / "python_shares.py"
CALLS = PROGRAMS / "python_calls.py"
ALL = interpreters()
CPU_ONLY = {**EXACT_CPU, "OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILER_MAX_STACK_DEPTH": "512"}
SECONDS = 0.4  # seconds of CPU time
SLACK_NS = 5e6  # two periods, and the interpreter's work between two samples

HOT = {number for number, line in enumerate(SHARES.read_text().splitlines(), 1) if line.endswith("# hot")}
# Lists what each function of python_shares.py has called where it takes its sample, innermost first: frames of that
# file.
INNER = {
    "calls_10": [], "calls_20": ["sampled"], "calls_30": ["Worker.work"], "calls_40": [],
    "generators_10": ["numbers"], "generators_20": ["numbers", "delegates"],
    "generators_30": ["numbers", "delegates", "generators_30.<locals>.<genexpr>"], "generators_40": ["numbers", "delegates"],
    "recursion_10": ["descend"] * 11, "recursion_20": ["descend"] * 91, "recursion_30": ["descend"] * 6,
    "recursion_40": ["descend"] * 4 + ["recursion_40.<locals>.inner"] * 41,
    "extensions_10": ["sampled_key"], "extensions_20": ["sampled_key", "extensions_20.<locals>.<lambda>"],
    "extensions_30": ["replaced"], "extensions_40": ["hooked"],
    "tasks_10": ["tasks_burn"], "tasks_20": ["tasks_burn"], "tasks_30": ["tasks_burn"], "tasks_40": ["tasks_burn"],
}


def way_of(stack):
    """Returns the function of INNER that the stack belongs to, with the program's frames inside of it; None before it
    begins."""
    frames = [frame for frame in python_frames(stack) if frame.file == str(SHARES)]
    names = [frame.name for frame in frames]
    way = next((name for name in names if name in INNER), None)
    return None if way is None or names[0] == "begins" else (way, frames[:names.index(way) + 1])


def judge_whole(stack):
    """Asserts that the stack goes from the first native function through Python to the function that takes the
    sample, and has no loop of the interpreter where Python's frames are."""
    assert stack.frames[0].name == "take_cpu_sample" and stack.frames[-1].type == "native", stack
    assert not any(key.startswith("otelprof.stack.") for key in stack.marks), stack
    assert not any(map(is_loop, stack.frames)), stack


def judge_shares(outcome, threads):
    """Asserts that all time of a function is on the line where it takes its sample, below all that it has called."""
    counts = dict.fromkeys(INNER, 0)
    for stack in stacks_of(outcome.requests):
        found = way_of(stack)
        if not found:
            continue
        way, frames = found
        assert [frame.name for frame in frames] == [*INNER[way], way]
        assert frames[0].line in HOT, frames[0]
        judge_whole(stack)
        counts[way] += stack.value
    for way, burnt in json.loads(outcome.stdout).items():
        assert len(burnt) == 4
        for name, nanoseconds in burnt.items():
            assert counts[name] * 1e6 == pytest.approx(nanoseconds, abs=threads * SLACK_NS), (name, counts)


@pytest.mark.parametrize("name", PYTHONS)
def test_shares_and_lines_are_those_of_the_program(run, name):
    outcome = run([*ALL[name], SHARES, TAKES_CPU_SAMPLE, "1"], env=CPU_ONLY)
    assert outcome.returncode == 0, outcome.stderr
    judge_shares(outcome, 1)


def test_shares_of_four_threads(run):
    outcome = run([*ALL["debian"], SHARES, TAKES_CPU_SAMPLE, "4", "calls", "generators"], env=CPU_ONLY)
    assert outcome.returncode == 0, outcome.stderr
    judge_shares(outcome, 4)


@pytest.mark.parametrize("name", PYTHONS)
def test_no_frame_is_invented(run, tmp_path, name):
    """Every stack is one that sys._getframe() has returned, in a program that calls in all of Python's ways, wherever
    a real timer interrupts it."""
    result = tmp_path / "calls.json"
    outcome = run([*ALL[name], CALLS, "7", str(SECONDS), "2", LIBRARY, result], env=CPU_ONLY)
    assert outcome.returncode == 0, outcome.stderr
    judge = Judge(result)
    for stack in stacks_of(outcome.requests):
        judge.judge(stack)
    assert not judge.wrong, "\n".join(judge.wrong[:10])
    judged = sum(judge.verdicts.values()) - judge.verdicts["outside"] - judge.verdicts["without"]
    # of 200 samples one is holed, and a late one can be worth 60 of 800
    assert judged > 1000 * SECONDS and judge.verdicts["right"] > 0.7 * judged, judge.verdicts


def test_it_can_be_turned_off(run):
    outcome = run([*ALL["debian"], SHARES, TAKES_CPU_SAMPLE, "1", "calls"], env={**CPU_ONLY, "OTEL_PROFILER_PYTHON": "false"})
    assert outcome.returncode == 0
    stacks = list(stacks_of(outcome.requests))
    assert any(stack.frames[0].name == "take_cpu_sample" for stack in stacks)
    assert not any(map(python_frames, stacks))


QUIET = """
import ctypes, sys, time
library = ctypes.PyDLL(sys.argv[1])
library.hold_cpu_samples()
while time.thread_time() < 0.1: [str(x) for x in range(100)]
library.take_cpu_sample()
print(sys.getrefcount(object()))
"""


def test_it_costs_the_program_nothing_else(run):
    """Output and results are equal: PYTHONDEVMODE and -W error would report more."""
    command = [*ALL["debian"], "-X", "dev", "-W", "error", "-c", QUIET, TAKES_CPU_SAMPLE]
    plain, with_us = run(command, profiled=False), run(command, env=CPU_ONLY)
    assert (plain.returncode, plain.stdout, plain.stderr) == (with_us.returncode, with_us.stdout, with_us.stderr)
    names = [frame.name for stack in stacks_of(with_us.requests) for frame in python_frames(stack)]
    assert "<module>" in names and all(re.fullmatch(r"\S+", name) for name in names)


@pytest.mark.parametrize("name", [PYTHONS[0], *PYTHONS[1:][-1:]])
def test_no_frame_is_invented_between_two_instructions(run, tmp_path, name):
    """This holds also where the interpreter is just at a store of a call or a return: at every instruction of bursts."""
    result, stacks = tmp_path / "calls.json", tmp_path / "stacks.json"
    outcome = run([*ALL[name], CALLS, "11", str(SECONDS), "1", LIBRARY, result], profiled=False,
                  env={"LD_PRELOAD": f"{LIBRARY} {STEPPER}", "PYTHON_STACKS": str(stacks)})
    assert outcome.returncode == 0, outcome.stderr
    judge, doubts = Judge(result), 0
    for stack, doubt in stepped_stacks(stacks):
        judge.judge(stack)
        doubts += doubt * stack.value
    looked = sum(judge.verdicts.values()) - judge.verdicts["outside"] - judge.verdicts["without"]
    assert not judge.wrong, "\n".join(judge.wrong[:10])
    assert looked > 10000 and judge.verdicts["right"] > 0.95 * looked, judge.verdicts
    assert doubts < 0.01 * looked, f"{doubts} of {looked}"


def test_a_greenlets_stack_ends_with_its_first_function(run):
    """Greenlets share one native stack: beyond that function are frames of others. Its stack is whole, and its own."""
    if subprocess.run(["/usr/bin/python3", "-c", "import greenlet"], capture_output=True, check=False).returncode:
        pytest.skip("python3-greenlet is not installed")
    done = run(["/usr/bin/python3", PROGRAMS / "greenlets.py", TAKES_CPU_SAMPLE, "0.2"], env=CPU_ONLY)
    assert done.returncode == 0, done.stderr
    burning = [stack for stack in stacks_of(done.requests) if stack.frames[0].name == "take_cpu_sample"]
    assert len(burning) > 0
    for stack in burning:
        assert not any(key.startswith("otelprof.stack.") for key in stack.marks), stack
        assert re.search(r"UserGreenlet::(inner_bootstrap|g_initialstub)\b", stack.frames[-1].name), stack
        assert {frame.name for frame in python_frames(stack)} >= {"burns", "works"}, stack
        assert not {frame.name for frame in stack.frames} & {"starts", "resumes", "main", "_start"}, stack
