"""No variable causes a write to a file that is not the process's own.

The attacks are made as two real users: root and 65534. A file is one of two: the log, or the file of exports; the
same rule holds for both (common/private_file.h).
"""

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from host_root import host_root  # noqa: F401  (a fixture)
from profiled import LIBRARY, Receiver, attributes_of

pytestmark = pytest.mark.system

NOBODY = 65534
NEEDS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be two users")
BURN = "import time\nwhile time.process_time() < 0.3: sum(range(1000))\nprint('done')"
PYTHON = ["/usr/bin/python3", "-S", "-c", BURN]
LOG = {"OTEL_LOG_LEVEL": "debug", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
EXPORTS = {"OTEL_PROFILES_EXPORTER": "otlp_file"}
VICTIM = "precious\n"


def as_user(uid):
    def become():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    return become if uid else None


def profile(kind, file, uid=0, **environment):
    """Runs a program whose log lines (kind "log") or exports ("export") are to go to `file`."""
    given = {"OTEL_PROFILER_LOG_FILE": str(file), **LOG} if kind == "log" else \
        {"OTEL_PROFILER_FILE": str(file), **EXPORTS}
    return subprocess.run(
        PYTHON, env={"LD_PRELOAD": str(LIBRARY), "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_EXCLUDE": "none",
                     **given, **environment},
        preexec_fn=as_user(uid), capture_output=True, text=True, check=False, timeout=60, cwd="/",
    )


@pytest.fixture
def shared():
    """Makes a folder below /tmp with the mode of /tmp: other users can reach it, unlike a test's own folder."""
    with tempfile.TemporaryDirectory(prefix="otelprof-files-", dir="/tmp") as name:
        folder = Path(name) / "shared"
        Path(name).chmod(0o755)
        folder.mkdir()
        folder.chmod(0o1777)
        yield folder


@pytest.fixture
def victim(tmp_path):
    file = tmp_path / "victim"
    file.write_text(VICTIM)
    return file


def assert_refused(outcome, why):
    assert (outcome.stdout, outcome.returncode) == ("done\n", 0)
    lines = [line for line in outcome.stderr.splitlines() if "OTEL_PROFILER_" in line and why in line]
    assert len(lines) == 1, outcome.stderr


def assert_written(outcome, file, uid=0):
    assert (outcome.stdout, outcome.stderr, outcome.returncode) == ("done\n", "", 0)
    assert file.stat().st_size > 0 and file.stat().st_uid == uid
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


KINDS = pytest.mark.parametrize("kind", ["log", "export"])


@KINDS
@pytest.mark.parametrize("uid", [0, NOBODY])
@NEEDS_ROOT
def test_a_file_of_our_own_in_a_shared_folder_is_written_again_and_again(shared, kind, uid):
    assert_written(profile(kind, shared / "file", uid), shared / "file", uid)
    size = (shared / "file").stat().st_size
    assert_written(profile(kind, shared / "file", uid), shared / "file", uid)
    assert (shared / "file").stat().st_size > size


@KINDS
@NEEDS_ROOT
def test_a_file_that_another_user_created_is_not_used(shared, kind):
    (shared / "file").write_text(VICTIM)
    (shared / "file").chmod(0o666)
    os.chown(shared / "file", NOBODY, NOBODY)
    assert_refused(profile(kind, shared / "file"), "belongs to another user")
    assert (shared / "file").read_text() == VICTIM


@KINDS
@NEEDS_ROOT
def test_a_file_of_roots_that_others_may_write_is_not_used_by_them(shared, kind):
    (shared / "file").write_text(VICTIM)
    (shared / "file").chmod(0o666)
    assert_refused(profile(kind, shared / "file", NOBODY), "belongs to another user")
    assert (shared / "file").read_text() == VICTIM


@KINDS
def test_a_second_name_of_another_file_is_not_used(shared, kind):
    victim = shared.parent / "victim"
    victim.write_text(VICTIM)
    os.link(victim, shared / "file")
    assert_refused(profile(kind, shared / "file"), "has a second name")
    assert victim.read_text() == VICTIM


@KINDS
@pytest.mark.parametrize("part", ["last", "middle", "first"])
def test_no_part_of_the_path_is_a_link(shared, victim, kind, part):
    """The link of another user leads to a place that is ours alone."""
    name = shared / "file"
    if part == "last":
        name.symlink_to(victim)
    elif part == "middle":
        (shared / "link").symlink_to(victim.parent)
        name = shared / "link" / victim.name
    else:
        (shared / "link").symlink_to("/")
        name = Path(f"{shared}/link{victim}")
    assert_refused(profile(kind, name), "symbolic link, which is not followed")
    assert victim.read_text() == VICTIM
    new = name.with_name("new") if part != "last" else name
    profile(kind, new)
    assert not (victim.parent / "new").exists()


@KINDS
@pytest.mark.parametrize(("mode", "why"), [(0o777, "others can write"), (0o775, "others can write")])
@NEEDS_ROOT
def test_a_folder_that_others_can_write_is_not_used(shared, kind, mode, why):
    """There another user could replace the file, or a folder above it."""
    shared.chmod(mode)
    os.chown(shared, 0, NOBODY)
    assert_refused(profile(kind, shared / "file"), why)
    (shared / "below").mkdir()
    assert_refused(profile(kind, shared / "below" / "file"), why)
    assert not list((shared / "below").iterdir()) and len(list(shared.iterdir())) == 1


@KINDS
@NEEDS_ROOT
def test_a_folder_of_another_user_is_not_used(shared, kind):
    (shared / "theirs" / "below").mkdir(parents=True)
    os.chown(shared / "theirs", NOBODY, NOBODY)
    for folder in (shared / "theirs", shared / "theirs" / "below"):
        assert_refused(profile(kind, folder / "file"), "in a folder of another user")
        assert not (folder / "file").exists()


@pytest.mark.parametrize("where", ["/dev/null", "/dev/zero", "pipe"])
def test_a_log_goes_to_no_device_but_the_one_that_is_nothing(shared, where):
    if where == "pipe":
        os.mkfifo(shared / "pipe")
        where = str(shared / "pipe")
    outcome = profile("log", where)
    if where == "/dev/null":
        assert (outcome.stdout, outcome.stderr, outcome.returncode) == ("done\n", "", 0)
    else:
        assert_refused(outcome, "is no regular file")


@NEEDS_ROOT
def test_an_unused_output_is_not_reported(shared):
    """A variable for a whole container reaches programs of other users, whose stderr must stay clean."""
    (shared / "file").write_text(VICTIM)
    (shared / "file").chmod(0o600)
    shared.chmod(0o755)
    outcome = profile("log", shared / "file", NOBODY)
    assert (outcome.stdout, outcome.stderr, outcome.returncode) == ("done\n", "", 0)


# --- the log ---


@pytest.mark.parametrize("to_file", [False, True])
@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_PROFILER_MIN_LIFETIME", "OTEL_PROFILER_FILE",
                                      "OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_PROFILER_EXCLUDE"])
