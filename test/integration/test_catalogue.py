"""The short form of `make test-apps`: the programs of the catalogue that run in seconds and are
installed already."""

import re
import subprocess
import sys

import pytest

from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "apps"))

from catalogue import PROGRAMS  # noqa: E402
from harness import compare  # noqa: E402

SHORT = [p for p in PROGRAMS if p.seconds and not p.missing()]


@pytest.mark.parametrize("entry", SHORT, ids=lambda entry: entry.name)
def test_same_with_and_without_us(entry, tmp_path):
    verdict = compare(entry, tmp_path)
    assert not verdict.problems, "\n".join(verdict.problems)
    assert verdict.compared >= 3


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
