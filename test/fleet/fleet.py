"""Exports from many processes, started together, to one real Collector: the long form is test/fleet/run, the short
one is part of `make test-all`.

The judgement uses what the Collector wrote: an export's arrival is the end of its interval, by the sender's clock,
which is this machine's.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "integration"))
sys.path.insert(0, str(ROOT / "scripts"))

from collector import Collector  # noqa: E402
from otelprof_lib.capture_file import read_messages  # noqa: E402
from ports import reserved_port  # noqa: E402
from profiled import BUILD, LIBRARY, attributes_of  # noqa: E402
from waiting import eventually  # noqa: E402

ESTABLISHED, CLOSE_WAIT = "01", "08"  # in /proc/net/tcp
MAX_BINS = 20
PROCESSES_OF_A_BIN = 5  # at least, for chi-square to mean anything
BEYOND = 4.75  # standard errors: one even fleet in a million


class Fleet:
    """Holds the results. `problems` is empty if all is well."""

    def __init__(self, processes, interval):
        self.processes = processes
        self.interval = interval  # seconds
        self.exports = {}  # instance -> [(start, end)], seconds since the epoch
        self.histogram = [0] * max(2, min(MAX_BINS, processes // PROCESSES_OF_A_BIN))
        self.samples = 0
        self.problems = []

    def expect(self, holds, what):
        if not holds:
            self.problems.append(what)

    def chi_square(self):
        expected = sum(self.histogram) / len(self.histogram)
        return sum((count - expected) ** 2 / expected for count in self.histogram)

    def bound(self):
        """Returns the bound of chi_square(), by Wilson and Hilferty's approximation. Phases are independent and
        uniform, so an even fleet stays below; one that reports together is far beyond."""
        freedom = len(self.histogram) - 1
        spread = 2 / (9 * freedom)
        return freedom * (1 - spread + BEYOND * spread**0.5) ** 3


def new_collector(folder):
    """Starts a Collector that only writes what it gets: otherwise the debug exporter would be what is measured."""
    ports = {name: reserved_port() for name in ("HTTP", "GRPC", "METRICS")}
    text = (ROOT / "test/collector/config.yaml").read_text()
    config = folder / "config.yaml"
    config.write_text(text.replace("exporters: [debug, file]", "exporters: [file]"))
    environment = {f"OTELPROF_TEST_{name}_PORT": str(port) for name, port in ports.items()}
    environment["OTELPROF_TEST_OUTPUT"] = str(folder / "profiles.jsonl")
    collector = Collector(
        folder, config, environment, ports["METRICS"], [("127.0.0.1", ports["HTTP"])]
    )
    collector.url = f"http://127.0.0.1:{ports['HTTP']}"
    return collector


# Uses names without lines: those of libraries with compressed debug information cost 50 ms of CPU once, which 500
# processes on two processors would still pay when the test is over.
def start_processes(count, url, interval, log):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_PRELOAD"))}
    environment = {
        **clean, "LD_PRELOAD": str(LIBRARY), "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_PROFILE_EXPORT_INTERVAL": str(int(interval * 1000)),
        "OTEL_PROFILER_TYPES": "alloc", "OTEL_PROFILER_SYMBOLS": "functions", "OTEL_PROFILER_ALLOC_INTERVAL": "1",
        "OTEL_PROFILER_MAX_OVERHEAD": "none",
        "OTEL_PROFILER_LOG_FILE": str(log), "OTEL_LOG_LEVEL": "info",
    }
    command = [BUILD / "test/programs/ticks", "20"]
    return [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(count)
    ]


def kill(processes):
    """Kills all without a last export, which would come from all at once."""
    for process in processes:
        process.send_signal(signal.SIGKILL)
    for process in processes:
        process.wait()


def has_connections(url):
    """Returns whether the Collector has a connection: it closes that of an ended sender once it has handled what was sent."""
    port = f":{int(url.rsplit(':', 1)[1]):04X}"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(port) and row[3] in (ESTABLISHED, CLOSE_WAIT) for row in rows)


def read(fleet, path):
    for message in read_messages(path):
        for resource in message.resource_profiles:
            instance = attributes_of(resource.resource)["service.instance.id"]
            profiles = [p for scope in resource.scope_profiles for p in scope.profiles]
            fleet.samples += sum(len(profile.samples) for profile in profiles)
            begun = profiles[0].time_unix_nano
            ended = begun + profiles[0].duration_nano
            fleet.exports.setdefault(instance, []).append((begun / 1e9, ended / 1e9))


def judge_delivery(fleet, counters, log):
    accepted = sum(v for k, v in counters.items() if "receiver_accepted_profile" in k)
    refused = sum(v for k, v in counters.items() if "refused" in k or "failed" in k)
    fleet.expect(not log, f"the profilers say: {log[:500]}")
    fleet.expect(refused == 0, f"refused: {counters}")
    fleet.expect(accepted == fleet.samples, f"{accepted} accepted, {fleet.samples} written")
    fleet.expect(
        len(fleet.exports) == fleet.processes, f"exports of {len(fleet.exports)} processes only"
    )


def judge_times(fleet, ended):
    latest = 0
    for exports in fleet.exports.values():
        exports.sort()
        last = exports[0][0]  # when its profile began
        first = exports[0][1] - last
        fleet.expect(
            first <= 1.5 * fleet.interval, f"the first export came after {first:.1f} s"
        )
        for _, at in exports + [(0, ended)]:
            latest = max(latest, at - last)
            last = at
    fleet.expect(
        latest <= 2 * fleet.interval, f"{latest:.1f} s between two exports of a process"
    )


def judge_spread(fleet):
    """Takes one arrival of each process, its last: the process keeps its phase, so any would do."""
    for exports in fleet.exports.values():
        phase = exports[-1][1] % fleet.interval / fleet.interval
        bins = len(fleet.histogram)
        fleet.histogram[min(int(phase * bins), bins - 1)] += 1
    fleet.expect(
        fleet.chi_square() <= fleet.bound(),
        f"arrivals are not even: chi-square {fleet.chi_square():.1f}",
    )


def judge_phases(fleet):
    """Checks that each export of a process after its first is where the others are, within a tenth."""
    moved, total = 0, 0
    for exports in fleet.exports.values():
        ends = [end for _, end in exports[1:]]
        for end in ends:
            turn = (end - ends[-1]) / fleet.interval
            moved += abs(turn - round(turn)) > 0.1
            total += 1
    fleet.expect(total > 0, "no process exported twice")
    fleet.expect(moved <= total / 20, f"{moved} of {total} exports are out of their phase")


def run_fleet(count, interval, seconds):
    """Runs a fleet. `interval` and `seconds` in seconds; all started together, killed together."""
    fleet = Fleet(count, interval)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        log = folder / "log"
        log.touch()
        collector = new_collector(folder)
        processes = start_processes(count, collector.url, interval, log)
        try:
            time.sleep(seconds)
            ended = time.time()
        finally:
            kill(processes)
        eventually(lambda: not has_connections(collector.url), "the end of the Collector's connections")
        counters = collector.counters()
        collector.stop()
        read(fleet, folder / "profiles.jsonl")
        judge_delivery(fleet, counters, log.read_text())
    if fleet.exports:
        judge_times(fleet, ended)
        judge_spread(fleet)
        judge_phases(fleet)
    return fleet
