"""CPU profiles against what the programs measured of themselves."""

import json
import math

import pytest
from profiled import EXACT_CPU
from sampling_theory import bound

pytestmark = pytest.mark.timing

PERIOD_NS = 1e9 / 99
NOT_ALLOWED = 77  # of programs/reused_id.c


def work_stacks(measured):
    """What was inlined is shown within its caller; what tail-called is on no stack."""
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
    """To the period of 1 ms for each burst, at whose end the only sample is."""
    profiled = run([program("cpu_shares"), threads, rounds, "sampled"], env=EXACT_CPU)
    assert profiled.returncode == 0
    measured = profiled.instance("cpu_shares")
    for name, nanoseconds in json.loads(profiled.stdout)["functions"].items():
        assert measured.cpu_of(name) == pytest.approx(nanoseconds, abs=threads * rounds * 2e6), name
    work_stacks(measured)


def test_shares(run, program):
    """By the real timers: shares as sampling theory allows, total within 2 % of getrusage.

    Bursts are 40 to 160 ms and samples carry the time since the one before, so each burst's edges
    err by about 4 ms each (one standard deviation). Where the kernel checks timers more seldom, a
    sample is worth more, and an edge errs by more.
    """
    threads, rounds = 4, 5
    profiled = run([program("cpu_shares"), threads, rounds])
    truth = json.loads(profiled.stdout)
    assert profiled.returncode == 0
    measured = profiled.instance("cpu_shares")
    total = measured.cpu_total()
    burnt = sum(truth["functions"].values())
    edges = 2 * threads * rounds  # of a function
    error = 100 * math.sqrt(edges) * 4e6 * measured.mean_gap() / burnt
    for name, nanoseconds in truth["functions"].items():
        share = 100 * measured.cpu_of(name) / total
        expected = 100 * nanoseconds / burnt
        assert abs(share - expected) < bound(4) * error, f"{name}: {share:.2f} % instead of {expected:.2f} %, error {error:.2f}"
    # The helper's own CPU is in getrusage, and is not the application's; it is told apart.
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
    """A thread that lives at the end is counted once, though one before it had its id."""
    done = run([program("reused_id")])
    if done.returncode == NOT_ALLOWED:
        pytest.skip("the kernel may not be told which id a thread gets")
    assert done.returncode == 0
    truth = int(done.stdout)
    assert done.instance("reused_id").cpu_total() < 1.5 * truth, "counted twice"


def test_short_threads(run, program):
    """2,000 threads that live 2 ms: most end between two ticks, none may be lost."""
    profiled = run([program("short_threads"), "2000"])
    truth = json.loads(profiled.stdout)
    measured = profiled.instance("short_threads")
    expected = truth["ns"] + truth["main_ns"]
    assert measured.cpu_total() == pytest.approx(expected, rel=0.05)
    assert measured.cpu_of("run") > 0.9 * truth["ns"], "found where it was burnt"


def test_very_short_threads(run, program):
    """20,000 that live 30 us, which no tick ever meets; memory follows the live ones alone."""
    profiled = run([program("short_threads"), "20000", "30"])
    truth = json.loads(profiled.stdout)
    measured = profiled.instance("short_threads")
    assert measured.cpu_of("run") == pytest.approx(truth["ns"], rel=0.15)


def test_frequency_does_not_change_the_total(run, program):
    """Above the kernel's tick rate signals come late; the clock says what they are worth."""
    profiled = run(
        [program("cpu_shares"), "1", "3"], env={"OTEL_PROFILER_CPU_FREQUENCY": "999"}
    )
    truth = json.loads(profiled.stdout)
    total = profiled.instance("cpu_shares").cpu_total()
    assert total == pytest.approx(truth["rusage"] - truth["helper"], rel=0.03)


def test_dear_samples_slow_the_rate_and_not_the_program(run, program):
    """At 4,000 Hz a cold stack of a thousand frames would take more time than there is."""
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
