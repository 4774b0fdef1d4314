"""A command's output is there whole, or as it was before; the command ends without a traceback, also when
interrupted."""

import gzip
import os
import select
import signal
import subprocess
import sys

import pytest
from captured import OTELPROF, PROGRAMS, otelprof, succeeds, sums
from otelprof_lib.capture_file import append_message
from otelprof_lib.whole_file import check_outputs
from processes import reads_from
from waiting import TIMEOUT_S, eventually

WRITING = {
    "merge": ["merge", "{}", "-o", "out"],
    "pprof": ["pprof", "{}", "-o", "out"],
    "speedscope": ["export", "{}", "--format", "speedscope", "-o", "out"],
    "otlp-json": ["export", "{}", "--format", "otlp-json", "-o", "out"],
    "flamegraph": ["flamegraph", "{}", "-o", "out"],
}


def of_file(words, name):
    return [word.format(name) for word in words]


@pytest.fixture
def small(message, tmp_path):
    with open(tmp_path / "small.otlp", "wb") as file:
        append_message(file, message().profile("samples", "count", 10_000_000, {("hot", "main"): 7}).bytes())
    return tmp_path / "small.otlp"


@pytest.fixture
def folder(small, tmp_path):
    (tmp_path / "broken").write_bytes(small.read_bytes()[:-1])
    (tmp_path / "out").write_text("as it was")
    return tmp_path


