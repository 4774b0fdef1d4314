"""Sends requests to a process that listens (OTEL_PROFILER_LISTEN), and checks its profiles as pprof's own tool checks
them."""

import gzip
import http.client
import json
import re
import socket
import struct
import subprocess
from pathlib import Path

import profiled  # also adds the path of the generated messages
import pprof_pb2
import profiles_service_pb2
import pytest
from otelprof_lib.kinds import KINDS
from waiting import TIMEOUT_S, eventually

ROUTES = re.findall(r'^ROUTE\(\w+, "(\w+)", "(.*?)", (\w+)', (profiled.ROOT / "shim/flush/serve/routes.def").read_text(), re.M)
ALL_TYPES = {"OTEL_PROFILER_TYPES": ",".join(sorted(KINDS))}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT_S)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode()

    def profile(self):
        assert self.status == 200, self.text
        return Profile(self.body)

    def exports(self):
        """Splits the body of /otlp: each message follows its length."""
        assert self.status == 200, self.text
        found, rest = [], self.body
        while rest:
            (size,) = struct.unpack(">I", rest[:4])
            found.append(profiles_service_pb2.ExportProfilesServiceRequest.FromString(rest[4:4 + size]))
            rest = rest[4 + size:]
        return found


class Process:
    """Is a process that listens: at the path of a socket, or at a port of this machine."""

    def __init__(self, where):
        self.where = where

    def connection(self):
        if isinstance(self.where, int):
            return http.client.HTTPConnection("127.0.0.1", self.where, timeout=TIMEOUT_S)
        return UnixConnection(self.where)

    def ask(self, path, method="GET", body=None, headers=None):
        connection = self.connection()
        try:
            connection.request(method, path, body, headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def profile(self, path):
        return self.ask(f"/debug/pprof/{path}").profile()

    def status(self):
        return json.loads(self.ask("/status").text)

    def control(self, *lines):
        return self.ask("/control", "POST", "\n".join(lines))

    def until_it_answers(self):
        def answer():
            try:
                return self.ask("/status")
            except OSError:
                return None

        return eventually(answer, f"an answer at {self.where}")


class Profile:
    """Parses and checks a profile in pprof's format. A stack is a tuple of names, leaf first."""

    def __init__(self, packed):
        self.message = pprof_pb2.Profile.FromString(gzip.decompress(packed))
        self.strings = self.message.string_table
        self.functions = {function.id: function for function in self.message.function}
        self.locations = {location.id: location for location in self.message.location}
        check(self)

    def text(self, index):
        return self.strings[index]

    @property
    def types(self):
        return [(self.text(it.type), self.text(it.unit)) for it in self.message.sample_type]

    @property
    def default_type(self):
        return self.text(self.message.default_sample_type)

    def stack(self, sample):
        lines = (line for index in sample.location_id for line in self.locations[index].line)
        return tuple(self.text(self.functions[line.function_id].name) for line in lines)

    def column(self, kind):
        return [name for name, _ in self.types].index(kind)

    def total(self, kind):
        return sum(sample.value[self.column(kind)] for sample in self.message.sample)

    def value_of(self, function, kind):
        """Returns the sum over the stacks with that function anywhere in them."""
        return sum(sample.value[self.column(kind)] for sample in self.message.sample if function in self.stack(sample))

    def labels(self, key):
        return {self.text(label.str) for sample in self.message.sample for label in sample.label
                if self.text(label.key) == key}


def check(profile):
    """Asserts what pprof's CheckValid demands (github.com/google/pprof, profile/profile.go), and that no entry is
    repeated."""
    message = profile.message
    assert message.string_table[0] == "" and len(set(message.string_table)) == len(message.string_table)
    assert message.sample_type
    for table in (message.mapping, message.location, message.function):
        ids = [it.id for it in table]
        assert 0 not in ids and len(set(ids)) == len(ids)
    mappings = {it.id for it in message.mapping}
    for sample in message.sample:
        assert len(sample.value) == len(message.sample_type)
        assert all(index in profile.locations for index in sample.location_id)
        assert all(label.key for label in sample.label)
    for location in message.location:
        assert not location.mapping_id or location.mapping_id in mappings
        assert all(line.function_id in profile.functions for line in location.line)
    identities = [(tuple(it.location_id), str(it.label)) for it in message.sample]
    assert len(set(identities)) == len(identities)


# --- running processes ---


class Asked:
    """Holds a running program and its address; over() ends the program."""

    def __init__(self, start, path, folder, listen, environment, arguments=()):
        self.stop = folder / "stop"
        self.program = start([path, self.stop, *arguments], env={"OTEL_PROFILER_LISTEN": listen, **environment})
        self.process = Process(folder / "socket")

    def until_it_says(self, pattern):
        """Waits for a line on the program's stderr, or in its log; returns the match."""
        files = (Path(self.program.err.name), Path(self.program.err.name).with_name("otelprof.log"))

        def said():
            return b"".join(it.read_bytes() for it in files if it.exists())

        return re.search(pattern, eventually(said, pattern, unless=self.program.process.poll, holds=lambda text: re.search(pattern, text)))

    def until_its_rate_is(self, frequency):
        eventually(lambda: self.process.status()["settings"]["OTEL_PROFILER_CPU_FREQUENCY"], f"a frequency of {frequency}",
                   holds=lambda found: found == frequency)

    def over(self):
        self.stop.touch()
        return self.program.finish(TIMEOUT_S)


@pytest.fixture
def half_named(program, tmp_path):
    """Builds the program without debug information and without the name of churns()."""
    path = tmp_path / "half_named"
    subprocess.run(["objcopy", "--strip-debug", "--strip-symbol=churns", program("works_and_waits"), path], check=True)
    return path


@pytest.fixture
def asked(start, program, tmp_path):
    """asked(**environment) -> a process that listens at a Unix socket, all of whose types are profiled."""
    def begin(listen=None, path=None, arguments=(), **environment):
        running = Asked(start, path or program("works_and_waits"), tmp_path, listen or f"unix:{tmp_path}/socket", {**ALL_TYPES, **environment}, arguments)
        if listen is None:
            running.process.until_it_answers()
        return running
    return begin


@pytest.fixture
def at_port(asked):
    """Starts such a process at a port of this machine."""
    def begin(**environment):
        running = asked(listen="127.0.0.1:0", **environment)
        running.process = Process(int(running.until_it_says(rb"listening on http://127\.0\.0\.1:(\d+)\n")[1]))
        return running
    return begin


class Squatter:
    """Listens at the path of a process's socket: the process checks at each export whether the place is free."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.setblocking(False)
        self.socket.bind(str(path.with_name("other")))
        self.socket.listen(100)
        path.with_name("other").rename(path)

    def was_asked(self):
        try:
            self.socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def until_asked(self, times, running):
        """Waits until the process has made that many checks from now on."""
        while self.was_asked():
            pass
        for _ in range(times):
            eventually(self.was_asked, "an export", unless=running.process.poll)

    def goes(self):
        self.socket.close()
        self.path.unlink()
