"""Where /etc/ld.so.preload names the profiler, rules decide which processes are profiled, and whose settings count.
The tests use two real users, in a root of their own."""

import os
import re
import shutil
import struct

import pytest
from host_root import FILES, NOBODY, host_root  # noqa: F401  (a fixture)
from profiled import Receiver

pytestmark = pytest.mark.system

BURN = "import time\nwhile time.process_time() < 0.2: sum(range(1000))\nprint('done')"
PYTHON = ["/usr/bin/python3", "-S", "-c", BURN]
ALWAYS = "OTEL_PROFILER_MIN_LIFETIME=0"
INCLUDED = ("OTEL_PROFILER_INCLUDE=python3*", ALWAYS)


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def other_receiver():
    made = Receiver()
    yield made
    made.close()


def to(receiver):
    return f"OTEL_EXPORTER_OTLP_ENDPOINT={receiver.url}"


def run(root, uid=NOBODY, command=PYTHON, setpriv=(), **environment):
    done = root.run(uid, command, *setpriv, **environment)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    return done.stderr


# --- which processes are profiled ---


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_host_wide_nothing_is_profiled_unless_include_names_it(root, receiver, uid):
    root.configure(ALWAYS, to(receiver))
    assert run(root, uid) == ""
    assert not receiver.requests
    root.configure(*INCLUDED, to(receiver))
    assert run(root, uid) == ""
    assert receiver.requests


@pytest.mark.parametrize("lines", [("OTEL_PROFILER_EXCLUDE=*thon3*",), ("OTEL_SDK_DISABLED=true",)])
def test_host_wide_exclude_wins_over_include(root, receiver, lines):
    root.configure(*INCLUDED, to(receiver), *lines)
    assert run(root) == ""
    assert not receiver.requests


def test_host_wide_the_machines_own_services_are_never_profiled(root, receiver):
    """A service is recognised by the name of the executable, and by that of a script in the system's folders."""
    root.configure("OTEL_PROFILER_INCLUDE=*", "OTEL_PROFILER_EXCLUDE=none", to(receiver), ALWAYS)
    for name in ("sshd", "containerd-shim-runc-v2", "bash", "systemd"):
        copy = root.folder / "prof" / name
        copy.write_bytes(open("/usr/bin/python3", "rb").read())
        copy.chmod(0o755)
        said = run(root, command=[f"/prof/{name}", *PYTHON[1:]], OTEL_LOG_LEVEL="debug", PYTHONHOME="/usr")
        assert f"/prof/{name} is one of the programs that are never profiled host-wide" in said
    assert not receiver.requests
    run(root)
    assert receiver.requests, "python itself is profiled"


def test_host_wide_a_command_of_the_system_makes_no_call_of_ours(root):
    """The command is given files that would enable its profiling: it reads none."""
    root.configure("OTEL_PROFILER_INCLUDE=*", "OTEL_PROFILER_EXCLUDE=none")
    root.run(NOBODY, ["/usr/bin/strace", "-f", "-o", "/open/trace", "/usr/bin/true"])
    trace = (root.folder / "open/trace").read_text()
    assert "/prof/libotelprof.so" in trace and "opentelemetry" not in trace and "/proc/self" not in trace


def test_host_wide_a_program_that_no_file_includes_reads_nothing_more(root):
    """Every process of the machine pays for these calls: its name, its rights, what exec gave it."""
    root.configure("OTEL_PROFILER_INCLUDE=")
    for environment in ({}, {"OTEL_SERVICE_NAME": "x"}):
        root.run(NOBODY, ["/usr/bin/strace", "-o", "/open/trace", *PYTHON], **environment)
        trace = (root.folder / "open/trace").read_text()
        assert f"/{FILES}" in trace and '"otelprof.conf"' in trace
        assert not re.search(r'"/proc/self/exe"|environ|capget', trace)


# --- whose settings count ---


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_in_roots_process_the_environment_names_no_endpoint(root, receiver, other_receiver, uid):
    root.configure(*INCLUDED, to(receiver))
    said = run(root, uid, OTEL_EXPORTER_OTLP_ENDPOINT=other_receiver.url, OTEL_SERVICE_NAME="mine", OTEL_LOG_LEVEL="debug")
    assert bool(receiver.requests) == (uid == 0)
    assert bool(other_receiver.requests) == (uid != 0)
    assert ("the environment's OTEL_EXPORTER_OTLP_ENDPOINT are ignored" in said) == (uid == 0)


def test_in_roots_process_the_environment_names_no_proxy(root, receiver, other_receiver):
    """A proxy would see the profiles."""
    root.configure(*INCLUDED, "OTEL_EXPORTER_OTLP_ENDPOINT=http://profiles.invalid:4318")
    run(root, 0, http_proxy=other_receiver.url, OTEL_LOG_LEVEL="none")
    assert not other_receiver.requests
    run(root, NOBODY, http_proxy=other_receiver.url, OTEL_LOG_LEVEL="none")
    assert other_receiver.requests, "it would"


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_in_roots_process_the_environment_cannot_ask_to_be_profiled(root, receiver, uid):
    root.configure(ALWAYS, to(receiver), "OTEL_SDK_DISABLED=false")
    assert run(root, uid, OTEL_PROFILER_INCLUDE="python3*") == ""
    assert bool(receiver.requests) == (uid != 0)


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_in_roots_process_the_environment_turns_off_but_not_on(root, receiver, uid):
    root.configure(*INCLUDED, to(receiver))
    run(root, uid, OTEL_SDK_DISABLED="true")
    assert not receiver.requests
    root.configure(*INCLUDED, to(receiver), "OTEL_SDK_DISABLED=true")
    run(root, uid, OTEL_SDK_DISABLED="false")
    assert bool(receiver.requests) == (uid != 0)


