"""CPU profiles agree with what the programs measured of themselves."""

import json
import math

import pytest
from profiled import EXACT_CPU
from sampling_theory import bound

pytestmark = pytest.mark.timing

PERIOD_NS = 1e9 / 99
NOT_ALLOWED = 77  # status of programs/reused_id.c


def work_stacks(measured):
    """Returns the stacks of work: an inlined function is shown within its caller, a tail-called one replaces its
    caller."""
    for stack in measured.stacks("samples"):
        assert "enter_40" not in stack
        if "inlined_helper" in stack:
            assert stack.index("burn_30") == stack.index("inlined_helper") + 1
        for name in ("burn_10", "burn_20", "burn_30", "burn_40"):
            if name in stack:
                assert stack[stack.index(name) + 1] == "work", "called by work(), or jumped to from it"
                assert stack.count(name) == 1


@pytest.mark.fast
@pytest.mark.parametrize("threads, rounds", [(1, 4), (4, 2), (16, 1)])
def test_samples_have_the_time_since_the_one_before(run, program, threads, rounds):
    """Each burst has one sample at its end, so its time is exact to the period of 1 ms."""
    profiled = run([program("cpu_shares"), threads, rounds, "sampled"], env=EXACT_CPU)
    assert profiled.returncode == 0
    measured = profiled.instance("cpu_shares")
    for name, nanoseconds in json.loads(profiled.stdout)["functions"].items():
        assert measured.cpu_of(name) == pytest.approx(nanoseconds, abs=threads * rounds * 2e6), name
    work_stacks(measured)


def test_shares(run, program):
    """With real timers, shares deviate as sampling theory allows, and the total is within 2 % of getrusage.

    Bursts are 40 to 160 ms and samples carry the time since the sample before, so each burst's edges err by about 4
    ms each (one standard deviation). Where the kernel checks timers less often, a sample is worth more, and an edge
    errs by more.
    """
    threads, rounds = 4, 5
    profiled = run([program("cpu_shares"), threads, rounds])
    truth = json.loads(profiled.stdout)
    assert profiled.returncode == 0
    measured = profiled.instance("cpu_shares")
    total = measured.cpu_total()
    burnt = sum(truth["functions"].values())
    edges = 2 * threads * rounds  # edges of a function's bursts
    error = 100 * math.sqrt(edges) * 4e6 * measured.mean_gap() / burnt
    for name, nanoseconds in truth["functions"].items():
        share = 100 * measured.cpu_of(name) / total
        expected = 100 * nanoseconds / burnt
        assert abs(share - expected) < bound(4) * error, f"{name}: {share:.2f} % instead of {expected:.2f} %, error {error:.2f}"
    # The helper's own CPU time is in getrusage, and is not the application's; the profile separates it.
    assert 0 < measured.own_cpu_ns <= truth["helper"] * 1.5 + 5e7
    expected = truth["rusage"] - truth["helper"]
    assert total == pytest.approx(expected, rel=0.02), (
        f"total {total / 1e9:.3f} s, getrusage {truth['rusage'] / 1e9:.3f} s, of it the helper "
        f"{truth['helper'] / 1e9:.3f} s"
    )
    assert measured.cpu_of("inlined_helper") > 0.8 * measured.cpu_of("burn_30")
    work_stacks(measured)


@pytest.mark.system
def test_an_id_is_given_anew(run, program):
    """A thread that lives at the end is counted once, though an earlier thread had its id."""
    done = run([program("reused_id")])
    if done.returncode == NOT_ALLOWED:
        pytest.skip("the kernel may not be told which id a thread gets")
    assert done.returncode == 0
    truth = int(done.stdout)
    assert done.instance("reused_id").cpu_total() < 1.5 * truth, "counted twice"


def test_short_threads(run, program):
    """2,000 threads live for 2 ms: most end between two ticks, and none may be lost."""
    profiled = run([program("short_threads"), "2000"])
    truth = json.loads(profiled.stdout)
    measured = profiled.instance("short_threads")
    expected = truth["ns"] + truth["main_ns"]
    assert measured.cpu_total() == pytest.approx(expected, rel=0.05)
    assert measured.cpu_of("run") > 0.9 * truth["ns"], "found where it was burnt"


def test_very_short_threads(run, program):
    """20,000 threads live for 30 us, and no tick ever meets them; memory depends on the live threads alone."""
    profiled = run([program("short_threads"), "20000", "30"])
    truth = json.loads(profiled.stdout)
    measured = profiled.instance("short_threads")
    assert measured.cpu_of("run") == pytest.approx(truth["ns"], rel=0.15)


def test_frequency_does_not_change_the_total(run, program):
    """Above the kernel's tick rate signals come late; the clock gives their worth."""
    profiled = run(
        [program("cpu_shares"), "1", "3"], env={"OTEL_PROFILER_CPU_FREQUENCY": "999"}
    )
    truth = json.loads(profiled.stdout)
    total = profiled.instance("cpu_shares").cpu_total()
    assert total == pytest.approx(truth["rusage"] - truth["helper"], rel=0.03)


def test_dear_samples_slow_the_rate_and_not_the_program(run, program):
    """At 4,000 Hz, walking a cold stack of a thousand frames would take longer than the sampling period."""
    outcome = run(
        [program("costly_samples"), "2000", program("throw_1.so")],
        env={"OTEL_PROFILER_CPU_FREQUENCY": "4000", "OTEL_PROFILER_MAX_STACK_DEPTH": "1024",
             "OTEL_LOG_LEVEL": "debug"},
        log_to_stderr=True,
    )
    assert (outcome.stdout, outcome.returncode) == ("done\n", 0)
    assert "the rate of the threads concerned is lowered" in outcome.stderr
    measured = outcome.instance("costly_samples")
    assert measured.cpu_of("at_the_bottom") == pytest.approx(2e9, rel=0.05), "nothing is lost by it"
