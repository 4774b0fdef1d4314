"""CPU time of children is in an export of their own, or counted as lost, by the kernel's account."""

import pytest
from profiled import EXACT_CPU, START_NS

pytestmark = pytest.mark.fast

# Children of this test live too short for an export, its programs do not.
LIFETIME = {"OTEL_PROFILER_MIN_LIFETIME": "400", "OTEL_PROFILER_CPU_FREQUENCY": "1000"}
SHORT = 20
LONG = 4
# With a child of each, these are fewer than the slots between two exports (CHILD_SLOTS).
FITTING = 10


def instances_of(outcome):
    """Returns the program's own instance, its children's, and the children's CPU time by the kernel's account."""
    pid, used, *_ = (int(number) for number in outcome.stdout.split())
    instances = outcome.instances()
    parent = next(i for i in instances if i.pid == pid)
    return parent, [i for i in instances if i is not parent], used


@pytest.mark.parametrize("way", ["exits", "killed", "execs", "spawned"])
def test_cpu_time_of_children_is_in_exports_or_counted_as_lost(run, program, way):
    outcome = run([program("short_children"), way, str(SHORT), "60"], env=LIFETIME)
    parent, children, used = instances_of(outcome)
    exported = sum(child.cpu_ns + child.own_cpu_ns for child in children)  # from children that a busy machine let live longer
    assert used >= SHORT * 60e6
    assert parent.short_child_ns + exported == pytest.approx(used, abs=(1 + len(children)) * START_NS)
    assert parent.dropped.get("short_child", 0) == parent.short_child_ns // 1_000_000_000


@pytest.mark.parametrize(
    "way", ["leaves", "leaves_killed", "leaves_terminated", "leaves_rights", "leaves_exec", "leaves_child"])
def test_children_that_end_before_they_have_a_helper_are_exported_by_their_parent(run, program, way):
    """Each under its own id, with its functions; what is exported and what is lost add up to the kernel's account."""
    outcome = run([program("short_children"), way, str(FITTING), "60"], env=LIFETIME)
    parent, children, used = instances_of(outcome)
    ids = {int(number) for number in outcome.stdout.split()[2:]}
    exported = sum(child.cpu_ns + child.own_cpu_ns for child in children)
    assert len(ids) == FITTING and ids <= {child.pid for child in children}
    for child in children:
        assert child.executable == "short_children"
        if child.pid in ids:
            assert child.cpu_ns > 0 and "child_computes" in child.names()
    assert parent.short_child_ns + exported == pytest.approx(used, abs=(2 + len(children)) * START_NS)


def test_children_that_find_no_slot_are_counted_as_lost(run, program):
    """There is room for 32 children between two exports; the kernel's account has the CPU time of all."""
    slots, more = 32, 12
    outcome = run([program("short_children"), "leaves", str(slots + more), "60"], env=LIFETIME)
    parent, children, used = instances_of(outcome)
    ids = {int(number) for number in outcome.stdout.split()[2:]}
    exported = {child.pid for child in children}
    assert len(ids) == slots + more and used >= len(ids) * 60e6
    assert len(ids & exported) >= slots
    assert parent.short_child_ns >= len(ids - exported) * 60e6
    assert parent.dropped.get("short_child", 0) == parent.short_child_ns // 1_000_000_000


PYTHON = """
import os, signal, time
def child_of_python():
    end = time.process_time() + 0.06
    while time.process_time() < end:
        sum(range(1000))
while 'memfd:libotelprof' not in open('/proc/self/maps').read():
    os.sched_yield()
ids = []
for _ in range(5):
    child = os.fork()
    if not child:
        child_of_python()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    ids.append(child)
print(*ids)
"""


def test_functions_of_python_have_their_names_in_children_that_end_before_they_have_a_helper(run):
    outcome = run(["/usr/bin/python3", "-S", "-c", PYTHON], env=LIFETIME)
    assert outcome.returncode == 0, outcome.stderr
    instances = {instance.pid: instance for instance in outcome.instances()}
    for number in outcome.stdout.split():
        assert "child_of_python" in instances[int(number)].names()


# Its child runs another program until this one ends.
EXECUTES = """
import os, time
def child_of_python():
    end = time.process_time() + 0.06
    while time.process_time() < end:
        sum(range(1000))
while 'memfd:libotelprof' not in open('/proc/self/maps').read():
    os.sched_yield()
until_end, ends = os.pipe()
until_exec, executes = os.pipe()
child = os.fork()
if not child:
    child_of_python()
    os.dup2(until_end, 0)
    os.execv("/bin/cat", ["cat"])
os.close(executes)
os.read(until_exec, 1)
print(child)
"""


def test_samples_of_a_child_that_runs_another_program_do_not_wait_for_its_end(run):
    outcome = run(["/usr/bin/python3", "-S", "-c", EXECUTES], env=LIFETIME)
    assert outcome.returncode == 0, outcome.stderr
    of_child = [i for i in outcome.instances() if i.pid == int(outcome.stdout)]
    assert any("child_of_python" in instance.names() for instance in of_child)


@pytest.mark.parametrize("way", ["exits", "execs", "spawned", "between"])
def test_cpu_time_of_children_that_export_is_not_counted_as_lost(run, program, way):
    outcome = run([program("short_children"), way, str(LONG), "300"], env=EXACT_CPU)
    parent, children, used = instances_of(outcome)
    assert len(children) == (2 * LONG if way == "between" else LONG)
    assert used >= LONG * 300e6
    for instance in [parent, *children]:
        assert instance.short_child_ns <= (2 * LONG if instance is parent else 1) * START_NS


def test_a_child_whose_helper_starts_before_its_parents_is_not_counted_as_lost(run, program):
    outcome = run([program("short_children"), "early", "1", "300"], env={**EXACT_CPU, "OTEL_PROFILER_MIN_LIFETIME": "1500"})
    parent, children, used = instances_of(outcome)
    assert len(children) == 1 and used >= 300e6
    assert parent.short_child_ns <= 2 * START_NS


def test_a_child_that_overwrites_what_it_shares_changes_only_this_count(run, program):
    """Whatever the child writes there, no more is counted as lost than the kernel reports."""
    outcome = run([program("short_children"), "garbage", str(LONG), "50"], env={**EXACT_CPU, "OTEL_PROFILE_EXPORT_INTERVAL": "50"})
    assert outcome.returncode == 0, outcome.stderr
    parent, _, used = instances_of(outcome)
    assert parent.short_child_ns <= used and parent.cpu_ns > 0
