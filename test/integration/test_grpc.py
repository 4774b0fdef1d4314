"""After each response of a gRPC server the profiles are sent again, or dropped, as the response requires.

This file has one case of each behaviour. test_grpc.c has the tables (codes, statuses, details, messages and malformed
ones), and test_queue.c has compressed responses.
"""

import gzip
import subprocess

import pytest

from grpc_server import HEADERS, OK, GrpcServer, answer, retry_info, status, trailers_only, wrapped
from profiled import Outcome, check_conformance, profiles_service_pb2
from tcp_peers import OneGreeting, Proxy

pytestmark = pytest.mark.system

NAMES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS "
    "PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED "
    "INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split()
RESET = {"NO_ERROR": 0, "INTERNAL_ERROR": 2, "REFUSED_STREAM": 7, "CANCEL": 8}


SERVER = GrpcServer


@pytest.fixture
def send(burn):
    """send(server, milliseconds) -> the profiler's log; the first export comes with the program's end, unless
    `often`."""

    def burn_for(server, milliseconds=200, often=False, command=None, **environment):
        environment = {
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.port}",
            "OTEL_PROFILE_EXPORT_INTERVAL": "200" if often else "86400000",
            **environment,
        }
        return burn(environment, milliseconds, command)

    return burn_for


def assert_sent_again(server, said, why):
    """Asserts that the first call came once more and unchanged, and that the profiler logged so once."""
    assert len(server.calls) == 2
    assert server.calls[0].body == server.calls[1].body
    check_conformance(server.calls[1].message())
    assert [line for line in said if "cannot be sent" in line and why in line], said
    assert [line for line in said if "being sent again" in line], said
    assert len(said) == 2


def assert_dropped(server, said, why):
    assert len(server.calls) == 1
    assert len(said) == 1 and "they are dropped" in said[0] and why in said[0], said


def test_the_call(serve, send):
    server = serve(OK)
    said = send(
        server, OTEL_EXPORTER_OTLP_TIMEOUT="2500",
        OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20t,x-scope=a%2Cb",
    )
    assert said == []
    (call,) = server.calls
    fields = call.fields
    method = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
    assert fields[":method"] == "POST" and fields[":path"] == method
    assert fields[":scheme"] == "http" and fields[":authority"] == f"127.0.0.1:{server.port}"
    assert fields["content-type"] == "application/grpc"
    assert fields["te"] == "trailers"
    assert fields["grpc-timeout"] == "2500m"
    assert fields["otlp-profiles-development-version"] == "1"
    assert fields["user-agent"].startswith("libotelprof/")
    assert (fields["authorization"], fields["x-scope"]) == ("Bearer t", "a,b")
    assert not fields.keys() & {"grpc-encoding", "content-encoding", "expect", "upgrade", "connection"}
    assert not fields.keys() & {"grpc-accept-encoding", "accept-encoding"}, "what we do not read"
    message = call.message()
    check_conformance(message)
    assert Outcome(0, "", "", [message]).instance("burn").cpu_total() > 0.9 * 0.2e9


def test_compressed(serve, send):
    server = serve(OK)
    assert send(server, OTEL_EXPORTER_OTLP_COMPRESSION="gzip") == []
    assert server.calls[0].fields["grpc-encoding"] == "gzip"
    assert "content-encoding" not in server.calls[0].fields
    check_conformance(server.calls[0].message())


def test_zstd_is_named(serve, send):
    server = serve(OK)
    assert send(server, OTEL_EXPORTER_OTLP_COMPRESSION="zstd") == []
    call = server.calls[0]
    assert call.fields["grpc-encoding"] == "zstd"
    assert call.body[0] == 1 and call.body[5:9] == b"\x28\xb5\x2f\xfd", "zstd's magic number"


# --- status codes ---


@pytest.mark.parametrize("name, kind", [("DATA_LOSS", answer), ("UNAVAILABLE", trailers_only)])
def test_status_that_may_be_retried(serve, send, name, kind):
    server = serve(kind(status(NAMES.index(name), "later")), OK)
    assert_sent_again(server, send(server), f"gRPC status {name}: later")


