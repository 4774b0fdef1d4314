"""The tests' own rules: they wait for facts."""

import pytest
from waiting import eventually

# --- waiting for a fact ---


def test_the_first_value_that_holds_is_returned():
    values = iter([None, 0, "", 7, 8])
    assert eventually(lambda: next(values), "a value") == 7
    values = iter([1, 2, 3])
    assert eventually(lambda: next(values), "more than one", holds=lambda value: value > 1) == 2


def test_a_wait_in_vain_says_for_what_and_what_there_was():
    with pytest.raises(AssertionError, match=r"in vain for three exports: 0 s are over; the last value: \[1, 2\]"):
        eventually(lambda: [1, 2], "three exports", timeout_s=0, holds=lambda found: len(found) == 3)


@pytest.mark.parametrize("status", [0, 1, -9, True, "the log"])
def test_an_end_is_noticed_at_once(status):
    """Also that with status 0."""
    with pytest.raises(AssertionError, match="in vain for an export"):
        eventually(lambda: None, "an export", unless=lambda: status)


@pytest.mark.parametrize("going", [None, False])
def test_what_goes_on_is_waited_for(going):
    values = iter([0, 0, 1])
    assert eventually(lambda: next(values), "a value", unless=lambda: going) == 1


def test_what_came_before_the_end_counts():
    """The program does something and ends, between one look at it and the next."""
    written = []

    def ends():
        written.append("it")
        return 0

    assert eventually(lambda: written, "what it wrote", unless=ends) == ["it"]
