"""`otelprof ps`, `ctl` and `record` work with real processes that listen."""

import contextlib
import json
import os
import socket
import subprocess
import threading
import time

import pytest
from captured import OTELPROF, PROGRAMS
from conftest import BUILD
from otelprof_lib.listening import NoResponse, ask, process
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

NOBODY = 65534


class Profiled:
    """Is a program that runs until the test ends it."""

    def __init__(self, folder, listen, **environment):
        self.stop = folder / f"stop-{time.monotonic_ns()}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        self.process = subprocess.Popen(
            [PROGRAMS / "works_and_waits", self.stop], stdout=subprocess.DEVNULL,
            env={**clean, "LD_PRELOAD": BUILD / "libotelprof.so", "OTEL_PROFILES_EXPORTER": "none", "OTEL_PROFILER_MIN_LIFETIME": "100",
                 **({"OTEL_PROFILER_LISTEN": listen} if listen else {"OTEL_PROFILES_EXPORTER": "otlp"}), **environment})
        self.pid = str(self.process.pid)

    def answers(self):
        try:
            return ask(process(self.process.pid), "/status")
        except NoResponse:
            return None

    def address(self):
        with contextlib.suppress(NoResponse):  # the library is not loaded yet
            return process(self.process.pid).address()

    def until_it_answers(self):
        eventually(self.answers, "an answer", unless=self.process.poll)
        return self

    def over(self):
        self.stop.touch()
        return self.process.wait(TIMEOUT_S)


def otelprof(*arguments, **options):
    return subprocess.run([OTELPROF, *arguments], capture_output=True, text=True, check=False, timeout=TIMEOUT_S, **options)


def settings_of(done):
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


@pytest.fixture
def profiled(tmp_path):
    """profiled(listen) -> a running program."""
    started = []

    def begin(listen=f"unix:{tmp_path}/", **environment):
        started.append(Profiled(tmp_path, listen, **environment))
        return started[-1]

    yield begin
    for program in started:
        program.process.kill()
        program.process.wait()


@pytest.mark.parametrize("listen", ["socket", "folder", "port"])
def test_a_process_is_found_wherever_it_answers(profiled, tmp_path, listen):
    places = {"socket": f"unix:{tmp_path}/a-%p.sock", "folder": f"unix:{tmp_path}/", "port": "127.0.0.1:0"}
    program = profiled(places[listen], OTEL_PROFILER_LOG_FILE="/dev/null").until_it_answers()
    shown = {"socket": f"unix:{tmp_path}/a-{program.pid}.sock", "folder": f"unix:{tmp_path}/{program.pid}.sock", "port": "127.0.0.1:"}
    (line,) = [line for line in otelprof("ps").stdout.splitlines() if line.split()[0] == program.pid]
    assert shown[listen] in line and "works_and_waits" in line
    status = json.loads(otelprof("ctl", program.pid, "status").stdout)
    assert status["pid"] == program.process.pid
    assert program.over() == 7


class Impostor(threading.Thread):
    """Is another process's server at the program's port of 127.0.0.1: it requires a token, and keeps what it gets."""

    def __init__(self, number):
        super().__init__(daemon=True)
        self.got = b""
        self.server = socket.create_server(("127.0.0.1", number))

    def run(self):
        with contextlib.suppress(OSError):  # the test has ended
            while True:
                with self.server.accept()[0] as client:
                    self.got += client.recv(65536)
                    client.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def test_a_process_at_the_ipv6_address_is_asked_there(profiled, tmp_path):
    """Another process may have the same port of 127.0.0.1. It got the token."""
    token = {"OTEL_PROFILER_LISTEN_TOKEN": "s3cret"}
    program = profiled("[::1]:0", OTEL_PROFILER_LISTEN_CONTROL="true", OTEL_PROFILER_LOG_FILE="/dev/null", **token)
    port = eventually(program.address, "an address", unless=program.process.poll)
    assert port.host == "::1"
    impostor = Impostor(port.number)
    impostor.start()
    with impostor.server:
        env = {**os.environ, **token}
        status = otelprof("ctl", program.pid, "status", env=env)
        recorded = otelprof("record", program.pid, "--seconds", "1", "-o", tmp_path / "r.otlp", env=env)
        listed = otelprof("ps").stdout
    assert impostor.got == b"" and status.returncode == 0, status.stderr
    assert json.loads(status.stdout)["pid"] == program.process.pid
    assert recorded.returncode == 0, recorded.stderr
    assert f" [::1]:{port.number} " in listed
    assert program.over() == 7


