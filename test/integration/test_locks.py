"""Lock profiles count how often a thread wanted a lock that was taken, how long the thread waited, and which thread
held the lock."""

import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

import allocators
import pytest
from attributed_samples import attributed_samples
from profiled import LIBRARY, ROOT

sys.path.insert(0, str(ROOT / "test" / "heap"))

from heap import random_heap  # noqa: E402

TYPES = {"OTEL_PROFILER_TYPES": "lock"}
# Functions of test/programs/holds_locks.c that wait for locks which do not name their holder.
SILENT = {"behind_reader", "spinning", "word"}

RUST = """
use std::sync::{Arc, Mutex, atomic::{AtomicU32, Ordering}};
use std::{fs, thread, time::Duration};

#[inline(never)] #[no_mangle]
fn waits_for_rust(lock: &Mutex<u32>) { *lock.lock().unwrap() += 1; }

fn sleeps(tid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
    text.rsplit(')').next().unwrap_or("").starts_with(" S")
}

fn own_id() -> u32 { fs::read_link("/proc/thread-self").unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap() }

fn main() {
    let lock = Arc::new(Mutex::new(0));
    for _ in 0..3 {
        let held = lock.lock().unwrap();
        let id = Arc::new(AtomicU32::new(0));
        let (other, its_id) = (lock.clone(), id.clone());
        let waiter = thread::spawn(move || { its_id.store(own_id(), Ordering::SeqCst); waits_for_rust(&other) });
        while id.load(Ordering::SeqCst) == 0 || !sleeps(id.load(Ordering::SeqCst)) { thread::yield_now() }
        thread::sleep(Duration::from_millis(60));
        drop(held);
        waiter.join().unwrap();
    }
}
"""


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


def test_each_kind_of_lock_has_its_number_and_time_of_waits(held):
    outcome, locks = held
    counts, delays = Counter(), Counter()
    for sample in attributed_samples(outcome, "contentions", "delay"):
        sums = counts if sample.kind == "contentions" else delays
        sums[next(name for name in sample.stack if name.startswith("waits_for_"))] += sample.value
    for name, lock in locks.items():
        function = f"waits_for_{name}"
        assert counts[function] == lock.turns, name
        assert lock.at_least <= delays[function] <= lock.at_most, name


def test_a_contention_names_its_lock_and_the_holder(held):
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
    """This covers recursive and error-checking mutexes, and read-write locks that other threads read."""
    outcome, _ = held
    names = {name for sample in attributed_samples(outcome, "contentions") for name in sample.stack}
    assert not names & {"takes_free_locks", "takes_own_locks"}


@pytest.mark.parametrize("hook, most", [("lock_pthread_mutex_lock", 4), ("lock_mtx_lock", 4),
                                        ("lock_pthread_rwlock_rdlock", 4), ("lock_pthread_rwlock_wrlock", 4)])
def test_a_free_lock_costs_a_load_and_a_jump(hook, most):
    """The hook uses no frame, no call, and no memory of the thread's: so it may be called from anywhere."""
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={hook}", LIBRARY]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    code = [line.split("\t")[1] for line in text.splitlines() if line.startswith(" ") and "\t" in line]
    jump = next(i for i, instruction in enumerate(code) if re.match(r"(bnd )?jmp +\*", instruction))
    assert jump < most, code[:jump + 1]
    assert not [instruction for instruction in code[:jump] if re.match(r"push|call|sub +.*rsp", instruction)]


@pytest.mark.parametrize("types", ["cpu,alloc,heap", "off_cpu,threads"])
def test_without_the_type_no_contention_is_reported(run, program, types):
    outcome = run([program("holds_locks")], env={"OTEL_PROFILER_TYPES": types})
    assert outcome.returncode == 0, outcome.stderr
    assert attributed_samples(outcome, "contentions", "delay") == []


def contentions_of(outcome):
    """Returns (function, lock) -> number of waits."""
    found = Counter()
    for sample in attributed_samples(outcome, "contentions"):
        function = next(name for name in sample.stack if name.startswith("waits_for_")).removeprefix("waits_for_")
        found[function, sample.attributes["otelprof.lock.address"]] += sample.value
    return found


def test_locks_of_c_plus_plus_are_reported_and_its_semaphores_are_none(run, program):
    outcome = run([program("holds_cpp_locks")], env=TYPES)
    assert outcome.returncode == 0, outcome.stderr
    rows = [line.split() for line in outcome.stdout.splitlines()]
    assert {name for name, _, _ in rows} >= {"plain", "timed", "shared_reader", "semaphore", "number"}
    assert contentions_of(outcome) == {(name, lock): int(turns) for name, lock, turns in rows if lock != "0x0"}


