"""Many processes send to one Collector: the short form of test/fleet/run."""

import sys

import pytest
from collector import skip_without_collector
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "fleet"))
from fleet import run_fleet  # noqa: E402

pytestmark = pytest.mark.load


def test_a_fleet_spreads_its_exports_over_the_interval():
    skip_without_collector()
    fleet = run_fleet(40, 2.0, 14.0)
    assert not fleet.problems, f"{fleet.problems}\n{fleet.histogram}"
