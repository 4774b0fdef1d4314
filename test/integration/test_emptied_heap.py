"""Once nothing is live any more, an empty snapshot of the heap is exported, once, and every reader shows it."""

import subprocess
import sys

import pytest

from collector import Collector, skip_without_collector
from endpoint import Process
from otelprof_lib.kinds import KINDS
from ports import reserved_port
from profiled import ROOT
from pyroscope_rules import refusals, series
from waiting import eventually

sys.path.insert(0, str(ROOT / "scripts"))
from otelprof_lib.aggregate import aggregate  # noqa: E402
from otelprof_lib.capture_file import read_messages  # noqa: E402

pytestmark = pytest.mark.system

ENVIRONMENT = {"OTEL_PROFILE_EXPORT_INTERVAL": "100", "OTEL_PROFILER_TYPES": "heap"}
EXPORTS_MORE = 5  # the first has the empty snapshot, unless an interval has ended before


def snapshots(messages):
    """Returns (time, type, its sum, samples) of each snapshot, in their order."""
    found = []
    for message in messages:
        strings = message.dictionary.string_table
        for resource_profiles in message.resource_profiles:
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    kind = strings[profile.sample_type.type_strindex]
                    total = sum(sum(sample.values) for sample in profile.samples)
                    found.append((profile.time_unix_nano, kind, total, len(profile.samples)))
    return sorted(found)


@pytest.fixture
def emptied(start, program, tmp_path):
    """emptied(seen, **environment) -> the outcome of a program that frees its only object when `seen(run)` shows that
    the object was exported, and lives on for some exports after the empty snapshot."""

    def run_through(seen, **environment):
        folder = tmp_path / "told"
        folder.mkdir()
        process = Process(folder / "socket")
        running = start([program("frees_on_request"), folder], env={
            **ENVIRONMENT, "OTEL_PROFILER_LISTEN": f"unix:{folder}/socket", **environment})
        eventually(lambda: seen(running) > 0, "an export of the object", unless=running.process.poll)
        (folder / "free").touch()
        eventually((folder / "freed").exists, "an empty heap", unless=running.process.poll)
        for _ in range(EXPORTS_MORE):
            assert process.ask("/flush", "POST").status == 200
        (folder / "end").touch()
        outcome = running.finish(300)
        assert outcome.returncode == 0
        return outcome

    return run_through


def assert_told_once(messages):
    all_of_them = snapshots(messages)
    empty = [(kind, samples) for _, kind, total, samples in all_of_them if total == 0]
    assert sorted(empty) == [(value.type, 1) for value in KINDS["heap"].values], "once, of each type"
    assert [total for _, _, total, _ in all_of_them[-2:]] == [0, 0], "and nothing behind it"
    assert all(total > 0 for _, _, total, _ in all_of_them[:-2])
    assert len(all_of_them) >= 4
    assert "heap" not in aggregate(messages), "nothing is left that could be shown"


def test_an_emptied_heap_is_reported_once(emptied):
    outcome = emptied(lambda running: len(running.receiver.requests))
    assert_told_once(outcome.requests)
    assert outcome.instances()[0].total("inuse_space") == 0
    for request in outcome.requests:
        assert refusals(request) == []
    labels = [dict(labels) for _, kind, labels in series(outcome.requests[-1])]
    assert labels and all("thread.id" not in each for each in labels)


def test_top_shows_nothing_of_an_emptied_heap(emptied, tmp_path):
    file = tmp_path / "profiles.jsonl"

    def exports(_):
        return len(file.read_text().splitlines()) if file.exists() else 0

    emptied(exports, OTEL_PROFILES_EXPORTER="otlp_file", OTEL_PROFILER_FILE=str(file))
    whole = read_messages(file)
    assert_told_once(whole)
    before = tmp_path / "before.jsonl"
    before.write_text("".join(line + "\n" for line in file.read_text().splitlines()[:-1]))
    for path, shown in ((before, True), (file, False)):
        top = subprocess.run([ROOT / "scripts/otelprof", "top", path], capture_output=True, text=True, check=False)
        assert "Traceback" not in top.stderr
        assert ("live heap: 64.0 MiB" in top.stdout) == shown, top.stdout + top.stderr


def test_a_collector_passes_the_empty_snapshot_on(emptied, tmp_path):
    """The Collector drops requests without any sample."""
    skip_without_collector()
    folder = tmp_path / "collector"
    folder.mkdir()
    ports = {name: reserved_port() for name in ("HTTP", "GRPC", "METRICS")}
    output = folder / "profiles.jsonl"
    collector = Collector(
        folder, ROOT / "test/collector/config.yaml",
        {**{f"OTELPROF_TEST_{name}_PORT": str(port) for name, port in ports.items()},
         "OTELPROF_TEST_OUTPUT": str(output)},
        ports["METRICS"], [("127.0.0.1", ports["HTTP"])],
    )

    def accepted(_):
        return sum(value for name, value in collector.counters().items() if "receiver_accepted_profile" in name)

    try:
        emptied(accepted, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{ports['HTTP']}")
        collector.stop()
    finally:
        if collector.process.poll() is None:
            collector.process.kill()
            collector.process.wait()
    assert_told_once(read_messages(output))
