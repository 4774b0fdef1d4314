"""The launcher starts the otelprof command, and installs the files of `otelprof host`."""

import os
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT
from own_machine import BUNDLE

pytestmark = pytest.mark.fast


def test_the_command_lists_host(machine):
    shown = subprocess.run([ROOT / "scripts/otelprof", "--help"], capture_output=True, text=True, check=True)
    assert "\n    host  " in shown.stdout
    assert machine.host("--help").stdout.startswith("usage: otelprof host")
    assert machine.host("nonsense").returncode == 2


def test_without_arguments_the_command_prints_its_help():
    alone, helped = (subprocess.run([ROOT / "scripts/otelprof", *words], capture_output=True, text=True, check=True)
                     for words in ([], ["--help"]))
    assert alone.stdout == helped.stdout != ""
    assert alone.stderr == ""


def test_the_version_is_the_release_of_the_library():
    release = (BUILD / "release.h").read_text().split('"')[1]
    shown = subprocess.run([ROOT / "scripts/otelprof", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"otelprof {release}\n"
    assert release.encode() in (BUILD / "libotelprof.so").read_bytes()


def test_a_link_to_the_command_finds_its_parts(machine):
    machine.path("/srv/bin").mkdir()
    machine.path("/srv/bin/otelprof").symlink_to("../otelprof/otelprof")
    assert "armed: no" in machine.run("/srv/bin/otelprof", "host", "status").stdout
    machine.path("/srv/bin/again").symlink_to("otelprof")
    assert "armed: no" in machine.run("/srv/bin/again", "host", "status").stdout


def test_without_python_the_command_reports_it_and_host_works(machine):
    applets = "/srv/no-python"
    machine.path(applets).mkdir()
    for name in ("sh", "cat", "readlink"):
        machine.path(f"{applets}/{name}").symlink_to(shutil.which(name))
    for python in (path for path in ("/usr/bin/python3",) if os.path.exists(path)):
        machine.run("mount", "--bind", "/dev/null", os.path.realpath(python))
    done = machine.run(f"{BUNDLE}/otelprof", "top", "file", env={"PATH": applets})
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "otelprof: python3 is missing; only `otelprof host` works without it\n"
    assert machine.run(f"{BUNDLE}/otelprof", "host", "status", env={"PATH": applets}).returncode == 3


def test_the_object_for_32_bit_programs_has_no_code():
    path = BUILD / "lib32/libotelprof.so"
    shown = subprocess.run(["readelf", "-hldSW", path], capture_output=True, text=True, check=True).stdout
    assert "ELF32" in shown and "Intel 80386" in shown
    for absent in ("NEEDED", "TEXTREL", ".text", "INIT", ".symtab", "GNU_HASH", "R E ", "RWE"):
        assert absent not in shown, absent
    assert "GNU_STACK" in shown
    assert path.stat().st_size < 8192


def test_the_file_of_settings_has_every_setting_and_sets_none():
    text = (ROOT / "scripts/host/otelprof.conf").read_text()
    assert all(line.startswith("#") for line in text.splitlines() if line)
    options = (ROOT / "common/options.def").read_text().count("\nOPTION(")
    assert text.count("\n#OTEL_") == options > 30
