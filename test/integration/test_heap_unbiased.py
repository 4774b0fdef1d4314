"""For sizes from 8 B to 64 MiB, in some runs at each interval, chance explains the mean errors. test/heap/unbiased.py
is the long form."""

import sys

import pytest
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "heap"))

from unbiased import INTERVALS, judge, measure  # noqa: E402

pytestmark = pytest.mark.load


def test_the_mean_error_is_chance():
    judge(measure(INTERVALS, 8))
