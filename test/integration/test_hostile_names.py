"""A running process whose names its user did not choose: what it answers, and what the command says of it, shows them and does
nothing else. The process, its threads, its file and its service are called so."""

import html
import json
import os
import re
import shutil
import subprocess

import pytest
from endpoint import asked  # noqa: F401 # a fixture
from otelprof_lib.foreign import printable
from profiled import ROOT
from waiting import TIMEOUT_S, eventually

# the first 15 bytes name a thread: a terminal's commands by ESC and by U+009B, the end of a line, U+202E, no UTF-8, marks of formats
NAME = b"\x1b[2J\"\n\xc2\x9b\xe2\x80\xae\xff<b>&'\\} 1\n999999 root"
SERVICE = "\x1b]0;OWNED\x07\"\n999999 root\\\u009b2J\u202e\u2066</script>{}"
PAGES = ["/metrics", "/status", "/debug/pprof/", "/debug/pprof/goroutine?debug=1"]
METRIC = re.compile(r'(# (HELP|TYPE) .*|[a-z_:]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? [-+.0-9a-zA-Z]+)')


def assert_harmless(text):
    """Each line can be shown, and no name has begun one."""
    shown = text.replace("\n", " ").replace("\t", " ")
    assert printable(shown) == shown, repr(text)
    assert not any(line.lstrip().startswith("999999 root") for line in text.split("\n")), repr(text)


@pytest.fixture
def hostile(asked, program, tmp_path):  # noqa: F811
    folder = tmp_path / "copied"
    folder.mkdir()
    path = folder / os.fsdecode(NAME)
    shutil.copy(program("works_and_waits"), path)
    running = asked(path=path, OTEL_SERVICE_NAME=SERVICE, OTEL_PROFILER_ALLOC_INTERVAL="1")
    yield running
    assert running.over().returncode == 7


def test_no_page_of_a_process_passes_on_what_a_name_has_in_it(hostile):
    pages = {path: eventually(lambda: hostile.process.ask(path), path, holds=lambda answer: answer.status == 200).body.decode() for path in PAGES}
    for text in pages.values():
        assert_harmless(text)
    status = json.loads(pages["/status"])
    assert status["service.name"] == SERVICE
    assert all(METRIC.fullmatch(line) for line in pages["/metrics"].splitlines()), pages["/metrics"]
    assert not re.search(r"</?(b|script)>", pages["/debug/pprof/"])
    assert "OWNED" in html.unescape(pages["/debug/pprof/"]) or "[2J" in pages["/debug/pprof/"]
    assert "\\x1b[2J" in pages["/debug/pprof/goroutine?debug=1"]


@pytest.mark.parametrize("command", ["ps", "ctl"])
def test_no_command_shows_more_of_a_process_than_its_names(hostile, command):
    number = str(hostile.program.process.pid)
    arguments = ["ps"] if command == "ps" else ["ctl", number, "status"]
    done = subprocess.run([ROOT / "scripts" / "otelprof", *arguments], capture_output=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stdout.decode())
    assert_harmless(done.stderr.decode())
    assert number in done.stdout.decode() and "[2J" in done.stdout.decode()
