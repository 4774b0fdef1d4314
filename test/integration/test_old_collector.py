"""The last Collector before OTLP 1.10 treats our profiles as docs/deployment.md says: samples have other field
numbers there, and the same names."""

import json
import re

import pytest

from collector import Collector
from ports import reserved_port
from profiled import BUILD

pytestmark = pytest.mark.system

OLD = BUILD / "collector" / "otelcol-0.147"
MEBIBYTES = 4
OBJECTS = MEBIBYTES + 1  # objects that `burn` allocates, and its last of 3,000 bytes
BYTES = (MEBIBYTES << 20) + 3000


@pytest.fixture
def old_collector(tmp_path):
    if not OLD.exists():
        pytest.skip("test/collector/build could not build Collector 0.147")
    ports = {name: reserved_port() for name in ("http", "grpc", "metrics")}
    receiver = {"protocols": {p: {"endpoint": f"127.0.0.1:{ports[p]}"} for p in ("http", "grpc")}}
    reader = {"pull": {"exporter": {"prometheus": {"host": "127.0.0.1", "port": ports["metrics"]}}}}
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({
        "receivers": {"otlp": receiver},
        "exporters": {"debug": {"verbosity": "detailed"}},
        "service": {
            "pipelines": {"profiles": {"receivers": ["otlp"], "exporters": ["debug"]}},
            "telemetry": {"metrics": {"level": "detailed", "readers": [reader]}},
        },
    }))
    started = Collector(
        tmp_path, config, {}, ports["metrics"], [("127.0.0.1", ports[p]) for p in ("http", "grpc")], OLD
    )
    started.ports = ports
    yield started
    if started.process.poll() is None:
        started.stop()


@pytest.fixture
def send(run, program, old_collector):
    """send(protocol, ...) -> the profiler's log while a program burnt."""

    def burn(protocol, **environment):
        port = old_collector.ports["grpc" if protocol == "grpc" else "http"]
        environment = {
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_PROFILE_EXPORT_INTERVAL": "100",
            "OTEL_PROFILER_ALLOC_INTERVAL": "1",
            **environment,
        }
        outcome = run([program("burn"), "500", str(MEBIBYTES)], env=environment, log_to_stderr=True)
        assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
        return outcome.stderr.splitlines()

    return burn


@pytest.mark.parametrize(
    "protocol, types, why",
    [("http/protobuf", "cpu,alloc,heap", "HTTP status 400"),
     ("http/protobuf", "alloc", "HTTP status 400"),
     ("grpc", "cpu,alloc,heap", "gRPC status INTERNAL: .*wrong wireType"),
     ("grpc", "heap", "gRPC status INTERNAL: .*wrong wireType")],
)
def test_protobuf_is_refused_and_never_garbled(old_collector, send, protocol, types, why):
    """One line reports it; nothing that was refused is sent again, and nothing of it is accepted."""
    said = send(protocol, OTEL_PROFILER_TYPES=types)
    assert len(said) == 1 and re.search(rf"refused profiles \({why}.*\); they are dropped", said[0]), said
    sums = old_collector.counters()
    assert all(value == 0 for name, value in sums.items() if "sent" in name or "accepted" in name), sums


def allocated(text):
    """Returns the sum of each profile's values, in the order of the message."""
    profiles = re.split(r"^Profile #", text, flags=re.M)[1:]
    return [sum(int(v) for v in re.findall(r"Values: \[(\d+)\]", profile)) for profile in profiles]


def test_json_is_taken_with_its_values(old_collector, send):
    assert send("http/json", OTEL_PROFILER_TYPES="alloc", OTEL_PROFILE_EXPORT_INTERVAL="86400000") == []
    old_collector.stop()
    objects, space = allocated(old_collector.log_path.read_text())
    assert OBJECTS <= objects < 2 * OBJECTS + 100  # libc's own objects are few
    assert BYTES <= space < 2 * BYTES
