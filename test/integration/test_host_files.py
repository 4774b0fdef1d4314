"""/etc/opentelemetry/otelprof has the kill switch and the configuration files; the tests use a root of their own."""

import json
import os
import shutil
import subprocess

import pytest
from host_root import FILES, NOBODY, host_root  # noqa: F401  (a fixture)

pytestmark = pytest.mark.system

PYTHON = ["/usr/bin/python3", "-S", "-c", "import time\nwhile time.process_time() < 0.1: sum(range(1000))\nprint('done')"]
INCLUDED = ("OTEL_PROFILER_INCLUDE=python3*", "OTEL_PROFILER_MIN_LIFETIME=0")
FILE = "OTEL_PROFILES_EXPORTER=otlp_file", "OTEL_PROFILER_FILE=/open/export"


def run(root, uid=0, **environment):
    """Returns the log; whether profiles were exported to the file of FILE."""
    export = root.folder / "open/export"
    export.unlink(missing_ok=True)
    done = root.run(uid, PYTHON, **environment)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    return done.stderr, export.exists()


@pytest.mark.parametrize("how", [{}, {"LD_PRELOAD": "/prof/libotelprof.so"}], ids=["host-wide", "LD_PRELOAD"])
@pytest.mark.parametrize("where", [FILES, "run/opentelemetry/otelprof"])
def test_nothing_is_profiled_while_a_kill_switch_exists(root, where, how):
    root.configure(*INCLUDED, *FILE)
    assert run(root, **how) == ("", True)
    switch = root.folder / where / "disabled"
    switch.parent.mkdir(parents=True, exist_ok=True)
    switch.touch()
    assert run(root, **how) == ("", False)
    said, _ = run(root, **how, OTEL_LOG_LEVEL="debug")
    assert said.count("libotelprof[") == 1 and f"/{where}/disabled exists; nothing is profiled" in said
    switch.unlink()
    assert run(root, **how) == ("", True)


def threads_with_one_descriptor_left(root):
    limited = "import os, resource; os.closerange(3, 64); resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)); os.execve(" \
        "'/usr/bin/grep', ['grep', '^Threads:', '/proc/self/status'], {'LD_PRELOAD': '/prof/libotelprof.so', " \
        "'OTEL_PROFILER_EXCLUDE': 'none'})"
    done = root.run(0, ["/usr/bin/python3", "-S", "-c", limited])
    return done.stdout, done.stderr, done.returncode


@pytest.mark.parametrize("where", [FILES, "run/opentelemetry/otelprof"])
def test_the_kill_switch_is_seen_with_one_descriptor_left(root, where):
    """The loader needs a descriptor itself: without any no program starts."""
    root.configure(*INCLUDED)
    switch = root.folder / where / "disabled"
    switch.parent.mkdir(parents=True, exist_ok=True)
    switch.touch()
    assert threads_with_one_descriptor_left(root) == ("Threads:\t1\n", "", 0)


def test_host_files_that_cannot_be_opened_disable_profiling(root):
    """Too few descriptors are left to open the files; files that do not exist cause no message."""
    root.configure("OTEL_SDK_DISABLED=true")
    assert threads_with_one_descriptor_left(root) == ("Threads:\t1\n", "", 0)
    shutil.rmtree(root.folder / "etc/opentelemetry")
    assert threads_with_one_descriptor_left(root) == ("Threads:\t2\n", "", 0)


def test_the_kill_switch_counts_with_any_owner(root):
    root.configure(*INCLUDED, *FILE)
    (root.folder / FILES / "disabled").symlink_to("nowhere")
    os.chown(root.folder / FILES, NOBODY, NOBODY)
    assert run(root) == ("", False)


def test_the_kill_switch_counts_in_a_folder_that_is_a_link(root):
    """No setting is read from such a folder."""
    (root.folder / FILES).rename(root.folder / "etc/elsewhere")
    (root.folder / FILES).symlink_to("../elsewhere")
    environment = {"LD_PRELOAD": "/prof/libotelprof.so", "OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_FILE": "/open/export",
                   "OTEL_PROFILER_MIN_LIFETIME": "0"}
    assert run(root, **environment)[1]
    (root.folder / "etc/elsewhere/disabled").touch()
    assert run(root, **environment) == ("", False)


# --- configuration files ---


def service(root, uid=0, **environment):
    """Returns service.name as it was exported, or None; and the log."""
    said, exported = run(root, uid, **environment)
    if not exported:
        return None, said
    message = json.loads((root.folder / "open/export").read_text().splitlines()[0])
    attributes = message["resourceProfiles"][0]["resource"]["attributes"]
    return next(a["value"]["stringValue"] for a in attributes if a["key"] == "service.name"), said


def name(value):
    return f"OTEL_SERVICE_NAME={value}"


def test_the_last_line_of_the_last_file_counts_and_the_environment_before_all(root):
    root.configure(*INCLUDED, *FILE, name("weak"))
    assert service(root) == ("weak", "")
    assert service(root, OTEL_SERVICE_NAME="") == ("weak", "")
    root.configure(name("first"), name('"of 10"'), name="conf.d/10.conf")
    assert service(root) == ("of 10", "")
    root.configure(name("of 20"), name="conf.d/20.conf")
    root.configure(name("no file of ours"), name="conf.d/30.txt")
    root.configure(name("hidden"), name="conf.d/.30.conf")
    assert service(root) == ("of 20", "")
    assert service(root, LD_PRELOAD="/prof/libotelprof.so") == ("of 20", "")
    assert service(root, OTEL_SERVICE_NAME="the environment's") == ("the environment's", "")
    root.configure("OTEL_SERVICE_NAME=", name="conf.d/40.conf")
    assert service(root) == ("unknown_service:python3.11", "")