def test_sampling_is_turned_off_and_on_again(profiled):
    program = profiled().until_it_answers()
    assert settings_of(otelprof("ctl", program.pid, "off"))["OTEL_PROFILER_START"] == "off"
    assert settings_of(otelprof("ctl", program.pid, "on"))["OTEL_PROFILER_START"] == "on"
    assert program.over() == 7


def test_settings_are_set_by_their_short_names_too(profiled):
    program = profiled().until_it_answers()
    changed = settings_of(otelprof("ctl", program.pid, "set", "CPU_FREQUENCY=499", "OTEL_PROFILER_MAX_STACK_DEPTH=64"))
    assert (changed["OTEL_PROFILER_CPU_FREQUENCY"], changed["OTEL_PROFILER_MAX_STACK_DEPTH"]) == ("499", "64")
    assert settings_of(otelprof("ctl", program.pid, "set", "CPU_FREQUENCY="))["OTEL_PROFILER_CPU_FREQUENCY"] == "99"
    refused = otelprof("ctl", program.pid, "set", "CPU_FREQUENCY=never")
    assert refused.returncode == 2 and "OTEL_PROFILER_CPU_FREQUENCY" in refused.stderr
    program.over()


@pytest.mark.parametrize(("short", "value"), [("LOG_LEVEL", "debug"), ("log_level", "error"), ("cpu_frequency", "498"), ("profiler_cpu_frequency", "497")])
def test_each_setting_has_its_short_name(profiled, tmp_path, short, value):
    """LOG_LEVEL is OTEL_LOG_LEVEL, and no setting of the profiler's prefix. A recording's settings have these names, too."""
    program = profiled(OTEL_PROFILER_MAX_OVERHEAD="none").until_it_answers()
    done = otelprof("ctl", program.pid, "set", f"{short}={value}")
    full = "OTEL_LOG_LEVEL" if "log" in short.lower() else "OTEL_PROFILER_CPU_FREQUENCY"
    assert done.returncode == 0, done.stderr
    assert settings_of(done)[full] == value
    recorded = otelprof("record", program.pid, "--seconds", "1", "--set", f"{short}={value}", "-o", tmp_path / "r.otlp")
    assert recorded.returncode == 0, recorded.stderr
    program.over()


@pytest.mark.parametrize("arguments", [["ctl", "set", "MAX_SAMPLES=5"], ["record", "--set", "MAX_SAMPLES=5", "-o", "new"]])
def test_a_name_that_is_no_setting_is_refused_with_those_that_are(profiled, tmp_path, arguments):
    program = profiled().until_it_answers()
    done = otelprof(arguments[0], program.pid, *arguments[1:], cwd=tmp_path)
    names = [name.removeprefix("OTEL_").removeprefix("PROFILER_") for name in json.loads(program.answers())["settings"]]
    assert done.returncode == 2 and "MAX_SAMPLES is no setting" in done.stderr
    assert {"CPU_FREQUENCY", "LOG_LEVEL"} < set(names) and done.stderr.rstrip().endswith(", ".join(names))
    program.over()


def test_an_export_is_asked_for(profiled):
    program = profiled().until_it_answers()
    assert otelprof("ctl", program.pid, "flush").returncode == 0
    program.over()


def test_a_recording_is_a_file_and_a_page(profiled, tmp_path):
    program = profiled().until_it_answers()
    recorded = otelprof("record", program.pid, "--seconds", "1", "--frequency", "999", "-o", tmp_path / "r.otlp", "--flamegraph", tmp_path / "r.html")
    assert recorded.returncode == 0, recorded.stderr
    assert "burns_cpu" in otelprof("top", tmp_path / "r.otlp", "--kind", "cpu").stdout
    assert "burns_cpu" in (tmp_path / "r.html").read_text()
    with open(tmp_path / "dash.otlp", "wb") as file:
        subprocess.run([OTELPROF, "record", program.pid, "--seconds", "1", "-o", "-", "--flamegraph", "dash.html"], stdout=file, cwd=tmp_path,
                       check=True, timeout=TIMEOUT_S)
    assert "burns_cpu" in otelprof("top", tmp_path / "dash.otlp", "--kind", "cpu").stdout
    assert "burns_cpu" in (tmp_path / "dash.html").read_text() and not (tmp_path / "-").exists()
    assert json.loads(otelprof("ctl", program.pid, "status").stdout)["settings"]["OTEL_PROFILER_CPU_FREQUENCY"] == "99"
    program.over()


