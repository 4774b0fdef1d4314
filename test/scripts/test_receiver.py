"""The receiver of `otelprof receive` and `otelprof run` accepts, refuses and responds as it should."""

import contextlib
import email
import gzip
import socket
import subprocess
import threading
import urllib.error
import urllib.request
import zlib

import pytest
from captured import succeeds
from conftest import ROOT, as_json, cpu
from otelprof_lib.aggregate import aggregate
from otelprof_lib.capture_file import read_messages
from otelprof_lib import receiver as receiver_module
from otelprof_lib.receiver import MOST_CONNECTIONS, PATH, Receiver, Refused, check_origin
from otelprof_lib.request_origin import is_loopback_address
from served import serving
from waiting import TIMEOUT_S

OTELPROF = ROOT / "scripts" / "otelprof"


@pytest.fixture
def receiver():
    taken = []
    running = Receiver("127.0.0.1", 0, taken.append).start()
    running.taken = taken
    yield running
    running.stop()


def post(url, body, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers.setdefault("Content-Type", "application/x-protobuf")
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_bodies_that_are_taken(receiver, message):
    body = cpu(message).bytes()
    assert post(receiver.endpoint, body) == 200
    assert post(receiver.endpoint, gzip.compress(body), Content_Encoding="gzip") == 200
    assert post(receiver.endpoint, zlib.compress(body), Content_Encoding="deflate") == 200
    packed = subprocess.run(["zstd", "-cq"], input=body, capture_output=True, check=True).stdout
    assert post(receiver.endpoint, packed, Content_Encoding="zstd") == 200
    assert receiver.taken == [body] * 4


def test_bodies_that_are_not(receiver, message):
    body = cpu(message).bytes()
    assert post(receiver.endpoint, body, Content_Type="text/plain") == 415
    assert post(receiver.endpoint, body, Content_Type="application/json") == 400
    assert post(receiver.endpoint, b'{"resourceProfiles":3}', Content_Type="application/json") == 400
    assert post(receiver.endpoint, body, Content_Encoding="br") == 415
    assert post(receiver.endpoint, body, Content_Encoding="gzip") == 400
    assert post(receiver.endpoint, b"\xff\xff\xff") == 400
    assert post(receiver.endpoint.replace("profiles", "traces"), body) == 404
    assert post(receiver.endpoint, gzip.compress(body)[:-9], Content_Encoding="gzip") == 400
    assert post(receiver.endpoint, b"no zstd", Content_Encoding="zstd") == 400
    zeros = b"\0" * (65 << 20)
    assert post(receiver.endpoint, zeros) == 413
    assert post(receiver.endpoint, gzip.compress(zeros), Content_Encoding="gzip") == 413
    bomb = subprocess.run(["zstd", "-cq"], input=zeros, capture_output=True, check=True).stdout
    assert post(receiver.endpoint, bomb, Content_Encoding="zstd") == 413
    assert receiver.taken == []


def test_json_is_taken_and_kept_as_protobuf(receiver, message):
    export = cpu(message)
    export.scope.profiles[0].profile_id = bytes(range(16))
    body = as_json(export).encode()
    assert post(receiver.endpoint, body, Content_Type="application/json; charset=utf-8") == 200
    assert post(receiver.endpoint, gzip.compress(body), Content_Type="application/json",
                Content_Encoding="gzip") == 200
    assert receiver.taken == [export.bytes()] * 2


def test_zstd_without_its_program(receiver, message, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert post(receiver.endpoint, cpu(message).bytes(), Content_Encoding="zstd") == 415


def test_the_answer_is_an_empty_response(receiver, message):
    request = urllib.request.Request(
        receiver.endpoint, cpu(message).bytes(), {"Content-Type": "application/x-protobuf"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Type"] == "application/x-protobuf"
        assert answer.read() == b""
    request = urllib.request.Request(receiver.endpoint, b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.read() == b"{}"


def test_a_body_that_ends_early(receiver):
    with socket.create_connection(receiver.server_address) as client:
        client.sendall(b"POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                       b"Content-Type: application/x-protobuf\r\n\r\n\x0a")
        client.shutdown(socket.SHUT_WR)
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
    assert receiver.taken == []


def status_of(receiver, body, *headers):
    """Returns the status of a request with these headers; PORT in one is the receiver's."""
    lines = ["POST /v1development/profiles HTTP/1.1", *headers, "Content-Type: application/x-protobuf", f"Content-Length: {len(body)}",
             "Connection: close", "", ""]
    request = "\r\n".join(lines).replace("PORT", str(receiver.server_port)).encode() + body
    with socket.create_connection(receiver.server_address, timeout=TIMEOUT_S) as client:
        client.sendall(request)
        with client.makefile("rb") as answer:
            return int(answer.read().split()[1])


@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "localhost:PORT", "LocalHost", "127.0.0.1", "[::1]:PORT", "172.17.0.1:4318", "[fd00::1]"])
def test_an_exporter_is_taken_by_any_address(receiver, message, host):
    """A port may be forwarded."""
    body = cpu(message).bytes()
    assert status_of(receiver, body, f"Host: {host}") == 200
    assert receiver.taken == [body]


@pytest.mark.parametrize("headers", [
    [], ["Host:"], ["Host: evil.example"], ["Host: evil.example:PORT"], ["Host: 127.0.0.1.evil.example:PORT"], ["Host: localhost.evil.example"],
    ["Host: evil.example@127.0.0.1:PORT"], ["Host: localhost:x"], ["Host: 127.0.0.1:PORT", "Host: evil.example"],
    ["Host: evil.example", "Host: 127.0.0.1:PORT"], ["Host: [evil.example]"],
    ["Host: 127.0.0.1:PORT", "Origin: http://evil.example"], ["Host: 127.0.0.1:PORT", "Origin: null"],
    ["Host: 127.0.0.1:PORT", "Origin: http://127.0.0.1:PORT"], ["Host: 127.0.0.1:PORT", "origin: "],
    ["Host: 127.0.0.1:PORT", "Sec-Fetch-Site: cross-site"], ["Host: 127.0.0.1:PORT", "Sec-Fetch-Site: same-site"],
    ["Host: 127.0.0.1:PORT", "Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"],
])
def test_a_web_page_sends_no_profiles(receiver, message, headers):
    """No page is ours. A page whose name was rebound to this address comes without an Origin from some browsers."""
    assert status_of(receiver, cpu(message).bytes(), *headers) == 403
    assert receiver.taken == []


@pytest.mark.parametrize("address, alone", [
    ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True), ("0.0.0.0", False), ("::", False),
    ("::ffff:10.0.0.1", False), ("fe80::1%eth0", False), ("10.0.0.1", False),
])
def test_a_loopback_address_is_known_in_every_form(address, alone):
    assert is_loopback_address(address) == alone


def test_other_machines_know_a_receiver_by_any_name():
    def check(*lines):
        check_origin(email.message_from_string("\n".join(lines) + "\n\n"), is_loopback=False)

    check("Host: collector.example:4318")
    for line in ("Origin: http://collector.example:4318", "Sec-Fetch-Site: cross-site"):
        with pytest.raises(Refused) as refused:
            check("Host: collector.example:4318", line)
        assert refused.value.status == 403


def test_receive_ends_after_count(tmp_path, message):
    running = subprocess.Popen(
        [OTELPROF, "receive", "--listen", "127.0.0.1:0", "-o", "r.otlp", "--count", "2"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )
    endpoint = running.stderr.readline().split()[-1]
    assert post(endpoint, cpu(message).bytes()) == 200
    assert post(endpoint, cpu(message).bytes()) == 200
    assert running.wait(10) == 0
    running.stderr.close()
    assert aggregate(read_messages(tmp_path / "r.otlp"))["cpu"].total == pytest.approx(1)


# --- requests of others on this machine ---


@pytest.fixture
def secretive():
    taken = []
    running = Receiver("127.0.0.1", 0, taken.append, is_secret=True).start()
    running.taken = taken
    yield running
    running.stop()


def test_only_a_sender_that_knows_the_secret_reaches_run_and_live(secretive, message):
    """Every user can connect to the port."""
    body = cpu(message).bytes()
    without, _, secret = secretive.endpoint.partition("?")
    assert len(secret) >= 32
    for endpoint in (without, f"{without}?", f"{without}?{'x' * 32}", f"{without}?{secret}x", without.replace(PATH, f"/{secret}{PATH}")):
        assert post(endpoint, body) == 404
    assert secretive.taken == []
    assert post(secretive.endpoint, body) == 200
    assert secretive.taken == [body]


@pytest.mark.parametrize("command", ["run", "live"])
def test_a_program_that_is_started_has_a_secret_endpoint(tmp_path, command):
    """The secret stays out of the command line, which every user can read."""
    script = "tr '\\0' '\\n' <\"/proc/$PPID/cmdline\" >line; echo \"$OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT\" >endpoint"
    if command == "run":
        succeeds("run", "--quiet", "--", "sh", "-c", script, cwd=tmp_path)
    else:
        with serving("live", "--no-open", "--", "sh", "-c", script, cwd=tmp_path) as page:
            page.until_it_says("the program has ended")
            page.end()
    secret = (tmp_path / "endpoint").read_text().strip().partition("?")[2]
    assert len(secret) >= 32
    assert secret not in (tmp_path / "line").read_text()


def test_silent_connections_keep_no_exporter_out(receiver, message):
    """The connection that has been silent for the longest time makes room."""
    with contextlib.ExitStack() as silent:
        for _ in range(3 * MOST_CONNECTIONS):
            silent.enter_context(socket.create_connection(receiver.server_address, timeout=TIMEOUT_S))
        assert post(receiver.endpoint, cpu(message).bytes()) == 200
        assert receiver.connections.count() <= MOST_CONNECTIONS


def test_bodies_wait_until_there_is_room_for_them(monkeypatch):
    monkeypatch.setattr(receiver_module, "BODY_SECONDS", 0)
    room = receiver_module._Room(100)
    with room.for_bytes(60), room.for_bytes(40):
        with pytest.raises(Refused) as refused, room.for_bytes(1):
            pass
        assert refused.value.status == 503
    with room.for_bytes(100):
        pass


def test_one_body_is_unpacked_at_a_time(receiver, message, monkeypatch):
    """25 small bodies that unpack to 64 MiB each once took 1.7 GB of memory together."""
    under_way, most = [], []

    def check(data, headers, real=receiver_module.check_body):
        under_way.append(1)
        most.append(len(under_way))
        checked = real(data, headers)
        under_way.pop()
        return checked

    monkeypatch.setattr(receiver_module, "check_body", check)
    body = gzip.compress(cpu(message).bytes())
    senders = [threading.Thread(target=post, args=(receiver.endpoint, body), kwargs={"Content_Encoding": "gzip"}) for _ in range(16)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert len(receiver.taken) == 16 and max(most) == 1


def test_a_body_that_never_comes_whole_is_given_up(receiver, message, monkeypatch):
    monkeypatch.setattr(receiver_module, "BODY_SECONDS", -1)
    monkeypatch.setattr(receiver.room, "for_bytes", lambda _: contextlib.nullcontext())
    assert post(receiver.endpoint, cpu(message).bytes()) == 408
    assert receiver.taken == []
