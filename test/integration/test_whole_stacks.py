"""Marks on stacks are right, and whole stacks have no mark (shim/capture/unwind/stack_end.h)."""

import json
import subprocess

import pytest
from profiled import EXACT_CPU, ROOT

pytestmark = pytest.mark.timing


def test_our_own_work_is_not_the_programs(run, program):
    """Where each allocation is sampled, most of the time is the profiler's. A timer that expires meanwhile comes at
    the end of our system calls: its stack has no function of libc that the program would have called."""
    done = run([program("allocates_always")],
               env={"OTEL_PROFILER_ALLOC_INTERVAL": "256", "OTEL_PROFILER_CPU_FREQUENCY": "999"})
    assert (done.stdout, done.returncode) == ("done\n", 0)
    measured = done.instance("allocates_always")
    stacks = measured.stacks("samples")
    assert "syscall" not in {stack[0] for stack in stacks}
    assert stacks.get(("[libotelprof]",), 0) > 0, "the time is in the profile, as ours"
    assert not [stack for stack in stacks if "[libotelprof]" in stack and len(stack) > 1]


def test_time_that_no_sample_met_is_marked(run, program):
    """Threads of 30 us end between two ticks: all of their time is under their start routine, without a stack."""
    done = run([program("short_threads"), "20000", "30"], timeout=120)
    truth = json.loads(done.stdout)
    measured = done.instance("short_threads")
    unsampled = measured.marked.get(("samples", "otelprof.stack.unsampled"), 0) * measured.period
    assert unsampled > 0.5 * truth["ns"], "few of them were ever met"
    assert measured.whole_share() < 0.5


def test_stacks_that_libunwind_finishes_are_counted(run, program):
    """An ordinary program has none."""
    unusual = run([program("unusual_rule"), "500"]).instance("unusual_rule")
    assert unusual.finished_stacks > 0
    ordinary = run([program("burn"), "500", "4"]).instance("burn")
    assert ordinary.cpu_ns > 0 and ordinary.finished_stacks == 0


# Its only sample is taken at the end of burn().
WITHOUT_TABLES = """
#include "cpu_sample.h"
static volatile unsigned sink;
NOIPA void burn(void) { WORK_FOR(30 * NS_PER_MS); TAKE_CPU_SAMPLE(); sink++; }
NOIPA void middle(void) { burn(); sink++; }
int main(void) { cpu_samples_hold(); middle(); return 0; }
"""
COMPILE = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", f"-I{ROOT / 'test' / 'programs'}", "-fno-asynchronous-unwind-tables"]


def check_stack(measured, *functions):
    """Asserts that the stack with burn() has exactly those functions and those before main(), found by frame
    pointers. One of libc's has a name only where libc's own debug information is installed."""
    (stack,) = [stack for stack in measured.stacks("samples") if "burn" in stack]
    named = tuple(name for name in stack if name != "__libc_start_call_main")
    assert named == (*functions, "__libc_start_main", "_start")
    samples = measured.stacks("samples")[stack]
    assert samples >= 30
    assert measured.marked[("samples", "otelprof.stack.frame_pointers")] == samples, "it depends on them"
    assert ("samples", "otelprof.stack.truncated") not in measured.marked


@pytest.mark.system

def test_code_without_any_tables_is_crossed_by_frame_pointers(run, tmp_path):
    """Free Pascal's programs are such: an object without .eh_frame_hdr that keeps frame pointers."""
    source, job = tmp_path / "job.c", tmp_path / "job"
    source.write_text(WITHOUT_TABLES)
    subprocess.run([*COMPILE, "-fno-omit-frame-pointer", "-no-pie", source, "-Wl,--no-eh-frame-hdr", "-o", job], check=True)
    check_stack(run([job], env=EXACT_CPU).instance("job"), "burn", "middle", "main")


@pytest.mark.system
@pytest.mark.parametrize("flags", [["-fno-omit-frame-pointer"], ["-fomit-frame-pointer"]], ids=["frame pointers", "none"])
def test_a_library_that_was_stripped_of_its_tables_is_crossed(run, tmp_path, flags):
    """The program around it has tables: the walker leaves the library by its instructions."""
    source, library, job = tmp_path / "part.c", tmp_path / "libpart.so", tmp_path / "job"
    source.write_text(WITHOUT_TABLES.replace("int main(void)", "int work(void)"))
    (tmp_path / "job.c").write_text("int work(void); int main(void) { int i = work(); return i; }")
    subprocess.run([part for part in COMPILE if part != "-fno-asynchronous-unwind-tables"] +
                   [*flags, "-shared", "-fPIC", source, "-o", library], check=True)
    subprocess.run(["objcopy", "--update-section", ".eh_frame_hdr=/dev/null", "-R", ".eh_frame", library], check=False)
    subprocess.run(["gcc", "-O1", tmp_path / "job.c", library, f"-Wl,-rpath,{tmp_path}", "-o", job], check=True)
    tables = subprocess.run(["readelf", "--debug-dump=frames", library], capture_output=True, text=True, check=True)
    assert "FDE" not in tables.stdout
    check_stack(run([job], env=EXACT_CPU).instance("job"), "burn", "middle", "work", "main")
