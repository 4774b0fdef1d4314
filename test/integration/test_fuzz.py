"""The fuzzers run on their seeds, their corpus and a fixed number of inputs made with a fixed seed; `make fuzz`
explores."""

import sys

import pytest
from profiled import BUILD, ROOT

sys.path.insert(0, str(ROOT / "test" / "fuzz"))

from fuzzing import NAMES, fuzz_all, is_built, repeat  # noqa: E402

pytestmark = [pytest.mark.load, pytest.mark.hard]


@pytest.fixture(scope="module")
def results():
    if not is_built():
        pytest.skip(f"no fuzzers in {BUILD}/fuzz: clang's fuzzer runtime is missing (libclang-rt-14-dev)")
    return {result.name: result for result in fuzz_all(NAMES, repeat)}


@pytest.mark.parametrize("name", NAMES)
def test_fuzz(results, name):
    assert not results[name].problem, f"{results[name]}\n{results[name].problem}"


def test_every_fuzzer_has_seeds():
    sources = (ROOT / "test" / "fuzz").glob("fuzz_*.c")
    assert sorted(source.stem.removeprefix("fuzz_") for source in sources) == NAMES
