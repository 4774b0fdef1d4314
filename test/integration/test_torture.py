"""Each torture program runs for a moment; `make torture` runs them for long."""

import sys

import pytest
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "torture"))

from torture import PROGRAMS, is_there, torture  # noqa: E402

pytestmark = [pytest.mark.load, pytest.mark.hard]


@pytest.mark.parametrize("name", PROGRAMS)
def test_torture(name):
    if not is_there(name):
        pytest.skip("what it needs is not installed")
    result = torture(name, 1 if "python" in name else 2, judges_shares=False)
    assert not result.problems, f"{result}\n" + "\n".join(result.problems)
