"""What a process keeps for requests counts against the memory that its limits leave: its control group's, and its own."""

import contextlib
import resource
import subprocess

import pytest
from control_group import memory_limit
from endpoint import ALL_TYPES, Process, asked  # noqa: F401 # a fixture
from waiting import TIMEOUT_S, eventually

NO_MEMORY = "There is no memory for the response."
MIB = 1 << 20
FILLS = "import sys; kept = b'x' * int(sys.argv[1]); print('filled', flush=True); sys.stdin.read()"

pytestmark = pytest.mark.system


def ask(process):
    return process.ask("/debug/pprof/profile?seconds=1")


@pytest.mark.parametrize("limit", ["RLIMIT_DATA", "RLIMIT_AS"])
def test_a_request_that_a_limit_of_the_process_leaves_no_memory_for_is_refused(asked, limit):  # noqa: F811
    running = asked()
    assert ask(running.process).status == 200
    number, pid = getattr(resource, limit), running.program.process.pid
    before = resource.prlimit(pid, number, (1 << 20, resource.RLIM_INFINITY))
    answer = ask(running.process)
    resource.prlimit(pid, number, before)
    assert (answer.status, answer.text.strip()) == (503, NO_MEMORY)
    assert eventually(lambda: ask(running.process), "memory again", holds=lambda answer: answer.status == 200)
    assert running.over().returncode == 7


@contextlib.contextmanager
def filled(words, fillers):
    """Keeps a function that fills the group with 4 MiB more by another process of it; ends all of them."""
    def fill():
        fillers.append(subprocess.Popen([*words, "/usr/bin/python3", "-c", FILLS, str(4 * MIB)], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        fillers[-1].stdout.readline()

    try:
        yield fill
    finally:
        for filler in fillers:
            filler.communicate(timeout=TIMEOUT_S)


def test_a_request_that_a_real_control_group_leaves_no_memory_for_is_refused(start, program, tmp_path):
    """Other processes fill the group until what is left is less than a request needs. The kernel may end one of them."""
    with memory_limit(128 * MIB) as words:
        if words is None:
            pytest.skip("this machine lets root make no control group of memory")
        stop, process = tmp_path / "stop", Process(tmp_path / "socket")
        running = start([*words, program("works_and_waits"), stop], env={"OTEL_PROFILER_LISTEN": f"unix:{tmp_path}/socket", **ALL_TYPES})
        try:
            process.until_it_answers()
            assert ask(process).status == 200
            with filled(words, fillers := []) as fill:
                answer = None
                while not answer or answer.status == 200:
                    assert len(fillers) < 40
                    fill()
                    answer = ask(process)
            assert (answer.status, answer.text.strip()) == (503, NO_MEMORY)
            assert eventually(lambda: ask(process), "memory again", holds=lambda answer: answer.status == 200)
        finally:
            stop.touch()
            assert running.finish(TIMEOUT_S).returncode == 7
