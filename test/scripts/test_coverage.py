"""Commands know what time a file covers: its gaps were not recorded, and profiles without samples tell of idle time."""

import gzip
import random

import pytest
from captured import otelprof, succeeds
from conftest import Message
from otelprof_lib import coverage
from otelprof_lib.aggregate import aggregate
from otelprof_lib.capture_file import append_message, each_message
from otelprof_lib.coverage import INTERVALS, Coverage, attribute_of, intervals_of
from otelprof_lib.places import load_pprof

SECOND = 1_000_000_000
PERIOD = 10_000_000
WORK = {("f", "main"): 100, ("g", "main"): 60}


def export(begin, end, stacks, kind="samples", instance="one"):
    """Returns an export of the seconds from begin to end."""
    made = Message(instance).profile(kind, "count", PERIOD, stacks)
    profile = made.scope.profiles[0]
    profile.time_unix_nano, profile.duration_nano = int(begin * SECOND), int((end - begin) * SECOND)
    profile.profile_id = random.Random(f"{instance} {kind} {begin}").randbytes(16)
    return made


def written(path, *exports):
    with open(path, "wb") as file:
        for it in exports:
            append_message(file, it.bytes())
    return path


def seconds_of(path):
    return aggregate(each_message(path))["cpu"].sampling.seconds


def duration_in_pprof(folder, name):
    succeeds("pprof", name, "-o", "made.pb.gz", cwd=folder)
    return load_pprof().Profile.FromString(gzip.decompress((folder / "made.pb.gz").read_bytes())).duration_nanos / SECOND


# --- sets of times ---


def test_a_set_of_times_is_what_a_set_of_moments_is():
    draw = random.Random(1)
    for _ in range(300):
        covered, moments = Coverage(), set()
        for _ in range(draw.randrange(1, 20)):
            begin, length = draw.randrange(1, 100), draw.randrange(0, 15)
            covered.add(begin, begin + length)
            moments.update(range(begin, begin + length))
        flat = covered.flat()
        assert flat == sorted(set(flat)), "stretches do not touch"
        assert {it for begin, end in zip(flat[::2], flat[1::2]) for it in range(begin, end)} == moments
        assert covered.nano == len(moments) and len(covered) == len(flat) // 2


def test_very_many_gaps_are_bounded_and_the_shortest_close(monkeypatch):
    monkeypatch.setattr(coverage, "MOST_STRETCHES", 4)
    covered = Coverage()
    for begin in (100, 0, 200, 303, 400, 501, 600):
        covered.add(begin, begin + 10 if begin != 200 else 300)
    assert covered.flat() == [0, 10, 100, 110, 200, 410, 501, 610]


# --- files ---


def test_a_gap_was_not_recorded(tmp_path):
    written(tmp_path / "gaps", export(1, 4, WORK), export(16, 19, WORK))
    written(tmp_path / "whole", export(1, 4, WORK), export(4, 7, WORK))
    for name in ("gaps", "whole"):
        assert seconds_of(tmp_path / name) == duration_in_pprof(tmp_path, name) == 6
    assert "no change" in succeeds("diff", "--by", "time", "gaps", "whole", cwd=tmp_path).stdout


def test_idle_time_was_recorded(tmp_path):
    """The program does a third of its work in the same time."""
    work = {stack: 30 * count for stack, count in WORK.items()}
    written(tmp_path / "idle", export(1, 7, work), export(7, 19, {}))
    written(tmp_path / "busy", export(1, 7, work), export(7, 13, work), export(13, 19, work))
    assert seconds_of(tmp_path / "idle") == seconds_of(tmp_path / "busy") == duration_in_pprof(tmp_path, "idle") == 18
    text = succeeds("diff", "--by", "time", "busy", "idle", cwd=tmp_path).stdout
    assert "-66.7%" in text


def test_samples_of_another_kind_show_that_the_time_was_recorded(tmp_path):
    written(tmp_path / "a", export(1, 4, WORK), export(4, 10, WORK, kind="alloc_space"))
    assert seconds_of(tmp_path / "a") == duration_in_pprof(tmp_path, "a") == 9


def test_processes_at_one_time_cover_it_once(tmp_path):
    written(tmp_path / "a", export(1, 4, WORK), export(2, 6, WORK, instance="two"))
    assert seconds_of(tmp_path / "a") == duration_in_pprof(tmp_path, "a") == 5


