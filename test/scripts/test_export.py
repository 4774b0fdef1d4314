"""`otelprof export` writes what other tools read, with the file's own sums."""

import base64
import contextlib
import json
import os
import re
import shutil
import subprocess

import pytest
from captured import capture, otelprof, succeeds, sums
from conftest import BUILD, Code
from otelprof_lib.capture_file import append_message, decode_json, each_message
from npm_package import npm_package
from otelprof_lib.kinds import KINDS

pytestmark = pytest.mark.system

FORMATS = ("speedscope", "firefox", "collapsed", "otlp-json")
SPEEDSCOPE = "speedscope@1.25.0"
# for each kind, the value of a file that the output is made from
VALUES = {
    "cpu": "cpu",
    "alloc": "alloc_space",
    "heap": "inuse_space",
    "heap_peak": "peak_space",
    "off_cpu": "off_cpu",
    "sched_delay": "sched_delay",
    "lock": "delay",
    "threads": "threads",
}


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("captured"))


@pytest.fixture
def small(message, tmp_path):
    """small(export, ...) -> a file of these exports."""

    def write(*exports):
        with open(tmp_path / "a.otlp", "wb") as file:
            for export in exports:
                append_message(file, export.bytes())
        return tmp_path / "a.otlp"

    return write


def exported(path, *arguments, folder):
    """Returns the standard output: nothing else is there."""
    return succeeds("export", path, *arguments, cwd=folder).stdout


# --- collapsed ---


@pytest.mark.parametrize("kind", KINDS)
def test_collapsed_stacks_add_up_to_the_file(captured, tmp_path, kind):
    lines = exported(captured, "--format", "collapsed", "--kind", kind, folder=tmp_path).splitlines()
    assert lines and all(re.fullmatch(r".+ \d+", line) for line in lines)
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == sums(captured)[VALUES[kind]]


def test_collapsed_stacks_begin_at_the_root(small, message, tmp_path):
    path = small(message().profile("samples", "count", 10, {("operator;()", "a\nb", "main"): 3, ("work", "main"): 2}))
    assert exported(path, "--format", "collapsed", folder=tmp_path) == "main;a\\x0ab;operator:() 30\nmain;work 20\n"


def test_the_chosen_samples_are_written(small, message, tmp_path):
    rows = [(("work", "main"), 3, None, {"customer": "acme"}), (("rest", "main"), 4, None, {})]
    path = small(message().labelled("samples", "count", 10, rows))
    assert exported(path, "--format", "collapsed", "--label", "customer=acme", folder=tmp_path) == "main;work 30\n"
    grouped = exported(path, "--format", "collapsed", "--group-by", "customer", folder=tmp_path)
    assert grouped == "customer=[none];main;rest 40\ncustomer=acme;main;work 30\n"


# --- speedscope ---


def test_speedscope_has_all_kinds(captured, tmp_path):
    file = json.loads(exported(captured, "--format", "speedscope", folder=tmp_path))
    expected = sums(captured)
    totals = {profile["name"]: sum(profile["weights"]) for profile in file["profiles"]}
    assert totals.items() >= {KINDS[kind].title: expected[name] for kind, name in VALUES.items()}.items()
    assert {profile["unit"] for profile in file["profiles"]} == {"nanoseconds", "bytes", "none"}
    for profile in file["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"]) and profile["endValue"] == sum(profile["weights"])
        assert all(0 <= frame < len(file["shared"]["frames"]) for sample in profile["samples"] for frame in sample)


def test_speedscope_itself_imports_it(driver, captured, tmp_path):
    """The page gets the file as from speedscope's own command: by a script that calls loadFileFromBase64."""
    from selenium.webdriver.support.ui import WebDriverWait

    page = npm_package(SPEEDSCOPE, BUILD / "speedscope") / "dist/release/index.html"
    content = exported(captured, "--format", "speedscope", "--kind", "cpu", folder=tmp_path).encode()
    script = tmp_path / "load.js"
    script.write_text(f'speedscope.loadFileFromBase64("a.json", "{base64.b64encode(content).decode()}")')
    driver.get_log("browser")
    driver.get(f"{page.as_uri()}#localProfilePath={script}")
    WebDriverWait(driver, 30).until(lambda it: it.title.endswith(" - speedscope"))
    assert driver.title == f"{captured}: CPU time - speedscope" or driver.title.startswith(str(captured))
    said = [entry["message"] for entry in driver.get_log("browser")]
    assert any("Importing as speedscope json file" in it for it in said)
    assert not any("rror" in it or "fail" in it.lower() for it in said), said


# --- Firefox ---


COLUMNS = {
    "stackTable": {"frame", "prefixOffset"},
    "frameTable": {
        "address",
        "lib",
        "inlineDepth",
        "category",
        "subcategory",
        "func",
        "nativeSymbol",
        "innerWindowID",
        "line",
        "column",
        "originalLocation",
    },
    "funcTable": {
        "name",
        "isJS",
        "relevantForJS",
        "resource",
        "source",
        "lineNumber",
        "columnNumber",
        "originalLocation",
    },
    "resourceTable": {"name", "host", "type"},
    "nativeSymbols": {"libIndex", "address", "name", "functionSize"},
    "sources": {"id", "filename", "startLine", "startColumn", "sourceMapURL", "content"},
    "sourceLocationTable": {"source", "line", "column"},
}


