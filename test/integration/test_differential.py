"""Our unwinder against libunwind, in short; `make torture` runs test/differential/run for long."""

import sys

import pytest
from profiled import ROOT

sys.path.insert(0, str(ROOT / "test" / "differential"))

from differential import JIT, binaries, compare_live, compare_rules, programs  # noqa: E402

STRIDES = {"libc": 2, "libstdc++": 2, "libcrypto": 4, "python": 4, "node": 60, "cc1plus": 40, "rust": 150}


@pytest.mark.parametrize("name", STRIDES)
def test_every_pc_of_many_functions(name):
    """One step of each at every byte of the code, instruction boundaries and all."""
    tally = compare_rules(binaries()[name], STRIDES[name])
    assert tally["wrong"] == 0, "\n".join(tally["examples"])
    assert tally["functions"] > 300 and tally["pcs"] > 100000
    assert tally["equal"] > 0.95 * tally["pcs"]


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("differential")
    return folder, programs(folder, 60)


@pytest.mark.parametrize("name", ["python", "cc1plus", "perl", "rust", "node"])
def test_live_samples(commands, name):
    """At least 99.9 % reach the thread's start with libunwind's frames; the rest says that it does
    not; none is wrong."""
    folder, by_name = commands
    command, executable = by_name[name]
    tally = compare_live(name, command, executable, folder, 40000)
    assert tally["compared"] > 10000, tally
    if name in JIT:  # whose frames nobody can check; elsewhere they must not differ either
        assert tally["wrong"] <= 0.001 * tally["compared"], "\n".join(tally["examples"])
        return
    assert tally["wrong"] == 0, "\n".join(tally["examples"])
    assert tally["complete"] + tally["expression"] >= 0.999 * tally["compared"], tally