def test_no_value_is_repeated_raw(shared, variable, to_file):
    """Each line begins as ours, and has no control characters for a terminal."""
    evil = "http://a\nroot::0:0::/:/bin/sh\n\x1b]0;owned\x07\x9b2J\u202e" + "x" * 5000
    if variable == "OTEL_PROFILER_FILE":
        evil = f"{shared}/{evil.replace('/', '-')[:80]}/none"
    environment = {variable: evil, "OTEL_LOG_LEVEL": "debug", "OTEL_PROFILES_EXPORTER": "otlp,otlp_file,console"}
    if to_file:
        environment["OTEL_PROFILER_LOG_FILE"] = str(shared / "log")
    outcome = subprocess.run(
        PYTHON, env={"LD_PRELOAD": str(LIBRARY), "OTEL_PROFILER_MIN_LIFETIME": "0", **LOG, **environment},
        capture_output=True, check=False, timeout=60, cwd=shared,
    )
    assert (outcome.stdout, outcome.returncode) == (b"done\n", 0)
    log = shared / "log"  # a wrong value is logged before the file is known, on stderr
    text = outcome.stderr + (log.read_bytes() if log.exists() else b"")
    lines = text.decode().split("\n")
    assert lines.pop() == ""
    ours = [line for line in lines if line.startswith("libotelprof[")]
    assert ours and all(line.isprintable() and len(line.encode()) < 1024 for line in lines), lines
    assert not [line for line in lines if line.startswith("root::")]


# --- a preload that root has set for every program ---


PROFILED = ("OTEL_PROFILER_INCLUDE=python3*", "OTEL_PROFILER_MIN_LIFETIME=0")
WRITES = {
    "log": {"OTEL_PROFILER_LOG_FILE": "/secret/victim", **LOG},
    "new log": {"OTEL_PROFILER_LOG_FILE": "/secret/new", **LOG},
    "export": {"OTEL_PROFILES_EXPORTER": "otlp_file,otlp", "OTEL_PROFILER_FILE": "/secret/victim"},
    "new export": {"OTEL_PROFILES_EXPORTER": "otlp_file,otlp", "OTEL_PROFILER_FILE": "/secret/new"},
}


@pytest.mark.parametrize("what", WRITES)
def test_a_setuid_wrappers_child_writes_no_file_of_the_users_choice(root, what):
    """A setuid wrapper removes LD_PRELOAD, and not OTEL_*; root's preload is there all the same. The child still
    exports over the network."""
    receiver = Receiver()
    root.configure(*PROFILED, f"OTEL_EXPORTER_OTLP_ENDPOINT={receiver.url}")
    try:
        done = root.run(NOBODY, ["/wrapper", *PYTHON], **{**WRITES[what], "LD_PRELOAD": "/prof/libotelprof.so"})
    finally:
        receiver.close()
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    assert {path.name for path in (root.folder / "secret").iterdir()} == {"victim"}
    assert (root.folder / "secret/victim").read_text() == VICTIM
    refusal = "log files, export files, OTEL_CONFIG_FILE, OTEL_PROFILER_CONTROL_FILE and OTEL_PROFILER_LISTEN are refused"
    said = [line for line in done.stderr.splitlines() if refusal in line]
    assert len(said) == 1, done.stderr
    assert receiver.requests, "what is no file goes on"


