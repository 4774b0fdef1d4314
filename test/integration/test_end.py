"""At the end of a process the exporter runs a known part of its work, for a bounded time."""

import re
from pathlib import Path

import pytest
from grpc_server import OK, GrpcServer
from profiled import EXACT_CPU, LIBRARY, START_NS
from waiting import TIMEOUT_S, eventually

SERVER = GrpcServer
OFTEN = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "100"}


@pytest.mark.parametrize("how", ["return", "exit", "child", "thread"])
def test_nothing_of_the_exporters_libraries_runs_at_the_end(start, program, tmp_path, how):
    """The libraries' destructors and exit handlers would run on the program's thread: in the middle of the helper's
    work, and under locks that a signal handler of the program's may wait for."""
    end = tmp_path / "end"
    running = start([program("forbids_exporter"), how, end], env=OFTEN)
    eventually(lambda: running.receiver.requests, "an export", unless=running.process.poll)
    end.touch()
    outcome = running.finish(TIMEOUT_S)
    assert outcome.returncode == 5, outcome.stderr
    assert int(re.fullmatch(r"(\d+) libraries\n", outcome.stdout)[1]) > 10


def test_fork_and_exit_wait_no_longer_than_they_say(run, program):
    """The wait is bounded whatever the exporter is in, even if that never ends. A preload records the timeouts that
    the program's thread requests; no time is measured."""
    env = {"LD_PRELOAD": f"{program('stuck_reader.so')}:{LIBRARY}", "OTEL_LOG_LEVEL": "debug",
           "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "700", **OFTEN}
    outcome = run([program("forks_and_ends")], env=env, log_to_stderr=True)
    assert outcome.returncode == 0
    said = re.fullmatch(r"20 children\nfork (\d+)\nend (\d+)\n", outcome.stdout)
    assert int(said[1]) <= 20, "milliseconds, once"
    assert int(said[2]) <= 700
    lines = outcome.stderr.splitlines()
    assert len([line for line in lines if "forked while the exporter was inside of a library" in line]) == 20


@pytest.mark.parametrize("exporter", ["otlp", "otlp_file"])
def test_an_end_exports_or_reports_why_not(run, program, tmp_path, exporter):
    """At default settings main ends while the exporter is still being loaded, slowly, as on a busy machine: the
    exporter's own work gets more of the end's time than a receiver that never responded."""
    env = {"LD_PRELOAD": f"{LIBRARY}:{program('slow_loader.so')}", "OTEL_PROFILES_EXPORTER": exporter,
           "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "", "OTEL_LOG_LEVEL": "",
           "OTEL_PROFILER_FILE": str(tmp_path / "exports")}
    outcome = run([program("burn"), 60, 1], env=env, log_to_stderr=True)
    assert outcome.returncode == 7
    exported = outcome.requests or (tmp_path / "exports").exists()
    assert exported or "SHUTDOWN_TIMEOUT" in outcome.stderr or "cannot be sent" in outcome.stderr, outcome.stderr


def test_uncovered_time_is_reported_once(run, program):
    """The time is in the last export, not in one between the end's beginning and the last export."""
    env = {"LD_PRELOAD": f"{program('slow_clock.so')}:{LIBRARY}", **EXACT_CPU, **OFTEN}
    outcome = run([program("ends_slowly")], env=env)
    assert outcome.returncode == 0
    total = outcome.instance("ends_slowly").cpu_total()
    assert total == pytest.approx(int(outcome.stdout), abs=START_NS)


@pytest.mark.timing
def test_an_end_without_exit_loses_little(run, program):
    """Go's programs, for example, end by a system call of their own: young programs export early, whatever the
    interval is."""
    outcome = run([program("ends_unseen"), 3000], env={"OTEL_PROFILE_EXPORT_INTERVAL": "86400000"}, timeout=300)
    assert outcome.returncode == 7
    used = int(outcome.stdout)
    assert outcome.instance("ends_unseen").cpu_total() > used / 2
    assert len(outcome.requests) > 2


def test_a_peer_that_sends_without_end_is_given_up(serve, start, program, tmp_path):
    """libcurl reads on for as long as bytes come, and checks no timeout meanwhile."""
    server = serve(OK)
    running = start([program("lowest_number"), tmp_path / "stop"], log_to_stderr=True, env={
        "LD_PRELOAD": f"{program('endless_reader.so')}:{LIBRARY}", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.port}",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "300", "OTEL_LOG_LEVEL": "debug", **OFTEN,
    })
    log = Path(running.err.name)
    eventually(lambda: re.search("cannot be sent.*timed out", log.read_text()), "an export that is given up", unless=running.process.poll)
    eventually(lambda: "being sent again" in log.read_text(), "an export that is sent", unless=running.process.poll)
    (tmp_path / "stop").touch()
    assert running.finish(TIMEOUT_S).stdout == "0\n"
    assert server.connections > 1


@pytest.mark.parametrize("how, exports", [("alone", True), ("beside", False)])
def test_an_old_python_ends_at_once_beside_its_threads(run, program, how, exports):
    """Up to 3.10 they crash if the process has not ended some tenths of a millisecond after the interpreter."""
    env = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "86400000"}
    for python in ("true", "false"):
        outcome = run([program("old_python"), how], env=env | {"OTEL_PROFILER_PYTHON": python})
        assert outcome.returncode == 42, outcome.stderr
        assert bool(outcome.requests) == exports
