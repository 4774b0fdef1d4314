"""How the command finds the processes that answer, and where: scripts/otelprof_lib/answering.py."""

import os
import re
import socket
import threading

from conftest import ROOT
from otelprof_lib import answering


def test_the_helpers_names_are_those_of_the_library():
    names = re.findall(r'^#define HELPER_NAME\w* "(.*)"$', (ROOT / "common/helper_name.h").read_text(), re.M)
    assert answering.HELPERS == tuple(names)


def test_a_descriptor_that_is_closed_meanwhile_hides_no_other(monkeypatch):
    """The connection of the question before is closed between the listing and the first request for what it is."""
    helper = f"/proc/self/task/{threading.get_native_id()}"
    closes = socket.socket().detach()
    listed = []

    def stat(path, real=os.stat):
        if not listed:
            os.close(closes)
        listed.append(path)
        return real(path)

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(answering.os, "stat", stat)
        asked = answering.Process(os.getpid(), "", "", helper)
        assert asked.address() == server.getsockname()[1]
    assert f"{helper}/fd/{closes}" in listed
