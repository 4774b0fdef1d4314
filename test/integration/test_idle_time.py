"""Exports tell of time in which nothing was sampled: what they do not cover was not recorded."""

import os
import subprocess
import time

import pytest
from endpoint import Process, UnixConnection
from otelprof_lib.capture_file import decoded, read_messages
from otelprof_lib.coverage import Coverage
from otelprof_lib.following import messages_in
from profiled import LIBRARY, ROOT, check_conformance
from waiting import TIMEOUT_S, eventually

CLOCKS_NANO = 100_000_000  # by which an interval's times may differ from the wall clock (CLOCK_WAS_SET_NANO)
pytestmark = pytest.mark.timing

CPU = {"OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILE_EXPORT_INTERVAL": "200", "OTEL_PROFILER_MIN_LIFETIME": "0"}
IDLES = """
import time
def burn():
    end = time.thread_time() + 0.1  # the process's clock has the profiler's time, too
    while time.thread_time() < end: pass
for _ in range(2):
    time.sleep(1)
    burn()
time.sleep(1)
"""


def profiles_of(messages):
    return [profile for message in messages for it in message.resource_profiles for scope in it.scope_profiles for profile in scope.profiles]


def covered_by(messages):
    covered = Coverage()
    for profile in profiles_of(messages):
        covered.add(profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano)
    return covered


def test_a_file_covers_the_process_from_its_begin_to_its_end(run, tmp_path):
    file = tmp_path / "a.otlp"
    run(["/usr/bin/python3", "-c", IDLES], env={**CPU, "OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_FILE": str(file),
                                                "OTEL_PROFILER_FILE_FORMAT": "protobuf"})
    messages = read_messages(file)
    for message in messages:
        check_conformance(message)
    covered = covered_by(messages)
    assert len(covered) == 1, "there is no gap"
    assert covered.nano >= 3_200_000_000
    assert any(not profile.samples for profile in profiles_of(messages))


def test_no_request_is_made_of_idle_time_alone(run):
    outcome = run(["/usr/bin/python3", "-c", IDLES], env=CPU)
    assert outcome.requests
    for request in outcome.requests:
        assert profiles_of([request])[0].samples
    assert len(covered_by(outcome.requests)) == 1, "there is no gap up to the last sample"


def test_a_process_that_is_off_has_no_file(run, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    run(["/usr/bin/python3", "-c", IDLES], env={**CPU, "OTEL_PROFILER_START": "off", "OTEL_PROFILES_EXPORTER": "otlp_file"}, cwd=folder)
    assert list(folder.iterdir()) == []


def test_threads_that_begin_while_sampling_is_off_have_no_time(run, tmp_path):
    """The beginnings of all of them would make samples of 1/4,000 s."""
    folder = tmp_path / "here"
    folder.mkdir()
    code = "import threading\nfor _ in range(500):\n    it = threading.Thread(target=int)\n    it.start()\n    it.join()"
    run(["/usr/bin/python3", "-c", code], env={**CPU, "OTEL_PROFILER_START": "off", "OTEL_PROFILER_CPU_FREQUENCY": "4000",
                                               "OTEL_PROFILES_EXPORTER": "otlp_file"}, cwd=folder)
    assert list(folder.iterdir()) == []


def test_a_recording_covers_its_time_and_no_more(tmp_path):
    """The process waits, before and during the recording."""
    path = tmp_path / "socket"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    waiting = subprocess.Popen(
        ["/usr/bin/python3", "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**clean, **CPU, "LD_PRELOAD": str(LIBRARY), "OTEL_PROFILES_EXPORTER": "none", "OTEL_PROFILER_LISTEN": f"unix:{path}"})
    try:
        eventually(path.exists, "that it listens", unless=waiting.poll)
        connection = UnixConnection(path)
        before = time.time_ns()
        connection.request("GET", "/otlp?seconds=1")
        messages = list(map(decoded, messages_in(connection.getresponse().read())))
        after = time.time_ns()
        said = subprocess.run([ROOT / "scripts/otelprof", "record", str(waiting.pid), "--seconds", "1", "-o", "new"], cwd=tmp_path,
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    finally:
        waiting.communicate(b"\n", timeout=TIMEOUT_S)
    covered = covered_by(messages)
    assert len(covered) == 1 and covered.nano >= 1_000_000_000
    begin, end = covered.flat()
    assert before - CLOCKS_NANO <= begin and end <= after + CLOCKS_NANO
    assert said.returncode == 2 and "nothing was sampled" in said.stderr and not (tmp_path / "new").exists()


def test_time_is_covered_while_sampling_is_on_inside_an_interval(start, tmp_path):
    """The only export is the last one. Sampling is on for a part of its interval; the process works all the time."""
    file, path, end = (tmp_path / name for name in ("a.otlp", "socket", "end"))
    code = "import os, sys\nwhile not os.path.exists(sys.argv[1]): sum(range(10000))"
    running = start(["/usr/bin/python3", "-S", "-c", code, end], env={
        **CPU, "OTEL_PROFILER_START": "off", "OTEL_PROFILE_EXPORT_INTERVAL": "86400000", "OTEL_PROFILER_LISTEN": f"unix:{path}",
        "OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_FILE": str(file), "OTEL_PROFILER_FILE_FORMAT": "protobuf"})
    eventually(path.exists, "that it listens", unless=running.process.poll)
    process = Process(path)
    process.until_it_answers()
    before = time.time_ns()
    assert "OTEL_PROFILER_START=on\n" in process.control("OTEL_PROFILER_START=on").text
    is_on = time.time_ns()
    begin = process.status()["process_cpu_seconds"]
    eventually(lambda: process.status()["process_cpu_seconds"], "CPU time", holds=lambda now: now > begin + 0.1)
    was_on = time.time_ns()
    assert "OTEL_PROFILER_START=off\n" in process.control("OTEL_PROFILER_START=off").text
    after = time.time_ns()
    end.touch()
    running.finish(TIMEOUT_S)
    covered = covered_by(read_messages(file))
    assert len(covered) == 1 and was_on - is_on <= covered.nano <= after - before
    begin, end = covered.flat()
    assert before - CLOCKS_NANO <= begin and end <= after + CLOCKS_NANO