@pytest.mark.parametrize("name, kind", [("UNAUTHENTICATED", answer), ("INTERNAL", trailers_only)])
def test_status_that_is_final(serve, send, name, kind):
    server = serve(kind(status(NAMES.index(name), "no%21 %E2%82%AC%0a")))
    assert_dropped(server, send(server), f"gRPC status {name}: no! €)")


def test_status_that_is_none(serve, send):
    server = serve(trailers_only(status("4294967310")))
    assert_dropped(server, send(server), "gRPC status UNKNOWN")


def test_ok_without_a_message_or_more(serve, send):
    server = serve(trailers_only(status(0)))
    assert send(server) == []
    assert len(server.calls) == 1


def test_informational_answers_come_first(serve, send):
    def script(exchange):
        exchange.wait_for_the_end()
        exchange.headers([(":status", "103"), ("grpc-status", "3")])
        exchange.headers(HEADERS)
        exchange.data(wrapped(b""))
        exchange.headers(status(0), end=True)

    server = serve(script)
    assert send(server) == []


# --- RetryInfo ---


@pytest.mark.parametrize("padded, kind", [(False, answer), (True, trailers_only)])
def test_exhausted_with_retry_info(serve, send, padded, kind):
    server = serve(kind(status(8, "full", retry_info(0, 1000000, padded))), OK)
    assert_sent_again(server, send(server), "gRPC status RESOURCE_EXHAUSTED: full")


def test_exhausted_with_garbage(serve, send):
    server = serve(trailers_only(status(8, "full", retry_info(1)[:-3])))
    assert_dropped(server, send(server), "gRPC status RESOURCE_EXHAUSTED: full")


def test_the_delay_of_retry_info_is_kept(serve, send):
    """The server is unavailable for a minute: without the hint the next attempt would come within a second."""
    server = serve(trailers_only(status(14, "busy", retry_info(60))), OK)
    said = send(server, OTEL_PROFILER_SHUTDOWN_TIMEOUT="2000")
    assert len(said) == 1 and "UNAVAILABLE: busy" in said[0]
    assert len(server.calls) == 1


# --- partial success ---


def partial_success(rejected, message):
    response = profiles_service_pb2.ExportProfilesServiceResponse()
    response.partial_success.rejected_profiles = rejected
    response.partial_success.error_message = message
    return response.SerializeToString()


def test_partial_success(serve, send):
    server = serve(answer(status(0), wrapped(partial_success(2, "too old"))))
    said = send(server)
    assert len(said) == 1 and "rejected 2 profiles: too old" in said[0], said
    assert len(server.calls) == 1


NO_MESSAGE = {
    "no protobuf": wrapped(b"\xff\xff\xff"),
    "a huge length": b"\0\xff\xff\xff\xff" + partial_success(2, "x"),
    "many": b"\0" * 200000,
}


@pytest.mark.parametrize("kind", NO_MESSAGE)
def test_ok_with_a_message_that_is_none(serve, send, kind):
    body = NO_MESSAGE[kind]

    def script(exchange):
        exchange.wait_for_the_end()
        exchange.headers(HEADERS)
        for start in range(0, len(body), 16000):
            while exchange.h2.local_flow_control_window(exchange.stream) < 16000:
                exchange.receive()
            exchange.data(body[start:start + 16000])
        exchange.headers(status(0), end=True)

    server = serve(script)
    assert send(server) == []
    assert len(server.calls) == 1


def zstd(data):
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_compressed_message_is_read(serve, send, pack):
    """The client did not request compression, but servers compress a response as the call was."""
    body = wrapped(pack(partial_success(2, "too old")), flag=1)
    said = send(serve(answer(status(0), body)))
    assert len(said) == 1 and "rejected 2 profiles: too old" in said[0], said


def test_a_compressed_message_without_text(serve, send):
    assert send(serve(answer(status(0), wrapped(gzip.compress(b""), flag=1)))) == []


@pytest.mark.parametrize("body", [gzip.compress(bytes(1 << 20)), b""], ids=["much", "nothing"])
def test_a_compressed_message_that_is_none(serve, send, body):
    """The status already means that the profiles are taken: they are not sent again."""
    server = serve(answer(status(0), wrapped(body, flag=1)))
    assert send(server, 800, often=True) == []
    assert len(server.calls) >= 3 and len({call.body for call in server.calls}) == len(server.calls)


