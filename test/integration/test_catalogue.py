"""The short form of `make test-apps`: the programs of the catalogue that run in seconds and are
installed already."""

import re
import subprocess
import sys

import pytest

from profiled import ROOT
from ports import closed_port

sys.path.insert(0, str(ROOT / "test" / "apps"))

from catalogue import PROGRAMS, Program  # noqa: E402
from verdict import compare  # noqa: E402

pytestmark = pytest.mark.load

SHORT = [p for p in PROGRAMS if p.seconds and not p.missing()]


@pytest.mark.parametrize("entry", SHORT, ids=lambda entry: entry.name)
def test_same_with_and_without_us(entry, tmp_path):
    verdict = compare(entry, tmp_path)
    assert not verdict.problems, "\n".join(verdict.problems)
    assert verdict.compared >= 3


def test_a_line_of_ours_at_default_settings_is_a_difference(tmp_path):
    """One setting is given here, an endpoint where nothing listens: the log file would keep the line from the run
    before."""
    code = "import time\nend = time.process_time() + 1.3\nwhile time.process_time() < end: sum(range(1000))"
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{closed_port()}"}
    entry = Program("talks", "", (), "", lambda work: work.run(["/usr/bin/python3", "-c", code], env=env))
    (problem,) = compare(entry, tmp_path).problems
    assert problem.startswith("at default settings stderr differs") and "cannot be sent" in problem


def test_every_package_is_in_the_list():
    said = (ROOT / "scripts" / "install-deps").read_text()
    listed = set(re.search(r"apps\) echo (.*?) ;;", said, re.S).group(1).replace("\\", " ").replace(",", " ").split())
    needed = {package for entry in PROGRAMS for package in entry.packages}
    assert needed <= listed, needed - listed


def test_names_are_unique_and_the_command_is_there():
    names = [entry.name for entry in PROGRAMS]
    assert len(names) == len(set(names)) > 40
    done = subprocess.run([ROOT / "test/apps/run", "no such program"], capture_output=True, check=False)
    assert done.returncode == 1, "a run of nothing is no success"
