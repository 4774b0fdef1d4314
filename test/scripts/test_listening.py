"""The command finds the processes that listen, and their addresses: scripts/otelprof_lib/listening.py."""

import errno
import os
import re
import socket
import threading

import pytest
from conftest import ROOT
from otelprof_lib import cli, listening

ENDED = 999_999_999  # no process has this id


def test_the_helpers_names_are_those_of_the_library():
    names = re.findall(r'^#define HELPER_NAME\w* "(.*)"$', (ROOT / "common/helper_name.h").read_text(), re.M)
    assert listening.HELPERS == tuple(names)


def test_a_descriptor_that_is_closed_meanwhile_hides_no_other(monkeypatch):
    """The connection of an earlier request is closed between the listing and the reading of its link."""
    helper = f"/proc/self/task/{threading.get_native_id()}"
    closes = socket.socket().detach()
    listed = []

    def stat(path, real=os.stat):
        if not listed:
            os.close(closes)
        listed.append(path)
        return real(path)

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(listening.os, "stat", stat)
        asked = listening.Process(os.getpid(), "", "", helper)
        assert asked.address()[:2] == server.getsockname()
    assert f"{helper}/fd/{closes}" in listed


def test_a_process_that_ends_while_it_is_listed_ends_no_list(monkeypatch, tmp_path):
    """A descriptor is gone once its link has been read. A second reading of the link ended `ps` for all processes."""
    file = str(tmp_path / "a.sock")
    with socket.socket(socket.AF_UNIX) as listens:
        listens.bind(file)
        held = os.open(file, os.O_PATH)
    helper = f"/proc/self/task/{threading.get_native_id()}"

    def readlink(path, real=os.readlink):
        found = real(path)
        if path == f"{helper}/fd/{held}":
            os.close(held)
        return found

    monkeypatch.setattr(listening.os, "readlink", readlink)
    asked = listening.Process(os.getpid(), "", "", helper)
    assert listening.shown(asked) == f"unix:{file}"
    with pytest.raises(OSError):
        os.fstat(held)


def test_a_process_that_has_ended_answers_nowhere():
    assert listening.shown(listening.Process(ENDED, "", "", f"/proc/{ENDED}/task/{ENDED}")) == "-"


def test_a_process_that_ends_before_it_is_asked_is_said_to(monkeypatch):
    """The port of the process was still found."""
    monkeypatch.setattr(listening, "_port", lambda *_: listening.Port("127.0.0.1", 6060, "1"))
    with pytest.raises(listening.NoResponse, match=f"process {ENDED} has ended"):
        listening.ask(listening.Process(ENDED, "", "", f"/proc/{ENDED}/task/{ENDED}"), "/status")


def test_no_process_is_asked_in_the_place_of_another(tmp_path):
    """The kernel reports which process listens at a socket; a process of another namespace has no number here."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        listening.UnixConnection(str(tmp_path / "socket"), 10, os.getpid()).connect()
        with pytest.raises(listening.NoResponse, match=f"process {os.getpid()} answers at its socket"):
            listening.UnixConnection(str(tmp_path / "socket"), 10, os.getpid() + 1).connect()


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EPERM, errno.EIO, errno.ESTALE])
def test_a_file_system_that_serves_no_sockets_is_one_sentence(monkeypatch, capsys, number):
    """A network file system may have the socket's file, and connect nobody with it."""

    class Refusing(socket.socket):
        def connect(self, _):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(listening.socket, "socket", Refusing)
    monkeypatch.setattr(listening, "process", lambda pid: listening.Process(pid, "", "", "helper"))
    monkeypatch.setattr(listening.Process, "address", lambda _: "/net/socket")
    assert cli.main(["ctl", str(os.getpid()), "status"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"otelprof: process {os.getpid()} has not answered: [Errno {number}] {os.strerror(number)}\n")


def test_nothing_is_sent_where_the_process_listens_no_more():
    """The process has closed its port, and another process has taken it, between the reading of the table and the connection."""
    helper = f"/proc/self/task/{threading.get_native_id()}"
    asked = listening.Process(os.getpid(), "", "", helper)
    with socket.create_server(("127.0.0.1", 0)):
        port = asked.address()
        listening.PortConnection(asked, port, 10).connect()
        with pytest.raises(listening.NoResponse, match=re.escape(f"does not listen at {port} any more")):
            listening.PortConnection(asked, port._replace(inode="1"), 10).connect()


def test_addresses_of_both_tables_are_read():
    helper = f"/proc/self/task/{threading.get_native_id()}"
    for family, host, text in ((socket.AF_INET, "127.0.0.2", "127.0.0.2"), (socket.AF_INET6, "::1", "[::1]")):
        with socket.create_server((host, 0), family=family) as server:
            number = server.getsockname()[1]
            asked = listening.Process(os.getpid(), "", "", helper)
            assert asked.address()[:2] == (host, number)
            assert listening.shown(asked) == f"{text}:{number}"