def test_an_announced_compression_that_is_not_used(serve, send):
    """Each message has a mark of its own whether it is compressed."""
    body = wrapped(partial_success(2, "too old"))
    server = serve(answer(status(0), body, HEADERS + [("grpc-encoding", "gzip")]))
    said = send(server)
    assert len(said) == 1 and "rejected 2 profiles: too old" in said[0], said


@pytest.mark.parametrize("name", ["UNAVAILABLE", "INVALID_ARGUMENT"])
def test_a_compressed_message_with_an_error(serve, send, name):
    """The status alone counts then."""
    body = wrapped(gzip.compress(partial_success(2, "x")), flag=1)
    server = serve(answer(status(NAMES.index(name), "no"), body, HEADERS + [("grpc-encoding", "gzip")]), OK)
    said = send(server)
    if name == "UNAVAILABLE":
        assert_sent_again(server, said, "gRPC status UNAVAILABLE: no")
    else:
        assert_dropped(server, said, "gRPC status INVALID_ARGUMENT: no")


def test_an_answer_without_end(serve, send):
    """The response is read no further than 4 MiB, and not requested again."""

    def script(exchange):
        exchange.wait_for_the_end()
        exchange.headers(HEADERS)
        while True:
            while exchange.h2.local_flow_control_window(exchange.stream) < 16000:
                exchange.receive()
            exchange.data(b"\0" * 16000)

    server = serve(script)
    assert_dropped(server, send(server), "its response is longer than 4 MiB")


# --- responses that are not gRPC's ---


def test_missing_trailers(serve, send):
    def script(exchange):
        exchange.wait_for_the_end()
        exchange.headers(HEADERS)
        exchange.data(wrapped(b""), end=True)

    server = serve(script)
    assert_dropped(server, send(server), "HTTP status 200 without a gRPC status, taken as UNKNOWN")


def test_http_status_that_may_be_retried(serve, send):
    server = serve(trailers_only([], [(":status", "429")]), OK)
    assert_sent_again(server, send(server), "HTTP status 429 without a gRPC status, taken as UNAVAILABLE")


def test_http_status_that_is_final(serve, send):
    server = serve(trailers_only([], [(":status", "302"), ("location", "/")]))
    assert_dropped(server, send(server), "HTTP status 302 without a gRPC status, taken as UNKNOWN")


def test_a_grpc_status_counts_more_than_https(serve, send):
    server = serve(trailers_only(status(3, "bad"), [(":status", "503")]))
    assert_dropped(server, send(server), "gRPC status INVALID_ARGUMENT: bad")


# --- responses that are cut short: the receiver may be back in a moment ---


def assert_survived(server, said):
    """Asserts that the program ran on, that the first call came once more, and that later calls came, too."""
    assert len(server.calls) >= 3
    assert any(call.body == server.calls[0].body for call in server.calls[1:])
    assert len([line for line in said if "cannot be sent" in line]) == 1
    assert "being sent again" in said[-1]


@pytest.mark.parametrize(
    "code, after",
    [("INTERNAL_ERROR", "nothing"), ("CANCEL", "headers"), ("NO_ERROR", "data")],
)
def test_reset(serve, send, code, after):
    def script(exchange):
        exchange.wait_for_the_end()
        if after != "nothing":
            exchange.headers(HEADERS)
        if after == "data":
            exchange.data(wrapped(b"")[:3])
        exchange.reset(RESET[code])

    server = serve(script, OK)
    assert_survived(server, send(server, 1500, often=True))


@pytest.mark.parametrize("size", [0, 3])
def test_an_answer_that_ends_too_early(serve, send, size):
    """The response ends before or in the middle of its message, as if it were complete."""
    def script(exchange):
        exchange.wait_for_the_end()
        exchange.headers(HEADERS)
        exchange.data(wrapped(b"")[:size], end=True)

    server = serve(script, OK)
    assert_survived(server, send(server, 1500, often=True))


def test_a_refused_stream_is_sent_again(serve, send):
    server = serve(lambda exchange: exchange.reset(RESET["REFUSED_STREAM"]), OK)
    send(server, 1500, often=True)
    assert len(server.calls) >= 3
    assert any(call.body == server.calls[1].body for call in server.calls[1:])


