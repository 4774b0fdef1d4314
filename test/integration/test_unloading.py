"""When libraries take turns at one address, no sample gets a name from a library that came later."""

import shutil

import pytest
from profiled import AWAITED, BUILD, EXACT_CPU, START_NS

A_NS, B_NS = 30e6, 60e6  # half of the latter's time is in later intervals
A_BYTES, B_BYTES = 2000 * 1024, 3000 * 1024


@pytest.fixture
def turns(run, program, tmp_path):
    return lambda how, waits: take_turns(run, program, tmp_path, how, waits)


def take_turns(run, program, folder, how, waits):
    for _ in range(10):  # the helper may map something there in between
        outcome = run(
            [program("takes_turns"), how, waits], cwd=folder,
            env={**EXACT_CPU, **AWAITED, "OTEL_PROFILER_ALLOC_INTERVAL": "1",
                 **({"OTEL_PROFILE_EXPORT_INTERVAL": "86400000"} if waits == "never" else {})},
        )
        if outcome.stdout == "same place\n":
            break
    assert outcome.returncode == 0
    assert outcome.stdout == "same place\n", "or the test shows nothing"
    instance = outcome.instance("takes_turns")
    assert instance.cpu_total() > A_NS + B_NS - 2e6, "named or not, it is counted"
    return instance


def live(instance, name):
    return instance.value_of(name, "inuse_space")


@pytest.mark.parametrize("how", ["hooked", "unseen"])
def test_turns_between_two_harvests(turns, how):
    """Code that came and went unseen has no name, and gets no other library's name."""
    instance = turns(how, "never")
    seen = how == "hooked"
    assert instance.cpu_of("work_of_a") == (pytest.approx(A_NS, abs=START_NS) if seen else 0)
    assert instance.cpu_of("work_of_b") == pytest.approx(B_NS, abs=START_NS)
    assert live(instance, "work_of_a") == (A_BYTES if seen else 0)
    assert live(instance, "work_of_b") == B_BYTES
    assert live(instance, "[anonymous]") == (0 if seen else A_BYTES)


@pytest.mark.parametrize("how", ["hooked", "unseen"])
def test_turns_across_a_harvest(turns, how):
    """Wherever the harvest falls, no more time is named than was spent."""
    instance = turns(how, "after")
    assert instance.cpu_of("work_of_a") < A_NS + START_NS
    assert B_NS / 2 - 2e6 < instance.cpu_of("work_of_b") < B_NS + START_NS
    assert live(instance, "work_of_a") in (0, A_BYTES)
    assert live(instance, "work_of_b") in (0, B_BYTES)


@pytest.mark.parametrize("how", ["hooked", "unseen"])
def test_turns_in_intervals_of_their_own(turns, how):
    """A library that is loaded at a harvest, or whose dlclose the profiler sees, is known."""
    instance = turns(how, "between")
    assert instance.cpu_of("work_of_b") == pytest.approx(B_NS, abs=START_NS)
    assert live(instance, "work_of_b") == B_BYTES
    if how == "unseen":  # library a may have come and gone between two harvests
        assert live(instance, "work_of_a") in (0, A_BYTES)
        return
    assert instance.cpu_of("work_of_a") == pytest.approx(A_NS, abs=START_NS)
    assert live(instance, "work_of_a") == A_BYTES


@pytest.mark.parametrize("exporter", ["otlp", "console", "otlp_file"])
def test_files_are_let_go(run, program, tmp_path, exporter):
    """With each exporter, files are open while names are read, and not for longer."""
    count = 400
    (tmp_path / "copies").mkdir()
    for i in range(count):  # the loader would treat links as one library
        shutil.copy(BUILD / "test/programs/plugin.so", tmp_path / f"copies/{i}.so")
    outcome = run(
        [program("loads_many"), tmp_path / "copies", count],
        env={"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "50",
             "OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILES_EXPORTER": exporter,
             "OTEL_PROFILER_FILE": str(tmp_path / "profiles.jsonl")},
        timeout=180,
    )
    assert outcome.returncode == 0
    before, after = map(int, outcome.stdout.split())
    assert before == count, "all are read"
    assert after == 0


COUNT, EACH_MS, BLOCKS = 80, 3, 25


@pytest.fixture
def many(tmp_path):
    """Makes a folder with 80 libraries that differ in the name of the function that works."""
    library = (BUILD / "test/programs/one_of_many.so").read_bytes()
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(COUNT):
        (folder / f"{i:03}.so").write_bytes(library.replace(b"work_of_000", b"work_of_%03d" % i))
    return folder


@pytest.mark.parametrize("exporter, interval, come", [
    ("loaded before", 86400000, 0), ("loaded before", 50, 20),
    ("loaded after", 86400000, 0), ("loaded after", 86400000, 20),
])
def test_stacks_are_named_by_the_mappings_of_their_time(run, program, many, exporter, interval, come):
    """This holds however many were unloaded since, and whatever is mapped in their places: the program's memory or
    ours."""
    before = exporter == "loaded before"
    env = {"OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_CPU_FREQUENCY": EXACT_CPU["OTEL_PROFILER_CPU_FREQUENCY"],
           "OTEL_PROFILE_EXPORT_INTERVAL": str(interval),
           "OTEL_PROFILER_MIN_LIFETIME": "0" if before else "1500",
           **({"WAIT_FIRST": "1"} if before else {})}
    outcome = run([program("unloads_many"), many, COUNT, EACH_MS, BLOCKS, come], env=env, timeout=180)
    assert outcome.returncode == 0, outcome.stderr
    again, last = map(int, outcome.stdout.split())
    assert again > 0 and (last > 0) == (come > 0), "or the test shows nothing"
    instance = outcome.instance("unloads_many")
    names = [f"work_of_{i:03}" for i in range(COUNT)]
    for kind in ("alloc_objects", "inuse_objects"):
        assert {name: instance.value_of(name, kind) for name in names} == dict.fromkeys(names, BLOCKS)
    assert [name for name in names if instance.cpu_of(name) < (EACH_MS - 1) * 1e6] == []
    assert "[anonymous]" not in instance.names()
