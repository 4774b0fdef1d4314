"""The server of `otelprof view` and `live` serves one browser, at the server's own address. These tests need no
browser."""

import socket
import types

import pytest
from otelprof_lib.page_server import PageServer
from waiting import TIMEOUT_S

pytestmark = pytest.mark.fast

SECRET = b"what the page may see"


@pytest.fixture
def server():
    running = PageServer(0, "a.otlp", {"data": lambda _: ("text/plain", SECRET)}).start(opens=False)
    yield running
    running.shutdown()
    running.server_close()


def ask(server, *headers, path=None):
    """Returns (status, whether the response has the secret) of a request with these headers; HOST in one is the server's
    address."""
    lines = [f"GET {server.root + 'data' if path is None else path} HTTP/1.1", *headers, "Connection: close"]
    request = "\r\n".join([*lines, "", ""]).replace("HOST", f"127.0.0.1:{server.server_port}").replace("PORT", str(server.server_port))
    with socket.create_connection(server.server_address, timeout=TIMEOUT_S) as client:
        client.sendall(request.encode())
        with client.makefile("rb") as file:
            answer = file.read()
    return int(answer.split()[1]), SECRET in answer


@pytest.mark.parametrize("headers", [
    ["Host: HOST"], ["Host: localhost:PORT"], ["host: HOST", "origin: http://HOST"], ["Host: localhost:PORT", "Origin: http://localhost:PORT"],
    ["Host: HOST", "Origin: http://HOST", "Sec-Fetch-Site: same-origin"],
])
def test_the_page_itself_is_served(server, headers):
    assert ask(server, *headers) == (200, True)


@pytest.mark.parametrize("headers", [
    [], ["Host:"], ["Host: evil.example"], ["Host: evil.example:PORT"], ["Host: 127.0.0.1"], ["Host: localhost"], ["Host: 127.0.0.1:1"],
    ["Host: 127.0.0.2:PORT"], ["Host: [::1]:PORT"], ["Host: 0.0.0.0:PORT"], ["Host: HOST.evil.example"], ["Host: evil.example@HOST"],
    ["Host: HOST", "Host: evil.example"], ["Host: evil.example", "Host: HOST"], ["Host: HOST, evil.example"],
])
def test_a_request_for_another_host_is_refused(server, headers):
    """A name of another site that was rebound to 127.0.0.1 comes as Host, and its page's requests are of the same origin."""
    assert ask(server, *headers) == (403, False)
    assert ask(server, *headers, "Sec-Fetch-Site: same-origin") == (403, False)


@pytest.mark.parametrize("origin", [
    "http://evil.example", "http://evil.example:PORT", "https://HOST", "null", "", "http://127.0.0.1", "http://127.0.0.1:1",
    "http://localhost:PORT", "http://[::1]:PORT", "http://HOST/", "http://HOST.evil.example", "file://", "http://HOST http://evil.example",
])
def test_a_request_of_another_origin_is_refused(server, origin):
    """Some browsers send no Sec-Fetch-Site; `localhost` is another origin than the address, and may be another server's."""
    assert ask(server, "Host: HOST", f"Origin: {origin}") == (403, False)
    assert ask(server, "Host: HOST", f"Origin: {origin}", "Sec-Fetch-Site: same-origin") == (403, False)
    assert ask(server, "Host: HOST", "Origin: http://HOST", f"Origin: {origin}") == (403, False)
    assert ask(server, "Host: HOST", f"Origin: {origin}", "Sec-Fetch-Dest: document", path=server.root) == (403, False)


def test_a_request_of_another_origin_does_not_use_up_the_way_in(server):
    server._way_in = "/way-in"
    assert ask(server, "Host: HOST", "Origin: http://evil.example", path="/way-in") == (403, False)
    assert ask(server, "Host: evil.example:PORT", path="/way-in") == (403, False)
    assert ask(server, "Host: HOST", path="/way-in") == (302, False)


def test_a_browser_leaves_out_the_port_that_http_has_anyway():
    at = types.SimpleNamespace(server_port=80, root="/token/")
    assert PageServer.hosts.fget(at) == ("127.0.0.1", "localhost")
    assert PageServer.url.fget(at) == "http://127.0.0.1:80/token/"
