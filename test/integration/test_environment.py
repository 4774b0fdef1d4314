"""The program changes its environment while the helper's libraries read theirs."""

import pytest
from profiled import LIBRARY

pytestmark = pytest.mark.system

OFTEN = {"OTEL_PROFILE_EXPORT_INTERVAL": "5", "OTEL_PROFILER_CPU_FREQUENCY": "1000", "OTEL_PROFILER_TYPES": "cpu"}


def test_the_environment_is_the_programs(run, program):
    """The program changes its environment as a program with a single thread may: setenv frees memory that a reader
    would read."""
    outcome = run([program("changes_environment"), "5000"], env=OFTEN)
    assert (outcome.stdout, outcome.returncode) == ("changed\n", 0)
    assert len(outcome.requests) > 3


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_helper_reads_no_environment_variable(run, program, protocol):
    """The helper reads none when libraries are loaded, and none for a transfer, TLS and proxies included."""
    environment = {
        **OFTEN,
        "LD_PRELOAD": f"{LIBRARY}:{program('watches_getenv.so')}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.example:1",
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "https_proxy": "http://127.0.0.1:9",
    }
    outcome = run([program("burn"), "500", "4"], env=environment, log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7), outcome.stderr
    assert "127.0.0.1 port 9" in outcome.stderr, "the proxy's name was found all the same"
