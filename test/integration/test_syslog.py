"""OTEL_PROFILER_LOG_FILE=syslog: lines go to /dev/log, for daemons whose stderr leads nowhere."""

import contextlib
import os
import re
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from ports import closed_port
from profiled import LIBRARY
from waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a /dev/log")]

RECORD = re.compile(rb"<(\d+)>([\w.+-]+)\[(\d+)\]: (?:\(\d+ lines were lost\) )?(libotelprof\[\d+\] \w+: [^\n\r\x00]+)")
DAEMON = 3 << 3
DEVICES = ("null", "zero", "urandom", "random")


@pytest.fixture
def system_log():
    """system_log(kind) -> a socket of that kind, and the words before a command that make it that command's /dev/log."""
    with tempfile.TemporaryDirectory(prefix="otelprof-syslog-", dir="/var/tmp") as name:
        dev = Path(name) / "dev"
        dev.mkdir()
        for device in DEVICES:
            (dev / device).touch()
        sockets = []

        def make(kind):
            log = socket.socket(socket.AF_UNIX, kind)
            sockets.append(log)
            log.bind(str(dev / "log"))
            (dev / "log").chmod(0o666)
            binds = " && ".join(f"mount --bind /dev/{device} {dev}/{device}" for device in DEVICES)
            script = f'{binds} && mount --rbind {dev} /dev && exec "$@"'
            return log, ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh"]

        yield make
        for log in sockets:
            log.close()


def settings(**more):
    return {"LD_PRELOAD": str(LIBRARY), "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{closed_port()}",
            "OTEL_PROFILER_LOG_FILE": "syslog", "OTEL_PROFILER_EXCLUDE": "none", "OTEL_PROFILER_MIN_LIFETIME": "0",
            "OTEL_PROFILE_EXPORT_INTERVAL": "100", **more}


def begin(words, command, tracer=("env",), **more):
    option = "-E" if tracer[0] == "strace" else ""
    inside = [f"{option}{name}={value}" for name, value in settings(**more).items()]
    return subprocess.Popen([*words, *map(str, tracer), *inside, *map(str, command)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def received(log):
    log.setblocking(False)
    records = []
    try:
        while True:
            records.append(log.recv(65536))
    except BlockingIOError:
        return records


def test_a_daemon_without_stderr_reports_to_the_systems_log(system_log, program):
    """What other threads say waits for the helper; each line is one record, with the program's name, pid and severity."""
    log, words = system_log(socket.SOCK_DGRAM)
    got = []
    process = begin(words, [program("burn"), "100000"], OTEL_PROFILER_ALLOC_INTERVAL="many\n<9>forged: line")
    try:
        def refusal():
            got.extend(received(log))
            return [r for r in got if b"127.0.0.1" in r]
        eventually(refusal, "the line that nothing listens", unless=process.poll)
        descriptors = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{process.pid}/fd")]
        assert not [link for link in descriptors if link.startswith("socket:")]
    finally:
        process.kill()
        out, err = process.communicate()
    assert (out, err) == ("", "")
    parsed = [RECORD.fullmatch(record) for record in got]
    assert all(parsed), got
    assert {int(record[1]) for record in parsed} <= {DAEMON + 3, DAEMON + 4, DAEMON + 6, DAEMON + 7}
    assert {(record[2], int(record[3])) for record in parsed} == {(b"burn", process.pid)}
    assert [record for record in got if b"OTEL_PROFILER_ALLOC_INTERVAL" in record], "the constructor's line"
    warnings = [record for record in parsed if b"] warn: " in record[4]]
    assert warnings and {int(record[1]) for record in warnings} == {DAEMON + 4}


def test_a_log_that_listens_for_streams_gets_records_that_end_in_zero(system_log, program):
    log, words = system_log(socket.SOCK_STREAM)
    log.listen(50)
    process = begin(words, [program("burn"), "100000"])
    try:
        log.settimeout(300)
        connection, _ = log.accept()
        record = b""
        while piece := connection.recv(65536):
            record += piece
        connection.close()
    finally:
        process.kill()
        process.communicate()
    assert record.endswith(b"\x00") and RECORD.fullmatch(record[:-1])


@pytest.mark.parametrize("state", ["closed", "full"])
def test_a_log_that_takes_nothing_holds_nothing_up(system_log, program, state):
    log, words = system_log(socket.SOCK_DGRAM)
    if state == "closed":
        log.close()
    else:
        fill(log.getsockname())
    process = begin(words, [program("burn"), "300"], OTEL_LOG_LEVEL="debug", OTEL_PROFILER_SHUTDOWN_TIMEOUT="300000")
    assert process.communicate(timeout=600) == ("burnt\n", "") and process.returncode == 7


def fill(place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        other.connect(place)
        with contextlib.suppress(BlockingIOError):
            while True:
                other.send(b"full")


def test_the_socket_is_never_one_of_the_programs(system_log, program, tmp_path):
    """Only the helper makes it, which has a descriptor table of its own."""
    log, words = system_log(socket.SOCK_DGRAM)
    trace = tmp_path / "trace"
    tracer = ["strace", "-f", "-qq", "-e", "trace=socket,execve", "-o", trace]
    process = begin(words, [program("burn"), "300"], tracer, OTEL_PROFILER_ALLOC_INTERVAL="wrong",
                    OTEL_PROFILER_SHUTDOWN_TIMEOUT="300000")
    process.communicate(timeout=600)
    assert [record for record in received(log) if b"OTEL_PROFILER_ALLOC_INTERVAL" in record]
    lines = [line.split(" ", 1) for line in trace.read_text().splitlines()]
    main = next(thread for thread, call in lines if "burn" in call)
    made = [thread for thread, call in lines if "SOCK_DGRAM" in call and "AF_UNIX" in call]
    assert made and main not in made
