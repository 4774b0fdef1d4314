"""Faults of the connection keep profiles from an HTTP receiver: no listener, names, certificates. Headers of the
user's are sent."""

import re
import subprocess
from pathlib import Path

import pytest

from http_faults import BURNT_MS, IN_TIME, assert_survived, message_of, sender
from http_server import OK, HttpServer, status
from profiled import LIBRARY, check_conformance
from waiting import eventually

pytestmark = pytest.mark.system

SERVER = HttpServer


@pytest.fixture
def send(burn):
    return sender(burn)


# --- no listener ---


def test_connection_refused(serve, send, start, program):
    """The connection is refused for a while; then a receiver listens there."""
    server = serve(OK, listening=False)
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url, "OTEL_PROFILE_EXPORT_INTERVAL": "100"}
    running = start([program("burn"), str(BURNT_MS), "4"], env=environment, log_to_stderr=True)
    eventually(lambda: "cannot be sent" in Path(running.err.name).read_text(), "what the profiler says of it", unless=running.process.poll)
    server.listen()
    outcome = running.finish(IN_TIME)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    said = outcome.stderr.splitlines()
    assert_survived(server, said, "Connection refused|Failed to connect|Couldn't connect")


def test_connection_refused_to_the_end(serve, send):
    server = serve(OK, listening=False)
    said = send(server, often=True)
    assert len(said) == 1 and "cannot be sent" in said[0], said


def test_a_name_that_is_none(send):
    """A label of 64 characters is invalid: no name server is queried."""
    said = send(None, often=True, url="http://" + "x" * 64 + ".example:4318")
    assert len(said) == 1 and "Could not resolve host" in said[0], said


def test_a_name_service_that_hangs(run, program):
    """Transfers are given up while a thread of libcurl still waits for the name service: neither a fork nor the end
    waits with it."""
    code = "import os\nfor _ in range(100):\n    if os.fork() == 0: os._exit(0)\n    os.wait()\n    sum(range(1000000))\n"
    environment = {
        "LD_PRELOAD": f"{LIBRARY}:{program('slow_resolver.so')}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.example:4318",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "100",
        "OTEL_PROFILE_EXPORT_INTERVAL": "100",
        "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "200",
    }
    outcome = run(["/usr/bin/python3", "-c", code], env=environment, log_to_stderr=True, timeout=IN_TIME)
    assert outcome.returncode == 0
    said = outcome.stderr.splitlines()
    assert len(said) == 1 and re.search("timed out|Timeout|not done within 200 ms", said[0]), said


# --- certificates ---

AUTHORITY = """
[ca]
default_ca = tests
[tests]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01\n")
    for name in ("ca", "stranger"):
        openssl("req", "-x509", *key, "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    openssl("req", *key, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
    kinds = {
        "good": ("ca", "IP:127.0.0.1", "20200101000000Z", "20990101000000Z"),
        "expired": ("ca", "IP:127.0.0.1", "20200101000000Z", "20200102000000Z"),
        "of another host": ("ca", "DNS:other.example", "20200101000000Z", "20990101000000Z"),
        "by a stranger": ("stranger", "IP:127.0.0.1", "20200101000000Z", "20990101000000Z"),
    }
    for kind, (authority, host, begin, end) in kinds.items():
        (folder / "ca.conf").write_text(f"{AUTHORITY}\n[names]\nsubjectAltName = {host}\n")
        openssl("ca", "-batch", "-config", "ca.conf", "-extensions", "names", "-cert", f"{authority}.pem", "-keyfile",
                f"{authority}.key", "-in", "server.csr", "-out", f"{kind}.pem", "-startdate", begin, "-enddate", end)
    return folder


WRONG = {"expired": "expired", "of another host": "no alternative certificate subject name", "by a stranger": "issuer"}


@pytest.mark.parametrize("kind", WRONG)
def test_a_certificate(serve, send, certificates, kind):
    """Not one byte of a profile or a header goes to a receiver that may be another."""
    server = serve(OK, tls=(certificates / f"{kind}.pem", certificates / "server.key"))
    said = send(server, often=True, OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificates / "ca.pem"))
    assert server.connections >= 1 and server.calls == []
    assert len(said) == 1 and "cannot be sent" in said[0] and WRONG[kind] in said[0], said


def test_a_certificate_that_is_good(serve, send, certificates):
    server = serve(OK, tls=(certificates / "good.pem", certificates / "server.key"))
    assert send(server, OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificates / "ca.pem")) == []
    check_conformance(message_of(server.calls[0]))


def test_an_authority_that_cannot_be_read(serve, send, certificates):
    server = serve(OK, tls=(certificates / "good.pem", certificates / "server.key"))
    said = send(server, often=True, OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificates / "none.pem"))
    assert server.calls == []
    assert len(said) == 1 and "none.pem" in said[0], said


# --- headers of the user's ---


def test_a_header_without_a_value_is_sent(serve, send):
    server = serve(status(200))
    assert send(server, OTEL_EXPORTER_OTLP_HEADERS="x-none=,x-some=1") == []
    fields = server.calls[0].fields
    assert (fields["x-none"], fields["x-some"]) == ("", "1")


@pytest.mark.parametrize("wrong", ["x-a=b%0d%0aX-Other:%201", "x%0ab=1", "x%3ab=1"])
def test_a_header_that_would_break_the_request_is_left_out(serve, send, wrong):
    server = serve(status(200))
    said = send(server, OTEL_EXPORTER_OTLP_HEADERS=f"{wrong},x-some=1")
    assert len(said) == 1 and "OTEL_EXPORTER_OTLP_HEADERS" in said[0] and "left out" in said[0], said
    assert [name for name in server.calls[0].fields if name.startswith("x")] == ["x-some"]
