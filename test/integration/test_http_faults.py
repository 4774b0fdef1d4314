"""After each fault between the profiler and an HTTP receiver the profiles are sent again, or dropped with one line.

With the receiver back, every interval that still waits arrives once and in order; and the program under test does,
prints and ends as it would without the profiler. This file has one case of each behaviour. test_receiver_responses.c
has the tables: every status, every kind of words and of secrets in them, every Retry-After, and malformed responses.
"""

import re
import threading
import time

import pytest

from http_faults import assert_dropped, assert_survived, assert_taken_once_and_in_order, message_of, sender
from http_server import OK, HttpServer, status
from profiled import check_conformance, profiles_service_pb2
from scripted_server import QUEUE

pytestmark = pytest.mark.system

# A transfer that hangs is given up while the program still works: at the end there is no other attempt.
GIVEN_UP = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1500", "burnt_ms": 3000}
LIMIT = 4 << 20  # the specification's limit for responses

SERVER = HttpServer


@pytest.fixture
def send(burn):
    return sender(burn)


# --- statuses ---


def test_success(serve, send):
    server = serve(status(202))
    assert send(server) == []
    (call,) = server.calls
    assert call.line == "POST /v1development/profiles HTTP/1.1"
    assert call.fields["authorization"] == "Bearer sEcReT"
    check_conformance(message_of(call))


def test_status_that_is_final(serve, send):
    server = serve(status(500, body=b"no\n"))
    assert_dropped(server, send(server), "(HTTP status 500: no)")


def test_status_that_may_be_retried(serve, send):
    server = serve(status(429, body=b"later\n"), OK)
    said = send(server)
    assert len(server.calls) == 2 and server.calls[0].body == server.calls[1].body
    assert len(said) == 2 and "(HTTP status 429: later)" in said[0] and "being sent again" in said[1], said


# what Pyroscope responds: the labels, which are long, before the limit
LABELS = ", ".join(f'label_{number}="{"v" * 40}"' for number in range(31))


@pytest.mark.parametrize("body, words", [
    (f"profile series '{{{LABELS}}}' has 31 label names; limit 30", None),
    ("no such token: sEcReT!", ": its words repeat a header and are not shown"),
])
def test_the_receivers_own_words_are_reported(serve, send, body, words):
    """The words are bounded, without their middle; no header of ours is in them."""
    server = serve(status(400, "Content-Type: text/plain", body=body.encode()))
    said = send(server)
    if words:
        assert_dropped(server, said, f"refused profiles (HTTP status 400{words}); they are dropped")
    else:
        assert_dropped(server, said, "(HTTP status 400: profile series '{label_0=")
        assert "has 31 label names; limit 30); they are dropped" in said[0] and " ... " in said[0]


def test_secrets_in_the_url_are_not_logged(serve, send):
    """A secret is logged neither as it is in the URL nor as it was sent: where there may be a secret, no word is
    shown."""

    def script(exchange):
        exchange.read()
        path = exchange.call.line.split()[1]
        words = f"no page {path} for {exchange.call.fields['authorization']}, password p@ss/wOrD".encode()
        exchange.head(401, "Content-Type: text/plain", length=len(words))
        exchange.say(words)

    server = serve(script)
    url = server.url.replace("://", "://bob:p%40ss%2FwOrD@") + "/?key=QuErYvAlUe-NuMbEr-1"
    said = send(server, url=url, OTEL_EXPORTER_OTLP_HEADERS="")
    assert_dropped(server, said, "its words are not shown: the URL has credentials or a query")
    assert "QuErY" not in said[0] and "wOrD" not in said[0]


def test_a_final_status_costs_its_own_export_alone(serve, send):
    server = serve(status(400), OK)
    said = send(server, often=True)
    assert len(said) == 1 and "(HTTP status 400); they are dropped" in said[0], said
    taken = server.taken()
    assert server.calls[0].body not in taken and len(taken) == len(server.calls) - 1 >= 2


def test_an_overloaded_receiver_gets_all_in_the_end(serve, send):
    server = serve(status(503), status(429, "Retry-After: 1"), OK)
    assert_survived(server, send(server, often=True), r"\(HTTP status 503\)")
    assert server.calls[0].body == server.calls[1].body == server.calls[2].body


# --- Retry-After ---


def test_retry_after(serve, send):
    """The first delay of our own is one second at most."""
    server = serve(status(503, "Retry-After: 2"), OK)
    said = send(server)
    assert len(said) == 2 and len(server.calls) == 2
    assert server.calls[1].at - server.calls[0].at > 1.5


