"""The soaks' rule for growth holds, and their programs run for a moment; `make soak` runs them for long."""

import random
import shutil
import sys

import pytest
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "soak"))

from churning import soak_churn  # noqa: E402
from growth import Figure  # noqa: E402
from serving import soak_redis  # noqa: E402

pytestmark = pytest.mark.load

LOOKS = 360
COUNTED_IN_BYTES = ("our own mappings", "anonymous memory", "mappings", "malloc's bytes")


def problem_of(values, bound=100):
    figure = Figure("it", bound)
    for value in values:
        figure.add(value)
    return figure.problem()


@pytest.mark.parametrize("value_at", [
    lambda i, noise: 1000,
    lambda i, noise: 1000 + noise,
    lambda i, noise: min(i, LOOKS // 4) * 50 + noise,  # warms up
    lambda i, noise: 1000 + i % 40 * 20,  # fills and empties
    lambda i, noise: 1000 + (5000 if i % 10 == 0 else 0),  # an export under way
    lambda i, noise: 1000 + i * 0.05,  # a rise of less than a quarter of the bound
    lambda i, noise: 1000 + (80 if i > LOOKS * 0.6 else 0) + noise / 10,  # one step within the bound
    lambda i, noise: 5000 - i + noise,
])
def test_no_growth(value_at):
    noise = random.Random(1)
    assert problem_of([value_at(i, noise.uniform(-50, 50)) for i in range(LOOKS)]) == ""


@pytest.mark.parametrize("value_at, said", [
    (lambda i, noise: 1000 + i * 2 + noise, "last"),
    (lambda i, noise: 1000 + (200 if i > LOOKS * 0.7 else 0) + noise, "last"),
    (lambda i, noise: 1000 + i * 0.3 + noise / 10, "creeps"),
    (lambda i, noise: 1000 + i * 0.3 + i % 8 * 10, "creeps"),  # under a sawtooth
])
def test_growth(value_at, said):
    noise = random.Random(1)
    assert said in problem_of([value_at(i, noise.uniform(-50, 50)) for i in range(LOOKS)])


def test_pieces_have_no_noise():
    assert problem_of([3] * LOOKS, bound=0) == ""
    assert "3 in the second third, 4 in the last" in problem_of([3] * 240 + [4] * 120, bound=0)


def test_too_little_was_seen():
    assert "tells nothing" in problem_of([1] * 8)


@pytest.mark.skipif(not shutil.which("redis-server"), reason="redis is missing (Debian: redis-server)")
def test_redis_for_a_moment():
    """The run is too short to show that nothing grows."""
    verdict = soak_redis(15, tell=lambda line: None)
    found = [problem for problem in verdict.problems if not problem.endswith("tells nothing")]
    assert not found, "\n".join(found + verdict.lines)


def test_churn_for_a_moment():
    """The run is too short for caches to be full, so bytes may still grow; the other figures are judged."""
    verdict = soak_churn(20, tell=lambda line: None)
    found = [problem for problem in verdict.problems if not problem.startswith(COUNTED_IN_BYTES)]
    assert not found, "\n".join(found + verdict.lines)