def test_a_setuid_wrappers_child_reads_no_configuration_of_the_users_choice(root):
    """It reads a configuration that a file of root's names."""
    (root.folder / "open/otel.yaml").write_text('file_format: "1.0"\ndisabled: true\n')
    (root.folder / "secret/otel.yaml").write_text(
        'file_format: "1.0"\nresource: {attributes: [{name: service.name, value: "${NAME:-roots}"}]}\n')
    for named in ((), ("OTEL_CONFIG_FILE=/secret/otel.yaml",)):
        receiver = Receiver()
        root.configure(*PROFILED, *named, f"OTEL_EXPORTER_OTLP_ENDPOINT={receiver.url}")
        try:
            done = root.run(NOBODY, ["/wrapper", *PYTHON], OTEL_CONFIG_FILE="/open/otel.yaml", NAME="users")
        finally:
            receiver.close()
        assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
        assert done.stderr.count("OTEL_PROFILER_LISTEN are refused") == 1, done.stderr
        names = {attributes_of(part.resource)["service.name"] for request in receiver.requests for part in request.resource_profiles}
        assert len(names) == 1 and ("roots" in names) == bool(named)


def test_a_setuid_wrappers_child_follows_no_file_of_the_users_choice(root):
    """Root may read the file and the user may not: nothing of it is followed, and nothing of it shown."""
    (root.folder / "secret/control").write_text("OTEL_PROFILER_START=off\nOTEL_PROFILER_TYPES=hidden\n")
    for named in ((), ("OTEL_PROFILER_CONTROL_FILE=/secret/control",)):
        receiver = Receiver()
        root.configure(*PROFILED, *named, f"OTEL_EXPORTER_OTLP_ENDPOINT={receiver.url}")
        try:
            done = root.run(NOBODY, ["/wrapper", *PYTHON], **LOG, OTEL_PROFILER_CONTROL_FILE="/secret/control")
        finally:
            receiver.close()
        assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
        assert ("hidden" in done.stderr) == bool(named), done.stderr


def test_the_loader_takes_the_preload_from_a_setuid_wrapper_and_its_children(root):
    """The rule above depends on this."""
    done = root.run(NOBODY, ["/wrapper", "/usr/bin/env"], LD_PRELOAD="/prof/libotelprof.so", OTEL_SDK_DISABLED="true")
    assert "OTEL_SDK_DISABLED=true" in done.stdout and "LD_PRELOAD" not in done.stdout


def test_a_preload_that_the_environment_names_writes_its_files(root):
    done = root.run(NOBODY, PYTHON, **LOG, OTEL_PROFILER_LOG_FILE="/open/log", LD_PRELOAD="/prof/libotelprof.so")
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    assert "libotelprof[" in (root.folder / "open/log").read_text()


@pytest.mark.parametrize("kind", ["log", "export"])
def test_a_preload_that_was_unset_before_us_was_given_all_the_same(program, shared, kind):
    """A library that is initialised before ours unset it: exec had given it to the process, whose files are its own."""
    file = shared / "file"
    both = f"{LIBRARY}:{program('unsets_preload.so')}"
    assert_written(profile(kind, file, LD_PRELOAD=both), file)


def test_a_preload_that_was_not_given_is_not_made_up(root):
    """A program sets it for itself, too late to have had the profiler loaded by it."""
    code = "import os, time\nos.environ['LD_PRELOAD'] = '/prof/libotelprof.so'\n" + BURN
    done = root.run(NOBODY, ["/usr/bin/python3", "-S", "-c", code], **LOG, OTEL_PROFILER_LOG_FILE="/open/log")
    assert "log files, export files, OTEL_CONFIG_FILE, OTEL_PROFILER_CONTROL_FILE and OTEL_PROFILER_LISTEN are refused" in done.stderr
    assert not (root.folder / "open/log").exists()


def test_the_helpers_libraries_get_no_file_from_the_users_variables(root):
    """OpenSSL would load code that its configuration names, and libcurl would write keys to a file."""
    (root.folder / "open/openssl.cnf").write_text("openssl_conf = x\n[x]\nengines = y\n[y]\nz = w\n[w]\n"
                                                  "dynamic_path = /open/engine.so\ninit = 1\n")
    root.configure(*PROFILED, "OTEL_EXPORTER_OTLP_ENDPOINT=https://localhost:9")
    done = root.run(
        NOBODY, ["/wrapper", "/usr/bin/strace", "-f", "-o", "/open/trace", "-e", "trace=openat,open", *PYTHON],
        OPENSSL_CONF="/open/openssl.cnf", SSLKEYLOGFILE="/secret/keys",
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    trace = (root.folder / "open/trace").read_text()
    assert "libotelprof-flush.so" in trace, "the exporter was loaded"
    assert "/open/openssl.cnf" not in trace and "/secret/keys" not in trace