def check_firefox(profile):
    """Asserts the requirements of the Firefox Profiler's types (src/types/profile.ts) for the tables that we fill."""
    shared = profile["shared"]
    for name, columns in COLUMNS.items():
        table = shared[name]
        assert table.keys() == columns | {"length"} and {len(table[column]) for column in columns} == {
            table["length"]
        }, name
    frames, stacks, functions = shared["frameTable"], shared["stackTable"], shared["funcTable"]
    assert all(0 <= it < frames["length"] for it in stacks["frame"])
    assert all(0 <= offset <= place for place, offset in enumerate(stacks["prefixOffset"]))
    assert all(0 <= it < functions["length"] for it in frames["func"])
    assert all(0 <= it < len(shared["stringArray"]) for it in functions["name"] + shared["resourceTable"]["name"])
    assert all(-1 <= it < shared["resourceTable"]["length"] for it in functions["resource"])
    assert all(0 <= it < len(profile["meta"]["categories"]) for it in frames["category"])
    for thread in profile["threads"]:
        samples = thread["samples"]
        assert {len(samples[column]) for column in ("stack", "time", "weight")} == {samples["length"]}
        assert all(0 <= it < stacks["length"] for it in samples["stack"])
        assert samples["time"] == sorted(samples["time"])
        assert isinstance(thread["pid"], str) and isinstance(thread["tid"], int)
    assert [thread["isMainThread"] for thread in profile["threads"]].count(True) == 1


def stack_of(shared, index):
    names = []
    while True:
        frame = shared["stackTable"]["frame"][index]
        names.append(shared["stringArray"][shared["funcTable"]["name"][shared["frameTable"]["func"][frame]]])
        offset = shared["stackTable"]["prefixOffset"][index]
        if not offset:
            return tuple(names)
        index -= offset


@pytest.mark.parametrize(
    "kind, weight", [("cpu", "tracing-ms"), ("alloc", "bytes"), ("threads", "samples"), ("wall", "tracing-ms")]
)
def test_firefox_gets_its_format(captured, tmp_path, kind, weight):
    profile = json.loads(exported(captured, "--format", "firefox", "--kind", kind, folder=tmp_path))
    check_firefox(profile)
    assert {thread["samples"]["weightType"] for thread in profile["threads"]} == {weight}
    if kind != "wall":
        factor = 1e6 if weight == "tracing-ms" else 1
        total = sum(sum(thread["samples"]["weight"]) for thread in profile["threads"])
        assert total * factor == pytest.approx(sums(captured)[VALUES[kind]], rel=1e-9)


def test_firefox_gets_each_thread_with_its_stacks(small, message, tmp_path):
    native, python = Code("native", "loop", module="python3"), Code("cpython", "run", "/srv/app.py")
    rows = [
        (("work", "main"), 3, None, {"thread.id": 7, "thread.name": "pool"}),
        ((native, python, "main"), 9, None, {"thread.id": 8}),
    ]
    path = small(message().labelled("samples", "count", 10**6, rows))
    profile = json.loads(exported(path, "--format", "firefox", folder=tmp_path))
    check_firefox(profile)
    found = {
        thread["name"]: [stack_of(profile["shared"], stack) for stack in thread["samples"]["stack"]]
        for thread in profile["threads"]
    }
    assert found == {"thread 8": [("loop", "app.run", "main")], "pool": [("work", "main")]}
    assert [thread["samples"]["weight"] for thread in profile["threads"]] == [[9], [3]]


# --- OTLP's JSON ---


def test_otlp_json_is_the_file_export_by_export(captured, tmp_path):
    lines = exported(captured, "--format", "otlp-json", folder=tmp_path).splitlines()
    assert [decode_json(line) for line in lines] == list(each_message(captured))


def test_otlp_json_of_one_kind_has_no_orphans(captured, tmp_path):
    from validator import problems

    succeeds("export", captured, "--format", "otlp-json", "--kind", "alloc", "-o", "alloc.jsonl", cwd=tmp_path)
    messages = list(each_message(tmp_path / "alloc.jsonl"))
    assert len(messages) > 3 and [problem for message in messages for problem in problems(message)] == []
    expected = sums(captured)
    assert sums(tmp_path / "alloc.jsonl") == {name: expected[name] for name in ("alloc_objects", "alloc_space")}


# --- all formats ---


@pytest.mark.parametrize("format", FORMATS)
def test_errors_name_the_file(tmp_path, format):
    (tmp_path / "bad.otlp").write_bytes(b"\x7fELF" * 9)
    done = otelprof("export", "bad.otlp", "--format", format, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(
        "otelprof: bad.otlp holds no profiles: "
    )


def test_contradictory_options_are_refused(small, message, tmp_path):
    path = small(message().profile("samples", "count", 10, {("work", "main"): 3}))
    done = otelprof("export", path, "--format", "otlp-json", "--label", "a=b", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "otelprof: --label does not go with --format otlp-json\n")
    (tmp_path / "empty.json").write_text("{}")
    for format in FORMATS:
        done = otelprof("export", path, "--format", format, "--kind", "heap", "-o", "out", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, f"otelprof: {path} has no profile of kind heap; it has cpu\n")
        done = otelprof("export", "empty.json", "--format", format, "-o", "out", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, "otelprof: empty.json has no samples\n")
    assert not (tmp_path / "out").exists()
