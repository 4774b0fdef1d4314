"""Code that a JIT compiler has made has the names that its runtime reports; no other source can name the code."""

import collections
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from profiled import EXACT_CPU
from waiting import eventually

pytestmark = pytest.mark.system

OTHER = 65534
BOTH = {"first", "second"}
OURS = ("[libotelprof]", "[unknown]", "[other]")

SCRIPT = """
function spinsHard(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
class Account { pays(n) { return spinsHard(n) + 1; } }
const account = new Account(), start = process.cpuUsage().user;
while (process.cpuUsage().user - start < 0.8e6)
    account.pays(100000);
"""


class Frames:
    """Sums the CPU time of all exports by function, with what is known of the function."""

    def __init__(self, outcome):
        self.functions = {}  # name -> (file, start line, type)
        self.lines = set()  # (name, line)
        self.samples = collections.Counter()  # by name: samples that have the name anywhere
        for request in outcome.requests:
            for resource_profiles in request.resource_profiles:
                for scope_profiles in resource_profiles.scope_profiles:
                    for profile in scope_profiles.profiles:
                        self.add(request.dictionary, profile)

    def add(self, dictionary, profile):
        if dictionary.string_table[profile.sample_type.type_strindex] != "samples":
            return
        for sample in profile.samples:
            indices = dictionary.stack_table[sample.stack_index].location_indices
            for name in {self.note(dictionary, dictionary.location_table[index]) for index in indices}:
                self.samples[name] += sample.values[0]
            self.samples[None] += sample.values[0]

    def note(self, dictionary, location):
        """Returns the function's name; "" in an object."""
        strings = dictionary.string_table
        if location.mapping_index or not location.lines:
            return ""
        function = dictionary.function_table[location.lines[0].function_index]
        types = [dictionary.attribute_table[index].value.string_value for index in location.attribute_indices]
        name = strings[function.name_strindex]
        if name in OURS:
            return ""
        self.lines.add((name, location.lines[0].line))
        self.functions[name] = (strings[function.filename_strindex], function.start_line, *types)
        return name

    def share(self, name):
        return self.samples[name] / self.samples[None]


class Reported:
    """Runs a program that has made code and waits to run it, so that a map can be written before."""

    def __init__(self, start, program, folder, *arguments, milliseconds=20, **env):
        self.go = folder / "go"
        env = {**EXACT_CPU, "OTEL_PROFILE_EXPORT_INTERVAL": "100", **env}
        self.run = start([program("reported_code"), milliseconds, self.go, *arguments], env=env)
        self.map = Path(f"/tmp/perf-{self.run.process.pid}.map")
        out = Path(self.run.out.name)
        eventually(lambda: out.read_bytes().endswith(b"\n"), "the place of the code", unless=self.run.process.poll)
        self.code, self.size = (int(number, 16) for number in out.read_text().split())
        self.half = self.size // 2

    def lines(self):
        return f"{self.code:x} {self.half:x} first\n0x{self.code + self.half:x} 0x{self.half:x} second\n"

    def profile(self):
        self.go.touch()
        outcome = self.run.finish(300)
        assert (outcome.returncode, outcome.stderr) == (0, "")
        return outcome


@pytest.fixture
def reported(start, program, tmp_path):
    made = []

    def begin(*arguments, **env):
        made.append(Reported(start, program, tmp_path, *arguments, **env))
        return made[-1]

    yield begin
    for one in made:
        if one.map.is_dir() and not one.map.is_symlink():
            one.map.rmdir()
        one.map.unlink(missing_ok=True)


def names_of(one):
    return set(Frames(one.profile()).functions)


@pytest.mark.fast
def test_code_is_named_by_the_perf_map(reported):
    one = reported()
    one.map.write_text(one.lines())
    frames = Frames(one.profile())
    assert frames.functions["first"] == frames.functions["second"] == ("", 0, "native")
    assert frames.samples["first"] >= 10 and frames.samples["second"] >= 10 and "[anonymous]" not in frames.functions


@pytest.mark.fast
def test_code_that_no_runtime_reports_is_anonymous(reported):
    assert names_of(reported()) == {"[anonymous]"}


@pytest.mark.fast
def test_the_later_line_wins(reported):
    one = reported()
    one.map.write_text(f"{one.code:x} {one.size:x} old\n" + one.lines())
    assert names_of(one) == BOTH


@pytest.mark.fast
def test_names_obey_redaction_and_symbols(reported):
    one = reported(OTEL_PROFILER_REDACT="fir*")
    one.map.write_text(one.lines())
    assert names_of(one) == {"[REDACTED]", "second"}
    one = reported(OTEL_PROFILER_SYMBOLS="none")
    one.map.write_text(one.lines())
    assert names_of(one) == {"[anonymous]"}


def another_user(one):
    if os.geteuid() != 0:
        pytest.skip("two users are needed: run as root")
    subprocess.run(["tee", one.map], input=one.lines().encode(), stdout=subprocess.DEVNULL, check=True,
                   user=OTHER, group=OTHER, extra_groups=[])


def a_link(one):
    target = one.go.parent / "target"
    target.write_text(one.lines())
    one.map.symlink_to(target)


