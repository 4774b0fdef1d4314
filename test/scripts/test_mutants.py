"""`make mutants` breaks the product as it is, and the tests that it names exist."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "test" / "mutants"))
from mutants import BREAKS  # noqa: E402

pytestmark = pytest.mark.fast

LEAST_BREAKS = 100


def is_test(name):
    if "::" not in name:
        return (ROOT / "test" / "unit" / f"{name}.c").exists()
    file, function = name.split("::")
    return f"\ndef {function}(" in (ROOT / file).read_text()


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own():
    assert len({change.name for change in BREAKS}) == len(BREAKS) >= LEAST_BREAKS


@pytest.mark.parametrize("change", BREAKS, ids=lambda change: change.name)
def test_a_break_is_of_the_product_as_it_is(change):
    """If this fails, the product has changed: the row has to follow it."""
    assert (ROOT / change.file).read_text().count(change.old) == 1
    assert change.old != change.new
    assert change.file.split("/")[0] in ("common", "shim", "scripts")


@pytest.mark.parametrize("change", BREAKS, ids=lambda change: change.name)
def test_the_tests_beside_a_break_exist(change):
    assert change.tests and [name for name in change.tests if not is_test(name)] == []


@pytest.mark.parametrize("room", ["unwind", "heap", "cpu", "record", "context", "wait", "process", "flush", "common", "otelprof_lib"])
def test_each_room_is_broken_more_than_once(room):
    assert sum(bool(re.search(rf"(^|/){room}/", change.file)) for change in BREAKS) > 1


# --- test/mutants/run, on a product of one function ---

CAUGHT = ("it subtracts", "a + b", "a - b")
SURVIVOR = ("it adds the other way round", "a + b", "b + a")
BROKEN = ("it is no C", "a + b", "a plus b")
GONE = ("it multiplies", "a * b", "a + b")


@pytest.fixture
def run(tmp_path):
    """run(*breaks) returns (exit status, printed lines). `adds` is the test's expected sum of 2 and 3."""
    for folder in ("common", "test/unit", "test/mutants"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "test/mutants/run", tmp_path / "test/mutants/run")
    product = tmp_path / "common/sum.h"
    product.write_text("static int sum(int a, int b) { return a + b; }\n")
    (tmp_path / "Makefile").write_text("build/test/unit/%: test/unit/%.c common/sum.h\n\t@mkdir -p $(@D)\n\t$(CC) -o $@ $<\n")
    head = (ROOT / "test/mutants/mutants.py").read_text().split("BREAKS = [")[0]

    def run_breaks(*breaks, adds=5, **environment):
        (tmp_path / "test/unit/test_sum.c").write_text(
            f'#include "../../common/sum.h"\nint main(void) {{ return sum(2, 3) != {adds}; }}\n')
        rows = [f"Break({name!r}, 'common/sum.h', {old!r}, {new!r}, ('test_sum',))" for name, old, new in breaks]
        (tmp_path / "test/mutants/mutants.py").write_text(f"{head}BREAKS = [{', '.join(rows)}]\n")
        kept = {name: value for name, value in os.environ.items() if name not in ("BUILD", "MAKEFLAGS", "TESTS")}
        done = subprocess.run([tmp_path / "test/mutants/run", "--jobs", "1"], env=kept | environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        assert "return a + b;" in product.read_text() and "return a + b;" in (tmp_path / "build/mutants/tree/common/sum.h").read_text()
        return done.returncode, done.stdout

    return run_breaks


def test_a_break_that_a_test_notices_is_caught(run):
    status, printed = run(CAUGHT)
    assert status == 0 and printed.endswith("1 of 1 breaks caught\n") and "test_sum: ended with 1" in printed


@pytest.mark.parametrize("change, word", [(SURVIVOR, "SURVIVED"), (BROKEN, "DOES NOT BUILD")])
def test_one_that_survives_or_does_not_build_fails_the_run(run, change, word):
    status, printed = run(change, CAUGHT)
    assert status == 1 and printed.endswith("1 of 2 breaks caught\n")
    assert [line.startswith(change[0]) for line in printed.splitlines() if line.endswith(word)] == [True]


def test_a_stale_row_and_a_test_that_fails_without_a_break_end_the_run(run):
    assert run(CAUGHT, GONE) == (1, "it multiplies: common/sum.h has its old text 0 times\n")
    status, printed = run(CAUGHT, adds=6)
    assert status == 1 and "unbroken: test_sum: ended with 1" in printed


def test_words_choose_among_breaks(run):
    assert run(CAUGHT, SURVIVOR, TESTS="subtracts")[0] == 0
    assert run(CAUGHT, TESTS="no_such_break")[0] == 1
