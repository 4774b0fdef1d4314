"""Of the files that a foreign profile names as sources, only regular ones of bounded size are opened."""

import os

import pytest
from otelprof_lib import source_lines
from otelprof_lib.source_lines import MOST_BYTES, files

LINES = {10: [1, 1]}


@pytest.fixture
def opened(monkeypatch):
    """Returns the flags of each opening, by path."""
    found = {}
    real = os.open

    def watches(path, flags, *arguments, **options):
        found.setdefault(path, []).append(flags)
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(source_lines.os, "open", watches)
    return found


def note_of(path):
    (shown,) = files({str(path): LINES}, 0)["files"]
    return shown["note"]


def of_a_fifo(folder):
    os.mkfifo(folder / "fifo")
    return folder / "fifo"


def of_a_large_file(folder):
    (folder / "large").write_bytes(b"")
    os.truncate(folder / "large", MOST_BYTES + 1)
    return folder / "large"


@pytest.mark.parametrize("path_in, words", [
    (of_a_fifo, "no file, or empty"), (lambda _: "/dev/zero", "no file, or empty"), (lambda folder: folder, "no file, or empty"),
    (lambda _: "/proc/self/maps", "no file, or empty"), (of_a_large_file, "more than 4 MiB"),
], ids=["fifo", "device", "folder", "kernel", "large"])
def test_no_device_or_fifo_that_a_file_names_is_opened(tmp_path, opened, path_in, words):
    """Opening a tape rewinds it, and opening a FIFO lets its writer go on."""
    path = path_in(tmp_path)
    assert words in note_of(path)
    assert opened[str(path)] == [os.O_PATH | os.O_CLOEXEC]
    assert not any(str(at).startswith("/proc/self/fd") for at in opened)


def test_the_file_that_was_checked_is_the_one_that_is_read(tmp_path, opened, monkeypatch):
    """Another file may have the name meanwhile."""
    (tmp_path / "source").write_text("\n" * 9 + "right\n")
    os.mkfifo(tmp_path / "other")
    real = os.fstat

    def exchanges(descriptor):
        facts = real(descriptor)
        os.replace(tmp_path / "other", tmp_path / "source")
        monkeypatch.setattr(source_lines.os, "fstat", real)
        return facts

    monkeypatch.setattr(source_lines.os, "fstat", exchanges)
    (shown,) = files({str(tmp_path / "source"): LINES}, 0)["files"]
    assert {"number": 10, "self": 1, "total": 1, "text": "right"} in shown["lines"]
    assert len(opened[str(tmp_path / "source")]) == 1
