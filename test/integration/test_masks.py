"""Threads that block signals, as the workers of most servers do, have stacks in the profile, and see nothing of it."""

import os
import re

import pytest
from profiled import AWAITED, EXACT_CPU, START_NS

pytestmark = pytest.mark.fast

FAST = {"OTEL_PROFILER_CPU_FREQUENCY": "4000"}
PATIENT = 300  # seconds; enough on a machine that does a hundred other things


def has_stacks(measured, name):
    """Returns whether `name` has stacks of its work: time without a stack ends in a thread's start routine."""
    return any(stack and stack[0] == name for stack in measured.stacks("samples"))


def test_threads_that_block_every_signal_have_stacks(run, program):
    """The threads inherit the mask or set it."""
    plain = run([program("blocked_signals")], PATIENT, profiled=False)
    profiled = run([program("blocked_signals")], PATIENT, env=EXACT_CPU)
    assert profiled.stdout == plain.stdout
    measured = profiled.instance("blocked_signals")
    for name in ("burn_inheriting", "burn_blocking"):
        assert measured.cpu_of(name) == pytest.approx(40e6, abs=START_NS), name
        assert has_stacks(measured, name), measured.stacks("samples")


def test_a_program_sees_the_masks_that_it_set(run, program):
    """This covers the program itself, its handlers and contexts, its threads, its children and what they execute; no
    signal of ours is ever pending."""
    plain = run([program("masks_seen")], PATIENT, profiled=False)
    profiled = run([program("masks_seen")], PATIENT, env=FAST)
    assert len(plain.stdout.splitlines()) > 90, plain.stdout
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, plain.returncode)


def test_no_call_of_a_thread_that_blocks_every_signal_is_interrupted(run, program):
    """Such a thread never gets EINTR without the profiler, and its authors rely on that: 24 calls between work."""
    plain = run([program("no_eintr"), "masked"], PATIENT, profiled=False)
    profiled = run([program("no_eintr"), "masked"], PATIENT, env=FAST)
    assert plain.stdout.count(": waited, 0 interrupted\n") == len(plain.stdout.splitlines()) == 24
    assert profiled.stdout == plain.stdout
    assert has_stacks(profiled.instance("no_eintr"), "burn_for_long"), "it was being sampled"


def test_a_thread_that_is_interrupted_all_the_same_is_sampled_no_more(run, program):
    """io_uring_enter runs a timer's late work in the middle of its wait (docs/compatibility.md): one wait may be
    interrupted."""
    env = {**FAST, "OTEL_LOG_LEVEL": "debug"}
    profiled = run([program("no_eintr"), "ring"], PATIENT, env=env, log_to_stderr=True)
    interrupted = int(re.fullmatch(r"io_uring_enter: waited, (\d+) interrupted\n", profiled.stdout)[1])
    assert interrupted <= 1
    assert interrupted == 0 or "otelprof.dropped.signal_blocked: " in profiled.stderr


# The disposition and the mask of SIGPROF survive exec: these are there before main.
STARTS = {
    "ignored": "signal.signal(signal.SIGPROF, signal.SIG_IGN)",
    "blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF])",
    "all blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
}


@pytest.mark.parametrize("inherited", STARTS)
@pytest.mark.parametrize("mode", ["spared", "main"])
def test_inherited_signal_settings_cost_no_stacks(run, program, inherited, mode):
    """HAProxy does so after a reload: its workers do not block SIGPROF, which its master ignores."""
    code = f"import os, signal, sys\n{STARTS[inherited]}\nos.execv(sys.argv[1], sys.argv[1:])"
    outcome = run(["/usr/bin/python3", "-c", code, program("masked"), mode], PATIENT, env=EXACT_CPU)
    assert (outcome.stdout, outcome.returncode) == ("done\n", 0), outcome.stderr
    measured = outcome.instance("masked")
    assert has_stacks(measured, f"burn_{mode}"), measured.stacks("samples")
    assert measured.cpu_of(f"burn_{mode}") == pytest.approx(40e6, abs=START_NS)


def used_of(outcome):
    """Returns the nanoseconds that the program's thread has printed."""
    assert outcome.returncode == 0, outcome.stderr
    used, done = outcome.stdout.splitlines()
    assert done == "done"
    return int(used)


def test_a_mask_set_behind_our_back_is_noticed(run, program, tmp_path):
    """The mask is set by an instruction of the program's own, or in a signal's frame; it is noticed by the next
    export."""
    outcome = run([program("masked"), "partly"], PATIENT, cwd=tmp_path, env=EXACT_CPU | AWAITED)
    used = used_of(outcome)
    measured = outcome.instance("masked")
    assert measured.cpu_of("partly") == pytest.approx(used, abs=START_NS)
    assert has_stacks(measured, "burn_partly"), measured.stacks("samples")


def test_a_thread_that_blocks_libcs_signals_too_is_reported(run, program, tmp_path):
    """Only a system call of its own can block these: the thread has no stacks, its time is not lost, and a line
    reports it once where that disturbs no program."""
    env = EXACT_CPU | AWAITED | {"OTEL_LOG_LEVEL": "debug"}
    outcome = run([program("masked"), "wholly"], PATIENT, cwd=tmp_path, env=env, log_to_stderr=True)
    used = used_of(outcome)
    assert outcome.stderr.count("debug: otelprof.dropped.signal_blocked: 1 so far") == 1, outcome.stderr
    assert outcome.instance("masked").cpu_of("wholly") == pytest.approx(used, abs=START_NS)


@pytest.mark.system
@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_every_thread_follows_a_change_of_user(run, program):
    """libc reaches the threads by the signal that samples them."""
    outcome = run([program("masked"), "ids"], PATIENT, env=FAST)
    assert (outcome.stdout, outcome.returncode) == ("done\n", 0), outcome.stderr
