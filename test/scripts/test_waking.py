"""A signal ends a wait, whenever it comes and whatever thread takes it: `receive`, `record`, `run`, `view` and `live`.

Python runs a handler in the main thread alone. A signal that another thread takes interrupts no call of the main thread; nor
does a signal between two of Python's steps, just before a call that blocks. The test can cause the first case.
"""

import ctypes
import os
import signal
import subprocess
import sys

import pytest
from captured import OTELPROF
from conftest import ROOT
from otelprof_lib.capture_file import append_message
from otelprof_lib.waking import Waking, wait_for
from processes import FUTEX, POLL, WAIT4, call_of
from served import serving
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.fast

# Ends when the command that started it ends, too.
PROGRAM = ["sh", "-c", "trap 'exit 9' TERM; echo ready; while kill -0 $PPID; do sleep 0.05; done 2>/dev/null"]
IN_PYTHON = f"""
import os, signal, sys, threading
sys.path[:0] = {[str(OTELPROF.parent), str(ROOT / "test/lib")]!r}
from otelprof_lib import cli, listening
from processes import READ, call_of
from waiting import eventually
"""


def signal_another_thread(process, number):
    """Waits until the first thread blocks, then sends the signal to the oldest of the others, which serves as long as the
    command waits."""
    eventually(lambda: call_of(process.pid), "that it waits", unless=process.poll, holds=lambda call: call in (POLL, WAIT4, FUTEX))
    other = next(int(thread) for thread in os.listdir(f"/proc/{process.pid}/task") if int(thread) != process.pid)
    assert ctypes.CDLL(None).tgkill(process.pid, other, number) == 0


@pytest.fixture
def started(tmp_path):
    """started(*arguments) -> the running command."""
    running = []

    def start(*arguments):
        running.append(subprocess.Popen([OTELPROF, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_receive_ends_by_a_signal_that_another_thread_takes(started, number):
    receiving = started("receive", "--listen", "127.0.0.1:0")
    assert "receiving at" in receiving.stderr.readline()
    signal_another_thread(receiving, number)
    assert receiving.wait(TIMEOUT_S) == 0
    assert receiving.stderr.readline() == "otelprof: 0 exports in otelprof.otlp\n"


def test_run_passes_on_a_signal_that_another_thread_takes(started):
    running = started("run", "--quiet", "--", *PROGRAM)
    assert running.stdout.readline() == "ready\n"
    signal_another_thread(running, signal.SIGTERM)
    assert running.wait(TIMEOUT_S) == 9


def test_live_passes_on_a_signal_that_another_thread_takes(tmp_path):
    with serving("live", "--no-open", "--", *PROGRAM, cwd=tmp_path) as served:
        assert served.process.stdout.readline() == "ready\n"
        signal_another_thread(served.process, signal.SIGTERM)
        served.until_it_says("stays until Ctrl-C")
        assert served.end() == 9


def test_view_ends_by_a_signal_that_another_thread_takes(message, tmp_path):
    with open(tmp_path / "a.otlp", "wb") as file:
        append_message(file, message().profile("samples", "count", 10_000_000, {("hot", "main"): 7}).bytes())
    with serving("view", "--no-open", "a.otlp", cwd=tmp_path) as served:
        signal_another_thread(served.process, signal.SIGINT)
        assert served.process.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_receive_prints_its_address_ends_it_well(tmp_path, number):
    """The reader of the address may have nothing more to send."""
    script = IN_PYTHON + f"""
class Signals:
    def write(self, text):
        if "receiving at" in text:
            os.kill(os.getpid(), {int(number)})
        return sys.__stderr__.write(text)

    def flush(self):
        sys.__stderr__.flush()

sys.stderr = Signals()
sys.exit(cli.main(["receive", "--listen", "127.0.0.1:0"]))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("otelprof: 0 exports in otelprof.otlp\n")


@pytest.mark.parametrize("words", [["record", "1", "-o", "out"], ["ctl", "1", "flush"], ["live", "1", "--no-open"]], ids=lambda words: words[0])
def test_ctrl_c_ends_a_wait_for_another_process_at_once(tmp_path, words):
    """This holds even if no call is interrupted: here another thread takes the signal, and the response comes only then."""
    script = IN_PYTHON + f"""
def ask(*_, **__):
    reader, writer = os.pipe()

    def takes_it():
        eventually(lambda: call_of(os.getpid()), "that the first thread reads", holds=lambda call: call == READ)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        os.write(1, b"still there")
        os.write(writer, b"x")

    threading.Thread(target=takes_it).start()
    return os.read(reader, 1)

listening.process = lambda pid: listening.Process(pid, "", "", "")
listening.ask = ask
sys.exit(cli.main({words!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_wake_before_the_wait_is_kept_and_one_after_it_is_harmless():
    answers = iter([False, True])
    with Waking() as waking:
        waking.wake()
        waking.wait(lambda: next(answers))
    waking.wake()
    assert list(answers) == []


def test_the_status_of_a_program_whose_end_has_been_seen():
    child = subprocess.Popen(["sh", "-c", "exit 7"])
    eventually(child.poll, "its end", holds=lambda status: status is not None)
    assert wait_for(child) == 7
    assert signal.set_wakeup_fd(-1) == -1