def a_pipe(one):
    os.mkfifo(one.map)


def a_folder(one):
    one.map.mkdir()


def a_device(one):
    if os.geteuid() != 0:
        pytest.skip("only root makes a device")
    os.mknod(one.map, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero


def writable_by_all(one):
    one.map.write_text(one.lines())
    one.map.chmod(0o666)


@pytest.mark.parametrize("makes", [another_user, a_link, a_pipe, a_folder, a_device, writable_by_all])
def test_a_map_that_another_user_can_have_written_is_not_read(reported, makes):
    one = reported()
    makes(one)
    assert names_of(one) == {"[anonymous]"}


@pytest.mark.fast
def test_a_hostile_map_costs_its_names_alone(reported):
    """Such a map has binary rubbish, lines without end, sizes beyond memory, and more lines than are kept."""
    one = reported(OTEL_PROFILE_EXPORT_INTERVAL="200")
    with one.map.open("wb") as file:
        file.write(os.urandom(1 << 20) + b"\n" + b"1" * (1 << 20) + b"\n0 ffffffffffffffff all\n\xff\xfe \0\n")
        file.write(f"{one.code:x} {one.half:x} a\xff\x1b[31m\n".encode("latin-1"))
        for number in range(700_000):
            file.write(b"%x 10 junk\n" % (32 * number + (1 << 48)))
        file.write(one.lines().encode())
    outcome = one.profile()
    assert set(Frames(outcome).functions) <= {"a?\x1b[31m", "[anonymous]"}
    (instance,) = outcome.instances()
    assert instance.dropped["name"] == 1
    assert instance.cpu_total() >= 20e6


@pytest.mark.fast
def test_a_map_that_changes_while_it_is_read_is_read_anew(reported):
    one = reported(milliseconds=300)
    one.map.write_text(one.lines())
    one.go.touch()
    while one.run.process.poll() is None:
        for text in (one.lines(), one.lines()[:-4], f"{one.code:x} {one.size:x} whole\n"):
            one.map.write_text(text)
        shutil.copy(one.map, f"{one.map}.new")
        os.rename(f"{one.map}.new", one.map)
    assert names_of(one) <= BOTH | {"whole", "[anonymous]", "sec"}


class Dump:
    """Writes a jitdump file, by its specification."""

    def __init__(self, pid):
        self.bytes = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, pid, 0, 0)

    def record(self, number, body):
        self.bytes += struct.pack("<IIQ", number, 16 + len(body), 0) + body

    def load(self, address, size, name):
        self.record(0, struct.pack("<IIQQQQ", 1, 1, address, address, size, 0) + name + b"\0" + b"\xc3" * size)

    def lines(self, address, *entries):
        body = b"".join(struct.pack("<QII", address + offset, line, 0) + file + b"\0" for offset, line, file in entries)
        self.record(2, struct.pack("<QQ", address, len(entries)) + body)


@pytest.mark.fast
def test_code_is_named_by_the_jitdump_file_with_its_lines(reported, tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    link = tmp_path / "link"  # its name holds the program's number, which is not known before
    one = reported(link)
    dump = Dump(one.run.process.pid)
    dump.load(one.code, one.size, b"old")
    dump.lines(one.code, (0, 7, b"/src/first.c"), (4, 8, b"\xff"))
    dump.load(one.code, one.half, b"first")
    dump.load(one.code + one.half, one.half, b"_ZN4bank6secondEv")
    path = folder / f"jit-{one.run.process.pid}.dump"
    path.write_bytes(dump.bytes)
    link.symlink_to(path)
    one.map.write_text(one.lines().replace("first", "mapped"))
    frames = Frames(one.profile())
    assert set(frames.functions) == {"first", "bank::second"}
    assert frames.functions["first"] == ("/src/first.c", 0, "native")
    assert {("first", 8), ("bank::second", 0)} <= frames.lines <= {("first", 7), ("first", 8), ("bank::second", 0)}


@pytest.mark.fast
def test_code_is_named_by_the_debuggers_interface(reported):
    frames = Frames(reported("debugger").profile())
    assert frames.functions["jit::first"] == ("", 0, "native")
    assert set(frames.functions) == {"jit::first", "[anonymous]"}


@pytest.mark.skipif(not Path("/usr/bin/node").exists(), reason="there is no node")
def test_functions_of_javascript_have_names_files_and_lines(run, tmp_path):
    script = tmp_path / "job.js"
    script.write_text(SCRIPT)

    def frames(*options):
        return Frames(run(["/usr/bin/node", *options, script], cwd=tmp_path, env={"OTEL_PROFILE_EXPORT_INTERVAL": "500"}))

    named = frames("--perf-basic-prof", "--interpreted-frames-native-stack")
    assert named.functions["spinsHard"] == (str(script), 2, "v8js")
    assert named.functions["pays"] == (str(script), 3, "v8js")
    assert named.share("spinsHard") > 0.5 and named.share("[anonymous]") < 0.2
    assert not any(re.match(r"[*~^]", name) for name in named.functions)
    assert set(frames().functions) == {"[anonymous]"}
