"""The tests keep their own rules: they wait for facts, and not for a time."""

import ast
import errno
import functools
import socket
import subprocess
from pathlib import Path

import pytest
from captured import OTELPROF
from conftest import cpu
from forked_command import run_command
from ports import closed_port, reserved_port
from waiting import eventually

pytestmark = pytest.mark.fast

TEST = Path(__file__).resolve().parents[1]
PROGRAMS = ("programs", "waits/programs")  # folders in which each program does what it is profiled for

# Each place that sleeps: (file, function) -> (how often, why). The list may only become shorter.
PACE = "paces a load, or looks at it from time to time"
SLOW = "is as slow as the test wants it"
POLL = "polls, in a room that has limits of its own"
BENCH = "measures, and asserts nothing"
DEBT = "waits for what nothing says, in a room that takes minutes"
SLEEPS = {
    ("lib/waiting.py", "eventually"): (1, "the one that polls"),
    ("integration/test_apps.py", "drive_redis"): (1, PACE),
    ("integration/test_endpoint.py", "raw"): (1, SLOW),
    ("integration/test_http_faults.py", "dribble_head"): (1, SLOW),
    ("integration/test_http_faults.py", "dribble_body"): (1, SLOW),
    ("apps/harness.py", "finish"): (1, POLL),
    ("apps/harness.py", "look"): (1, POLL),
    ("apps/loads_servers.py", "redis"): (1, PACE),
    ("apps/loads_servers.py", "haproxy"): (1, DEBT),
    ("bench/programs.py", "run_redis"): (1, BENCH),
    ("bench/samples.py", "totals"): (1, BENCH),
    ("bench/shares.py", "follow"): (1, BENCH),
    ("bench/shares.py", "measured"): (1, BENCH),
    ("bench/waits.py", "wait_for_port"): (1, BENCH),
    ("bench/waits.py", "run_pgbench"): (1, BENCH),
    ("fleet/fleet.py", "run_fleet"): (1, PACE),
    ("soak/churning.py", "soak_churn"): (1, PACE),
    ("soak/serving.py", "add"): (1, DEBT),
    ("soak/serving.py", "turn"): (2, PACE),
    ("torture/python_storm.py", ""): (1, "ends what hangs"),
    ("waits/loads.py", "paced"): (1, PACE),
    ("waits/loads.py", "work"): (1, PACE),
}

# The folders whose tests all wait by eventually()
ROOMS = ("integration", "scripts", "lib")


# --- what a file of Python does ---


@functools.cache
def sources():
    """Returns {path below test/: its tree}, of all Python files."""
    found = {}
    for path in sorted(TEST.rglob("*")):
        is_python = path.suffix == ".py" or not path.suffix and path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/python3")
        if is_python and not str(path.relative_to(TEST)).startswith(PROGRAMS):
            found[str(path.relative_to(TEST))] = ast.parse(path.read_text())
    return found


def nodes(tree, function=""):
    """Yields (node, the name of the innermost function around it), of all nodes below."""
    for node in ast.iter_child_nodes(tree):
        yield node, function
        yield from nodes(node, node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else function)


def called(node):
    """Returns the last part of the called function's name, or ''."""
    name = node.func if isinstance(node, ast.Call) else None
    return getattr(name, "attr", getattr(name, "id", ""))


def calls_of(tree, name):
    return [node for node in ast.walk(tree) if called(node) == name]


def sleeps_in(tree):
    """Returns functions, each as often as it sleeps."""
    return [function for node, function in nodes(tree) if called(node) == "sleep"]


def own_deadlines_in(tree):
    """Returns functions that compute a deadline."""
    return [function for node, function in nodes(tree)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and called(node.left) in ("monotonic", "perf_counter")]


def lost_ports_in(tree):
    """Returns functions that choose a port and close the socket that had it: another process may take the port."""
    found = []
    for node, function in nodes(tree):
        if isinstance(node, ast.With):
            opens = any(called(item.context_expr) in ("socket", "create_server") for item in node.items)
            if opens and calls_of(node, "bind") + calls_of(node, "create_server") and [it for it in ast.walk(node) if isinstance(it, ast.Return)]:
                found.append(function)
        elif called(node) == "close" and called(getattr(node.func, "value", None)) == "create_server":
            found.append(function)
    return found


# --- the rules ---


