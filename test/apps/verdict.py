"""Judges a program: compares harness.py's results without and with the preload, and the profile with what the program
used."""

import re
import subprocess

from harness import Failure, Work  # finds `profiled`
from profiled import NOT_WHOLE


class Verdict:
    """Holds the results of one program: `problems` is empty if nothing differed."""

    def __init__(self, program):
        self.program = program
        self.skipped = ""
        self.problems = []
        self.compared = 0
        self.processes = 0
        self.descriptors = 0
        self.instances = 0
        self.profiled_s = 0.0
        self.cpu_s = 0.0
        self.whole = None  # share of the profiled CPU time that has a whole stack
        self.not_whole = {}  # what the other stacks lack: the last word of its mark -> share


def differences(plain, profiled):
    for name in sorted(plain.keys() | profiled.keys()):
        without, under = plain.get(name, "nothing"), profiled.get(name, "nothing")
        if without == under:
            continue
        if isinstance(without, dict) and isinstance(under, dict):
            names = sorted(k for k in without.keys() | under.keys() if without.get(k) != under.get(k))
            yield f"{name} differ: {', '.join(names[:10])}"
        else:
            yield f"{name} differs:\n  without: {str(without)[-1500:]}\n  with us: {str(under)[-1500:]}"


# CPU time that our own start and end take in each process is not profiled, and less than a period at
# a thread's end is not sent; but nothing may be counted twice.
COUNTED_TWICE = 1.03
WHOLE = 0.9
PERIOD_S = 1 / 99


# With fewer samples a share means nothing.
ENOUGH_S = 0.5


def judge_stacks(program, instances, verdict):
    """Whole: a signal saw the stack, and its outermost frame has no caller (shim/capture/unwind/stack_end.h). How much
    is unsampled depends on the machine's load, too, and what OTEL_PROFILER_MAX_STACK_DEPTH cuts on the program's
    recursion: all other stacks must be whole on any machine. The table has each share."""
    if not verdict.profiled_s:
        return
    share_of = lambda mark: sum(  # noqa: E731
        instance.marked.get(("samples", mark), 0) * instance.period for instance in instances
    ) / 1e9 / verdict.profiled_s
    verdict.not_whole = {mark.rpartition(".")[2]: share_of(mark) for mark in NOT_WHOLE}
    whole = sum(instance.cpu_total() * instance.whole_share() for instance in instances)
    verdict.whole = whole / 1e9 / verdict.profiled_s
    seen = 1 - verdict.not_whole["unsampled"]
    if seen < program.sampled:
        verdict.problems.append(f"only {seen:.0%} of the CPU time was met by a signal")
    uncut = seen - verdict.not_whole["depth_cut"]
    if verdict.profiled_s * uncut < ENOUGH_S or program.not_whole or not program.profile:
        return
    if verdict.whole < WHOLE * uncut:
        verdict.problems.append(f"only {verdict.whole / uncut:.0%} of the CPU time that was seen has a whole stack")


WRITTEN = re.compile(r"(status|stdout|stderr|files|log|access)\+*$")


def judge_default_settings(program, scratch, plain, verdict):
    """Judges its output and status; descriptors were compared where all parts of the profiler are at work."""
    work = Work(scratch, True, program.ahead(), program.behind(), configured=False)
    try:
        program.drive(work)
    except (Failure, OSError, subprocess.SubprocessError) as error:
        verdict.problems.append(f"could not be run at default settings: {error}")
        return
    finally:
        work.close()
    sides = [{name: value for name, value in seen.items() if WRITTEN.search(name)} for seen in (plain, work.seen)]
    verdict.problems += [f"at default settings {text}" for text in differences(*sides)]


def process_problems(used_s, instances):
    """Returns processes whose profile has less than 97 % of what they used, minus two periods."""
    told = {i.pid: (i.cpu_total() + i.own_cpu_ns) / 1e9 for i in instances}
    for pid, used in used_s.items():
        if told.get(pid, 0) < used * 0.97 - 2 * PERIOD_S:
            yield f"process {pid}: {told.get(pid, 0):.2f} s of {used:.2f} s are in its profile"


def judge_profiles(program, work, verdict):
    instances = work.instances()
    verdict.instances = len(instances)
    verdict.profiled_s = sum(instance.cpu_total() for instance in instances) / 1e9
    verdict.cpu_s = work.cpu_s
    judge_stacks(program, instances, verdict)
    bound = work.cpu_s * COUNTED_TWICE + PERIOD_S * max(len(instances), 1)
    if program.reaps_all and verdict.profiled_s > bound:
        verdict.problems.append(
            f"{verdict.profiled_s:.2f} s were profiled, but only {work.cpu_s:.2f} s used"
        )
    if verdict.profiled_s < work.cpu_s * program.share:
        verdict.problems.append(f"only {verdict.profiled_s:.2f} of {work.cpu_s:.2f} s were profiled")
    nowhere = sum(instance.cpu_of("[anonymous]") for instance in instances) / 1e9
    if nowhere > verdict.profiled_s * program.anonymous:
        verdict.problems.append(f"{nowhere:.2f} of {verdict.profiled_s:.2f} s were in no known object")
    verdict.problems += process_problems(work.used_s, instances)
    wanted = program.profile
    if not wanted:
        return
    names = [instance.executable for instance in instances if instance.cpu_total() > 0]
    if not any(name.startswith(wanted) for name in names):
        verdict.problems.append(f"no CPU profile of {wanted} arrived, only of {sorted(set(names))}")
    if work.looks and not work.helpers:
        verdict.problems.append("no process had the exporter loaded at its gate")


def compare(program, scratch, control=False):
    """Runs a catalogue entry without and with the preload; returns a Verdict. `control`: twice without."""
    verdict = Verdict(program)
    seen = []
    for profiled in (False, not control):
        work = Work(scratch, profiled, program.ahead(), program.behind())
        try:
            program.drive(work)
        except (Failure, OSError, subprocess.SubprocessError) as error:
            verdict.problems.append(f"could not be run {'with' if profiled else 'without'} us: {error}")
            if not profiled:
                return verdict
        finally:
            work.close()
        seen.append(work.seen)
    if verdict.problems:  # parts that it did not reach are no difference
        seen[0] = {name: value for name, value in seen[0].items() if name in seen[1]}
    verdict.problems += differences(*seen)
    verdict.compared = len(seen[0])
    lists = "\n".join(v for k, v in seen[0].items() if k.startswith("descriptors")).splitlines()
    verdict.processes = len(lists)
    verdict.descriptors = sum(line.count("=") for line in lists)
    if not control:
        judge_profiles(program, work, verdict)
    if not control and not verdict.problems:
        judge_default_settings(program, scratch, seen[0], verdict)
    return verdict
