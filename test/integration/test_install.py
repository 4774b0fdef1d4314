"""`make install` beside running programs changes no file that they have mapped, or will load."""

import os
import shutil
import subprocess

import own_machine
import pytest
from profiled import BUILD, LIBRARY, ROOT

pytestmark = pytest.mark.system

INSTALLATIONS = 4


def install(destination):
    command = ["make", "-s", "-C", ROOT, f"BUILD={os.path.relpath(BUILD, ROOT)}", "install", f"DESTDIR={destination}", "PREFIX=/usr"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_uninstalling_removes_all_that_installing_brought(tmp_path):
    """The manual pages and the header are removed, too."""
    done = install(tmp_path)
    assert done.wait(120) == 0, done.stderr.read()
    brought = {str(path.relative_to(tmp_path / "usr")) for path in tmp_path.rglob("*") if not path.is_dir()}
    assert {"bin/otelprof", "include/otelprof.h", "lib/otelprof/libotelprof.so",
            "share/man/man1/otelprof.1", "share/man/man7/libotelprof.7"} <= brought
    subprocess.run(["make", "-s", "-C", ROOT, "uninstall", f"DESTDIR={tmp_path}", "PREFIX=/usr"], check=True)
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []


@pytest.mark.skipif(not own_machine.can_be_made() and os.environ.get("CI") != "true", reason="needs root's right to a mount namespace")
@pytest.mark.parametrize("ours", [True, False], ids=["what is removed", "another copy"])
def test_uninstalling_disables_a_host_that_uses_the_installation(ours):
    """Otherwise the loader of each program would report a missing object."""
    machine = own_machine.Machine()
    try:
        make = ("make", "-s", "-C", ROOT, f"BUILD={os.path.relpath(BUILD, ROOT)}", "PREFIX=/srv/local")
        assert machine.run(*make, "install").returncode == 0
        command = "/srv/local/bin/otelprof" if ours else f"{own_machine.BUNDLE}/otelprof"
        enabled = machine.run(command, "host", "enable")
        assert enabled.returncode == 0, enabled.stderr
        done = machine.run(*make, "uninstall")
        assert done.returncode == 0, done.stderr
        assert machine.preload() == (None if ours else own_machine.LINE)
        assert machine.run("true").stderr == ""
    finally:
        machine.end()


def test_no_exec_dies_of_an_installation_beside_it(tmp_path):
    """One in a hundred died when a library was overwritten in place."""
    folder = tmp_path / "usr/lib/otelprof"
    first = install(tmp_path)
    assert first.wait(120) == 0, first.stderr.read()
    environment = {"LD_PRELOAD": str(folder / "libotelprof.so"), "OTEL_PROFILER_EXCLUDE": "none",
                   "OTEL_LOG_LEVEL": "none"}
    release = (folder / "current").resolve()
    inode = (release / "libotelprof.so").stat().st_ino
    runs = 0
    for _ in range(INSTALLATIONS):
        beside = install(tmp_path)
        while beside.poll() is None:
            done = subprocess.run(["/bin/true"], env=environment, capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, b""), f"run {runs}"
            runs += 1
        assert beside.returncode == 0, beside.stderr.read()
    assert runs > INSTALLATIONS
    assert (release / "libotelprof.so").stat().st_ino == inode
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [release.name, "current", "libotelprof.so", "libotelprof.so.0"])
    for command in (["--help"], ["host", "--help"]):
        shown = subprocess.run([tmp_path / "usr/bin/otelprof", *command], capture_output=True, check=False)
        assert shown.returncode == 0


def test_installations_at_once_leave_a_whole_release(tmp_path):
    """Each installation has a folder of its own until it is renamed; a damaged release is replaced."""
    folder = tmp_path / "usr/lib/otelprof"
    for damaged in (None, "libotelprof-flush.so", "libotelprof-cpp.so", "libotelprof.so"):
        if damaged:
            (folder / "current" / damaged).unlink()
        for each in [install(tmp_path) for _ in range(3)]:
            assert each.wait(300) == 0, each.stderr.read()
        for name in ("libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so"):
            assert (folder / "current" / name).read_bytes() == (BUILD / name).read_bytes()
        release = (folder / "current").resolve()
        assert sorted(path.name for path in folder.iterdir()) == sorted(
            [release.name, "current", "libotelprof.so", "libotelprof.so.0"])