@pytest.mark.system
def test_a_mutex_of_rust_is_a_lock(run, tmp_path):
    """Its futex is waited for by syscall(), as in Drepper's paper."""
    if not shutil.which("rustc"):
        pytest.skip("there is no rustc, so no lock of Rust is LOOKED AT")
    (tmp_path / "locks.rs").write_text(RUST)
    subprocess.run(["rustc", "-g", "-O", "-o", tmp_path / "rust_locks", tmp_path / "locks.rs"], check=True)
    outcome = run([tmp_path / "rust_locks"], env=TYPES)
    assert outcome.returncode == 0, outcome.stderr
    assert sum(contentions_of(outcome).values()) == 3


def test_a_futex_that_counts_is_no_lock(run, program):
    """The futex's count has come to the value that waiters of locks expect."""
    outcome = run([program("counts_wakes")], env={"OTEL_PROFILER_TYPES": "off_cpu,lock"})
    assert outcome.returncode == 0, outcome.stderr
    kinds = {sample.attributes["otelprof.wait.kind"] for sample in attributed_samples(outcome, "off_cpu")
             if "waits_for_work" in sample.stack}
    assert kinds == {"futex"}
    assert not attributed_samples(outcome, "contentions")


@pytest.mark.parametrize("types", ["off_cpu,lock", "all"])
def test_the_first_export_after_a_deadlock_shows_stacks_locks_and_holders(run, program, types):
    # no export comes by itself before the one that the program requests
    env = {"OTEL_PROFILER_TYPES": types, "OTEL_PROFILE_EXPORT_INTERVAL": "86400000"}
    outcome = run([program("deadlocks")], env=env)
    assert outcome.returncode == 0, outcome.stderr
    left, right, own = outcome.stdout.split()
    # a wait may have begun before its holder's: that part of the wait is recorded without the holder's stack
    seen = sorted(attributed_samples(outcome, "off_cpu"), key=lambda sample: "otelprof.lock.holder.stack" in sample.attributes)
    first = {name: sample.attributes for sample in seen if sample.export == 0 for name in sample.stack}
    for wants, lock, holder, stack in (
        ("wants_right", right, "holds-right", "holds_right;wants_left"),
        ("wants_left", left, "holds-left", "holds_left;wants_right"),
        ("wants_own", own, "holds-own", "holds_own;wants_own"),
    ):
        assert first[wants]["otelprof.wait.kind"] == "lock"
        assert first[wants]["otelprof.lock.address"] == lock
        assert first[wants]["otelprof.lock.holder.thread.name"] == holder
        assert stack in first[wants]["otelprof.lock.holder.stack"]


def test_locks_inside_an_allocator_are_taken_as_without_us(run):
    """jemalloc has one arena for eight threads: our hooks run inside of malloc."""
    command = random_heap(50_000, 1, "jemalloc")
    plain = run(command, profiled=False)
    assert plain.returncode == 0, plain.stderr
    profiled = run(command, env={
        "LD_PRELOAD": f"{LIBRARY} {allocators.PATHS['jemalloc']}", "MALLOC_CONF": "narenas:1,tcache:false",
        "OTEL_PROFILER_TYPES": "all", "OTEL_PROFILER_LOCK_INTERVAL": "1", "OTEL_PROFILER_ALLOC_INTERVAL": "4096"})
    assert (profiled.returncode, profiled.stdout) == (0, plain.stdout)


@pytest.mark.parametrize("mode", ["results", "in_handler", "leaves_handler", "forks_in_wait", "cancelled", "in_vfork"])
def test_waits_end_as_they_do_without_us(run, program, mode):
    """Waits end in handlers, in children of fork and vfork, by a jump, by cancellation; with the same errno and
    results."""
    plain = run([program("locks_oddly"), mode], profiled=False)
    assert plain.returncode == 0
    profiled = run([program("locks_oddly"), mode], env={
        "OTEL_PROFILER_TYPES": "all", "OTEL_PROFILER_LOCK_INTERVAL": "1", "OTEL_PROFILER_WAIT_FREQUENCY": "199",
        "OTEL_PROFILER_CPU_FREQUENCY": "999", "OTEL_PROFILER_ALLOC_INTERVAL": "1"})
    assert (profiled.returncode, profiled.stdout, profiled.stderr) == (0, plain.stdout, "")


@pytest.mark.timing
def test_a_wait_is_reported_with_the_holders_place_at_that_time(run, program):
    outcome = run([program("holder_moves")], env={"OTEL_PROFILER_TYPES": "off_cpu"})
    assert outcome.returncode == 0, outcome.stderr
    waits = [it for it in attributed_samples(outcome, "off_cpu") if "waits_for_lock" in it.stack]
    for place in ("holds_in_one_place", "holds_in_another"):
        there = sum(it.value for it in waits if place in it.attributes.get("otelprof.lock.holder.stack", ""))
        assert there > 0.3e9, (place, waits)