def test_a_process_with_capabilities_is_as_roots(root, receiver, other_receiver):
    root.configure(*INCLUDED, to(receiver))
    capable = ("--inh-caps", "+net_raw", "--ambient-caps", "+net_raw")
    run(root, setpriv=capable, OTEL_EXPORTER_OTLP_ENDPOINT=other_receiver.url)
    assert receiver.requests and not other_receiver.requests


def test_a_setuid_wrappers_child_is_roots(root, receiver, other_receiver):
    root.configure(*INCLUDED, to(receiver))
    run(root, command=["/wrapper", *PYTHON], OTEL_EXPORTER_OTLP_ENDPOINT=other_receiver.url)
    assert receiver.requests and not other_receiver.requests


# --- programs of more rights than their caller's, and their children ---

NET_RAW = 1 << 13


def with_right(root, path, right):
    """Makes a copy of a program that has a right which NOBODY lacks."""
    copy = root.folder / "prof" / os.path.basename(path)
    shutil.copy(path, copy)
    copy.chmod({"setuid": 0o4755, "setgid": 0o2755}.get(right, 0o755))
    if right == "capability":  # linux/capability.h: struct vfs_cap_data, effective
        os.setxattr(copy, "security.capability", struct.pack("<5I", 0x02000001, NET_RAW, NET_RAW, 0, 0))
    return f"/prof/{copy.name}"


@pytest.mark.parametrize("right", ["none", "setuid", "setgid", "capability"])
def test_host_wide_a_program_of_more_rights_than_its_caller_is_left_alone(root, receiver, right):
    root.configure(*INCLUDED, to(receiver))
    assert run(root, command=[with_right(root, "/usr/bin/python3", right), *PYTHON[1:]], PYTHONHOME="/usr") == ""
    assert bool(receiver.requests) == (right == "none")


def test_the_child_of_a_program_with_capabilities_is_as_roots(root, receiver, other_receiver):
    root.configure(*INCLUDED, to(receiver))
    setpriv = with_right(root, "/usr/bin/setpriv", "capability")
    command = [setpriv, "--inh-caps", "+net_raw", "--ambient-caps", "+net_raw", *PYTHON]
    run(root, command=command, OTEL_EXPORTER_OTLP_ENDPOINT=other_receiver.url)
    assert receiver.requests and not other_receiver.requests


def test_the_child_of_a_setgid_program_writes_no_file(root):
    """The program has the rights of a group that may write to the folder."""
    root.configure(*INCLUDED)
    (root.folder / "secret").chmod(0o770)
    wrapper = with_right(root, "/usr/bin/python3", "setgid")
    code = f"import os\nos.setresgid(0, 0, 0)\nos.execv({PYTHON[0]!r}, {PYTHON!r})"
    said = run(root, command=[wrapper, "-S", "-c", code], PYTHONHOME="/usr", OTEL_PROFILES_EXPORTER="otlp_file",
               OTEL_PROFILER_FILE="/secret/new", OTEL_PROFILER_LOG_FILE="/secret/log")
    assert said.count("\n") == 1 and "export files, OTEL_CONFIG_FILE, OTEL_PROFILER_CONTROL_FILE and OTEL_PROFILER_LISTEN are refused" in said
    assert [path.name for path in (root.folder / "secret").iterdir()] == ["victim"]


# --- files ---


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_host_wide_no_process_listens_where_the_environment_names(root, uid):
    """The process makes no socket there; where root's files name the address, it does."""
    root.configure(*INCLUDED)
    said = run(root, uid, OTEL_PROFILER_LISTEN="unix:/open/socket", OTEL_PROFILER_LISTEN_CONTROL="true", OTEL_LOG_LEVEL="debug")
    assert "OTEL_PROFILER_LISTEN" in said and "listening on" not in said
    root.configure(*INCLUDED, "OTEL_PROFILER_LISTEN=unix:/open/%p.sock")
    assert "listening on unix:/open/" in run(root, uid, OTEL_LOG_LEVEL="debug")


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_host_wide_files_are_those_of_the_configuration_files(root, uid):
    root.configure(*INCLUDED, "OTEL_PROFILES_EXPORTER=otlp_file", "OTEL_PROFILER_FILE=/open/export",
                   "OTEL_PROFILER_LOG_FILE=/open/log")
    run(root, uid, OTEL_PROFILER_FILE="/open/theirs", OTEL_PROFILER_LOG_FILE="/open/their-log", OTEL_LOG_LEVEL="debug")
    assert sorted(path.name for path in (root.folder / "open").iterdir()) == ["export", "log"]


def test_host_wide_the_environments_exporter_writes_no_file_of_its_own_name(root):
    """No file appears in the working directory; the exporter may write to standard output."""
    root.configure(*INCLUDED)
    said = run(root, command=["/usr/bin/env", "-C", "/open", *PYTHON], OTEL_PROFILES_EXPORTER="otlp_file")
    assert "export files, OTEL_CONFIG_FILE, OTEL_PROFILER_CONTROL_FILE and OTEL_PROFILER_LISTEN are refused" in said
    assert not list((root.folder / "open").iterdir())
    done = root.run(NOBODY, PYTHON, OTEL_PROFILES_EXPORTER="otlp_file", OTEL_PROFILER_FILE="-")
    assert '"resourceProfiles"' in done.stdout and done.stderr == ""