def test_retry_after_that_is_none(serve, send):
    """Such a Retry-After counts as absent; a past date is that of a receiver whose clock is slow."""
    server = serve(status(503, "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"), OK)
    said = send(server, OTEL_PROFILER_SHUTDOWN_TIMEOUT="10000")
    assert len(server.calls) == 2
    assert "being sent again" in said[-1]


def test_retry_after_that_is_long(serve, send):
    server = serve(status(503, "Retry-After: 60"), OK)
    said = send(server, OTEL_PROFILER_SHUTDOWN_TIMEOUT="5000")
    assert len(server.calls) == 1
    assert len(said) == 1 and "HTTP status 503" in said[0]


# --- no response, or a slow one ---


def hang(exchange):
    exchange.read()


def dribble_head(exchange):
    exchange.read()
    for byte in b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1000:
        exchange.say(bytes([byte]))
        time.sleep(0.02 if byte == ord("x") else 0.2)


def dribble_body(exchange):
    exchange.read()
    exchange.head(200, length=1000)
    for _ in range(1000):
        exchange.say(b"\0")
        time.sleep(0.02)


def test_no_answer(serve, send):
    server = serve(hang, OK)
    assert_survived(server, send(server, often=True, **GIVEN_UP), "timed out")


def test_no_answer_at_the_end(serve, send):
    """The end waits no longer than the variable's value, and the loss is logged once."""
    server = serve(hang)
    said = send(server, OTEL_PROFILER_SHUTDOWN_TIMEOUT="300")
    assert len(said) == 1 and "not done within 300 ms (OTEL_PROFILER_SHUTDOWN_TIMEOUT)" in said[0], said


def test_no_response_at_the_end_from_a_receiver_that_never_responded(serve, send):
    """At default settings a receiver gets less of the end's time than the exporter's own work."""
    server = serve(hang)
    said = send(server, OTEL_PROFILER_SHUTDOWN_TIMEOUT="")
    assert len(said) == 1 and re.search("no response before the end|not done within 2000 ms", said[0]), said


def test_a_connection_that_no_server_accepts(serve, send):
    """The connection is established in the kernel's queue; no process accepts it."""
    server = serve(OK, listening=False)
    server.listener.listen(QUEUE)
    said = send(server, often=True, OTEL_EXPORTER_OTLP_TIMEOUT="300", OTEL_PROFILER_SHUTDOWN_TIMEOUT="2000")
    assert len(said) == 1 and "timed out" in said[0], said


def test_a_head_that_comes_too_slowly(serve, send):
    server = serve(dribble_head, OK)
    assert_survived(server, send(server, often=True, **GIVEN_UP), "timed out")


def test_a_body_that_comes_too_slowly(serve, send):
    """The status already means that the profiles are taken: they are not sent twice."""
    server = serve(dribble_body, OK)
    assert send(server, often=True, OTEL_EXPORTER_OTLP_TIMEOUT="3000") == []
    assert_taken_once_and_in_order(server)


# --- cut short ---


@pytest.mark.parametrize("when", ["at once", "after the head", "within the body", "after the request"])
def test_reset(serve, send, when):
    def script(exchange):
        if when == "at once":
            exchange.wait_until_the_client_speaks()
            exchange.calls.append(type("Nothing", (), {"taken": False, "body": b""}))
        elif when in ("after the head", "within the body"):
            exchange.read_head()
        else:
            exchange.read()
        if when == "within the body" and not exchange.call.body:
            exchange.call.body = exchange.receive()
        exchange.reset()

    server = serve(script, OK)
    assert_survived(server, send(server, often=True), r"reset|Recv failure|Send failure|Empty reply|Broken pipe")


@pytest.mark.parametrize("code", [200, 400])
def test_reset_within_the_answer(serve, send, code):
    """The status has come: it counts, whatever became of the rest."""

    def script(exchange):
        exchange.read()
        exchange.head(code, length=100)
        exchange.say(b"x" * 50)
        exchange.reset()

    server = serve(script, OK)
    said = send(server, often=True)
    if code == 200:
        assert said == []
        assert_taken_once_and_in_order(server)
    else:
        assert len(said) == 1 and re.search(r"\(HTTP status 400(: x+)?\); they are dropped", said[0]), said
        assert server.calls[0].body not in server.taken()


