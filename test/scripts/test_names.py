"""Names of 200 to 5,000 letters read well in a table on a terminal; who reads a table by a program gets whole names."""

import os
import pty
import subprocess

import pytest
from captured import OTELPROF
from long_names import NAMES, SHORT, named
from otelprof_lib.names import cut, fit_lines, short_name

pytestmark = pytest.mark.fast


def test_names_are_shortened_as_people_write_them():
    assert {name: short_name(name) for name in NAMES} == SHORT


def test_a_table_on_a_terminal_keeps_to_its_width(message, tmp_path):
    data = named(message).bytes()
    (tmp_path / "names.otlp").write_bytes(len(data).to_bytes(4, "big") + data)
    command = [OTELPROF, "top", "-n", "50", "names.otlp"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, env={**os.environ, "COLUMNS": "100"}) as running:
        os.close(theirs)
        shown = b""
        while part := read_of(ours):
            shown += part
        assert running.wait() == 0
    os.close(ours)
    lines = shown.decode().splitlines()
    assert len(lines) > len(NAMES) and max(map(len, lines)) <= 100
    assert any("wrap<\u2026>::apply" in line for line in lines)
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert all(name in piped for name in NAMES), "a program that reads the table gets whole names"


def read_of(terminal):
    """Returns what comes next; nothing where the other side is closed."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def test_a_cut_keeps_the_end_which_says_more():
    assert cut("abcdefghij", 10) == "abcdefghij" and cut("abcdefghijk", 10) == "abc\u2026fghijk"
    assert fit_lines("a sentence that is long and has no columns", 20) == "a sentence that is long and has no columns"
    assert fit_lines("  0.1 s  " + "x" * 90, 40) == "  0.1 s  " + "x" * 12 + "\u2026" + "x" * 18
