"""The server of `otelprof view` gives the page its data, at the right time. These tests need no browser."""

import http.client
import types

import pytest
from otelprof_lib import view
from otelprof_lib.aggregate import aggregate
from otelprof_lib.page_data import page_lists
from otelprof_lib.page_server import PageServer
from otelprof_lib.shown_data import EVERYTHING, Shown
from served import described
from waiting import TIMEOUT_S

pytestmark = pytest.mark.fast


@pytest.fixture
def two_kinds(message):
    """Returns two stacks, each of which is in both kinds, and a third that is in one of them."""
    export = message().profile("samples", "count", 10_000_000, {("hot", "main"): 3, ("cold", "warm", "main"): 1})
    export.profile("alloc_space", "bytes", 1, {("hot", "main"): 100, ("cold", "warm", "main"): 7, ("new", "main"): 1})
    return aggregate([export.request])


def test_the_page_gets_each_stack_once_and_no_tree(two_kinds):
    data = described(Shown("", two_kinds).bytes)
    assert data["stacks"]["sizes"]["count"] == 3 and data["stacks"]["frames"]["count"] == 2 + 3 + 2
    assert [profile["samples"]["stacks"]["count"] for profile in data["profiles"]] == [2, 3]
    assert not any("tree" in profile for profile in data["profiles"])


def test_the_page_gets_trees_where_it_could_not_bear_the_stacks(two_kinds):
    data, *_ = page_lists("", two_kinds, limits=EVERYTHING._replace(stack_frames=6))
    assert "stacks" not in data and [len(profile["tree"]["parents"]) for profile in data["profiles"]] == [5, 6]
    assert "stacks" in page_lists("", two_kinds, limits=EVERYTHING._replace(stack_frames=7))[0]


def test_the_page_is_served_while_its_data_is_made(message, tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(message().profile("samples", "count", 1, {("f",): 1}).bytes())
    servers, answers = [], []

    def server_of(*arguments):
        servers.append(PageServer(*arguments))
        return servers[0]

    def made(*_):
        at = servers[0]
        connection = http.client.HTTPConnection("127.0.0.1", at.server_port, timeout=TIMEOUT_S)
        connection.request("GET", at.root)
        answers.append(connection.getresponse().status)
        return types.SimpleNamespace(bytes=b"")

    monkeypatch.setattr(view, "PageServer", server_of)
    monkeypatch.setattr(view, "_shown", made)
    monkeypatch.setattr(view, "until_ctrl_c", lambda server, _: server.shutdown())
    view.view(types.SimpleNamespace(file=str(tmp_path / "a"), port=0, no_open=True))
    assert answers == [200]
