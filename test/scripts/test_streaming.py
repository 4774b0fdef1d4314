"""Files are read export by export: a large one needs no more memory than a small one, and progress is shown."""

import io
import os
import random
import subprocess
import sys

import pytest
from captured import OTELPROF
from otelprof_lib import progress
from otelprof_lib.capture_file import BadFile, append_message, each_message

pytestmark = pytest.mark.fast

NAME = 4096  # letters of a function's name: much to read, little to compute


def written(path, message, exports):
    names = [f"f{number}_".ljust(NAME, "x") for number in range(100)]
    data = message().profile("samples", "count", 10, {(name, "main"): 1 for name in names}).bytes()
    with open(path, "wb") as file:
        for _ in range(exports):
            append_message(file, data)
    return path


def peak(*command):
    """Returns the KiB of a process, and its output."""
    process = subprocess.Popen([OTELPROF, *command], stdout=subprocess.PIPE)
    text = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0
    return usage.ru_maxrss, text


@pytest.mark.parametrize(
    "command",
    [
        ("top", "--kind", "cpu"),
        ("pprof", "-o", os.devnull),
        ("merge", "-o", os.devnull),
        ("export", "--format", "collapsed"),
        ("export", "--format", "otlp-json", "-o", os.devnull),
    ],
)
def test_memory_does_not_grow_with_the_file(tmp_path, message, command):
    small, _ = peak(*command, written(tmp_path / "small", message, 2))
    large_file = written(tmp_path / "large", message, 85)
    assert large_file.stat().st_size > 30 << 20
    large, _ = peak(*command, large_file)
    assert large - small < 15 << 10


def deep_stacks(path, message):
    """Makes stacks with hardly a common caller: a tree of two million nodes."""
    export = message().profile("samples", "count", 10, {(f"f{number}",): 1 for number in range(1000)})
    count, chance = len(export.dictionary.location_table), random.Random(1)
    for _ in range(40):
        export.dictionary.stack_table.add(location_indices=chance.choices(range(1, count), k=50_000))
        export.scope.profiles[0].samples.add(stack_index=len(export.dictionary.stack_table) - 1, values=[1])
    with open(path, "wb") as file:
        append_message(file, export.bytes())
    return path


def test_a_tree_of_deep_stacks_takes_little_more_memory_than_they(tmp_path, message):
    path = deep_stacks(tmp_path / "deep", message)
    stacks, _ = peak("top", path)
    tree, _ = peak("flamegraph", path, "-o", tmp_path / "deep.html")
    assert tree - stacks < 60 << 10


def test_one_export_is_read_at_a_time(tmp_path, message):
    path = written(tmp_path / "a", message, 3)
    messages = each_message(path)
    next(messages)
    with open(path, "r+b") as file:  # later exports are not read yet
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(BadFile):
        list(messages)


def test_an_error_has_the_number_of_good_exports(tmp_path, message):
    path = written(tmp_path / "a", message, 2)
    with open(path, "ab") as file:
        append_message(file, b"\xff" * 20)
    with pytest.raises(BadFile, match="a holds no profiles after the first 2: "):
        list(each_message(path))


def test_a_pipe_is_read_as_well(tmp_path, message):
    path = written(tmp_path / "a", message, 2)
    done = subprocess.run(
        ["sh", "-c", f"cat {path} | {OTELPROF} export /dev/stdin --format collapsed"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count(" 20\n") == 100


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "quiet_s, stream, is_shown", [(0, Terminal, True), (60, Terminal, False), (0, io.StringIO, False)]
)
def test_progress_is_shown_after_a_while_at_a_terminal_only(tmp_path, message, monkeypatch, quiet_s, stream, is_shown):
    path = written(tmp_path / ("a" * 200), message, 4)
    monkeypatch.setattr(progress, "QUIET_SECONDS", quiet_s)
    monkeypatch.setattr(progress, "STEP_SECONDS", 0)
    monkeypatch.setattr("sys.stderr", stream())
    list(each_message(path))
    said = sys.stderr.getvalue()
    assert bool(said) == is_shown
    if is_shown:
        lines = said.split("\r\033[K")
        assert lines[0] == lines[-1] == "" and lines[-2].endswith(": 100 %") and max(map(len, lines)) <= 79
