"""A real OpenTelemetry Collector receives from the shim over the wire."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from attributed_samples import attributed_samples
from collector import Collector, skip_without_collector
from ports import reserved_port
from profiled import ROOT
from test_span_links import EVERY, check_samples
from waiting import eventually

sys.path.insert(0, str(ROOT / "scripts"))
from otelprof_lib.aggregate import aggregate  # noqa: E402
from otelprof_lib.capture_file import read_messages  # noqa: E402

pytestmark = pytest.mark.system

@pytest.fixture
def collector(tmp_path):
    skip_without_collector()
    folder = tmp_path / "collector"
    folder.mkdir()
    ports = {name: reserved_port() for name in ("HTTP", "GRPC", "METRICS")}
    environment = {f"OTELPROF_TEST_{name}_PORT": str(port) for name, port in ports.items()}
    output = folder / "profiles.jsonl"
    started = Collector(
        folder, ROOT / "test/collector/config.yaml",
        dict(environment, OTELPROF_TEST_OUTPUT=str(output)),
        ports["METRICS"], [("127.0.0.1", ports["HTTP"])],
    )
    started.output = output
    started.url = f"http://127.0.0.1:{ports['HTTP']}"
    yield started
    if started.process.poll() is None:
        started.stop()


@pytest.mark.parametrize(
    "protocol, compression",
    [("http/protobuf", "none"), ("http/protobuf", "gzip"), ("http/protobuf", "zstd"),
     ("http/json", "none"), ("http/json", "gzip")],
)
def test_everything_sent_is_accepted(run, program, collector, protocol, compression):
    profiled = run(
        [program("cpu_shares"), "2", "6"],
        env={
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_EXPORTER_OTLP_COMPRESSION": compression,
            "OTEL_PROFILE_EXPORT_INTERVAL": "400",
            "OTEL_SERVICE_NAME": "shares",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test%20bench",
        },
    )
    assert profiled.returncode == 0
    truth = json.loads(profiled.stdout)
    counters = collector.counters()
    collector.stop()

    messages = read_messages(collector.output)
    assert len(messages) >= 2, "one export an interval, and a last one"
    samples = sum(
        len(profile.samples)
        for message in messages
        for resource in message.resource_profiles
        for scope in resource.scope_profiles
        for profile in scope.profiles
    )
    accepted = sum(v for k, v in counters.items() if "receiver_accepted_profile" in k)
    refused = sum(v for k, v in counters.items() if "refused" in k or "failed" in k)
    assert accepted == samples, counters
    assert refused == 0, counters

    attributes = {
        a.key: a.value.string_value
        for a in messages[0].resource_profiles[0].resource.attributes
    }
    assert attributes["service.name"] == "shares"
    assert attributes["deployment.environment.name"] == "test bench"

    cpu = aggregate(messages)["cpu"]
    burnt = sum(truth["functions"].values())
    for name, nanoseconds in truth["functions"].items():
        seconds = sum(v for stack, v in cpu.stacks.items() if name in {frame.name for frame in stack})
        assert abs(100 * seconds / cpu.total - 100 * nanoseconds / burnt) < 8, name
    assert 'burn_40' in collector.log_path.read_text(), "the debug exporter shows the hot function"


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_links_and_labels_pass_through_it(run, program, collector, protocol):
    profiled = run(
        [program("serves_spans"), "2"],
        env={**EVERY, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol},
    )
    assert profiled.returncode == 0
    collector.stop()
    check_samples(read_messages(collector.output))


def test_waits_pass_through_it(run, program, collector):
    """Lists, and numbers with a fraction, pass too; no other attribute of ours has such values."""
    profiled = run(
        [program("holds_locks")],
        env={
            "OTEL_PROFILER_TYPES": "all",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_PROFILE_EXPORT_INTERVAL": "200",
        },
    )
    assert profiled.returncode == 0
    counters = collector.counters()
    collector.stop()
    assert sum(v for k, v in counters.items() if "refused" in k or "failed" in k) == 0, counters
    outcome = SimpleNamespace(requests=read_messages(collector.output))
    waits = attributed_samples(outcome, "off_cpu", "contentions", "delay")
    assert {sample.kind for sample in waits} == {"off_cpu", "contentions", "delay"}
    stacks = {sample.attributes.get("otelprof.lock.holder.stack", "") for sample in waits}
    assert any("holder" in stack.split(";") for stack in stacks), stacks
    threads = [sample.attributes for sample in attributed_samples(outcome, "threads")]
    main = [thread for thread in threads if thread["thread.name"] == "holds_locks"]
    waited = [thread["otelprof.wait.duration"] for thread in main if "otelprof.wait.duration" in thread]
    assert any(isinstance(duration, float) and duration > 0 for duration in waited), main


def test_receiver_that_comes_late(start, program, tmp_path):
    """Exports are kept while no process listens, and delivered when one does."""
    folder = tmp_path / "late"
    folder.mkdir()
    port = reserved_port()
    program_run = start(
        [program("cpu_shares"), "1", "12"],
        env={
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_PROFILE_EXPORT_INTERVAL": "300",
        },
        log_to_stderr=True,
    )
    eventually(lambda: b"cannot be sent" in os.pread(program_run.err.fileno(), 10_000, 0), "an export that nobody takes",
               unless=program_run.process.poll)
    script = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "from otelprof_lib.cli import main\n"
        "sys.exit(main(['receive', '--listen', '127.0.0.1:' + sys.argv[2], '-o', sys.argv[3]]))\n"
    )
    output = folder / "late.otlp"
    receiver = subprocess.Popen(
        ["/usr/bin/python3", "-c", script, str(ROOT / "scripts"), str(port), str(output)],
        stderr=subprocess.DEVNULL,
    )
    try:
        truth = json.loads(program_run.finish(300).stdout)
    finally:
        receiver.terminate()
        receiver.wait(10)
    total = aggregate(read_messages(output))["cpu"].total
    burnt = sum(truth["functions"].values()) / 1e9
    assert abs(total - burnt) / burnt < 0.05, "nothing of the time before was lost"