def test_a_file_of_idle_time_alone_has_no_profile(tmp_path):
    written(tmp_path / "a", export(1, 4, {}))
    done = otelprof("pprof", "a", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "otelprof: a has no profile of kind cpu\n")
    succeeds("merge", "a", "-o", "b", cwd=tmp_path)
    assert not only_profile(tmp_path / "b")[0].samples


# --- merged files ---


def only_profile(path):
    (message,) = each_message(path)
    ((profile,),) = ([p for scope in it.scope_profiles for p in scope.profiles] for it in message.resource_profiles)
    return profile, message.dictionary


def test_a_merged_file_keeps_its_gaps(tmp_path):
    written(tmp_path / "a", export(1, 4, WORK), export(4, 6, {}))
    written(tmp_path / "b", export(16, 19, WORK))
    written(tmp_path / "c", export(18, 20, {}), export(30, 31, WORK))
    succeeds("merge", "a", "b", "-o", "ab", cwd=tmp_path)
    profile, dictionary = only_profile(tmp_path / "ab")
    assert (profile.time_unix_nano, profile.duration_nano) == (SECOND, 8 * SECOND)
    assert intervals_of(profile, dictionary) == [(SECOND, 6 * SECOND), (16 * SECOND, 19 * SECOND)]
    succeeds("merge", "c", "ab", "-o", "abc", cwd=tmp_path)
    assert seconds_of(tmp_path / "abc") == duration_in_pprof(tmp_path, "abc") == 10
    assert aggregate(each_message(tmp_path / "abc"))["cpu"].sampling.end == 31 * SECOND


def test_a_merged_file_without_gaps_says_no_more_than_another(tmp_path):
    written(tmp_path / "a", export(1, 4, WORK), export(4, 6, WORK))
    succeeds("merge", "a", "-o", "b", cwd=tmp_path)
    profile, dictionary = only_profile(tmp_path / "b")
    assert profile.duration_nano == 5 * SECOND and attribute_of(profile, dictionary, INTERVALS) is None


def test_a_file_of_one_kind_covers_the_time_of_the_whole(tmp_path):
    """The program allocates in three of nine seconds; it computes in three others, and is idle after that."""
    allocations = export(1, 4, WORK, "alloc_space")
    written(tmp_path / "whole", allocations, export(4, 7, WORK), export(7, 10, {}))
    succeeds("export", "whole", "--format", "otlp-json", "--kind", "alloc", "-o", "alloc", cwd=tmp_path)
    messages = each_message(tmp_path / "alloc")
    profiles = [it for message in messages for it in message.resource_profiles[0].scope_profiles[0].profiles]
    assert [(it.time_unix_nano // SECOND, it.duration_nano // SECOND, len(it.samples)) for it in profiles] == [
        (1, 3, 2), (4, 3, 0), (7, 3, 0)]
    assert aggregate(each_message(tmp_path / "alloc"))["alloc"].sampling.seconds == 9
    succeeds("merge", "whole", "-o", "sums", cwd=tmp_path)
    succeeds("export", "sums", "--format", "otlp-json", "--kind", "alloc", "-o", "sums_alloc", cwd=tmp_path)
    assert aggregate(each_message(tmp_path / "sums_alloc"))["alloc"].sampling.seconds == 9
    for files in (("alloc", "whole"), ("whole", "alloc"), ("sums_alloc", "whole"), ("sums_alloc", "sums")):  # time alone is no repeat of the profile with the samples
        succeeds("merge", *files, "-o", "merged", cwd=tmp_path)
        found = aggregate(each_message(tmp_path / "merged"))
        assert found["cpu"].total == sum(WORK.values()) * PERIOD / SECOND and found["cpu"].sampling.seconds == 9
        assert found["alloc"].total == sum(WORK.values())


@pytest.mark.parametrize("moments", [[], [1], [5, 1], [0, 3], [1, 2, 3], [1, 1 << 62], [-4, 1],
                                     [SECOND, 5 * SECOND, 6 * SECOND, 5 * SECOND]])
def test_intervals_that_cannot_be_are_none(moments):
    made = export(1, 4, WORK)
    index = made.attribute(INTERVALS, "x")
    listed = made.dictionary.attribute_table[index].value
    listed.array_value.SetInParent()
    for moment in moments:
        listed.array_value.values.add(int_value=moment)
    profile = made.scope.profiles[0]
    profile.attribute_indices.append(index)
    assert intervals_of(profile, made.dictionary) == [(SECOND, 4 * SECOND)]
