"""Whatever clients do to a process that listens, the program does not notice."""

import concurrent.futures
import contextlib
import os
import socket
import threading

import pytest
from endpoint import asked  # noqa: F401 # a fixture
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

CONNECTIONS = 32  # the most at once: MOST_CONNECTIONS of http_server.c


def test_many_clients_at_once_are_all_answered(asked):
    running = asked()

    def ask(number):
        path = ["/status", "/debug/pprof/heap", "/metrics", "/debug/pprof/profile?seconds=1", "/otlp"][number % 5]
        return running.process.ask(path).status

    with concurrent.futures.ThreadPoolExecutor(16) as pool:  # the most profiles over a time that are made at once
        assert set(pool.map(ask, range(100))) == {200}
    assert running.over().returncode == 7


GARBAGE = [b"\0" * 5000, b"GET " + b"x" * 100_000, b"\r\n" * 10_000, b"GET / HTTP/9.9\r\n\r\n", b"POST /control HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 100_000,
           b"POST /control HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx", b"GET /%ff%00%2e%2e/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
           b"GET /status?" + b"&a=b" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", os.urandom(10_000)]


def test_garbage_is_refused_and_the_next_request_answered(asked, tmp_path):
    """All kinds of garbage come at once: requests that could still go on are refused when their time is over."""
    running = asked()

    def send(garbage):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(TIMEOUT_S)
            client.connect(str(tmp_path / "socket"))
            with contextlib.suppress(ConnectionError):
                client.sendall(garbage)
                client.shutdown(socket.SHUT_WR)
                client.recv(65536)
        return running.process.status()["pid"]

    with concurrent.futures.ThreadPoolExecutor(len(GARBAGE)) as pool:
        assert list(pool.map(send, GARBAGE)) == [running.program.process.pid] * len(GARBAGE)
    outcome = running.over()
    assert (outcome.returncode, outcome.stdout) == (7, "1\n")


def try_to_connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.setblocking(False)
    try:
        client.connect(str(path))
    except BlockingIOError:  # too many clients wait already
        pass
    return client


def test_ten_thousand_connections_are_borne(asked, tmp_path):
    running = asked()
    for _ in range(10_000):
        try_to_connect(tmp_path / "socket").close()
    assert running.process.until_it_answers().status == 200
    assert running.over().returncode == 7


def test_silent_clients_do_not_keep_others_out(asked, tmp_path):
    """More clients connect than connections are allowed: the silent ones are closed in the end."""
    running = asked()
    silent = [try_to_connect(tmp_path / "socket") for _ in range(CONNECTIONS + 1)]
    assert running.process.until_it_answers().status == 200
    for client in silent:
        client.close()
    assert running.over().returncode == 7


def test_clients_that_drip_do_not_keep_others_out(asked, tmp_path):
    """A byte now and then is no silence: a request as a whole has a time limit."""
    running = asked()
    clients = [try_to_connect(tmp_path / "socket") for _ in range(CONNECTIONS + 1)]
    is_over = threading.Event()

    def drip():
        while not is_over.wait(1):
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        assert running.process.until_it_answers().status == 200
    finally:
        is_over.set()
        dripping.join()
    assert running.over().returncode == 7


def test_endless_windows_have_a_bound(asked):
    """Clients request profiles of all stacks, as many clients as can connect."""
    running = asked(OTEL_PROFILER_ALLOC_INTERVAL="1", OTEL_PROFILE_EXPORT_INTERVAL="100")
    waiting = [running.process.connection() for _ in range(20)]
    for connection in waiting:
        connection.request("GET", "/otlp?seconds=3600")
    begun = running.process.status()["exports"]["delivered"]
    eventually(lambda: running.process.status()["exports"]["delivered"] >= begun + 20, "20 exports", unless=running.program.process.poll)
    assert running.process.status()["dropped"]["encode"] == 0
    assert running.over().returncode == 7


def test_profiles_over_a_time_leave_half_of_the_places(asked):
    running = asked()
    waiting = [running.process.connection() for _ in range(16)]
    for connection in waiting:
        connection.request("GET", "/otlp?seconds=3600")
    eventually(lambda: running.process.ask("/otlp?seconds=1").body, "a refusal", unless=running.program.process.poll,
               holds=lambda body: body.startswith(b"There are 16 profiles over a time"))
    assert running.process.ask("/status").status == 200
    assert running.over().returncode == 7


def test_exports_go_on_while_clients_wait(asked):
    """A client that waits for a profile of an hour delays no export."""
    running = asked(OTEL_PROFILE_EXPORT_INTERVAL="200")
    waiting = [running.process.connection() for _ in range(5)]
    for connection in waiting:
        connection.request("GET", "/debug/pprof/profile?seconds=3600")
    delivered = running.process.status()["exports"]["delivered"]
    eventually(lambda: running.process.status()["exports"]["delivered"] >= delivered + 3, "three exports more")
    assert running.over().returncode == 7  # and the end waits for no client


def test_the_program_has_no_descriptor_of_it(asked):
    running = asked()
    descriptors = os.listdir(f"/proc/{running.program.process.pid}/fd")
    links = [os.readlink(f"/proc/{running.program.process.pid}/fd/{number}") for number in descriptors]
    assert not [link for link in links if link.startswith("socket:") or "eventpoll" in link]
    running.over()
