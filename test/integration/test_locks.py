"""Locks: how often one was taken when a thread wanted it, for how long the thread waited, and who held it."""

from collections import Counter
from dataclasses import dataclass

import pytest
from attributed_samples import attributed_samples

TYPES = {"OTEL_PROFILER_TYPES": "lock"}
# Of test/programs/holds_locks.c: those whose holder the lock itself does not say.
SILENT = {"behind_reader", "spinning", "word"}


@dataclass
class Held:
    lock: str
    turns: int
    at_least: int  # ns
    at_most: int


def held_locks(text):
    rows = (line.split() for line in text.splitlines())
    return {name: Held(lock, int(turns), int(least), int(most)) for name, lock, turns, least, most in rows}


@pytest.fixture
def held(run, program):
    outcome = run([program("holds_locks")], env=TYPES)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    locks = held_locks(outcome.stdout)
    assert len(locks) == 20
    return outcome, locks


def test_each_kind_of_lock_is_told_as_often_and_as_long_as_it_was_waited_for(held):
    outcome, locks = held
    counts, delays = Counter(), Counter()
    for sample in attributed_samples(outcome, "contentions", "delay"):
        sums = counts if sample.kind == "contentions" else delays
        sums[next(name for name in sample.stack if name.startswith("waits_for_"))] += sample.value
    for name, lock in locks.items():
        function = f"waits_for_{name}"
        assert counts[function] == lock.turns, name
        assert lock.at_least <= delays[function] <= lock.at_most, name


def test_a_contention_says_which_lock_and_which_thread_holds_it(held):
    outcome, locks = held
    for sample in attributed_samples(outcome, "delay"):
        name = next(name for name in sample.stack if name.startswith("waits_for_")).removeprefix("waits_for_")
        assert sample.attributes["otelprof.wait.kind"] == "lock"
        assert sample.attributes["otelprof.lock.address"] == locks[name].lock
        assert sample.attributes["thread.name"] == "waiter"
        assert ("otelprof.lock.holder.thread.id" in sample.attributes) == (name not in SILENT), name
        assert sample.attributes.get("otelprof.lock.holder.thread.name") == (
            None if name in SILENT else "holder"), name


def test_a_lock_that_is_free_or_the_threads_own_is_no_contention(held):
    """Recursive and error-checking mutexes among them, and read-write locks that others read."""
    outcome, _ = held
    names = {name for sample in attributed_samples(outcome, "contentions") for name in sample.stack}
    assert not names & {"takes_free_locks", "takes_own_locks"}


@pytest.mark.parametrize("types", ["cpu,alloc,heap", "off_cpu,threads"])
def test_without_the_type_no_contention_is_told(run, program, types):
    outcome = run([program("holds_locks")], env={"OTEL_PROFILER_TYPES": types})
    assert outcome.returncode == 0, outcome.stderr
    assert attributed_samples(outcome, "contentions", "delay") == []


@pytest.mark.parametrize("types", ["off_cpu,lock", "all"])
def test_the_first_export_after_a_deadlock_shows_stacks_locks_and_holders(run, program, types):
    # no export comes by itself before the one that the program asks for
    env = {"OTEL_PROFILER_TYPES": types, "OTEL_PROFILE_EXPORT_INTERVAL": "3600000"}
    outcome = run([program("deadlocks")], env=env)
    assert outcome.returncode == 0, outcome.stderr
    left, right, own = outcome.stdout.split()
    first = {name: sample.attributes for sample in attributed_samples(outcome, "off_cpu") if sample.export == 0
             for name in sample.stack}
    for wants, lock, holder, stack in (
        ("wants_right", right, "holds-right", "holds_right;wants_left"),
        ("wants_left", left, "holds-left", "holds_left;wants_right"),
        ("wants_own", own, "holds-own", "holds_own;wants_own"),
    ):
        assert first[wants]["otelprof.wait.kind"] == "lock"
        assert first[wants]["otelprof.lock.address"] == lock
        assert first[wants]["otelprof.lock.holder.thread.name"] == holder
        assert stack in first[wants]["otelprof.lock.holder.stack"]


@pytest.mark.parametrize("mode", ["results", "in_handler", "leaves_handler", "forks_in_wait", "cancelled", "in_vfork"])
def test_waits_end_as_they_do_without_us(run, program, mode):
    """In handlers, in children of fork and vfork, left by a jump, cancelled; errno and results."""
    plain = run([program("locks_oddly"), mode], profiled=False)
    assert plain.returncode == 0
    profiled = run([program("locks_oddly"), mode], env={
        "OTEL_PROFILER_TYPES": "all", "OTEL_PROFILER_LOCK_INTERVAL": "1", "OTEL_PROFILER_WAIT_FREQUENCY": "199",
        "OTEL_PROFILER_CPU_FREQUENCY": "999", "OTEL_PROFILER_ALLOC_INTERVAL": "1"})
    assert (profiled.returncode, profiled.stdout, profiled.stderr) == (0, plain.stdout, "")
