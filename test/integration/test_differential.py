"""Our unwinder agrees with libunwind, in short runs; `make torture` runs test/differential/run for long."""

import functools
import shutil
import sys

import pytest
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "differential"))

from differential import BURST, FRAMES, JIT, LANGUAGES, binaries, compare_live, compare_rules  # noqa: E402
from differential import compare_without_tables, programs  # noqa: E402

pytestmark = pytest.mark.load

if not shutil.which("rustc"):
    pytest.skip("there is no rustc, so nothing of the differential test RUNS", allow_module_level=True)

STRIDES = {"libc": 2, "libstdc++": 2, "libcrypto": 4, "python": 4, "node": 60, "cc1plus": 40, "rust": 150}
# libcrypto's hand-written assembler keeps the CFA in registers that the walker does not follow
EXPRESSIBLE = {"libcrypto": 0.97}
# makes each program run longer than sampling it takes
ROUNDS = {"python": 400, "cc1plus": 1, "perl": 60, "rust": 1500, "node": 150}
LIMIT = 40000


@pytest.mark.parametrize("name", STRIDES)
def test_every_pc_of_many_functions(name):
    """Both make one step at every byte of the code, instruction boundaries and all."""
    tally = compare_rules(binaries()[name], STRIDES[name])
    assert tally["wrong"] == 0, "\n".join(tally["examples"])
    assert tally["functions"] > 300 and tally["pcs"] > 100000
    followed = tally["equal"] + tally["outermost"]
    assert followed > EXPRESSIBLE.get(name, 0.995) * tally["pcs"], tally
    assert followed + tally["expression"] == tally["pcs"], tally  # neither refused nor unknown


@pytest.fixture(scope="module")
def tally_of(tmp_path_factory):
    """tally_of(name) -> the tally of that program, run once."""

    @functools.cache
    def run_once(name):
        folder = tmp_path_factory.mktemp(name)
        command, executable = programs(folder, ROUNDS[name])[name]
        return compare_live(name, command, executable, folder, LIMIT)

    return run_once


@pytest.mark.parametrize("name", ROUNDS)
def test_live_samples(tally_of, name):
    """At least 99.9 % reach the thread's start with libunwind's frames; the rest is marked as incomplete; no frame is
    wrong."""
    tally = tally_of(name)
    assert tally["wrong"] == 0, "\n".join(tally["examples"])
    assert tally["compared"] > LIMIT / 2, tally
    if name in JIT:  # nothing can check the frames behind its own, but they must have been there
        assert tally["undescribed"] > 1000, tally
        return
    assert tally["complete"] + tally["expression"] >= 0.999 * tally["compared"], tally
    # the frames below an entry of the procedure linkage table; a burst in which the loader resolves a symbol has it in each
    # stack
    assert tally["expression"] < 0.005 * tally["compared"] + 2 * BURST, tally


def test_live_samples_are_many_and_from_all_over(tally_of):
    """If bursts followed on each other, they would meet only a program's first instructions."""
    tallies = {name: tally_of(name) for name in ROUNDS}
    assert sum(tally["compared"] for tally in tallies.values()) > 150000, tallies
    assert tallies["cc1plus"]["functions"] > 200 and tallies["python"]["functions"] > 100, tallies


HIDDEN = [("c", frames, 100) for frames in FRAMES] + [
    ("c", "in leaves none", 50), ("c", "no frame pointers", 50), ("cpp", "frame pointers", 100), ("cpp", "no frame pointers", 50),
]


@pytest.mark.parametrize("language, frames, percent", HIDDEN)
def test_code_without_tables(tmp_path, language, frames, percent):
    """Without tables our walker finds what libunwind finds by them, in order; it marks what it leaves out. With frame
    pointers it finds nearly all; without them it may end early, and marks that."""
    compiler = LANGUAGES[language][0][0]
    tally = compare_without_tables((language, compiler, "-O2", frames), tmp_path, 8000, percent)
    judged = tally["compared"] - tally["guessed"]
    assert judged > 4000, tally
    assert tally["wrong"] <= judged / 1000, "\n".join(tally["examples"])
    assert tally["ended_early"] <= judged / 1000, tally
    assert tally["unflagged"] == 0, tally
    assert tally["complete"] >= (0.5 if frames == "no frame pointers" else 0.97) * judged, tally