def made_untrusted(folder):
    """Makes {name of a file: what is wrong with it}."""
    wrong = {"10-theirs": "does not belong to root", "20-group": "can be written by others than root",
             "25-others": "can be written by others than root", "30-link": "is a symbolic link, which is not followed",
             "40-pipe": "is no regular file", "45-folder": "is no regular file", "50-large": "is larger than 16384 bytes"}
    (folder / "fine").write_text(name("linked") + "\n")
    for file in wrong:
        path = folder / f"{file}.conf"
        if file == "30-link":
            path.symlink_to("fine")
        elif file == "40-pipe":
            os.mkfifo(path)
        elif file == "45-folder":
            path.mkdir()
        else:
            path.write_text(name(file) + "\n" + ("#" * 16384 if file == "50-large" else ""))
    os.chown(folder / "10-theirs.conf", NOBODY, 0)
    (folder / "20-group.conf").chmod(0o664)
    (folder / "25-others.conf").chmod(0o646)
    return wrong


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_a_file_that_another_than_root_can_have_written_is_not_read(root, uid):
    root.configure(*INCLUDED, *FILE, name("fine"))
    root.configure("", name="conf.d/00.conf")
    wrong = made_untrusted(root.folder / FILES / "conf.d")
    value, said = service(root, uid)
    assert value == "fine"
    lines = said.splitlines()
    for file, why in wrong.items():
        assert sum(f"warn: /{FILES}/conf.d/{file}.conf {why}; it is not read" in line for line in lines) == 1, said
    assert len(lines) == len(wrong)


@pytest.mark.parametrize("which", ["", "conf.d"])
@pytest.mark.parametrize("how", ["owner", "mode"])
def test_a_folder_that_another_than_root_can_write_is_not_read(root, which, how):
    """The process is preloaded by LD_PRELOAD, where the environment alone may enable profiling."""
    root.configure(name("main"))
    root.configure(name("more"), name="conf.d/10.conf")
    folder = root.folder / FILES / which
    if how == "owner":
        os.chown(folder, NOBODY, NOBODY)
    else:
        folder.chmod(0o1777)
    value, said = service(root, LD_PRELOAD="/prof/libotelprof.so", OTEL_PROFILES_EXPORTER="otlp_file",
                          OTEL_PROFILER_FILE="/open/export", OTEL_PROFILER_MIN_LIFETIME="0")
    assert value == ("main" if which else "unknown_service:python3.11")
    assert said.count("\n") == 1 and f"warn: /{FILES}{'/' * bool(which)}{which} " in said and "; it is not read" in said


def test_a_link_to_the_folder_is_not_followed(root):
    root.configure(*INCLUDED, *FILE)
    (root.folder / FILES).rename(root.folder / "etc/elsewhere")
    (root.folder / FILES).symlink_to("/etc/elsewhere")
    assert run(root) == ("", False)


def test_other_users_do_without_roots_private_files(root):
    """Such a file may hold a secret: its refusal is not logged."""
    root.configure(*INCLUDED, *FILE)
    root.configure(name("secret"), name="conf.d/10.conf").chmod(0o600)
    assert service(root, 0) == ("secret", "")
    assert service(root, NOBODY) == ("unknown_service:python3.11", "")
    assert f"/{FILES}/conf.d/10.conf cannot be read by this user" in run(root, NOBODY, OTEL_LOG_LEVEL="debug")[0]


def test_in_a_user_namespace_without_root_no_file_is_read(root):
    """Every file belongs to the overflow user there."""
    root.configure(*INCLUDED, *FILE)
    done = root.run_as([], PYTHON, outside=["unshare", "--user", "--keep-caps"], OTEL_LOG_LEVEL="debug")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    assert not (root.folder / "open/export").exists()
    assert f"debug: /{FILES} does not belong to root; it is not read" in done.stderr


def test_an_unprofiled_process_reports_no_wrong_lines(root):
    root.configure("OTEL_PROFILER_INCLUDE=none", "nonsense", "OTEL_PROFILER_CPU_FREQUENCY=0")
    assert run(root) == ("", False)
    root.configure(*INCLUDED, *FILE, "nonsense", "OTEL_PROFILER_CPU_FREQUENCY=0")
    said, exported = run(root)
    assert exported and said.count("\n") == 2
    assert f"warn: /{FILES}/otelprof.conf, line 5 is not KEY=VALUE; the line is ignored" in said
    assert "OTEL_PROFILER_CPU_FREQUENCY" in said


def test_the_files_that_were_read_are_said_at_level_debug(root):
    root.configure(*INCLUDED, *FILE, "OTEL_LOG_LEVEL=debug")
    root.configure("", name="conf.d/10.conf")
    said, _ = run(root)
    assert f"debug: /{FILES}/otelprof.conf was read" in said and f"debug: /{FILES}/conf.d/10.conf was read" in said


def test_of_too_many_files_the_last_are_read(root):
    """Later files override earlier ones."""
    root.configure(*INCLUDED, *FILE)
    for number in range(40):
        root.configure(name(f"of {number}"), name=f"conf.d/{number:02}.conf")
    assert service(root)[0] == "of 39"
    said = service(root)[1]
    assert f"/{FILES}/conf.d/08.conf is the first of 32 files; those before it are not read" in said
