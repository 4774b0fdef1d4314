"""`otelprof host status` reports what is in force."""

import os
import subprocess

from conftest import BUILD
from own_machine import BUNDLE, CONFIGURATION, PRELOAD, RUN


def test_status_shows_the_settings_in_force(machine):
    assert machine.host("enable").returncode == 0
    machine.write(f"{CONFIGURATION}/otelprof.conf", "OTEL_PROFILER_INCLUDE=weak\n")
    machine.write(f"{CONFIGURATION}/conf.d/10.conf", "OTEL_PROFILER_INCLUDE=early\n OTEL_PROFILER_INCLUDE = \"strong, two\" \r\n#OTEL_PROFILER_INCLUDE=none\n")
    machine.write(f"{CONFIGURATION}/conf.d/20.conf", "OTEL_PROFILER_INCLUDE=foreign\n", 0o666)
    machine.path(f"{CONFIGURATION}/conf.d/30.conf").symlink_to("10.conf")
    machine.write(f"{RUN}/disabled", "")
    done = machine.host("status")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and done.stderr == ""
    for line in ("armed: yes", f"line in {PRELOAD}: yes", f"kill switch: {RUN}/disabled: nothing is profiled", f"configuration: {CONFIGURATION}/otelprof.conf",
                 f"link: {RUN}/lib32/libotelprof.so -> {BUNDLE}/lib32/libotelprof.so", "OTEL_PROFILER_INCLUDE: strong, two",
                 f"configuration: {CONFIGURATION}/conf.d/20.conf is refused: it may be written by others than root (mode 666)",
                 f"configuration: {CONFIGURATION}/conf.d/30.conf is refused: it is not a regular file", "crash guard: on"):
        assert line in lines, done.stdout
    machine.path(f"{BUNDLE}/libotelprof.so").unlink()
    assert machine.host("status").returncode == 3


def test_status_reads_the_same_files_as_the_profiler(machine):
    for name, text in (("otelprof.conf", "OTEL_PROFILER_INCLUDE=app\n"), ("conf.d/10.conf", "OTEL_PROFILER_INCLUDE=other\n" + "#" * 16384)):
        machine.write(f"{CONFIGURATION}/{name}", text)

    def shown():
        return [line for line in machine.host("status").stdout.splitlines() if line.startswith(("configuration: ", "OTEL_PROFILER_INCLUDE: "))]

    main = f"configuration: {CONFIGURATION}/otelprof.conf"
    assert shown() == [main, f"configuration: {CONFIGURATION}/conf.d/10.conf is refused: it is larger than 16384 bytes", "OTEL_PROFILER_INCLUDE: app"]
    machine.path(f"{CONFIGURATION}/conf.d").chmod(0o777)
    assert shown() == [f"configuration: {CONFIGURATION}/conf.d is refused: it may be written by others than root (mode 777)", main,
                       "OTEL_PROFILER_INCLUDE: app"]
    os.chown(machine.path(CONFIGURATION), 65534, 0)
    nothing = "OTEL_PROFILER_INCLUDE: empty: nothing is profiled"
    assert shown() == [f"configuration: {CONFIGURATION} is refused: it is not root's", nothing]
    machine.path(CONFIGURATION).rename(machine.path("/etc/elsewhere"))
    machine.path(CONFIGURATION).symlink_to("/etc/elsewhere")
    assert shown() == [f"configuration: {CONFIGURATION} is refused: it is a symbolic link", nothing]


def test_status_does_not_call_an_empty_object_armed(machine):
    assert machine.host("enable").returncode == 0
    machine.path(f"{BUNDLE}/libotelprof.so").unlink()
    machine.write(f"{BUNDLE}/libotelprof.so", "", 0o755)
    done = machine.host("status")
    assert done.returncode == 3 and done.stdout.startswith("armed: no\n")


def test_status_counts_the_processes_that_have_the_library(machine):
    def count():
        return int(machine.host("status").stdout.split("have the profiler loaded: ")[1])

    with subprocess.Popen(["sleep", "600"], env={"LD_PRELOAD": str(BUILD / "libotelprof.so")}) as running:
        while "libotelprof.so" not in open(f"/proc/{running.pid}/maps").read():
            assert running.poll() is None
        assert count() >= 1
        running.kill()
