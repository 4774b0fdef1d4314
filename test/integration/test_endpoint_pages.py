"""pprof's pages show what a running process answers: the tool asks it by itself."""

import os
import re
import subprocess

import pytest
from endpoint import asked, at_port, half_named  # noqa: F401 # fixtures
from pprof_pages import pages, tool
from profiled import BUILD
from waiting import eventually

pytestmark = pytest.mark.system

# functions of test/programs/answers.c, of which each profile has one; threads come and go between them
FUNCTIONS = {
    "profile?seconds=2": "burns_cpu",
    "heap": "keeps_memory",
    "allocs": "churns",
    "block": "holds_lock",
    "mutex": "wants_lock",
    "goroutine": "holds_lock|wants_lock|burns_cpu",
}


def until_one_is_in(process, path, functions):
    eventually(lambda: process.profile(path), functions, holds=lambda profile: any(
        profile.value_of(function, profile.default_type) > 0 for function in functions.split("|")))


@pytest.mark.parametrize("path", FUNCTIONS)
def test_its_pages_name_the_programs_functions(at_port, tmp_path, path):
    running = at_port(OTEL_PROFILER_ALLOC_INTERVAL="1")
    until_one_is_in(running.process, path, FUNCTIONS[path])
    source = f"http://127.0.0.1:{running.process.where}/debug/pprof/{path}"
    with pages(tool("go", BUILD), source, tmp_path, BUILD / "test/programs") as shown:
        for page, function in [("", None), ("top", None), ("flamegraph", None), ("peek", FUNCTIONS[path])]:
            status, text = shown.page(page, function)
            assert status == 200 and re.search(FUNCTIONS[path], text), page
        assert "is_not_there" not in shown.page("top")[1]
    assert running.over().returncode == 7


@pytest.mark.parametrize("name", ["go", "module"])
def test_a_program_without_all_names_is_shown(at_port, half_named, tmp_path, name):
    """The tool asks the process for those that are missing, and shows nothing if it is not answered."""
    running = at_port(OTEL_PROFILER_ALLOC_INTERVAL="1", path=half_named)
    until_one_is_in(running.process, "heap", FUNCTIONS["heap"])
    source = f"http://127.0.0.1:{running.process.where}/debug/pprof/heap"
    environment = {**os.environ, "PPROF_TMPDIR": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "NO_PROXY": "*"}
    done = subprocess.run([*tool(name, BUILD), "-top", source], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and FUNCTIONS["heap"] in done.stdout, done.stderr
    assert running.over().returncode == 7
