"""The end of a process: what of the exporter runs then, and how long it may take."""

import re
import time

import pytest

PATIENCE = 60
OFTEN = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "100"}


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.parametrize("how", ["return", "exit", "child", "thread"])
def test_nothing_of_the_exporters_libraries_runs_at_the_end(start, program, tmp_path, how):
    """Their destructors and exit handlers would, on the program's thread: in the middle of what the
    helper is at, and under locks that a signal handler of the program's may wait for."""
    end = tmp_path / "end"
    running = start([program("forbids_exporter"), how, end], env=OFTEN)
    wait_for(lambda: running.receiver.requests, "no export came")
    end.touch()
    outcome = running.finish(PATIENCE)
    assert outcome.returncode == 5, outcome.stderr
    assert int(re.fullmatch(r"(\d+) libraries\n", outcome.stdout)[1]) > 10
