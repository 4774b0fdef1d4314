"""Each path allows its methods of HTTP; HEAD is GET without its body and without its work."""

import pytest
from endpoint import ROUTES, asked, at_port  # noqa: F401 # fixtures

pytestmark = pytest.mark.system


def test_every_route_answers(asked):
    running = asked()
    for method, path, _ in ROUTES:
        answer = running.process.ask(path, method)
        assert answer.status == 200 and answer.body, path
        for other in {"DELETE", "OPTIONS", "PUT", "GET", "POST"} - {method}:
            refused = running.process.ask(path, other)
            assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD" if method == "GET" else method), (other, path)
    assert running.process.ask("/").text == running.process.ask("/debug/pprof/").text
    assert running.process.ask("/nothing").status == 404
    running.over()


def test_the_folder_without_its_slash_leads_to_the_page(asked):
    """As with Go's net/http/pprof: people type it so."""
    running = asked()
    for method in ("GET", "HEAD"):
        answer = running.process.ask("/debug/pprof", method)
        assert (answer.status, answer.headers["Location"]) == (301, "/debug/pprof/")
    assert running.process.ask("/debug/pprof", "POST").status == 405
    assert running.process.ask("/debug/pprofs").status == 404
    running.over()


@pytest.mark.parametrize("place", ["socket", "port"])
def test_a_request_with_several_host_headers_is_refused(asked, at_port, place):
    """RFC 9112, 3.2, requires 400: a proxy and a server may each go by another one of them."""
    running = asked() if place == "socket" else at_port()
    for names in (("Host", "host"), ("Host", "Host")):
        connection = running.process.connection()
        connection.putrequest("GET", "/status", skip_host=True)
        for name in names:
            connection.putheader(name, "localhost")
        connection.endheaders()
        assert connection.getresponse().status == 400
        connection.close()
    assert running.process.ask("/status").status == 200
    running.over()


def bytes_of(process, method, path):
    """Returns all bytes of a response: an HTTP client would ignore what a response to HEAD must not have."""
    connection = process.connection()
    connection.request(method, path)
    with connection.sock.makefile("rb") as stream:
        return stream.read()


def headers_of(answer):
    return {name: value for name, value in answer.headers.items() if name not in ("Date", "Content-Length")}


@pytest.mark.parametrize("path", ["/", "/status", "/metrics", "/nothing", "/control", "/debug/pprof/heap?seconds=0", "/debug/pprof/heap?seconds=1&debug=1",
                                  "/debug/pprof/profile?OTEL_PROFILER_CPU_FREQUENCY=x", "/debug/pprof/profile?OTEL_NOTHING=1"])
def test_head_is_get_without_a_body(asked, path):
    running = asked()
    get, head = running.process.ask(path), running.process.ask(path, "HEAD")
    assert head.status == get.status and headers_of(head) == headers_of(get)
    assert int(head.headers["Content-Length"]) > 0
    if path not in ("/status", "/metrics"):  # its figures have another length from moment to moment
        assert head.headers["Content-Length"] == get.headers["Content-Length"]
    assert bytes_of(running.process, "HEAD", path).partition(b"\r\n\r\n")[2] == b""
    running.over()


@pytest.mark.parametrize("path", ["/debug/pprof/profile", "/debug/pprof/profile?seconds=3600", "/debug/pprof/heap", "/debug/pprof/allocs?seconds=3600",
                                  "/debug/pprof/goroutine?debug=1", "/otlp", "/otlp?seconds=3600"])
def test_head_of_a_profile_records_nothing(asked, path):
    """HEAD neither makes an export nor changes a setting: each would show in the exports' number or last for an hour."""
    running = asked(OTEL_PROFILE_EXPORT_INTERVAL="3600000")
    before = running.process.status()
    where = f"{path}{'&' if '?' in path else '?'}OTEL_PROFILER_CPU_FREQUENCY=999"
    head = running.process.ask(where, "HEAD")
    assert head.status == 200 and "Content-Length" not in head.headers
    sent = bytes_of(running.process, "HEAD", where)
    assert sent.partition(b"\r\n\r\n")[2] == b"" and b"chunked" not in sent
    after = running.process.status()
    assert after["exports"] == before["exports"] and after["settings"] == before["settings"]
    if path in ("/debug/pprof/heap", "/debug/pprof/goroutine?debug=1", "/otlp"):
        assert headers_of(head) == headers_of(running.process.ask(where))
    running.over()
