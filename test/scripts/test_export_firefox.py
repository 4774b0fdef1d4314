"""The Firefox Profiler's own importer, in its command for terminals, opens the output of `otelprof export` and finds what the
file has."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from captured import capture, succeeds, sums
from conftest import BUILD
from npm_package import npm_package
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

COMMAND = "@firefox-devtools/profiler-cli@0.10.0"
# for each kind: the value of a file that it is made from, the amount that is 1 in the output, a function with some of
# it
KINDS = {
    "cpu": ("cpu", 1e6, "burn!burns_cpu"),
    "alloc": ("alloc_space", 1, "holds_memory!main"),
    "heap": ("inuse_space", 1, "holds_memory!main"),
    "off_cpu": ("off_cpu", 1e6, "holds_locks!waiter"),
    "lock": ("delay", 1e6, "holds_locks!waiter"),
    "threads": ("threads", 1, None),  # wherever the threads were
}


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("captured"))


@pytest.fixture
def opened():
    """opened(path) -> a function that queries the file. A process that listens at a socket loads it; the socket's path is
    short."""
    script = npm_package(COMMAND, BUILD / "firefox-profiler") / "dist/profiler-cli.js"
    folder = Path(tempfile.mkdtemp(prefix="profiler", dir="/tmp"))
    environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": str(folder)}
    node = [shutil.which("node"), script]
    loading = []

    def ask(*arguments):
        done = subprocess.run([*node, *arguments, "--session", "it", "--json"], capture_output=True, text=True, check=False,
                              env=environment, timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def load(path):
        loading.append(subprocess.Popen([*node, "--daemon", path, "--session", "it"], env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        log = folder / "it.log"
        said = eventually(lambda: log.read_text() if log.exists() else "", "the profile's loading", unless=loading[0].poll,
                          holds=lambda said: "Profile loaded successfully" in said or "[ERROR]" in said)
        assert "[ERROR]" not in said, said
        return ask

    yield load
    for process in loading:
        process.kill()
        process.wait()
    shutil.rmtree(folder)


def threads_of(info):
    return [(process["name"], thread) for process in info["processes"] for thread in process["threads"]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_firefox_profiler_itself_imports_it(opened, captured, tmp_path, kind):
    value, unit, function = KINDS[kind]
    succeeds("export", captured, "--format", "firefox", "--kind", kind, "-o", "it.json", cwd=tmp_path)
    ask = opened(tmp_path / "it.json")
    threads = threads_of(ask("profile", "info", "--all"))
    answers = [ask("thread", "samples", "--include-idle", "--thread", thread["threadHandle"]) for _, thread in threads]
    total = sum(answer["categoryBreakdown"]["totalSamples"] for answer in answers)
    assert total * unit == pytest.approx(sums(captured)[value], rel=1e-9)
    named = {row["name"]: row["totalSamples"] for answer in answers for row in answer["topFunctionsByTotal"]}
    assert named[function] > 0 if function else named
    assert {"burn", "holds_memory", "holds_locks"} & {process for process, _ in threads}


def test_a_file_that_is_no_profile_is_refused(opened, tmp_path):
    """This shows that the importer does check files."""
    (tmp_path / "it.json").write_text('{"meta": {"version": 34, "preprocessedProfileVersion": 70}, "threads": [{}]}')
    with pytest.raises(AssertionError, match="Unserializing the profile failed"):
        opened(tmp_path / "it.json")
