"""The torture programs for a moment each; `make torture` runs them for long."""

import sys

import pytest
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "torture"))

from torture import PROGRAMS, torture  # noqa: E402


@pytest.mark.parametrize("name", PROGRAMS)
def test_torture(name):
    result = torture(name, 2)
    assert not result.problems, f"{result}\n" + "\n".join(result.problems)
