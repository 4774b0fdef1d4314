"""In a folder that others write to, an output neither follows nor fills what another user has put there, and shows no user's
data."""

import os
import stat

import pytest
from captured import otelprof
from otelprof_lib import whole_file as whole_file_module
from otelprof_lib.capture_file import append_message
from otelprof_lib.whole_file import append_file, whole_file

pytestmark = pytest.mark.system

OTHER = 4321  # a user's id


@pytest.fixture
def shared(message, tmp_path):
    """Makes such a folder, with a victim's file, and a capture to convert."""
    (tmp_path / "victim").write_text("as it was")
    with open(tmp_path / "a", "wb") as file:
        append_message(file, message().profile("samples", "count", 10_000_000, {("hot", "main"): 7}).bytes())
    return tmp_path


@pytest.fixture
def as_other(monkeypatch):
    """Makes the test another user than the owner of the folder's files."""
    return lambda: monkeypatch.setattr(whole_file_module.os, "geteuid", lambda: OTHER)


def write(path, opens):
    with opens(str(path)) as file:
        file.write(b"secret")


@pytest.mark.parametrize("opens", [whole_file, append_file])
def test_another_users_link_file_and_pipe_are_refused(shared, as_other, monkeypatch, opens):
    (shared / "link").symlink_to(shared / "victim")
    os.mkfifo(shared / "pipe")
    real = os.stat

    def of_a_third(*arguments, **options):
        facts = list(real(*arguments, **options))
        facts[stat.ST_UID] = OTHER + 1
        return os.stat_result(facts)

    as_other()
    monkeypatch.setattr(whole_file_module.os, "stat", of_a_third)
    before = sorted(os.listdir(shared))
    for name, words in (("link", "a link of another user's"), ("victim", "a file of another user's"), ("pipe", "a pipe of another user's")):
        with pytest.raises(PermissionError, match=words) as refused:
            write(shared / name, opens)
        assert refused.value.filename == str(shared / name)
    assert (shared / "victim").read_text() == "as it was"
    assert sorted(os.listdir(shared)) == before


@pytest.mark.parametrize("opens", [whole_file, append_file])
def test_a_file_that_takes_the_name_meanwhile_is_not_written(shared, monkeypatch, opens):
    """The link is made between the check and the opening; where there is a link the file is put in its place."""
    real = os.open

    def races(path, flags, *arguments, **options):
        if path == "out" or str(path).startswith(".otelprof-"):
            (shared / "out").symlink_to(shared / "victim")
            monkeypatch.setattr(whole_file_module.os, "open", real)
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(whole_file_module.os, "open", races)
    try:
        write(shared / "out", opens)
    except FileExistsError:
        pass
    assert (shared / "victim").read_text() == "as it was"


def test_a_link_that_takes_the_place_of_a_file_is_not_followed(shared, monkeypatch):
    """The link is made between the check and the opening of a file that is appended to."""
    real = os.open
    (shared / "out").write_text("there")

    def races(path, flags, *arguments, **options):
        if path == "out":
            (shared / "out").unlink()
            (shared / "out").symlink_to(shared / "victim")
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(whole_file_module.os, "open", races)
    with pytest.raises(OSError, match="symbolic links"):
        write(shared / "out", append_file)
    assert (shared / "victim").read_text() == "as it was"


def test_own_links_and_devices_are_followed(shared):
    (shared / "link").symlink_to("other")
    (shared / "other").symlink_to(shared / "victim")
    write(shared / "link", whole_file)
    assert (shared / "victim").read_text() == "secret" and (shared / "link").is_symlink()
    write("/dev/null", whole_file)
    done = otelprof("export", "a", "--format", "collapsed", "-o", "/dev/stdout", cwd=shared)
    assert "main;hot" in done.stdout, done.stderr


def test_an_unfinished_file_is_not_readable_by_others(shared):
    """When finished, it has the mode of any new file, or that of our file that was there."""
    (shared / "ours").touch(0o640)
    for name, mode in (("ours", 0o640), ("new", 0o644)):
        before = set(os.listdir(shared))
        mask = os.umask(0o022)
        with whole_file(str(shared / name)):
            (beside,) = set(os.listdir(shared)) - before
            assert stat.S_IMODE((shared / beside).stat().st_mode) == 0o600
        os.umask(mask)
        assert stat.S_IMODE((shared / name).stat().st_mode) == mode


def test_a_file_with_another_name_is_not_added_to(shared):
    """Another user can give our file a name in a folder of theirs."""
    os.link(shared / "victim", shared / "second")
    with pytest.raises(PermissionError, match="several names"):
        append_file(str(shared / "second"))
    assert (shared / "victim").read_text() == "as it was"


@pytest.mark.parametrize("command", [
    ["run", "--quiet", "-o", "out", "--", "true"], ["receive", "--listen", "127.0.0.1:0", "-o", "out"], ["merge", "a", "-o", "out"],
    ["pprof", "a", "-o", "out"], ["export", "a", "--format", "collapsed", "-o", "out"], ["flamegraph", "a", "-o", "out"],
], ids=lambda command: command[0])
@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another user")
def test_each_command_refuses_another_users_link(shared, command):
    (shared / "out").symlink_to(shared / "victim")
    os.chown(shared / "out", OTHER, OTHER, follow_symlinks=False)
    done = otelprof(*command, cwd=shared)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("otelprof: out: a link of another user's (id 4321)")
    assert (shared / "victim").read_text() == "as it was"
