"""Python's functions in the stacks of Python programs, against what the programs know of themselves."""

import json
import os
import re

import pytest
from python_stacks import (
    LIBRARY, PROGRAMS, STEPPER, Judge, interpreters, is_loop, python_frames, stacks_of, stepped_stacks,
)

pytestmark = pytest.mark.timing

SHARES = PROGRAMS / "python_shares.py"
CALLS = PROGRAMS / "python_calls.py"
WAYS = ("calls", "generators", "recursion", "extensions", "tasks")
ALL = interpreters()
OTHERS = [name for name in ALL if name != "debian"]
CPU_ONLY = {"OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILER_CPU_FREQUENCY": "999", "OTEL_PROFILER_MAX_STACK_DEPTH": "512"}
SECONDS = float(os.environ.get("PYTHON_SECONDS", "3"))

HOT = {number for number, line in enumerate(SHARES.read_text().splitlines(), 1) if line.endswith("# hot")}


def in_function(stack, function):
    return any(frame.name == function and frame.file == str(SHARES) for frame in python_frames(stack))


def judge_shares(outcome, ways, points=2.0):
    truth = json.loads(outcome.stdout)
    stacks = list(stacks_of(outcome.requests))
    for way in ways:
        burnt = truth[way]
        counts = {name: sum(s.value for s in stacks if in_function(s, name)) for name in burnt}
        for name, nanoseconds in burnt.items():
            share = 100 * counts[name] / max(1, sum(counts.values()))
            expected = 100 * nanoseconds / sum(burnt.values())
            assert abs(share - expected) < points, f"{name}: {share:.2f} % instead of {expected:.2f} %: {counts}"
    return stacks


def judge_lines(stacks, functions):
    """What burns does so on the lines that say so."""
    total = hot = 0
    for stack in stacks:
        innermost = next((frame for frame in python_frames(stack) if frame.file == str(SHARES)), None)
        if innermost and innermost.name in functions:
            total += stack.value
            hot += stack.value * (innermost.line in HOT)
    assert total and hot / total > 0.98, f"{hot} of {total}"


def judge_merging(stacks):
    """A whole stack goes from the first native function through Python to what burns, and has no loop of
    the interpreter where its frames are."""
    mine = [s for s in stacks if python_frames(s)]
    total = sum(s.value for s in mine)
    looped = sum(s.value for s in mine if any(map(is_loop, s.frames)))
    assert looped < 0.01 * total, f"{looped} of {total}"
    whole = sum(s.value for s in mine if not s.marks.get("otelprof.stack.truncated")
                and s.frames[-1].type == "native")
    assert whole > 0.97 * total, f"{whole} of {total}"


@pytest.mark.parametrize("name", ALL)
def test_shares_and_lines_are_those_of_the_program(run, name):
    """2 s for each way: at most 0.4 points are the ticks' (see test_cpu_truth.py)."""
    ways = WAYS if name == "debian" else ("calls", "generators")
    outcome = run([*ALL[name], SHARES, "1", "2", *ways], env={"OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILER_CPU_FREQUENCY": "999"})
    assert outcome.returncode == 0, outcome.stderr
    stacks = judge_shares(outcome, ways)
    judge_lines(stacks, {"calls_10", "calls_20", "numbers", "fibonacci", "key_of", "replaced", "tasks_burn"})
    judge_merging(stacks)


def test_shares_of_four_threads(run):
    outcome = run([*ALL["debian"], SHARES, "4", "1", "calls"], env=CPU_ONLY)
    assert outcome.returncode == 0, outcome.stderr
    judge_shares(outcome, ["calls"])


@pytest.mark.parametrize("name", ALL)
def test_no_frame_is_invented(run, tmp_path, name):
    """Every stack is one that sys._getframe() has seen, in a program that calls in all of Python's ways."""
    result = tmp_path / "calls.json"
    outcome = run([*ALL[name], CALLS, "7", str(SECONDS / 2), "2", LIBRARY, result], env=CPU_ONLY)
    assert outcome.returncode == 0, outcome.stderr
    judge = Judge(result)
    for stack in stacks_of(outcome.requests):
        judge.judge(stack)
    assert not judge.wrong, "\n".join(judge.wrong[:10])
    judged = sum(judge.verdicts.values()) - judge.verdicts["outside"] - judge.verdicts["without"]
    assert judged > 1000 * SECONDS / 2 and judge.verdicts["right"] > 0.995 * judged, judge.verdicts
    assert judge.verdicts["without"] < 0.05 * judged, judge.verdicts


def test_it_can_be_turned_off(run):
    outcome = run([*ALL["debian"], SHARES, "1", "1", "calls"], env={**CPU_ONLY, "OTEL_PROFILER_PYTHON": "false"})
    assert outcome.returncode == 0
    stacks = list(stacks_of(outcome.requests))
    assert stacks and not any(map(python_frames, stacks))


def test_it_costs_the_program_nothing_else(run, tmp_path):
    """No word, no other result: PYTHONDEVMODE and -W error would tell."""
    script = "import sys, time\nwhile time.process_time() < 0.5: [str(x) for x in range(100)]\nprint(sys.getrefcount(object()))"
    plain = run([*ALL["debian"], "-X", "dev", "-W", "error", "-c", script], profiled=False)
    with_us = run([*ALL["debian"], "-X", "dev", "-W", "error", "-c", script])
    assert (plain.returncode, plain.stdout, plain.stderr) == (with_us.returncode, with_us.stdout, with_us.stderr)
    names = [frame.name for stack in stacks_of(with_us.requests) for frame in python_frames(stack)]
    assert "<module>" in names and all(re.fullmatch(r"\S+", name) for name in names)


@pytest.mark.parametrize("name", ["debian", *OTHERS[-1:]])
def test_no_frame_is_invented_between_two_instructions(run, tmp_path, name):
    """The same where the interpreter is just at a store of a call or a return: at every instruction of bursts."""
    result, stacks = tmp_path / "calls.json", tmp_path / "stacks.json"
    outcome = run([*ALL[name], CALLS, "11", str(SECONDS / 2), "1", LIBRARY, result], profiled=False,
                  env={"LD_PRELOAD": f"{LIBRARY} {STEPPER}", "PYTHON_STACKS": str(stacks)})
    assert outcome.returncode == 0, outcome.stderr
    judge, doubts = Judge(result), 0
    for stack, doubt in stepped_stacks(stacks):
        judge.judge(stack)
        doubts += doubt * stack.value
    looked = sum(judge.verdicts.values()) - judge.verdicts["without"]  # those of the interpreter's end
    assert not judge.wrong, "\n".join(judge.wrong[:10])
    assert looked > 10000 and judge.verdicts["right"] > 0.95 * looked, judge.verdicts
    assert doubts < 0.01 * looked, f"{doubts} of {looked}"
