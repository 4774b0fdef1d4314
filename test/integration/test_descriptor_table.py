"""The helper thread has its own table of descriptors, or uses none.

CRIU restores one descriptor table for all threads. replaces_table.c does this to the helper by ptrace: it puts the
program's file under each number of the helper's, and lists what the helper does with them.
"""

import subprocess
from pathlib import Path

import pytest
from endpoint import ALL_TYPES
from profiled import BUILD, LIBRARY, Receiver
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system


def helper_of(pid):
    for thread in Path(f"/proc/{pid}/task").iterdir():
        if (thread / "comm").read_text().startswith("otelprof"):
            return thread
    return None


def files_of(thread):
    found = []
    for link in (thread / "fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except FileNotFoundError:
            pass
    return found


def keeps_descriptors(pid):
    """Returns the expected descriptors: files of threads in /proc, and the socket that the helper serves."""
    helper = helper_of(pid)
    files = files_of(helper) if helper else []
    return any(it.endswith("/syscall") for it in files) and any(it.startswith("socket:") for it in files)


@pytest.fixture
def receiver():
    started = Receiver()
    yield started
    started.close()


def test_the_helper_uses_no_descriptor_of_a_table_that_is_not_its_own(receiver, tmp_path):
    stop, log = tmp_path / "stop", tmp_path / "log"
    with open(tmp_path / "input", "w+b") as given:
        process = subprocess.Popen(
            [BUILD / "test/programs/works_and_waits", stop], stdin=given,
            env={"LD_PRELOAD": LIBRARY, **ALL_TYPES, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_PROFILER_EXCLUDE": "none",
                 "OTEL_PROFILER_LISTEN": f"unix:{tmp_path}/socket", "OTEL_PROFILER_LOG_FILE": str(log),
                 "OTEL_PROFILER_MIN_LIFETIME": "0"})
        try:
            eventually(lambda: keeps_descriptors(process.pid), "descriptors that the helper keeps", unless=process.poll)
            done = subprocess.run([BUILD / "test/programs/replaces_table", str(process.pid), helper_of(process.pid).name],
                                  capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
            assert (done.stdout, done.stderr, done.returncode) == ("separate\n", "", 0)
            eventually(lambda: log.exists() and "table of descriptors is not its own any more" in log.read_text(), "the reason",
                       unless=process.poll)
            stop.touch()
            assert process.wait(TIMEOUT_S) == 7
        finally:
            process.kill()
            process.wait()
