"""Two threads end a process at once. The last export is the first end's, and so is the status; the second end waits.
The receiver responds when the test lets it."""

import os
import signal
import threading
from pathlib import Path

import pytest
from http_faults import message_of
from http_server import HttpServer
from profiled import check_conformance
from waiting import TIMEOUT_S, eventually

LIBC = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))

STATUS = {"exit": 3, "return": 3, "_exit": 3, "exit_group": 3, "quick_exit": 3, "cancelled": 3, "SIGTERM": -signal.SIGTERM}
SECOND = 4
FUTEX = "202"  # of x86-64
# no attempt is given up because the receiver waits for the test
PATIENT = {
    "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "86400000",
    "OTEL_PROFILER_SHUTDOWN_TIMEOUT": str(int(1000 * TIMEOUT_S)), "OTEL_EXPORTER_OTLP_TIMEOUT": str(int(1000 * TIMEOUT_S)),
}
SERVER = HttpServer


class Held:
    """Is a script: the response to the request is sent when the test lets it."""

    def __init__(self):
        self.came, self.may_answer = threading.Event(), threading.Event()

    def __call__(self, exchange):
        exchange.read()
        self.came.set()
        self.may_answer.wait(TIMEOUT_S)
        exchange.head(200, "Content-Type: application/x-protobuf")


class Answered(Held):
    """Is such a script with an immediate response."""

    def __init__(self):
        super().__init__()
        self.may_answer.set()


class Ending:
    """Holds a program in the middle of its first end's export."""

    def __init__(self, start, program, serve, go, first, second):
        self.held = Held()
        self.server = serve(self.held)
        self.running = start([program("ends_twice"), first, second, go],
                             env={**PATIENT, "OTEL_EXPORTER_OTLP_ENDPOINT": self.server.url})
        self.pid = self.running.process.pid
        assert self.held.came.wait(TIMEOUT_S), "the last export has not come"
        go.touch()

    def is_over(self):
        return self.running.process.poll() is not None

    def second_thread(self):
        """Returns the thread's id, once the second end comes; "" before."""
        self.running.out.seek(0)
        return self.running.out.read().decode().strip()

    def second_waits(self):
        try:
            call = Path(f"/proc/{self.pid}/task/{self.second_thread() or 0}/syscall").read_text()
        except OSError:
            return False
        return call.split()[0] == FUTEX

    def status(self):
        """Lets the receiver respond."""
        self.held.may_answer.set()
        outcome = self.running.finish(TIMEOUT_S)
        (call,) = self.server.calls
        check_conformance(message_of(call))
        return outcome.returncode


@pytest.fixture
def ending(start, program, serve, tmp_path):
    """ending(first, second) -> Ending"""
    begun = []

    def begin(first, second):
        begun.append(Ending(start, program, serve, tmp_path / "go", first, second))
        return begun[-1]

    yield begin
    for one in begun:
        one.held.may_answer.set()


@pytest.mark.parametrize("second", ["exit", "_exit", "exit_group", "quick_exit", "cancelled", "SIGTERM"])
@pytest.mark.parametrize("first", ["exit", "_exit", "SIGTERM"])
def test_a_second_end_waits_for_the_first(ending, first, second):
    ends = ending(first, second)
    eventually(lambda: ends.is_over() or ends.second_waits(), "the second end has not come")
    assert not ends.is_over(), "the second end has cut the export off"
    assert ends.status() == STATUS[first]


@pytest.mark.parametrize("first", ["return", "exit_group", "quick_exit", "cancelled"])
def test_whatever_the_first_end_is(ending, first):
    ends = ending(first, "_exit")
    eventually(lambda: ends.is_over() or ends.second_waits(), "the second end has not come")
    assert not ends.is_over(), "the second end has cut the export off"
    assert ends.status() == STATUS[first]


@pytest.mark.parametrize("first, status", [("exit", -signal.SIGTERM), ("_exit", 3)])
def test_a_signal_to_the_ending_thread_comes_behind_the_export(ending, first, status):
    """The signal would meet the thread in its exit handlers. Behind `_exit` there is no code that it could meet."""
    ends = ending(first, "to_main")
    eventually(lambda: ends.is_over() or ends.second_thread(), "the signal was not sent")
    eventually(lambda: ends.is_over() or not is_pending(ends.pid, signal.SIGTERM), "the thread has not met the signal")
    assert not ends.is_over(), "the signal has cut the export off"
    assert ends.status() == status


def is_pending(thread, number):
    lines = Path(f"/proc/{thread}/status").read_text().splitlines()
    pending = int(dict(line.split(":") for line in lines)["SigPnd"], 16)
    return bool(pending >> number - 1 & 1)


@pytest.mark.parametrize("first", ["exit", "_exit", "SIGTERM"])
def test_a_handler_may_end_its_own_threads_end(ending, first):
    """If the second end waited, nothing would end the process: the receiver does not respond. In our handler of
    SIGTERM every signal is blocked."""
    ends = ending(first, "handler")
    if first == "SIGTERM":
        eventually(lambda: is_pending(ends.pid, signal.SIGUSR1), "the signal has not come")
        assert ends.status() == STATUS[first]
    else:
        eventually(ends.is_over, "it waits for itself")
        assert ends.running.process.returncode == SECOND


@pytest.mark.skipif(LIBC >= (2, 41), reason="since glibc 2.41 such a program never ends, with or without us: exit() holds a lock")
@pytest.mark.parametrize("others", [[], ["thread"]], ids=["alone", "beside a thread"])
@pytest.mark.parametrize("way", ["exit", "return"])
def test_an_exit_handler_may_end_the_main_thread_alone(start, program, serve, way, others):
    """The export has been made, and the process ends with its last thread: that waits neither for the main thread nor
    for our helper."""
    server = serve(Answered())
    ending = start([program("ends_main_in_handler"), way, *others],
                   env={**PATIENT, "OTEL_EXPORTER_OTLP_ENDPOINT": server.url})
    eventually(lambda: ending.process.poll() is not None, "the process does not end")
    outcome = ending.finish(TIMEOUT_S)
    assert (outcome.returncode, outcome.stdout) == (0, "the last handler runs\n")
    (call,) = server.calls
    check_conformance(message_of(call))