def test_a_type_that_is_off_is_on_for_a_recording(profiled, tmp_path):
    program = profiled(OTEL_PROFILER_START="off").until_it_answers()
    assert otelprof("record", program.pid, "--seconds", "1", "-o", tmp_path / "r.otlp").returncode == 0
    assert "burns_cpu" in otelprof("top", tmp_path / "r.otlp", "--kind", "cpu").stdout
    assert json.loads(otelprof("ctl", program.pid, "status").stdout)["settings"]["OTEL_PROFILER_START"] == "off"
    program.over()


def setting(program, name="OTEL_PROFILER_START"):
    return json.loads(program.answers())["settings"][name]


@pytest.mark.parametrize("first", ["recording", "off"])
def test_a_recording_keeps_sampling_on_when_what_was_on_before_ends(profiled, tmp_path, first):
    """A recording that began while another one sampled stopped with that one; so did a recording at `ctl off`. A setting of
    each shows that it goes on."""
    program = profiled(**({"OTEL_PROFILER_START": "off"} if first == "recording" else {})).until_it_answers()
    hour = [OTELPROF, "record", program.pid, "--seconds", "3600", "-o"]
    if first == "recording":
        ends = subprocess.Popen([*hour, tmp_path / "ends", "--set", "OTEL_PROFILER_MAX_OVERHEAD=50"])
        eventually(lambda: setting(program, "OTEL_PROFILER_MAX_OVERHEAD"), "a recording", holds=lambda value: value == "50", unless=ends.poll)
    goes_on = subprocess.Popen([*hour, tmp_path / "goes-on", "--set", "OTEL_PROFILER_WAIT_FREQUENCY=77"])
    eventually(lambda: setting(program, "OTEL_PROFILER_WAIT_FREQUENCY"), "a recording", holds=lambda value: value == "77", unless=goes_on.poll)
    assert setting(program) == "on"
    if first == "recording":
        ends.terminate()
        ends.wait(TIMEOUT_S)
        eventually(lambda: setting(program, "OTEL_PROFILER_MAX_OVERHEAD"), "its end", holds=lambda value: value != "50")
    else:
        assert otelprof("ctl", program.pid, "off").returncode == 0
    assert setting(program) == "on"
    goes_on.terminate()
    goes_on.wait(TIMEOUT_S)
    eventually(lambda: setting(program), "that sampling is off", holds=lambda value: value == "off")
    assert program.over() == 7


@pytest.mark.parametrize("listen", ["socket", "port"])
def test_a_process_that_ends_during_a_recording_leaves_what_was_recorded(profiled, tmp_path, listen):
    """The client got a refusal, and nothing of the hour that it had recorded. The second export of the window is the process's
    last one: it has CPU time from after the beginning of the recording."""
    places = {"socket": f"unix:{tmp_path}/", "port": "127.0.0.1:0"}
    program = profiled(places[listen], OTEL_PROFILER_LISTEN_CONTROL="true", OTEL_PROFILER_MAX_OVERHEAD="none",
                       OTEL_PROFILER_LOG_FILE="/dev/null").until_it_answers()
    recording = subprocess.Popen([OTELPROF, "record", program.pid, "--seconds", "3600", "--frequency", "999", "--set", "WAIT_FREQUENCY=77",
                                  "-o", tmp_path / "r.otlp"], stderr=subprocess.PIPE, text=True)
    eventually(lambda: setting(program, "OTEL_PROFILER_WAIT_FREQUENCY"), "the recording", holds=lambda value: value == "77", unless=recording.poll)
    exports_once(program)
    assert program.over() == 7
    said = recording.communicate(timeout=TIMEOUT_S)[1]
    assert recording.returncode == 0 and said.startswith("otelprof: the last "), said
    assert "burns_cpu" in otelprof("top", tmp_path / "r.otlp", "--kind", "cpu").stdout


def exports_once(program):
    """The first export since then begins each recording that was asked for before; the process burns CPU time after it."""
    assert otelprof("ctl", program.pid, "flush").returncode == 0
    begin = json.loads(program.answers())["process_cpu_seconds"]
    eventually(lambda: json.loads(program.answers())["process_cpu_seconds"], "CPU time", holds=lambda now: now > begin + 0.3)


