"""OTEL_PROFILER_MAX_OVERHEAD lowers rates that would cost too much, and sums stay right."""

import json
import math
import re

import pytest
from endpoint import Process
from profiled import BUILD, Outcome
from sampling_theory import Comparison
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.timing

SIZES = range(16, 1016)  # sizes in test/programs/allocates_much.c, each as often
# these settings keep the process cheap, and have its rates checked often
DEAR = {"OTEL_PROFILER_MAX_OVERHEAD": "1", "OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_CPU_FREQUENCY": "4000",
        "OTEL_PROFILER_SYMBOLS": "functions", "OTEL_PROFILE_EXPORT_INTERVAL": "1000"}
THREADS = 2


class Running:
    """Runs a program that allocates much, and listens; over() ends it."""

    def __init__(self, start, program, folder, environment):
        self.stop = folder / "stop"
        self.process = Process(folder / "socket")
        self.program = start([program("allocates_much"), "0", str(THREADS), self.stop],
                             env={"OTEL_PROFILER_LISTEN": f"unix:{folder}/socket", **environment})
        self.process.until_it_answers()

    def interval(self):
        return int(self.process.status()["settings"]["OTEL_PROFILER_ALLOC_INTERVAL"])

    def until(self, holds):
        return eventually(self.process.status, "another status", holds=holds)

    def until_lowered(self):
        return self.until(lambda status: status["lowered_by_budget"])

    def over(self):
        self.stop.touch()
        outcome = self.program.finish(TIMEOUT_S)
        assert outcome.returncode == 7
        return json.loads(outcome.stdout), outcome


@pytest.fixture
def dear(start, program, tmp_path):
    return lambda **environment: Running(start, program, tmp_path, {**DEAR, **environment})


def largest_error(objects, weigh, interval):
    """Returns the standard error of a sum over objects of those sizes, each as often, if all were sampled at that
    interval; a smaller interval for a part of the time would make it smaller."""
    variances = [weigh(size)**2 / math.expm1(size / interval) for size in SIZES]
    return math.sqrt(objects * sum(variances) / len(variances))


def test_costly_rates_are_lowered_and_sums_stay_right(dear):
    running = dear()
    intervals = [1]
    begun = float(running.until_lowered()["process_cpu_seconds"])

    def has_used_three_seconds_more(status):
        intervals.append(int(status["settings"]["OTEL_PROFILER_ALLOC_INTERVAL"]))
        return float(status["process_cpu_seconds"]) > begun + 3

    running.until(has_used_three_seconds_more)
    told, outcome = running.over()
    instance = outcome.instance("allocates_much")
    assert max(intervals) > 1
    compared = Comparison()
    longest = max(*intervals, instance.periods["alloc_space"])
    for kind, truth, weigh in (("alloc_objects", told["objects"], lambda size: 1), ("alloc_space", told["bytes"], lambda size: size)):
        compared.add(kind, instance.value_of("churns", kind), truth, largest_error(told["objects"], weigh, longest))
    compared.verdict()


def test_the_period_is_the_one_in_force(dear):
    running = dear()
    running.until_lowered()

    def intervals_around_an_export():
        before = running.interval()
        exported = Outcome(0, "", "", running.process.ask("/otlp").exports()).instance("allocates_much")
        return before, exported, running.interval()

    # the interval may change with the export itself
    _, exported, after = eventually(intervals_around_an_export, "one interval before and behind an export",
                                    holds=lambda found: found[0] == found[2])
    assert exported.periods["alloc_space"] == exported.periods["inuse_space"] == after > 1
    running.over()


def test_cost_is_reported(dear):
    running = dear()
    before = running.until_lowered()
    after = running.until(lambda status: float(status["process_cpu_seconds"]) > float(before["process_cpu_seconds"]) + 1)
    spent = {kind: float(after["sampling_cpu_seconds"][kind]) for kind in ("cpu", "alloc")}
    assert all(spent[kind] >= float(before["sampling_cpu_seconds"][kind]) for kind in spent)
    assert 0 < spent["cpu"] and 0 < spent["alloc"] < float(after["process_cpu_seconds"])
    metrics = running.process.ask("/metrics").text
    assert 'otelprof_self_sampling_cpu_time_seconds_total{of="alloc"}' in metrics
    assert "\notelprof_lowered_by_budget 1\n" in metrics
    running.over()


def test_without_a_limit_the_set_rates_hold(dear):
    """A limit can also be set, and lifted, while the program runs."""
    running = dear(OTEL_PROFILER_MAX_OVERHEAD="none")
    running.until(lambda status: float(status["sampling_cpu_seconds"]["alloc"]) > 0.1)
    assert running.interval() == 1
    running.process.control("OTEL_PROFILER_MAX_OVERHEAD=0.5")
    running.until_lowered()
    running.process.control("OTEL_PROFILER_MAX_OVERHEAD=none")
    running.until(lambda status: status["settings"]["OTEL_PROFILER_ALLOC_INTERVAL"] == "1")
    assert not running.process.status()["lowered_by_budget"]
    running.over()


# long enough for several exports, on the fastest machine, too
BUSY = "import time\nwhile time.process_time() < 3: sum(len(str(i)) for i in range(1000))"


@pytest.mark.parametrize("command", [["/usr/bin/python3", "-c", BUSY],
                                     [BUILD / "test/programs/cpu_shares", "4", "3"]], ids=["python", "threads"])
def test_default_rates_are_left_alone_unless_they_cost_more(run, command):
    """This holds in busy programs with one thread and with several. What a sample costs is the machine's affair: the
    log has what was measured when rates changed. The exporter takes up to half of the budget."""
    limit, tolerated, rounding = 1, 1.05, 0.01
    outcome = run(command, log_to_stderr=True, env={
        "OTEL_PROFILER_MAX_OVERHEAD": str(limit), "OTEL_LOG_LEVEL": "debug", "OTEL_PROFILE_EXPORT_INTERVAL": "500"})
    assert outcome.returncode == 0, outcome.stderr
    assert len(outcome.requests) > 1
    changed = re.search(r"sampling took ([\d.]+) percent .* exporter ([\d.]+); to keep OTEL_PROFILER_MAX_OVERHEAD",
                        outcome.stderr)
    assert bool(changed) == ("OTEL_PROFILER_MAX_OVERHEAD" in outcome.stderr)
    if changed:
        sampling, exporter = float(changed[1]) + rounding, float(changed[2]) + rounding
        assert sampling > tolerated * max(limit - exporter, limit / 2), changed[0]