@pytest.mark.parametrize("when", ["at once", "after the data"])
def test_closed(serve, send, when):
    def script(exchange):
        if when != "at once":
            exchange.wait_for_the_end()
            exchange.headers(HEADERS)
            exchange.data(wrapped(b"")[:3])
        exchange.break_off()

    server = serve(script, OK)
    said = send(server, 1500, often=True)
    assert "being sent again" in said[-1]
    check_conformance(server.calls[-1].message())


def test_going_away(serve, send):
    def script(exchange):
        exchange.wait_for_the_end()
        exchange.go_away(0)
        exchange.shut()

    server = serve(script, OK)
    said = send(server, 1500, often=True)
    if said:
        return assert_survived(server, said)
    # newer libcurl (8.14) treats that as a call that the server has not seen, and repeats it by itself
    assert len(server.calls) >= 3
    assert [call.body for call in server.calls].count(server.calls[0].body) == 2


def test_a_server_that_never_answers(serve, send):
    server = serve(lambda exchange: exchange.wait_for_the_end(), OK)
    said = send(server, 4000, often=True, OTEL_EXPORTER_OTLP_TIMEOUT="1500")
    assert server.calls[0].fields["grpc-timeout"] == "1500m"
    assert_survived(server, said)


@pytest.mark.parametrize("end", [True, False])
def test_a_verdict_before_the_body_was_read(serve, send, end):
    """The rest of the body is not sent: the server's response counts."""

    def script(exchange):
        exchange.headers(HEADERS + status(3, "too large"), end=end)

    server = serve(script, takes_all=False)
    many_stacks = ["/usr/bin/python3", "-c", "import asyncio, email, http.client, unittest.mock, xmlrpc.client"]
    said = send(
        server, command=many_stacks, OTEL_PROFILER_ALLOC_INTERVAL="256", OTEL_PROFILER_MIN_LIFETIME="0",
        OTEL_EXPORTER_OTLP_TIMEOUT="3600000", OTEL_PROFILER_SHUTDOWN_TIMEOUT="10000",
    )
    assert_dropped(server, said, "gRPC status INVALID_ARGUMENT: too large")
    assert len(server.calls[0].body) == 65535 and not server.calls[0].ended


def test_a_status_before_the_connection_ends(serve, send):
    def script(exchange):
        exchange.wait_for_the_end()
        exchange.headers(HEADERS + status(3, "no"))
        exchange.shut()

    server = serve(script)
    assert_dropped(server, send(server), "gRPC status INVALID_ARGUMENT: no")


@pytest.mark.parametrize("size", [20000, 2000000])
def test_headers_without_end(serve, send, size):
    """The headers are more than any server needs: libcurl may refuse them, and nothing of ours may break."""
    server = serve(trailers_only([("x-long", "x" * 4000)] * (size // 4000) + status(14, "m" * 4000)), OK)
    said = send(server, 1500, often=True)
    assert len([line for line in said if "cannot be sent" in line]) == 1
    assert "being sent again" in said[-1]
    assert max(map(len, said)) < 600


# --- a proxy ---


@pytest.mark.parametrize("host", ["collector.example", "localhost.example", "127.example"])
def test_through_a_proxy(serve, send, host):
    server = serve(OK)
    proxy = Proxy(server)
    said = send(
        server, http_proxy=f"http://127.0.0.1:{proxy.port}",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{host}:4317",
    )
    assert said == []
    assert proxy.requests[0].startswith(f"CONNECT {host}:4317 HTTP/1.1\r\n".encode())
    assert b"grpc" not in proxy.requests[0], "the headers are for the receiver alone"
    check_conformance(server.calls[0].message())


# --- what listens there is no gRPC server ---


GREETINGS = {
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("kind", GREETINGS)
def test_another_kind_of_server(send, kind):
    server = OneGreeting(GREETINGS[kind])
    said = send(server, 1000, often=True, OTEL_PROFILER_SHUTDOWN_TIMEOUT="2000")
    server.stop()
    assert server.connections >= 1
    assert len(said) == 1 and "(connected, but no gRPC response: " in said[0], said
