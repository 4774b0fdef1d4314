"""A running process whose texts its user did not choose: its library's path, function, source file and lock, its threads' labels
and what it says of itself. No sink passes on what steers a terminal, begins a line, or ends a script."""

import html.parser
import json
import os
import re
import shutil
import subprocess

import pytest
from endpoint import asked  # noqa: F401 # a fixture
from forked_command import run_commands
from otelprof_lib.export import FORMATS
from otelprof_lib.foreign import printable
from test_hostile_names import METRIC, assert_harmless
from waiting import eventually

# the texts that name the library and what is in it need not be UTF-8; labels do
NAME = b"\x1b[2J\n999999 root\xc2\x9b2J\xe2\x80\xae\"'\\<b><|script>\xff"
TEXT = "\x1b[2J\n999999 root\u009b2J\u202e\u2066\"'\\{}</script><b>hit"
RESOURCE = "evil=" + "".join(f"%{byte:02x}" for byte in TEXT.encode())
PAGES = ["/metrics", "/status", "/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/goroutine?debug=2"]
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(params=["function", "source file"])
def path_of_library(request, program, tmp_path):
    """Names the library's path, its lock, and a function, or, with debug information, the source file of that function."""
    path = tmp_path / os.fsdecode(b"lib" + NAME + b".so")
    options = [f"--redefine-sym={old}={os.fsdecode(NAME + old.encode())}" for old in ("named_function", "named_lock")]
    options += ["--strip-debug"] if request.param == "function" else []
    subprocess.run(["objcopy", *options, program("hostile_texts.so"), tmp_path / "plain.so"], check=True)
    shutil.move(tmp_path / "plain.so", path)
    return path


@pytest.fixture
def hostile(asked, program, path_of_library, tmp_path):  # noqa: F811
    running = asked(
        path=program("hostile_texts"), arguments=[path_of_library, TEXT], OTEL_PROFILER_ALLOC_INTERVAL="1",
        OTEL_RESOURCE_ATTRIBUTES=RESOURCE, OTEL_PROFILER_LOG_LEVEL="debug", OTEL_PROFILES_EXPORTER="console,otlp_file",
        OTEL_PROFILE_EXPORT_INTERVAL="500", OTEL_PROFILER_FILE=str(tmp_path / "kept.jsonl"))
    yield running
    if running.program.process.poll() is None:
        assert running.over().returncode == 7


def otelprof(*arguments, cwd):
    (done,) = run_commands([arguments], cwd)
    assert done.returncode in (0, 1), done.stderr
    assert_harmless(done.stdout.decode())
    assert_harmless(done.stderr.decode())
    return done.stdout.decode()


class Page(html.parser.HTMLParser):
    """Lists the elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)


def assert_no_markup(text):
    assert not STEERS.search(text), repr(text)
    assert "b" not in Page(text).elements and text.count("<script") == text.count("</script")


def until_the_lock_is_seen(hostile):
    return eventually(lambda: hostile.process.ask("/debug/pprof/goroutine?debug=2").text, "the function and the lock", timeout_s=20,
                      holds=lambda text: "named_function" in text and "named_lock" in text)


def test_no_page_passes_on_what_a_text_has_in_it(hostile):
    eventually(lambda: hostile.process.status()["service.name"], "the name", timeout_s=30, holds=lambda name: name == TEXT)
    pages = {path: hostile.process.ask(path).body.decode() for path in PAGES}
    for text in pages.values():
        assert_harmless(text)
    assert all(METRIC.fullmatch(line) for line in pages["/metrics"].splitlines()), pages["/metrics"]
    assert_no_markup(pages["/debug/pprof/"])
    # what steers is shown as numbers: of the function, its file, and the lock
    threads = until_the_lock_is_seen(hostile)
    assert_harmless(threads)
    assert "\\x1b[2J\\x0a999999 root" in threads


def test_no_command_passes_on_what_a_text_has_in_it(hostile, tmp_path):
    number = str(hostile.program.process.pid)
    until_the_lock_is_seen(hostile)
    assert number in otelprof("ps", cwd=tmp_path)
    otelprof("ctl", number, "status", cwd=tmp_path)
    otelprof("record", number, "--seconds", "2", "-o", "file", "--flamegraph", "recorded.html", cwd=tmp_path)
    assert "named_function" in otelprof("top", "file", cwd=tmp_path)
    assert "\\x0a999999 root" in otelprof("threads", "file", cwd=tmp_path)
    assert "named_lock" in otelprof("locks", "file", cwd=tmp_path)
    otelprof("diff", "file", "file", cwd=tmp_path)
    for kind in ("heap", "off_cpu", "lock"):
        otelprof("top", "file", "--kind", kind, cwd=tmp_path)
    otelprof("top", "file", "--group-by", "tenant", cwd=tmp_path)
    otelprof("flamegraph", "file", "-o", "page.html", cwd=tmp_path)
    otelprof("pprof", "file", "-o", "pprof", cwd=tmp_path)
    otelprof("merge", "file", "-o", "merged", cwd=tmp_path)
    for page in ("recorded.html", "page.html"):
        text = (tmp_path / page).read_text()
        assert "named_function" in text
        assert_no_markup(text)


def test_no_format_for_other_tools_passes_on_what_steers(hostile, tmp_path):
    until_the_lock_is_seen(hostile)
    otelprof("record", str(hostile.program.process.pid), "--seconds", "2", "-o", "file", cwd=tmp_path)
    for name in FORMATS:
        text = otelprof("export", "file", "--format", name, cwd=tmp_path)
        assert "named_function" in text
        if name != "collapsed":
            assert [json.loads(line) for line in (text.splitlines() if name == "otlp-json" else [text])]


def test_no_log_and_no_export_passes_on_what_steers(hostile, tmp_path):
    until_the_lock_is_seen(hostile)
    ended = hostile.over()
    assert ended.returncode == 7 and "named_function" in ended.stderr
    texts = [ended.stderr, *(path.read_text() for path in [*tmp_path.rglob("*.log"), *tmp_path.rglob("*.jsonl")])]
    assert len(texts) > 1
    for text in texts:
        assert_harmless(text)


def test_a_script_for_a_shell_has_no_foreign_text(path_of_library, tmp_path):
    (tmp_path / TEXT.replace("/", "|")).touch()
    for shell in ("bash", "zsh", "fish"):
        said = otelprof("completion", shell, cwd=tmp_path)
        assert printable(said.replace("\n", "")) == said.replace("\n", "") and "999999" not in said