def interrupted_while_reading(words, folder):
    """Interrupts the command while it reads from an empty pipe. The signal comes when the command is in that call:
    Python notices a signal that comes just before a call only after the call."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    running = subprocess.Popen([OTELPROF, *of_file(words, "pipe")], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(pipe, "wb"):
        eventually(lambda: reads_from(running.pid) == str(pipe), "that it reads", unless=running.poll)
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=TIMEOUT_S)
    return running.returncode, b"".join(said)


@pytest.mark.parametrize("words", [*WRITING.values(), ["top", "{}"], ["view", "{}", "--no-open"], ["diff", "{}", "small.otlp"]])
def test_an_interruption_leaves_the_output_as_it_was(folder, words):
    before = sorted(os.listdir(folder))
    assert interrupted_while_reading(words, folder) == (-signal.SIGINT, b"")
    assert sorted({*os.listdir(folder)} - {"pipe"}) == before
    assert (folder / "out").read_text() == "as it was"


@pytest.mark.parametrize("words", WRITING.values(), ids=WRITING)
def test_an_unreadable_file_leaves_the_output_as_it_was(folder, words):
    before = sorted(os.listdir(folder))
    done = otelprof(*of_file(words, "broken"), cwd=folder)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert (folder / "out").read_text() == "as it was"
    (folder / "out").unlink()
    assert otelprof(*of_file(words, "broken"), cwd=folder).returncode == 2
    assert sorted([*os.listdir(folder), "out"]) == before


@pytest.mark.parametrize("words", WRITING.values(), ids=WRITING)
def test_a_full_disk_leaves_nothing_half_written(folder, words):
    """A limit of a file's size stands for a full disk: python ignores its signal, and gets an error."""
    before = sorted(os.listdir(folder))
    shell = 'ulimit -f 0; trap "" XFSZ; exec "$@"'
    done = subprocess.run(["sh", "-c", shell, "sh", OTELPROF, *of_file(words, "small.otlp")],
                          cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "otelprof: out: File too large\n"
    assert sorted(os.listdir(folder)) == before and (folder / "out").read_text() == "as it was"


def test_a_file_may_be_written_over_itself_in_another_format(small):
    before = sums(small)
    succeeds("export", "small.otlp", "--format", "otlp-json", "-o", "small.otlp", cwd=small.parent)
    assert sums(small) == before
    assert small.read_text().startswith("{")


def test_a_file_that_is_replaced_keeps_its_mode(folder):
    (folder / "out").chmod(0o640)
    succeeds("pprof", "small.otlp", "-o", "out", cwd=folder)
    assert (folder / "out").stat().st_mode & 0o777 == 0o640


def test_an_error_names_the_file_and_the_reason(folder):
    done = otelprof("top", "nowhere", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "otelprof: nowhere: No such file or directory\n")
    subprocess.run(["gzip", "-k", "small.otlp"], cwd=folder, check=True)
    done = otelprof("top", "small.otlp.gz", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "otelprof: small.otlp.gz is compressed: unpack it with gunzip first\n")
    done = otelprof("merge", "small.otlp", "-o", "no/where", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "otelprof: no/where: No such file or directory\n")


def test_a_program_that_cannot_be_run_costs_no_file(folder):
    before = sorted(os.listdir(folder))
    assert otelprof("run", "-o", "out", "--", "./no-such-program", cwd=folder).returncode == 127
    assert (folder / "out").read_text() == "as it was"
    assert otelprof("run", "-o", "new", "--", "./no-such-program", cwd=folder).returncode == 127
    assert sorted(os.listdir(folder)) == before
    otelprof("run", "--quiet", "-o", "out", "--", f"{PROGRAMS}/burn", "100", "64", cwd=folder)
    assert sums(folder / "out")["cpu"] > 0


def other_names(folder):
    """Returns names of the file `out`, and of `new`, which does not exist yet."""
    (folder / "link").symlink_to("out")
    (folder / "hard").hardlink_to(folder / "out")
    (folder / "dangling").symlink_to("new")
    (folder / "here").symlink_to(".")
    return [("out", "out"), ("out", "./out"), ("out", str(folder / "out")), ("link", "out"), ("out", "hard"), ("new", "here/new"),
            ("new", "dangling")]


@pytest.mark.parametrize("words, last", [(["run"], ["--", "/bin/touch", "ran"]), (["record"], ["999999999"])], ids=["run", "record"])
def test_one_file_for_two_outputs_is_refused_before_anything_runs(folder, words, last):
    """Without the refusal the page replaced the profile."""
    names = other_names(folder)
    before = sorted(os.listdir(folder))
    for output, page in names:
        done = otelprof(*words, "-o", output, "--flamegraph", page, *last, cwd=folder)
        both = page if page == output else f"{output} and {page}"
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"otelprof: --output and --flamegraph are one file, {both}: give each its own\n"
    assert sorted(os.listdir(folder)) == before and (folder / "out").read_text() == "as it was"


@pytest.mark.parametrize("program, status", [("/bin/true", 0), ("./no-such-program", 127)])
def test_a_pipe_for_the_exports_stays_one(folder, program, status):
    """The pipe stays one, as /dev/null does: a wrong name of a program once removed it."""
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert otelprof("run", "--quiet", "-o", "pipe", "--", program, cwd=folder).returncode == status
    os.close(reader)
    assert (folder / "pipe").is_fifo()


def test_the_exports_may_go_nowhere(folder):
    done = otelprof("run", "--quiet", "-o", "/dev/null", "--", PROGRAMS / "cpu_shares", "1", "1", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "otelprof: the exports went to /dev/null, which cannot be read again: no tables\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_may_be_closed(folder, closed):
    """Text for a closed stream goes to no other; the program that is run finds it closed as well."""
    def said(*arguments):
        done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", OTELPROF, *arguments],
                              cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout

    before = sums(folder / "small.otlp")
    assert said("merge", "small.otlp", "-o", "out") == (0, "") and sums(folder / "out") == before
    assert said("top", "nowhere") == (2, "")
    count = sum(not os.path.exists(f"/proc/self/fd/{number}") for number in range(3)) + closed.count("&-")
    look = 'n=0; for i in 0 1 2; do [ -e /proc/$$/fd/$i ] || n=$((n+1)); done; exit $n'
    assert said("run", "--quiet", "-o", "new", "--", "sh", "-c", look)[0] == count


PS = f"""
import sys
sys.path.insert(0, {str(OTELPROF.parent)!r})
from otelprof_lib import cli, listening
listening.processes = lambda: [listening.Process(1, "root", "init", "")]
sys.exit(cli.main(["ps"]))
"""
PRINTING = {
    "top": [OTELPROF, "top", "small.otlp"],
    "collapsed": [OTELPROF, "export", "small.otlp", "--format", "collapsed"],
    "otlp-json": [OTELPROF, "export", "small.otlp", "--format", "otlp-json"],
    "diff": [OTELPROF, "diff", "small.otlp", "small.otlp"],
    "completion": [OTELPROF, "completion", "bash"],  # more than a buffer holds
    "help": [OTELPROF, "top", "--help"],
    "ps": [sys.executable, "-c", PS],
}


@pytest.mark.parametrize("stream, why", [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")])
@pytest.mark.parametrize("words", PRINTING.values(), ids=PRINTING)
def test_standard_output_that_takes_nothing_is_an_error(folder, words, stream, why):
    """Once the status was 0 for a closed one, and 120 for a full one, with more lines of Python's own."""
    done = subprocess.run(["sh", "-c", f'exec "$@" {stream}', "sh", *words], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"otelprof: standard output: {why}\n")


@pytest.mark.parametrize("words", PRINTING.values(), ids=PRINTING)
def test_a_pipe_whose_reader_has_ended_is_no_error(folder, words):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe:
        done = subprocess.run(words, cwd=folder, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def with_lost_messages(stream, *arguments, cwd):
    """Runs the command with a standard error that takes nothing: `2>&1 | head`, or a full disk."""
    words = ["sh", "-c", f'exec "$@" {stream}', "sh", OTELPROF, *map(str, arguments)]
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe:
        return subprocess.run(words, cwd=cwd, stdout=pipe, timeout=TIMEOUT_S, check=False).returncode


LOST = pytest.mark.parametrize("stream", ["2>&1", "2>/dev/full"])


@LOST
def test_run_writes_its_page_and_keeps_the_status_though_its_messages_are_lost(folder, stream):
    """Once the table, which did not reach `head`, ended the command with status 0 before the page was written."""
    burn = f"{PROGRAMS}/burn 100 1 >/dev/null; exit 3"
    assert with_lost_messages(stream, "run", "-o", "new", "--flamegraph", "page", "--", "sh", "-c", burn, cwd=folder) == 3
    assert sums(folder / "new")["cpu"] > 0
    assert "burn" in (folder / "page").read_text()


@LOST
@pytest.mark.parametrize("words", WRITING.values(), ids=WRITING)
def test_the_output_is_written_though_the_messages_are_lost(folder, message, words, stream):
    """The note of repeats comes before the output."""
    export = message().profile("samples", "count", 10_000_000, {("hot", "main"): 7})
    export.scope.profiles[0].profile_id = bytes(range(16))
    with open(folder / "twice", "wb") as file:
        for _ in range(2):
            append_message(file, export.bytes())
    assert with_lost_messages(stream, *of_file(words, "twice"), cwd=folder) == 0
    written = (folder / "out").read_bytes()
    assert len(written) > 100 and written != b"as it was"


@pytest.mark.parametrize("option", ["-o", "--flamegraph"])
@pytest.mark.parametrize(("output", "why"), [("nowhere/out", "No such file or directory"), ("a-folder", "Is a directory")])
def test_no_recording_is_made_for_an_output_that_cannot_be_written(folder, option, output, why):
    """The whole recording was lost at its end. The process 999999999 is asked for after the outputs."""
    (folder / "a-folder").mkdir()
    before = sorted(os.listdir(folder))
    other = ["--flamegraph", "html"] if option == "-o" else ["-o", "new"]
    done = otelprof("record", "999999999", option, output, *other, cwd=folder)
    assert (done.returncode, done.stderr) == (2, f"otelprof: {output}: {why}\n")
    assert otelprof("record", "999999999", "-o", "new", "--flamegraph", "out", cwd=folder).stderr == "otelprof: there is no process 999999999\n"
    assert sorted(os.listdir(folder)) == before and (folder / "out").read_text() == "as it was"


def test_no_program_runs_for_a_page_that_cannot_be_written(folder):
    done = otelprof("run", "--flamegraph", "nowhere/page", "touch", "ran", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "otelprof: nowhere/page: No such file or directory\n")
    assert not (folder / "ran").exists()


def test_the_check_of_an_output_ends_no_pipe(folder):
    """A pipe that is opened and closed has ended for its reader."""
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_outputs(str(folder / "pipe"))
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        assert poll.poll(0) == []  # no hang-up: nobody has opened and closed it
    finally:
        os.close(reader)


@pytest.mark.parametrize("words", WRITING.values(), ids=WRITING)
def test_a_dash_is_standard_output(folder, words):
    """A file named `-` was written, whose name most commands take for something else."""
    before = sorted(os.listdir(folder))
    to_file = of_file(words, "small.otlp")
    succeeds(*to_file, cwd=folder)
    done = subprocess.run([OTELPROF, *to_file[:-1], "-"], cwd=folder, capture_output=True, timeout=TIMEOUT_S, check=True)
    written = (folder / "out").read_bytes()
    assert sorted(os.listdir(folder)) == before
    if words[0] == "pprof":  # gzip's header has a name and a time
        written, done.stdout = gzip.decompress(written), gzip.decompress(done.stdout)
    if words[0] == "merge":  # each merged profile has an id of its own
        (folder / "dash").write_bytes(done.stdout)
        assert sums(folder / "dash") == sums(folder / "out")
    else:
        assert done.stdout == written


def test_a_full_standard_output_is_named(folder):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([OTELPROF, "merge", "small.otlp", "-o", "-"], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=TIMEOUT_S, check=False)
    assert done.returncode == 2 and done.stderr == "otelprof: standard output: No space left on device\n"
