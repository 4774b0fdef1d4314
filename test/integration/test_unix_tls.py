"""A receiver without TLS at a Unix socket gets nothing where TLS was requested. (test_protocols.py has receivers with
TLS.)"""

import contextlib
import socket
import threading

import pytest

pytestmark = pytest.mark.system

SECRET = "sEcReT"
HANDSHAKE = b"\x16\x03"  # RFC 8446, 5.1: a record of that type


class Listener:
    """Keeps the first bytes of each connection, and sends no response."""

    def __init__(self, path):
        self.heard = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                with connection:
                    self.heard.append(connection.recv(1 << 16))

    def stop(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


@pytest.fixture
def listener(tmp_path):
    listening = Listener(tmp_path / "receiver.sock")
    yield listening
    listening.stop()


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json", "grpc"])
@pytest.mark.parametrize(
    ("asked", "tls"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_INSECURE": "false"}, True),
        ({"OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE": "/etc/ssl/certs/ca-certificates.crt"}, True),
        ({"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere.pem"}, None),
    ],
    ids=["not", "word", "certificate", "no_such_certificate"],
)
def test_nothing_is_reported_without_tls(burn, listener, tmp_path, protocol, asked, tls):
    lines = burn(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"unix:{tmp_path}/receiver.sock",
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={SECRET}",
            "OTEL_PROFILE_EXPORT_INTERVAL": "86400000",
            **asked,
        },
        200,
    )
    assert any("receiver.sock" in line or "localhost" in line for line in lines), lines
    heard = [begin for begin in listener.heard if begin]
    if tls is not None:
        assert heard
    for begin in heard:
        assert begin.startswith(HANDSHAKE) == (tls is not False)
        assert tls is False or SECRET.encode() not in begin