def test_a_running_process_loads_the_exporter_of_its_own_build(start, program, tmp_path):
    """This holds also when the name that it was preloaded by leads to another release by then."""
    folder = tmp_path / "usr/lib/otelprof"
    installed = install(tmp_path)
    assert installed.wait(120) == 0, installed.stderr.read()
    (folder / "other").mkdir()
    shutil.copy(program("no_exporter.so"), folder / "other/libotelprof-flush.so")
    running = start([program("burn"), "4000", "1"], log_to_stderr=True, env={
        "LD_PRELOAD": str(folder / "libotelprof.so"), "OTEL_PROFILER_MIN_LIFETIME": "2000"})
    while str(folder) not in open(f"/proc/{running.process.pid}/maps").read():
        assert running.process.poll() is None
    (folder / "new").symlink_to("other")
    (folder / "new").rename(folder / "current")
    outcome = running.finish(300)
    assert (outcome.returncode, outcome.stderr) == (7, "")
    assert outcome.instance("burn").cpu_of("burns_cpu") > 0


def test_a_removed_release_keeps_its_name(start, program, tmp_path):
    """The release is found by its own folder, not by one that never existed."""
    release = next(line.split('"')[1] for line in (BUILD / "release.h").read_text().splitlines())
    (tmp_path / release).mkdir()
    for name in ("libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so"):
        shutil.copy(LIBRARY.with_name(name), tmp_path / release)
    (tmp_path / "libotelprof.so").symlink_to(f"{release}/libotelprof.so")
    running = start([program("burn"), "4000", "1"], log_to_stderr=True, env={
        "LD_PRELOAD": str(tmp_path / "libotelprof.so"), "OTEL_PROFILER_MIN_LIFETIME": "3000"})
    while str(tmp_path) not in open(f"/proc/{running.process.pid}/maps").read():
        assert running.process.poll() is None
    shutil.rmtree(tmp_path / release)
    (tmp_path / "libotelprof.so").unlink()
    outcome = running.finish(300)
    (line,) = outcome.stderr.splitlines()
    assert f"error: {tmp_path}/{release}/libotelprof-flush.so cannot be loaded" in line
    assert "No such file or directory" in line and f"{tmp_path}/libotelprof-flush.so" not in line


@pytest.mark.parametrize("kept", [4096, 100_000, 200_000])
def test_an_exporter_that_was_copied_in_part_ends_no_program(run, program, tmp_path, kept):
    """A full disk leaves such a file: the loader would map pages that do not exist."""
    shutil.copy(LIBRARY, tmp_path)
    text = LIBRARY.with_name("libotelprof-flush.so").read_bytes()
    (tmp_path / "libotelprof-flush.so").write_bytes(text[:kept])
    outcome = run([program("burn"), "200", "1"], log_to_stderr=True, env={"LD_PRELOAD": str(tmp_path / "libotelprof.so")})
    (line,) = outcome.stderr.splitlines()
    assert outcome.returncode == 7
    assert "error: " in line and "libotelprof-flush.so cannot be loaded (the file is cut short); nothing is profiled" in line


def test_an_exporter_of_another_build_is_refused(run, program, tmp_path):
    """The exporter's structs may differ: none of its functions is called."""
    shutil.copy(LIBRARY, tmp_path)
    text = LIBRARY.with_name("libotelprof-flush.so").read_bytes()
    release = next(line.split('"')[1] for line in (BUILD / "release.h").read_text().splitlines())
    assert text.count(release.encode()) >= 1
    other = text.replace(release.encode(), release[:-1].encode() + b"x")
    (tmp_path / "libotelprof-flush.so").write_bytes(other)
    outcome = run([program("burn"), "500", "1"], log_to_stderr=True, env={
        "LD_PRELOAD": str(tmp_path / LIBRARY.name), "OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert outcome.returncode == 7
    assert "is of another build than libotelprof.so" in outcome.stderr
    assert not outcome.requests
