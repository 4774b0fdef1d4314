"""`make test-suites` compares outputs correctly: its readers, its judgement, and an invented suite in which the
preload changes a verdict."""

import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "apps"))
sys.path.insert(0, str(ROOT / "test" / "suites"))

import verdicts  # noqa: E402
from comparison import FLAKY, ONCE, OURS, WHOLE, Part, compare, kind_of  # noqa: E402
from sides import AT_ONCE, WITH, WITHOUT, Side  # noqa: E402
from sources import source_entries  # noqa: E402
from suites import SUITES  # noqa: E402
from verdicts import FAILED, MISSING, PASSED, SKIPPED  # noqa: E402

pytestmark = pytest.mark.fast


def test_each_format_is_read():
    assert verdicts.tap("1..5\nok 1 - a\nnot ok 2\nok 3 # SKIP no b\nnot ok 4 c # TODO later\n") == {
        "1": PASSED, "2": FAILED, "3": SKIPPED, "4": PASSED, "5": MISSING,
    }
    assert verdicts.tap("1..0 # skip no threads\n") == {"all": SKIPPED}
    assert verdicts.redis("[\x1b[0;32;49mok\x1b[0m]: SET (3 ms)\n[err]: GET in tests/unit/a.tcl\n[skip]: X\n[ok]: SET\n") == {
        "SET": PASSED, "GET": FAILED, "X": SKIPPED, "SET (2)": PASSED,
    }
    assert verdicts.tcl("++++ a-1 PASSED\n==== a-2 what it is FAILED\n==== a-2 FAILED\n++++ a-3 SKIPPED: nt\n") == {
        "a-1": PASSED, "a-2": FAILED, "a-3": SKIPPED,
    }
    assert verdicts.automake(
        "PASS: tests/a.sh\nFAIL: tests/b.sh\nnot as rootSKIP: tests/c.sh\nERROR: tests/d.sh\n# PASS:  1\n"
        "XPASS: tests/e.sh\nXFAIL: tests/f.sh\n"
    ) == {
        "tests/a.sh": PASSED, "tests/b.sh": FAILED, "tests/c.sh": SKIPPED, "tests/d.sh": FAILED,
        "tests/e.sh": FAILED, "tests/f.sh": PASSED,
    }
    assert verdicts.sqlite("a-1.1... Ok\na-1.2...\n! a-1.2 expected: [1]\n! a-1.2 got:      [2]\n") == {
        "a-1.1": PASSED, "a-1.2": FAILED,
    }
    assert verdicts.junit(
        "<t><s><testcase name='a'/><testcase name='b'><error/></testcase><testcase name='c'><skipped/></testcase></s></t>"
    ) == {"a": PASSED, "b": FAILED, "c": SKIPPED}
    assert verdicts.diff("warning: x\n") == {"output": PASSED}
    assert verdicts.diff("3c3\n< a\n---\n> b\n") == {"output": f"{FAILED}, 2 lines differ"}


@pytest.mark.parametrize("without, under, kind", [
    ([PASSED] * 4, [PASSED] * 4, ""),
    ([PASSED] * 4, [FAILED] * 4, OURS),
    ([PASSED] * 4, [FAILED, PASSED, PASSED, FAILED], OURS),
    ([PASSED] * 4, [FAILED, PASSED, PASSED, PASSED], ONCE),
    ([PASSED, PASSED, PASSED, FAILED], [FAILED] * 4, FLAKY),
    ([FAILED] * 4, [PASSED] * 4, OURS),
    ([FAILED, PASSED], [PASSED, PASSED], FLAKY),
    ([PASSED] * 2, [MISSING] * 2, OURS),
])
def test_changes_by_the_preload_are_separated_from_flaky_ones(without, under, kind):
    assert kind_of({WITHOUT: without, WITH: under}) == kind


SUITE = """
    i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done
    echo 1..3
    echo ok 1
    [ "$LD_PRELOAD" ] && echo not ok 2 || echo ok 2
    [ "$OTEL_PROFILER_MIN_LIFETIME" ] && exit 3
    echo ok 3
"""


def test_a_changed_verdict_and_a_changed_end_are_found(tmp_path):
    sides = [Side(name) for name in (WITHOUT, WITH, AT_ONCE)]
    try:
        counts, found = compare(Part("made up", ("sh", "-c", SUITE), tmp_path, verdicts.tap), sides, again=1)
        assert not sides[0].exports() and sides[2].exports()
        folders = [side.scratch for side in sides]
    finally:
        for side in sides:
            side.close()
    assert counts[WITHOUT] == {PASSED: 3, FAILED: 0, SKIPPED: 0}
    assert counts[WITH] == {PASSED: 2, FAILED: 1, SKIPPED: 0}
    assert {d.test: (d.kind, d.seen[AT_ONCE]) for d in found} == {
        "2": (OURS, [FAILED] * 2), "3": (OURS, [MISSING] * 2), WHOLE: (OURS, ["exit 3"] * 2),
    }
    assert not any(map(Path.exists, folders))


def test_a_rare_failure_is_run_more_often(tmp_path):
    """Such a test fails each fifth time, whatever the side, and fails first with the preload."""
    (tmp_path / "count").write_text("3")
    rare = 'n=$(($(cat count) + 1)); echo $n > count; [ $((n % 5)) = 0 ] && echo not ok 1 || echo ok 1'
    sides = [Side(name) for name in (WITHOUT, WITH)]
    try:
        _, found = compare(Part("rare", ("sh", "-c", rare), tmp_path, verdicts.tap), sides, again=1)
    finally:
        for side in sides:
            side.close()
    assert [(d.kind, d.seen[WITHOUT], d.seen[WITH]) for d in found] == [
        (FLAKY, [PASSED] * 3 + [FAILED], [FAILED] + [PASSED] * 3)
    ]


def test_a_program_without_end_is_ended_and_compared(tmp_path):
    side = Side(WITHOUT)
    try:
        ended, text = side.run(("sh", "-c", "echo begun; sleep 1000 & sleep 1000"), tmp_path, limit_s=1)
    finally:
        side.close()
    assert (ended, text) == ("did not end within 1 s", "begun\n")


def test_packages_and_names():
    said = (ROOT / "scripts" / "install-deps").read_text()
    listed = set(re.search(r"suites\) echo (.*?) ;;", said, re.S).group(1).replace("\\", " ").split())
    assert {suite.package for suite in SUITES if suite.package != "libuv1"} <= listed
    names = [suite.name for suite in SUITES]
    assert len(names) == len(set(names)) >= 8
    done = subprocess.run([ROOT / "test/suites/run", "no such suite"], capture_output=True, check=False)
    assert done.returncode == 1, "a run of nothing is no success"


def test_the_rows_of_suites_that_were_not_run_are_kept():
    loader = SourceFileLoader("run", str(ROOT / "test" / "suites" / "run"))
    run = module_from_spec(spec_from_loader("run", loader))
    loader.exec_module(run)
    first, second, third = (run.Outcome(suite) for suite in SUITES[:3])
    table = run.table_of([run.row_of(third), run.row_of(first)])
    second.skipped = first.skipped = "not today"
    names = [row.split("|")[1].strip() for row in run.merged(table, [second, first])]
    assert names == [suite.name for suite in SUITES[:3]]
    assert ["not today" in row for row in run.merged(table, [second, first])] == [True, True, False]


def test_the_machines_package_sources_are_asked_for_sources_only():
    for text in source_entries().values():
        kinds = re.findall(r"^(?:Types: (.*)|(deb\S*) )", text, re.M)
        assert kinds and all("".join(kind) == "deb-src" for kind in kinds)
