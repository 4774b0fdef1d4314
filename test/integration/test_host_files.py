"""/etc/opentelemetry/otelprof: the kill switch and the configuration files, in a root of its own."""

import os

import pytest
from host_root import FILES, NOBODY, host_root  # noqa: F401  (a fixture)
from profiled import Receiver

PYTHON = ["/usr/bin/python3", "-S", "-c", "import time\nwhile time.process_time() < 0.1: sum(range(1000))\nprint('done')"]
INCLUDED = ("OTEL_PROFILER_INCLUDE=python3*", "OTEL_PROFILER_MIN_LIFETIME=0")
FILE = "OTEL_PROFILES_EXPORTER=otlp_file", "OTEL_PROFILER_FILE=/open/export"


def run(root, uid=0, **environment):
    """What is said; whether profiles were exported to the file of FILE."""
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


def test_the_kill_switch_counts_whoever_owns_it(root):
    root.configure(*INCLUDED, *FILE)
    (root.folder / FILES / "disabled").symlink_to("nowhere")
    os.chown(root.folder / FILES, NOBODY, NOBODY)
    assert run(root) == ("", False)
