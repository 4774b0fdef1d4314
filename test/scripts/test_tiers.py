"""test/run has tiers, runs some tests once more, and reports that. The suites here are invented, in folders of their own."""

import json
import os
import shutil
import subprocess

import pytest
from conftest import ROOT

pytestmark = pytest.mark.system

HEAD = "import pathlib, pytest\npytestmark = pytest.mark.{tier}\nHERE = pathlib.Path(__file__).parent\n"
# Fails in its first run, passes from the second on.
ONCE = """
def test_{name}():
    mark = HERE / '{name}.ran'
    ran, _ = mark.exists(), mark.touch()
    assert ran, 'the first time'
"""


@pytest.fixture
def suite(tmp_path):
    """suite(file name -> text) makes a project with these tests; its run(*tiers) returns (exit status, lines printed)."""
    tests = tmp_path / "test"
    for folder in ("integration", "scripts", "unit"):
        (tests / folder).mkdir(parents=True)
    (tmp_path / "build").mkdir()
    for name in ("run", "conftest.py", "pytest.ini"):
        shutil.copy(ROOT / "test" / name, tests / name)

    def make(files):
        for name, text in files.items():
            (tests / "integration" / f"test_{name}.py").write_text(text)

    def run(*tiers, **environment):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI", "TESTS", "BUILD"))}
        done = subprocess.run([tests / "run", *tiers], env=kept | environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    make.run = run
    make.unstable = tmp_path / "build" / "unstable.jsonl"
    return make


def test_a_test_that_passes_alone_is_unstable_and_said_to_be(suite):
    suite({"a": HEAD.format(tier="timing") + ONCE.format(name="once") + "def test_well():\n    pass\n"})
    status, lines = suite.run("timing")
    assert (status, lines[-1]) == (0, "2 passed, 0 failed, 0 skipped")
    assert "UNSTABLE test/integration/test_a.py::test_once: AssertionError: the first time" in lines
    (record,) = map(json.loads, suite.unstable.read_text().splitlines())
    assert record["test"] == "test/integration/test_a.py::test_once" and record["first_failure"] == "AssertionError: the first time"
    assert record["load"] >= 0 and record["duration_s"] >= 0


def test_a_test_that_fails_again_has_failed(suite):
    suite({"a": HEAD.format(tier="system") + "def test_never():\n    assert False\n"})
    status, lines = suite.run("system")
    assert (status, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped")
    assert "FAILED test/integration/test_a.py::test_never" in lines and not suite.unstable.exists()


@pytest.mark.parametrize("tier, more", [("fast", ""), ("load", ""), ("timing", "pytestmark = [pytestmark, pytest.mark.hard]\n")])
def test_a_test_without_chance_runs_once(suite, tier, more):
    suite({"a": HEAD.format(tier=tier) + more + ONCE.format(name="once")})
    status, lines = suite.run(tier)
    assert (status, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped")


@pytest.mark.parametrize("message", ["==7==ERROR: AddressSanitizer: heap-use-after-free", "assert (-11, '') == (0, '')  # returncode",
                                     "malloc(): corrupted top size"])
def test_a_crash_runs_once(suite, message):
    suite({"a": HEAD.format(tier="timing") + ONCE.format(name="once").replace("the first time", message.replace("'", '"'))})
    assert suite.run("timing")[0] == 1


def test_many_unstable_tests_fail_the_run(suite):
    def of(count):
        return HEAD.format(tier="timing") + "".join(ONCE.format(name=f"once_{count}_{number}") for number in range(count))

    suite({"a": of(3)})
    assert suite.run("timing")[0] == 0
    suite({"a": of(4)})
    status, lines = suite.run("timing")
    assert status == 1 and lines[-1] == "0 passed, 4 failed, 0 skipped"


@pytest.mark.parametrize("text", ["import time\ndef test_a():\n    time.sleep(0)\n", "def test_a(instance):\n    assert instance.cpu_of('f')\n",
                                  "EXACT_CPU = {}\ndef test_a(instance):\n    assert instance.whole_share() > 0.5\n",
                                  "EXACT_CPU = {}\ndef test_a(instance):\n    assert instance.cpu_of('f') == pytest.approx(2e9, rel=0.1)\n",
                                  "import os\ndef test_a():\n    os.geteuid()\n", "from collector import Collector\ndef test_a():\n    pass\n"])
def test_a_file_with_chance_in_it_names_its_tier(suite, text):
    suite({"a": text})
    status, lines = suite.run("fast")
    assert status == 1 and "FAILED test/integration: pytest ended with 4" in lines


def test_exact_cpu_time_is_no_chance(suite):
    """A program that takes a CPU sample at each function's end is profiled with EXACT_CPU."""
    suite({"a": "EXACT_CPU = {}\ndef test_a():\n    cpu_of = len\n    assert cpu_of(EXACT_CPU) == 0\n"})
    status, lines = suite.run("fast")
    assert (status, lines[-1]) == (0, "1 passed, 0 failed, 0 skipped")


def test_the_tiers_run_one_after_another_and_their_sum_is_kept(suite):
    note = "def test_it():\n    with open(HERE / 'order', 'a') as file:\n        print(__name__, file=file)\n"
    suite({tier: HEAD.format(tier=tier) + note for tier in ("load", "fast", "system", "timing")})
    assert suite.run()[1][-1] == "4 passed, 0 failed, 0 skipped"
    order = (suite.unstable.parents[1] / "test/integration/order").read_text().split()
    assert order == ["test_fast", "test_timing", "test_system", "test_load"]
    suite({"fast": HEAD.format(tier="fast") + "def test_it():\n    assert False\n"})
    assert suite.run("fast")[0] == 1
    status, lines = suite.run("--sum")
    assert (status, lines[-1]) == (1, "3 passed, 1 failed, 0 skipped")


def test_a_skip_is_a_failure_in_ci(suite):
    suite({"a": HEAD.format(tier="fast") + "def test_a():\n    pytest.skip('no such tool')\n\ndef test_b():\n    pass\n"})
    assert suite.run("fast")[1][-1] == "1 passed, 0 failed, 1 skipped"
    status, lines = suite.run("fast", CI="true")
    assert status == 1 and "SKIPPED test/integration/test_a.py::test_a (no such tool)" in lines
