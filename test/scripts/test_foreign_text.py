"""Foreign text from processes and files cannot command a terminal, begin a line, or grow, wherever the command shows it."""

import os
import re
import socket
import threading

import pytest
from captured import otelprof
from otelprof_lib import control, listening
from otelprof_lib.capture_file import append_message
from otelprof_lib.formats import printable

EVIL = "\x1b]0;OWNED\x07\x1b[31m\u009b2J\u202e\r\n999999 root"
TOKEN = "the-token-of-this-user"


def assert_harmless(text):
    """Asserts that each line can be shown, and that none begins with the part of a name behind an end of a line."""
    assert printable(text.replace("\n", " ").replace("\t", " ")) == text.replace("\n", " ").replace("\t", " "), repr(text)
    assert not any(line.startswith("999999 root") for line in text.split("\n")), repr(text)


class Fake:
    """Is a process that responds as the test likes, at a Unix socket or a port; `asked` has its requests."""

    def __init__(self, listens, answers):
        self.asked = []
        self._listens, self._answers = listens, answers
        listens.listen()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                connection, _ = self._listens.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as request:
                head = b"".join(iter(request.readline, b"\r\n")).decode()
                self.asked.append(head)
                size = re.search(r"^Content-Length: (\d+)", head, re.M)
                request.read(int(size[1]) if size else 0)
                try:
                    for part in self._answers(self.asked[-1]):
                        connection.sendall(part)
                except OSError:
                    pass


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Makes the process of this id a fake, at a Unix socket or a port of its own."""
    opened = []

    def make(answers, is_unix=True):
        listens = socket.socket(socket.AF_UNIX) if is_unix else socket.create_server(("127.0.0.1", 0))
        if is_unix:
            listens.bind(str(tmp_path / "socket"))
        opened.append(listens)
        address = str(tmp_path / "socket") if is_unix else listening.Port(*listens.getsockname(), "1")
        monkeypatch.setattr(listening.Process, "address", lambda _: address)
        monkeypatch.setattr(listening, "_port", lambda *_: address)
        monkeypatch.setattr(listening, "process", lambda pid: listening.Process(os.getpid(), "", "", "a helper"))
        return Fake(listens, answers)

    yield make
    for listens in opened:
        listens.close()


def says(body, status="200 OK"):
    return lambda _: [f"HTTP/1.1 {status}\r\n\r\n".encode(), body]


@pytest.fixture
def ours():
    return listening.Process(os.getpid(), "", "", "a helper")


@pytest.mark.parametrize("what", ["status", "on", "flush"])
def test_an_answer_commands_no_terminal(fake, ours, capsys, what):
    fake(says(EVIL.encode()))
    control.WHAT[what](ours, [])
    said = capsys.readouterr().out
    assert "OWNED" in said and "\x1b" not in said and "\u009b" not in said and "\u202e" not in said


def test_a_refusal_is_one_short_line(fake, ours):
    fake(says(EVIL.encode() * 1000, "403 Forbidden"))
    with pytest.raises(listening.NoResponse) as refused:
        listening.ask(ours, "/status")
    assert_harmless(str(refused.value))
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 10_000


def test_an_answer_without_end_is_left(fake, ours, monkeypatch):
    monkeypatch.setattr(listening, "MOST_SAID", 1 << 20)
    fake(lambda _: [b"HTTP/1.1 200 OK\r\n\r\n"] + [b"a" * (1 << 20)] * 4)
    with pytest.raises(listening.NoResponse, match="more than 1 MiB"):
        listening.ask(ours, "/status")


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.1 200 OK\r\n"], ids=["body", "head"])
def test_an_answer_that_comes_byte_by_byte_has_one_time_limit(fake, ours, head):
    """Each byte comes within the timeout, but the response never ends."""
    over = threading.Event()

    def drips(_):
        yield head
        while not over.wait(0.05):
            yield b"a"

    fake(drips)
    with pytest.raises(listening.NoResponse, match="has not answered within 1 s"):
        listening.ask(ours, "/status", timeout=1)
    over.set()


@pytest.mark.parametrize("body", [b"[" * 200_000, b"{}", b"[]", b'{"settings":3}', b"\xff", b"1" * 10_000, b""], ids=len)
def test_a_status_that_is_none_is_said_to_be(fake, ours, body):
    fake(says(body))
    with pytest.raises(listening.NoResponse, match="something else than its status"):
        control._settings(ours)


def test_the_token_goes_only_where_one_is_asked_for(fake, ours, monkeypatch):
    monkeypatch.setenv("OTEL_PROFILER_LISTEN_TOKEN", TOKEN)
    asks_for_none = fake(says(b"{}"), is_unix=False)
    listening.ask(ours, "/status")
    asks_for_one = fake(lambda asked: says(b"{}")("") if TOKEN in asked else says(b"", "401 Unauthorized")(""), is_unix=False)
    listening.ask(ours, "/status")
    assert [TOKEN in asked for asked in asks_for_none.asked + asks_for_one.asked] == [False, False, True]


def test_no_unix_socket_gets_the_token(fake, ours, monkeypatch):
    monkeypatch.setenv("OTEL_PROFILER_LISTEN_TOKEN", TOKEN)
    asks = fake(says(b"", "401 Unauthorized"))
    with pytest.raises(listening.NoResponse):
        listening.ask(ours, "/status")
    assert len(asks.asked) == 1 and TOKEN not in asks.asked[0]


def test_a_list_of_processes_has_a_line_for_each(monkeypatch, capsys):
    """A process may listen in a folder with any name."""
    monkeypatch.setattr(listening, "processes", lambda: [listening.Process(1, EVIL, EVIL, "")])
    monkeypatch.setattr(listening, "shown", lambda _: f"unix:/tmp/{EVIL}/s")
    options = type("Options", (), {"width": 1000})
    control.ps(options)
    said = capsys.readouterr().out
    assert said.count("\n") == 2
    assert_harmless(said)


def test_no_process_ends_the_list(monkeypatch):
    real = listening._helper

    def fails(pid):
        if pid == os.getpid():
            raise OSError("its folder has gone")
        return real(pid)

    monkeypatch.setattr(listening, "_helper", fails)
    listening.processes()


def test_of_a_process_little_is_read(tmp_path):
    """A process can have a command line as large as its memory."""
    (tmp_path / "cmdline").write_bytes(b"a" * (4 * listening.MOST_READ))
    assert len(listening._read(str(tmp_path / "cmdline"))) == listening.MOST_READ


@pytest.mark.parametrize("command", [
    ["top", "{}"], ["threads", "{}"], ["locks", "{}"], ["diff", "{}", "{}"], ["top", "{}x"], ["export", "{}", "--format", "collapsed"],
    ["export", "{}", "--format", "collapsed", "-o", "out"], ["merge", "{}", "-o", "out"], ["pprof", "{}", "-o", "out"],
    ["flamegraph", "{}", "-o", "out"], ["top", "{}", "--kind", "heap"], ["run", "--quiet", "-o", "out", "--", "./{}"],
], ids=" ".join)
def test_no_name_of_a_file_commands_a_terminal(message, tmp_path, command):
    """This covers functions, modules, threads, locks, labels; and the file's own name."""
    labels = {"thread.name": EVIL, "thread.id": 1, "otelprof.wait.kind": EVIL, "otelprof.lock.name": EVIL, "otelprof.thread.state": EVIL,
              "otelprof.lock.address": "0x1000", EVIL: EVIL}
    export = message()
    for name, unit in (("samples", "count"), ("threads", "count"), ("contentions", "count"), ("off_cpu", "nanoseconds")):
        export.labelled(name, unit, 1, [((f"{EVIL}!{EVIL}", EVIL), 5000, None, labels)])
    name = "a\x1b[31m\n999999 root"
    with open(tmp_path / name, "wb") as file:
        append_message(file, export.bytes())
    done = otelprof(*(word.format(name) for word in command), cwd=tmp_path)
    assert_harmless(done.stdout)
    assert_harmless(done.stderr)
    assert "Traceback" not in done.stderr