def test_nothing_sleeps_that_is_not_listed():
    """A test that sleeps before an assertion holds on one machine and not on the next: it must wait by eventually(),
    request an export by POST /flush, or count exports. The list has no superfluous entry."""
    found = {}
    for name, tree in sources().items():
        for function in sleeps_in(tree):
            found[name, function] = found.get((name, function), 0) + 1
    assert found == {place: count for place, (count, _) in SLEEPS.items()}


def test_no_test_computes_a_deadline():
    found = [f"{name}: {function}" for name, tree in sources().items() if name.split("/")[0] in ROOMS
             for function in own_deadlines_in(tree) if (name, function) != ("lib/waiting.py", "eventually")]
    assert found == [], "wait by eventually() of test/lib/waiting.py"


def test_no_port_is_chosen_and_given_up():
    """This holds for every folder: another process may take the port before it is used."""
    found = [f"{name}: {function}" for name, tree in sources().items() for function in lost_ports_in(tree)]
    assert found == [], "take a port of test/lib/ports.py, which is held"


BAD = '''
def test_fixed():
    program.start()
    time.sleep(2)
    assert program.exports
class Waiter:
    def until(self):
        end = time.monotonic() + 20
        from time import sleep
        while time.monotonic() < end:
            sleep(0.1)
def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
def a_port():
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, random.randrange(10000, 32000)))
            return port
def another():
    socket.create_server(("127.0.0.1", port)).close()
'''
GOOD = '''
def test_kept():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        use(s.getsockname()[1])
    elapsed = time.monotonic() - begun
    listener = socket.create_server(("127.0.0.1", 0))
    listener.close()
CODE = "import time; time.sleep(60)"
'''


@pytest.mark.parametrize("finds, found", [
    (sleeps_in, ["test_fixed", "until"]), (own_deadlines_in, ["until"]), (lost_ports_in, ["closed_port", "a_port", "another"])])
def test_each_rule_finds_its_offence(finds, found):
    assert finds(ast.parse(BAD)) == found
    assert finds(ast.parse(GOOD)) == []


# --- waiting for a fact ---


def test_the_first_value_that_holds_is_returned():
    values = iter([None, 0, "", 7, 8])
    assert eventually(lambda: next(values), "a value") == 7
    values = iter([1, 2, 3])
    assert eventually(lambda: next(values), "more than one", holds=lambda value: value > 1) == 2


def test_a_wait_in_vain_names_its_condition_and_the_last_value():
    with pytest.raises(AssertionError, match=r"in vain for three exports: 0 s are over; the last value: \[1, 2\]"):
        eventually(lambda: [1, 2], "three exports", timeout_s=0, holds=lambda found: len(found) == 3)


@pytest.mark.parametrize("status", [0, 1, -9, True, "the log"])
def test_an_end_is_noticed_at_once(status):
    """This holds also for an end with status 0."""
    with pytest.raises(AssertionError, match="in vain for an export"):
        eventually(lambda: None, "an export", unless=lambda: status)


@pytest.mark.parametrize("going", [None, False])
def test_a_running_process_is_awaited(going):
    values = iter([0, 0, 1])
    assert eventually(lambda: next(values), "a value", unless=lambda: going) == 1


def test_what_came_before_the_end_counts():
    """The program does something and ends between two polls."""
    written = []

    def ends():
        written.append("it")
        return 0

    assert eventually(lambda: written, "what it wrote", unless=ends) == ["it"]


# --- commands in a child ---


@pytest.mark.parametrize("words", [["top", "file"], ["top", "file", "--kind", "heap"], ["export", "file", "--format", "otlp-json"],
                                   ["top", "nowhere"], ["merge"], ["diff", "--help"]], ids=" ".join)
def test_a_forked_command_answers_as_the_command(message, tmp_path, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "file").write_bytes(cpu(message).bytes())
    forked, started = run_command(*words, cwd=tmp_path), subprocess.run([OTELPROF, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


# --- ports ---


def is_refused(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as client:
        return client.connect_ex((host, port)) == errno.ECONNREFUSED


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_at_a_closed_port_no_process_can_listen(host):
    port = closed_port(host)
    assert is_refused(host, port)
    with pytest.raises(OSError, match="already in use"):
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_at_a_reserved_port_a_server_listens_again_and_again(host):
    port = reserved_port(host)
    for _ in range(2):
        assert is_refused(host, port)
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            assert not is_refused(host, port)


def test_no_port_is_given_to_two():
    ports = [find() for _ in range(50) for find in (closed_port, reserved_port)]
    others = [socket.create_server(("127.0.0.1", 0)) for _ in range(50)]
    assert len({*ports, *(other.getsockname()[1] for other in others)}) == 150
    for other in others:
        other.close()
