"""Of the processes of one tree that have the same address to listen at, one listens, and the others report no fault."""

import calendar
import os
import time

import pytest
from endpoint import Process
from ports import reserved_port
from profiled import FORKS
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.fast

WAITS = """
import os, sys, time
def wait_for(name):
    while not os.path.exists(name): time.sleep(0.01)
"""
STARTS_A_CHILD = """
import subprocess
waits = sys.argv[3] + "wait_for(sys.argv[1])"
child = subprocess.Popen([sys.executable, "-c", waits, sys.argv[1]], env=dict(os.environ, OTEL_PROFILER_MIN_LIFETIME="0"))
print(child.pid, flush=True)
child.wait()
wait_for(sys.argv[2])
"""
LEAVES_A_CHILD = FORKS + """
pid = os.fork()
if pid: print(pid, flush=True)
wait_for(sys.argv[1 if pid else 2])
"""


@pytest.fixture(params=["unix", "port"])
def place(request, tmp_path):
    """Returns (OTEL_PROFILER_LISTEN, the address)."""
    if request.param == "unix":
        return f"unix:{tmp_path}/socket", Process(tmp_path / "socket")
    port = reserved_port()
    return f"127.0.0.1:{port}", Process(port)


@pytest.fixture
def tree(start, tmp_path, place):
    """tree(script, lifetime) -> processes; end() lets the first end, or the second."""
    stops = [tmp_path / "first", tmp_path / "second"]

    def begin(script, min_lifetime, exporter="otlp"):
        listen, process = place
        running = start(["/usr/bin/python3", "-c", WAITS + script, *stops, WAITS], log_to_stderr=True,
                        env={"OTEL_PROFILER_LISTEN": listen, "OTEL_PROFILE_EXPORT_INTERVAL": "200", "OTEL_LOG_LEVEL": "debug",
                             "OTEL_PROFILER_MIN_LIFETIME": min_lifetime, "OTEL_PROFILES_EXPORTER": exporter})
        return Tree(running, process, stops)

    yield begin
    for stop in stops:
        stop.touch()


class Tree:
    def __init__(self, running, process, stops):
        self.running, self.process, self.stops = running, process, stops
        self.parent = running.process.pid
        self.child = int(eventually(lambda: os.pread(running.out.fileno(), 20, 0), "the child", unless=running.process.poll))

    def who_answers(self):
        try:
            return self.process.status()["pid"]
        except OSError:
            return None

    def levels(self, pid):
        """Returns the levels of the lines that report that a process does not listen."""
        lines = os.pread(self.running.err.fileno(), 1_000_000, 0).decode().splitlines()
        return [line.split()[1] for line in lines if line.startswith(f"libotelprof[{pid}]") and "cannot listen" in line]


def test_a_child_that_comes_before_its_parent_answers_until_it_ends(tree):
    """The parent, which begins its work later, logs nothing at default settings, and listens after the child."""
    for seconds in (2, 8, 32, 128):
        found = tree(STARTS_A_CHILD, str(1000 * seconds))
        if eventually(found.who_answers, "an answer") == found.child:
            break
        for stop in found.stops:
            stop.touch()
        found.running.finish(TIMEOUT_S)
        for stop in found.stops:
            stop.unlink()
    eventually(lambda: found.levels(found.parent), "the parent says that it does not answer")
    assert found.who_answers() == found.child
    found.stops[0].touch()
    eventually(found.who_answers, "an answer of the parent", holds=lambda pid: pid == found.parent)
    assert found.levels(found.parent) == ["debug:"]


def since(profile):
    """Returns where its sums begin, in seconds of Unix time."""
    (comment,) = (profile.text(it) for it in profile.message.comment)
    return calendar.timegm(time.strptime(comment, "sums since %Y-%m-%dT%H:%M:%SZ"))


@pytest.mark.parametrize("exporter", ["otlp", "none"])
def test_a_child_answers_once_its_parent_has_ended(tree, exporter):
    """This holds also where only clients' requests have it profiled. Its sums report that they begin with its
    listening."""
    found = tree(LEAVES_A_CHILD, "0", exporter)
    begun = time.time()
    eventually(lambda: found.levels(found.child) or found.levels(found.parent), "one says that it does not answer")
    first, second = (found.child, found.parent) if found.levels(found.parent) else (found.parent, found.child)
    assert eventually(found.who_answers, "an answer") == first
    assert since(found.process.profile("allocs")) <= begun
    eventually(lambda: int(time.time()) > begun, "a second that begins later")  # sums give whole seconds
    found.stops[0 if first == found.parent else 1].touch()
    eventually(found.who_answers, "an answer of the other", holds=lambda pid: pid == second)
    assert found.levels(second) == ["debug:"]
    assert since(found.process.profile("allocs")) > begun
