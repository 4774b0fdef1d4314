"""pprof's pages show the profiles of a running process: the tool requests them by itself."""

import itertools
import json
import os
import re
import subprocess

import pytest
from endpoint import Answer, Process, asked, at_port, half_named  # noqa: F401 # fixtures
from pprof_pages import need, pages, tool
from profiled import BUILD
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

TELL = BUILD / "pprof" / "tell"

# functions of test/programs/works_and_waits.c, of which each profile has one; threads come and go between them
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
    """The tool requests missing names from the process, and would show nothing without its response."""
    running = at_port(OTEL_PROFILER_ALLOC_INTERVAL="1", path=half_named)
    until_one_is_in(running.process, "heap", FUNCTIONS["heap"])
    source = f"http://127.0.0.1:{running.process.where}/debug/pprof/heap"
    environment = {**os.environ, "PPROF_TMPDIR": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "NO_PROXY": "*"}
    done = subprocess.run([*tool(name, BUILD), "-top", source], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and FUNCTIONS["heap"] in done.stdout, done.stderr
    assert running.over().returncode == 7


@pytest.mark.parametrize("path", ["heap", "allocs", "block", "mutex", "goroutine"])
def test_the_tool_reads_a_difference(at_port, tmp_path, path):
    running = at_port(OTEL_PROFILER_ALLOC_INTERVAL="1")
    source = f"http://127.0.0.1:{running.process.where}/debug/pprof/{path}?seconds=1"
    environment = {**os.environ, "PPROF_TMPDIR": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "NO_PROXY": "*"}
    done = subprocess.run([*tool("module", BUILD), "-raw", source], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Duration: 1" in done.stdout, done.stderr
    assert running.over().returncode == 7


def test_memory_that_is_freed_in_a_time_counts_below_zero(start, program, tmp_path):
    need(TELL, "test/pprof, which needs Go 1.26,")
    folders = map(str, itertools.count())

    def inuse_space():
        folder = tmp_path / next(folders)
        folder.mkdir()
        running = start([program("frees_on_request"), folder], env={
            "OTEL_PROFILER_TYPES": "heap", "OTEL_PROFILES_EXPORTER": "none", "OTEL_PROFILER_LISTEN": f"unix:{folder}/socket"})
        process = Process(folder / "socket")
        process.until_it_answers()
        connection = process.connection()
        connection.request("GET", "/debug/pprof/heap?seconds=1")
        assert process.ask("/flush", "POST").status == 200  # with the export that begins that second, or a later one
        (folder / "free").touch()
        eventually((folder / "freed").exists, "an empty heap", unless=running.process.poll)
        profile = Answer(connection.getresponse())
        connection.close()
        (folder / "end").touch()
        assert running.finish(TIMEOUT_S).returncode == 0
        assert profile.profile().total("alloc_space") == 0
        (folder / "heap.pb.gz").write_bytes(profile.body)
        told = json.loads(subprocess.run([TELL, folder / "heap.pb.gz"], capture_output=True, text=True, check=True).stdout)
        return dict(zip(told["Types"], told["Totals"] or [0] * 4))["inuse_space/bytes"]

    # on a machine that took longer than a second the memory was freed later
    assert eventually(inuse_space, "memory that is freed in time") == -(64 << 20)
