"""The pages of pprof's own tools show the output of `otelprof pprof`."""

import html
import re

import pytest
from captured import PROGRAMS, capture, succeeds
from conftest import BUILD
from pprof_pages import pages, tool

pytestmark = pytest.mark.system

NAMED = "has_inlined_work"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captured")
    path = capture(folder, script=f"{PROGRAMS}/inlined_work 500")
    succeeds("pprof", path, "-o", "cpu.pb.gz", cwd=folder)
    return folder / "cpu.pb.gz"


@pytest.fixture(scope="module", params=["go", "module"])
def shown(request, written, tmp_path_factory):
    with pages(tool(request.param, BUILD), written, tmp_path_factory.mktemp("pprof"), PROGRAMS) as it:
        yield it


@pytest.mark.parametrize("page, function", [("", None), ("top", None), ("flamegraph", None), ("peek", NAMED)])
def test_each_page_names_our_functions(shown, page, function):
    status, text = shown.page(page, function)
    assert status == 200 and NAMED in text


def test_inlined_functions_are_told_apart(shown):
    status, text = shown.page("flamegraph")
    assert status == 200 and {"inlined_work", NAMED} <= set(re.findall(r'"(\w+)"', text))


def test_a_function_that_is_not_there_is_not_shown(shown):
    assert "is_not_there" not in shown.page("top")[1]
    status, text = shown.page("peek", "is_not_there")
    assert "no matches found" in text or status == 400


def test_lines_of_the_source_have_their_samples(written, tmp_path):
    """Go's tool is used: the other one reads the binary, and not where code is within 500 bytes of a segment's begin."""
    with pages(tool("go", BUILD), written, tmp_path, PROGRAMS) as shown:
        status, text = shown.page("source", f"^{NAMED}$")
    assert status == 200 and re.search(rf">{NAMED}<.*inlined_work\.c", text, re.S)


def test_samples_lie_at_instructions_of_the_program(written, tmp_path):
    """pprof finds the program by its build id, and our addresses in its code."""
    with pages(tool("module", BUILD), written, tmp_path, PROGRAMS) as shown:
        status, text = shown.page("disasm", f"^{NAMED}$")
    assert status == 200, text
    text = html.unescape(text)
    assert re.search(rf"ROUTINE =+ {NAMED}", text) and "inlined_work.c:" in text
    assert re.search(r"^ +[\d.]+m?s +[\d.]+m?s +[0-9a-f]+: \w+", text, re.M)