def test_a_verdict_before_the_body_was_read(serve, send):
    """The body is larger than the sockets' buffers: the client does not send it to its end."""

    def script(exchange):
        exchange.read_head()
        exchange.head(413, "Connection: close")
        exchange.shut()
        is_over.wait()  # and reads nothing until the test is over

    is_over = threading.Event()
    server = serve(script)
    many_stacks = ["/usr/bin/python3", "-c", "import asyncio, email, http.client, unittest.mock, xmlrpc.client"]
    try:
        said = send(server, command=many_stacks, OTEL_PROFILER_ALLOC_INTERVAL="256", OTEL_PROFILER_MIN_LIFETIME="0")
    finally:
        is_over.set()
    assert_dropped(server, said, "(HTTP status 413)")


# --- huge, or garbage ---


@pytest.mark.parametrize("code", [200, 503])
def test_a_huge_answer(serve, send, code):
    """The response is read no further than 4 MiB; the status counts, and a retry would only bring the same again."""
    sent = []

    def script(exchange):
        exchange.read()
        exchange.head(code, length=None)
        try:
            for _ in range(64):
                exchange.say(b"\n" * (1 << 20))
                sent.append(1 << 20)
        except OSError:
            pass

    server = serve(script, OK)
    said = send(server)
    assert LIMIT <= sum(sent) + (1 << 20) and len(sent) < 64
    if code == 200:
        assert len(server.calls) == 1
        assert len(said) == 1 and "took the profiles, with a warning: its response is longer than 4 MiB" in said[0], said
    else:
        assert len(server.calls) == 2 and server.calls[0].body == server.calls[1].body
        assert len(said) == 2 and "(HTTP status 503)" in said[0], said


def partial_success():
    response = profiles_service_pb2.ExportProfilesServiceResponse()
    response.partial_success.rejected_profiles = 2
    response.partial_success.error_message = "too old\n\x1b[31m"
    return response.SerializeToString()


def test_partial_success(serve, send):
    server = serve(status(200, "Content-Type: application/x-protobuf", body=partial_success()))
    said = send(server)
    assert len(said) == 1 and said[0].endswith(r"the receiver rejected 2 profiles: too old\x0a\x1b[31m"), said


def test_success_without_words_is_no_warning_where_the_url_has_a_secret(serve, send):
    server = serve(status(200))
    assert send(server, url=f"{server.url}/?key=sEcReT") == []
    assert len(server.calls) == 1


def test_a_warning_with_success(serve, send):
    response = profiles_service_pb2.ExportProfilesServiceResponse()
    response.partial_success.error_message = "use v1"
    server = serve(status(200, body=response.SerializeToString()))
    said = send(server)
    assert len(said) == 1 and said[0].endswith("the receiver took the profiles, with a warning: use v1"), said


def test_success_with_garbage(serve, send):
    server = serve(status(200, body=partial_success()[:-1]))
    assert send(server) == []
    assert len(server.calls) == 1


def test_an_answer_that_is_no_http(serve, send):
    def script(exchange):
        exchange.read()
        exchange.say(b"220 mail.example ESMTP \x1b[31m\r\n")
        exchange.shut()

    server = serve(script, OK)
    assert_survived(server, send(server, often=True), r"/v1development/profiles \(.+\)")


def test_a_head_without_end(serve, send):
    """The status has come here, too; what follows is cut off."""

    def script(exchange):
        exchange.read()
        exchange.say(b"HTTP/1.1 503 X\r\n")
        for _ in range(500):
            exchange.say(b"X-Long: " + b"x" * 4000 + b"\r\n")

    server = serve(script, OK)
    said = send(server)
    assert len(said) == 2 and len(server.calls) == 2, said


# --- another address ---


def test_a_redirect_is_not_followed(serve, send):
    """A redirect would give the credentials to another server."""
    elsewhere = serve(OK)
    server = serve(status(307, f"Location: {elsewhere.url}/v1development/profiles"))
    assert_dropped(server, send(server), "(HTTP status 307)")
    assert elsewhere.connections == 0


def test_secrets_of_the_url_are_not_said(serve, send):
    server = serve(status(401))
    said = send(server, url=f"http://user:sEcReT@127.0.0.1:{server.port}/base?key=sEcReT")
    assert len(said) == 1 and f" 127.0.0.1:{server.port}/base/v1development/profiles refused" in said[0], said
    assert server.calls[0].line == "POST /base/v1development/profiles?key=sEcReT HTTP/1.1"
