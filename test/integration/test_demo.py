"""scripts/demo shows a C++ program whose functions all have names: the first picture that a user sees has no grey column."""

import os
import re
import subprocess
import sys

import pytest

from profiled import ROOT

sys.path[:0] = [str(ROOT / "scripts")]
from otelprof_lib.aggregate import aggregate  # noqa: E402
from otelprof_lib.capture_file import read_messages  # noqa: E402

pytestmark = pytest.mark.system

TIMEOUTS = ("OTEL_PROFILER_SHUTDOWN_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_PROFILE_EXPORT_TIMEOUT")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(its output, its tables, its folder, its profiles)"""
    folder = tmp_path_factory.mktemp("demo")
    environment = {**os.environ, **dict.fromkeys(TIMEOUTS, "120000")}
    done = subprocess.run([ROOT / "scripts" / "demo", folder], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr, folder, aggregate(read_messages(folder / "demo.otlp"))


def test_it_shows_where_the_time_went_and_what_comes_next(demo):
    printed, tables, folder, _ = demo
    assert re.search(r"^ .*  spelling::edits_between \(index\)$", tables, re.M), tables
    assert f"The flame graph: {folder}/demo.html" in printed and (folder / "demo.html").stat().st_size > 10_000
    assert "otelprof run --flamegraph app.html -- ./app" in printed.splitlines()[-1]


@pytest.mark.parametrize("kind", ["cpu", "alloc", "heap"])
def test_the_functions_of_the_program_have_names(demo, kind):
    """Stubs that the linker makes have none: nothing is below them."""
    stacks = demo[3][kind].stacks
    callers = {frame.name for stack in stacks for frame in stack[1:] if frame.module == "index"}
    assert {"main", "text::index_of", "text::add_file"} <= callers, callers
    assert "[index]" not in callers
