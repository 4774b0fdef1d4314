"""A caller whose stack pointer is off by 8 bytes is served as libc serves it: hand-written assembler, old compilers, thunks.

The psABI requires multiples of 16. libc's functions hardly ever store anything aligned on the stack; compilers do so in our
functions.
"""

import re
import subprocess

import pytest
from profiled import BUILD

pytestmark = pytest.mark.fast

EACH_ALLOCATION = {"OTEL_PROFILER_TYPES": "all", "OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_MIN_LIFETIME": "0"}
STATES = {
    "default": {},
    "all": EACH_ALLOCATION,
    "disabled": {"OTEL_PROFILER_ENABLED": "false"},
    "excluded": {"OTEL_PROFILER_EXCLUDE": "*"},
}


def ends(outcome):
    """Returns the number and name of each call -> how its process ended."""
    assert outcome.stdout.endswith("done\n") and outcome.returncode == 0, outcome.stdout + outcome.stderr
    return dict(line.split(": ") for line in outcome.stdout.splitlines()[:-1])


@pytest.fixture
def plain(run, program):
    """Runs the calls without the profiler: a few of them end the process there, too, such as dlopen."""
    found = ends(run([program("any_stack")], profiled=False))
    assert list(found.values()).count("0") > 100
    return found


@pytest.mark.parametrize("state", STATES)
def test_each_hook_serves_a_caller_whose_stack_is_8_bytes_off(run, program, plain, state):
    profiled = ends(run([program("any_stack")], env=STATES[state]))
    worse = {call: end for call, end in profiled.items() if end not in (plain[call], "0")}
    assert profiled.keys() == plain.keys() and not worse


@pytest.mark.parametrize("state", STATES)
def test_they_serve_it_beside_the_helper_too(run, program, plain, state):
    numbers = [call.split()[0] for call, end in plain.items() if end == "0"]
    outcome = run([program("any_stack"), *numbers], env=STATES[state])
    assert outcome.stdout.endswith("done\n") and outcome.returncode == 0, outcome.stdout[-200:] + outcome.stderr


def test_the_stack_of_such_an_allocation_is_whole(run, program, plain):
    number = next(call.split()[0] for call in plain if call.endswith(" malloc"))
    outcome = run([program("any_stack"), number], env=EACH_ALLOCATION)
    stacks = outcome.instance("any_stack").stacks("alloc_objects")
    assert any(stack[:3] == ("call_askew", "make", "main") for stack in stacks), stacks.keys()


def test_hooks_that_do_not_align_their_stack_store_nothing_aligned():
    """These hooks are compiled without vector registers."""
    for name in ("blocking", "locks", "malloc", "mask", "operator_new"):
        code = subprocess.run(["objdump", "-d", BUILD / f"obj/shim/hooks/{name}.o"], capture_output=True, text=True, check=True)
        assert "<" in code.stdout and not re.search(r"%[xyz]mm", code.stdout), name