def test_a_recording_whose_reader_has_gone_still_has_its_page(profiled, tmp_path):
    """`otelprof record PID -o - --flamegraph page.html | head -c 1`"""
    program = profiled().until_it_answers()
    reader, writer = os.pipe()
    os.close(reader)
    command = [OTELPROF, "record", program.pid, "--seconds", "1", "-o", "-", "--flamegraph", tmp_path / "page.html"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT_S)
    os.close(writer)
    assert done.returncode == 0
    assert done.stderr == (f"otelprof: 1 s of process {program.pid} was not read to its end\n"
                           f"otelprof: flame graph in {tmp_path}/page.html\n")
    assert "burns_cpu" in (tmp_path / "page.html").read_text()
    assert program.over() == 7


def test_a_port_that_changes_nothing_is_recorded_as_it_is(profiled, tmp_path):
    program = profiled("127.0.0.1:0", OTEL_PROFILER_LOG_FILE="/dev/null").until_it_answers()
    assert otelprof("record", program.pid, "--seconds", "1", "-o", tmp_path / "r.otlp").returncode == 0
    refused = otelprof("record", program.pid, "--seconds", "1", "--frequency", "499", "-o", tmp_path / "other")
    assert refused.returncode == 2 and "OTEL_PROFILER_LISTEN_CONTROL" in refused.stderr
    assert program.over() == 7


def test_a_port_that_is_off_and_changes_nothing_is_not_recorded(profiled, tmp_path):
    program = profiled("127.0.0.1:0", OTEL_PROFILER_START="off", OTEL_PROFILER_LOG_FILE="/dev/null").until_it_answers()
    refused = otelprof("record", program.pid, "--seconds", "1", "-o", tmp_path / "r.otlp")
    assert refused.returncode == 2 and "OTEL_PROFILER_LISTEN_CONTROL" in refused.stderr
    assert program.over() == 7


def test_processes_that_do_not_respond_are_listed_so(profiled):
    """Before its constructor has run, a process has the library and no helper thread."""
    program = profiled(None)
    done = eventually(lambda: otelprof("ctl", program.pid, "status"), "that it does not answer", unless=program.process.poll,
                      holds=lambda done: "does not answer" in done.stderr)
    assert done.returncode == 2 and "OTEL_PROFILER_LISTEN" in done.stderr
    program.over()


@pytest.mark.parametrize("unprofiled", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_PROFILER_EXCLUDE": "works_and_waits"}], ids=" ".join)
def test_a_process_that_is_excluded_or_disabled_is_not_said_to_be_profiled(profiled, tmp_path, unprofiled):
    """The library is loaded; no setting of the process's listener would make it respond."""
    program = profiled(f"unix:{tmp_path}/", **unprofiled)
    done = eventually(lambda: otelprof("ctl", program.pid, "status"), "that it is loaded", unless=program.process.poll,
                      holds=lambda done: "loaded" in done.stderr)
    assert done.returncode == 2 and "is not profiled" in done.stderr and "OTEL_PROFILER_LISTEN" not in done.stderr
    (line,) = [line for line in otelprof("ps").stdout.splitlines() if line.split()[0] == program.pid]
    assert line.split()[2] == "loaded"
    assert program.over() == 7


@pytest.mark.parametrize(("pid", "why"), [("999999999", "there is no process"), ("1", "is not profiled")])
def test_other_processes_are_no_use(pid, why):
    done = otelprof("ctl", pid, "status")
    assert done.returncode == 2 and why in done.stderr


@pytest.mark.parametrize("arguments", [["set"], ["on", "A=b"], ["set", "nonsense"], ["jump"]])
def test_wrong_arguments_are_refused(arguments):
    assert otelprof("ctl", str(os.getpid()), *arguments).returncode == 2


def test_another_user_gets_nothing(profiled):
    program = profiled().until_it_answers()
    done = subprocess.run(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", OTELPROF, "ctl", program.pid, "status"],
                          capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 2 and program.pid in done.stderr and not done.stdout
    program.over()


def test_a_process_itself_is_asked_whatever_has_its_name(profiled, tmp_path):
    """A process whose socket has been replaced notices that at its next export. Until then its descriptor leads to its own
    socket."""
    never = {"OTEL_PROFILE_EXPORT_INTERVAL": "86400000"}
    first = profiled(f"unix:{tmp_path}/first", **never).until_it_answers()
    second = profiled(f"unix:{tmp_path}/second", **never).until_it_answers()
    (tmp_path / "second").rename(tmp_path / "first")
    for program in (first, second):
        assert json.loads(otelprof("ctl", program.pid, "status").stdout)["pid"] == program.process.pid
    assert first.over() == second.over() == 7
