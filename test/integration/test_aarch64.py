"""aarch64, under an emulator: programs behave as without us, and stacks are whole and right."""

import os
import re
import subprocess

import pytest
from aarch64 import TRIPLET, Machine, missing
from profiled import BUILD, ROOT, Outcome, Receiver

pytestmark = [pytest.mark.system, pytest.mark.skipif(os.getuid() != 0, reason="only root may use chroot")]

# The callers of each function of test/aarch64/chains.c, from the inside: `None` is code of libc without a name.
CHAINS = {
    ("leaf", "calls_leaf", "has_big_frame", "main"),
    ("leaf", "calls_leaf", "allocates_on_stack", "main"),
    ("leaf", "calls_leaf", "handles", None, "raises", "main"),
    ("leaf", "calls_leaf", "runs_in_thread"),
    ("leaf", "compares", None, "sorts", "main"),
}
SHAPES = {
    "O2": ["-O2"],
    "O0": ["-O0"],
    "O3 without frame records": ["-O3", "-fomit-frame-pointer", "-momit-leaf-frame-pointer"],
    "signed return addresses": ["-O2", "-mbranch-protection=standard"],
}
SETTINGS = {"OTEL_PROFILER_TYPES": "all", "OTEL_PROFILER_CPU_FREQUENCY": "1000", "OTEL_PROFILER_ALLOC_INTERVAL": "1",
            "OTEL_PROFILE_EXPORT_INTERVAL": "200"}
# Programs of test/programs whose output and status tell a wrong register, stack, exit or handler.
SAME = {
    "burn": ["300", "4"], "throw_across": [], "no_eintr": [], "new_delete": [], "odd_stacks": [], "exits_without_helper": [],
    "main_ends_last": [], "last_thread": [], "thread_ends": [], "cancels_waits": [], "float_traps": [], "moved_handler": [],
    "inlined_work": [], "heap_peaks": [], "ends_twice": [], "ends_main_in_handler": [], "handler_without_room": [],
}


@pytest.fixture(scope="module")
def arm():
    absent = missing()
    if absent and os.environ.get("CI") != "true":
        pytest.skip(f"{', '.join(absent)} is missing")
    assert not absent
    machine = Machine(BUILD)
    machine.prepare()
    machine.make("libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so", *(f"test/programs/{name}" for name in SAME))
    return machine


# Functions that are assembler alone, and their first instructions: the compiler has put none before them.
BARE = {"syscall": "mov x16", "first_syscall": "stp x29, x30, [sp, #-96]!", "dlopen": "mov x3, x30",
        "main_and_end": "stp x29, x30", "signal_entry": "mov x19, sp", "entry_0": "mov x4, sp",
        "own_sigreturn": "mov x8", "blocking_syscall": "cmp x0"}


def test_functions_of_assembler_begin_with_it(arm):
    listing = subprocess.run([f"{TRIPLET}-objdump", "-d", "--no-show-raw-insn", arm.build / "libotelprof.so"],
                             capture_output=True, text=True, check=True).stdout
    first = dict(re.findall(r"^[0-9a-f]+ <(\w+)>:\n\s*[0-9a-f]+:\s*(.*)", listing, re.M))
    codes = {name: " ".join(first.get(name, "").split()).removeprefix("bti c ") for name in BARE}
    assert {name: code for name, code in codes.items() if not code.startswith(BARE[name])} == {}


def profile_of(arm, command, emulator=(), **environment):
    """Runs the program; returns its outcome with the profile."""
    receiver = Receiver()
    try:
        done = arm.run(command, {**SETTINGS, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **environment}, emulator)
    finally:
        receiver.close()
    return Outcome(done.returncode, done.stdout, done.stderr, receiver.requests)


def chain_in(stack):
    """Returns the stack from `leaf` to main or the thread's function, with the names of libc left out."""
    known = {name for chain in CHAINS for name in chain}
    names = [name if name in known else None for name in stack[stack.index("leaf"):]]
    while names and names[-1] is None:
        names.pop()
    return tuple(name for i, name in enumerate(names) if name or names[i - 1])


@pytest.mark.parametrize("shape", SHAPES)
def test_stacks_are_whole_and_right(arm, shape):
    """Signals come at any instruction; each stack must be one that the program has, to its first function."""
    program = arm.compile(ROOT / "test/aarch64/chains.c", f"chains_{shape.replace(' ', '_')}", *SHAPES[shape])
    outcome = profile_of(arm, [program, "3"], ["-cpu", "max"])
    assert (outcome.returncode, outcome.stdout) == (7, "done\n"), outcome.stderr
    stacks = outcome.instance("chains").stacks("samples")
    seen = {chain_in(stack) for stack in stacks if "leaf" in stack}
    # a sample on a stack that is not known yet has its leaf alone, and says so
    assert seen - {("leaf",)} == CHAINS
    assert all(stack[-1] == "_start" for stack in stacks if "main" in stack)


def test_the_heap_is_exact(arm):
    program = arm.compile(ROOT / "test/aarch64/chains.c", "chains", "-O2")
    instance = profile_of(arm, [program, "0"]).instance("chains")
    assert instance.value_of("main", "alloc_space") >= 1 << 17


@pytest.mark.parametrize("name", SAME)
def test_programs_behave_as_without_us(arm, name):
    command = [f"/build/test/programs/{name}", *SAME[name]]
    plain = arm.run(command)
    profiled = arm.run(command, {**SETTINGS, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert (profiled.returncode, profiled.stdout) == (plain.returncode, plain.stdout), profiled.stderr


def test_pythons_functions_are_in_the_stacks(arm):
    code = ("import time\ndef works(): return sum(len(str(i)) for i in range(3000))\n"
            "end = time.process_time() + 3\nwhile time.process_time() < end: works()\nprint('done')")
    outcome = profile_of(arm, ["/usr/bin/python3", "-S", "-c", code])
    assert (outcome.returncode, outcome.stdout) == (0, "done\n"), outcome.stderr
    stacks = outcome.instance("python3").stacks("samples")
    assert any(any("works" in name for name in stack) and "_start" in stack for stack in stacks)
