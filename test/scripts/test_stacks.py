"""test/stacks judges a profile's stacks correctly."""

import sys

import pytest
from conftest import ROOT, Code

sys.path[:0] = [str(ROOT / "test" / "stacks")]
from shares import Shares  # noqa: E402

CUT, GUIDED, UNSAMPLED = "otelprof.stack.truncated", "otelprof.stack.frame_pointers", "otelprof.stack.unsampled"
MAIN, BARE = Code("native", "main", module="a"), Code("native", "", module="a")
PAY = Code("jvm", "Bank.pay")


def test_shares_are_of_the_time_that_samples_met(message):
    rows = [((PAY, MAIN), 1, {}), ((PAY,), 2, {CUT: True}), ((BARE, MAIN), 3, {CUT: True}), ((BARE, MAIN), 4, {GUIDED: True}),
            ((MAIN,), 90, {UNSAMPLED: True}), ((Code("native", "[anonymous]"), MAIN), 10, {})]
    request = message().labelled("samples", "count", 10**9, [(stack, value, None, marks) for stack, value, marks in rows]).request
    shares = Shares()
    shares.add(request.dictionary, request.resource_profiles[0])
    table = shares.as_table()
    assert table.pop("types") == {"native": pytest.approx(17 / 20), "jvm": pytest.approx(3 / 20)}
    assert table == {"seconds": 20, "truncated": 5 / 20, "single": 2 / 20, "unnamed": 17 / 20, "guided": 4 / 20}
