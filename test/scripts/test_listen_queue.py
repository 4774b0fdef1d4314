"""Clients that connect while a server's accept loop does not run: on a busy machine nothing tells them from any others."""

import contextlib
import http.client
import socket

import pytest
from conftest import cpu
from otelprof_lib.page_server import PageServer
from otelprof_lib.receiver import PATH, PROTOBUF, Receiver
from otlp_sink import OtlpSink
from waiting import TIMEOUT_S

AT_ONCE = 60  # below MOST_CONNECTIONS of the receiver, far above socketserver's 5


@contextlib.contextmanager
def receiver(taken):
    server = Receiver("127.0.0.1", 0, taken.append)
    yield server.server_address, "POST", PATH, server.start
    server.stop()


@contextlib.contextmanager
def page(taken):
    server = PageServer(0, "page", {"data": lambda _: (taken.append(b""), ("text/plain", b""))[1]})
    yield server.server_address, "GET", f"{server.root}data", lambda: server.start(opens=False)
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def sink(taken):
    sink = OtlpSink(lambda body, _: taken.append(body), begins=False)
    yield sink.server.server_address, "POST", "/", sink.begin
    sink.close()


def connected(address):
    """A client whose connection has to be there after one repeated try: the kernel loses none on loopback but for a full queue."""
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
    client.connect(address)
    client.settimeout(TIMEOUT_S)
    return client


@pytest.mark.parametrize("server", [receiver, page, sink], ids=["receiver", "page", "sink"])
def test_all_who_connect_while_the_accept_loop_is_held_are_answered(message, server):
    taken = []
    body = cpu(message).bytes()
    with server(taken) as (address, method, path, begin), contextlib.ExitStack() as open_ones:
        clients = []
        for _ in range(AT_ONCE):
            client = http.client.HTTPConnection(*address, timeout=TIMEOUT_S)
            client.sock = open_ones.enter_context(connected(address))
            client.request(method, path, body if method == "POST" else None, {"Content-Type": PROTOBUF, "Connection": "close"})
            clients.append(client)
        assert not taken
        begin()
        assert [client.getresponse().status for client in clients] == [200] * AT_ONCE
        assert len(taken) == AT_ONCE
