"""`otelprof merge` writes several files as one export, with the sums of each process."""

import os
import shutil

import pytest
from captured import PROGRAMS, capture, otelprof, succeeds, sums
from otelprof_lib import combined, repeats
from otelprof_lib.aggregate import aggregate
from otelprof_lib.capture_file import append_message, each_message
from validator import problems


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Returns files of several processes, one of them in OTLP's JSON."""
    folder = tmp_path_factory.mktemp("captured")
    first = capture(folder, "first.otlp")
    capture(folder, "second.otlp", f"{PROGRAMS}/burn 400 64; true")
    succeeds("export", "second.otlp", "--format", "otlp-json", "-o", "second.jsonl", cwd=folder)
    return first, folder / "second.jsonl"


def written(path, *exports):
    with open(path, "wb") as file:
        for export in exports:
            append_message(file, export.bytes())
    return path


def test_totals_are_the_sum_of_the_files(two, tmp_path):
    succeeds("merge", *two, "-o", "both.otlp", cwd=tmp_path)
    first, second = map(sums, two)
    assert sums(tmp_path / "both.otlp") == {name: first.get(name, 0) + second.get(name, 0) for name in first | second}


def test_the_result_is_one_export_that_keeps_every_rule(two, tmp_path):
    succeeds("merge", *two, "-o", "both.otlp", cwd=tmp_path)
    (message,) = each_message(tmp_path / "both.otlp")
    assert problems(message) == []
    assert len(message.resource_profiles) >= 6, "each process is one"


def test_stacks_and_labels_stay_as_they_were(two, tmp_path):
    succeeds("merge", two[0], "-o", "one.otlp", cwd=tmp_path)
    before, after = (aggregate(each_message(path), lines=True) for path in (two[0], tmp_path / "one.otlp"))
    assert before.keys() == after.keys()
    for kind in before:
        assert after[kind].samples == {
            key: pytest.approx(value, rel=1e-12) for key, value in before[kind].samples.items()
        }, kind
        assert after[kind].counts == before[kind].counts


def test_the_output_may_be_one_of_the_files(two, tmp_path):
    copy = shutil.copy(two[1], tmp_path / "copy")
    succeeds("merge", two[0], "copy", "-o", "copy", cwd=tmp_path)
    first, second = map(sums, two)
    assert sums(copy)["cpu"] == first["cpu"] + second["cpu"]
    assert os.listdir(tmp_path) == ["copy"]


def test_a_device_stays_one(two, tmp_path):
    device = tmp_path / "pipe"
    os.mkfifo(device)
    reader = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
    succeeds("merge", two[1], "-o", "pipe", cwd=tmp_path)
    assert len(os.read(reader, 1 << 16)) > 1000
    os.close(reader)
    assert not os.path.isfile(device)


def test_each_part_of_a_snapshot_is_added_once(message, monkeypatch):
    """This holds for any number of parts: once each part had all of them added up again. A part that comes again
    replaces itself."""
    added = []
    add = combined._add
    monkeypatch.setattr(combined, "_add", lambda target, sums: added.append(len(sums)) or add(target, sums))

    def part(number, value):
        export = message().profile("inuse_space", "bytes", 1, {("shared", "main"): value, (f"own_{number}", "main"): 1})
        profile = export.scope.profiles[0]
        profile.time_unix_nano, profile.profile_id = 7, number.to_bytes(16, "big")
        return export.request

    sums = combined.Combined()
    for number in range(50):
        sums.add(part(number, 1 + number))
    assert sum(added) == 2 * 50
    sums.add(part(49, 1000))
    samples = aggregate([sums.message()])["heap"].samples
    assert sum(samples.values()) == sum(range(50)) + 1000 + 50


def test_of_a_snapshot_the_latest_stays(message, tmp_path):
    def at(time, value):
        export = message().profile("inuse_space", "bytes", 1, {(f"at_{time}", "main"): value})
        export.scope.profiles[0].time_unix_nano = time
        return export

    written(tmp_path / "a", at(2, 20))
    written(tmp_path / "b", at(1, 10))
    succeeds("merge", "a", "b", "-o", "c", cwd=tmp_path)
    (merged,) = each_message(tmp_path / "c")
    assert sums(tmp_path / "c") == {"inuse_space": 20}
    assert "at_1" not in merged.dictionary.string_table, "what no sample refers to is left out"


@pytest.mark.parametrize(
    "files, words",
    [(("good", "bad"), "bad holds no profiles"), (("good", "none"), "none: No such file or directory")],
)
def test_a_file_that_cannot_be_read_leaves_no_output(message, tmp_path, files, words):
    written(tmp_path / "good", message().profile("samples", "count", 1, {("f",): 1}))
    (tmp_path / "bad").write_bytes(b"\x7fELF" * 9)
    done = otelprof("merge", *files, "-o", "out", cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and not (tmp_path / "out").exists()


def numbered(message, number, kind="samples", instance="one", time=1):
    """Returns an export of one profile with an id."""
    unit = "bytes" if kind == "inuse_space" else "count"
    export = message(instance).profile(kind, unit, 1, {(f"{kind}_{number}", "main"): 10 ** min(number, 9)})
    profile = export.scope.profiles[0]
    profile.time_unix_nano, profile.profile_id = time, bytes(15) + bytes([number]) if number else bytes(16)
    return export


def merge_of(tmp_path, output, *files):
    """Returns the sums of a merged file, and what the command reported."""
    done = otelprof("merge", *files, "-o", output, cwd=tmp_path)
    assert done.returncode == 0
    return sums(tmp_path / output), done.stderr


def test_a_profile_that_comes_again_counts_once(message, tmp_path):
    written(tmp_path / "a", numbered(message, 1), numbered(message, 2))
    written(tmp_path / "b", numbered(message, 2), numbered(message, 3))
    (tmp_path / "aab").write_bytes(b"".join((tmp_path / name).read_bytes() for name in "aab"))
    found, said = merge_of(tmp_path, "both", "a", "b")
    assert found["samples"] == 1110 and "1 profile left out" in said
    shown = otelprof("export", "aab", "--format", "collapsed", cwd=tmp_path)
    assert sorted(shown.stdout.splitlines()) == ["main;samples_1 10", "main;samples_2 100", "main;samples_3 1000"]
    assert "3 profiles left out" in shown.stderr and shown.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "others",
    [
        lambda message: [numbered(message, 1), numbered(message, 1, instance="two")],
        lambda message: [numbered(message, 1), numbered(message, 1, time=2)],
        lambda message: [numbered(message, 0)] * 2,
        lambda message: [numbered(message, 1, instance="")] * 2,
    ],
    ids=["two processes", "two exports", "without an id", "of an unknown process"],
)
def test_only_the_same_profile_of_the_same_process_is_left_out(message, tmp_path, others):
    exports = others(message)
    written(tmp_path / "a", exports[0])
    written(tmp_path / "b", exports[1])
    found, said = merge_of(tmp_path, "both", "a", "b")
    assert found["samples"] == sum(sums(tmp_path / name)["samples"] for name in "ab") and "left out" not in said


def test_merged_files_of_the_same_exports_count_once(message, tmp_path):
    for number, name in enumerate("ab", 1):
        written(tmp_path / name, numbered(message, number), numbered(message, number, "inuse_space", time=number))
    written(tmp_path / "a2", numbered(message, 3, "inuse_space", time=2))  # another part of the last snapshot
    merge_of(tmp_path, "ab", "a", "b", "a2")
    merge_of(tmp_path, "ba", "a2", "b", "a")
    found, _ = merge_of(tmp_path, "all", "ab", "ba")
    assert found["samples"] == 110 and found["inuse_space"] == 1100
    assert merge_of(tmp_path, "heap", "all", "b", "ba", "a2")[0]["inuse_space"] == 1100, "parts keep their ids"


def test_what_is_known_of_earlier_profiles_is_bounded(message, monkeypatch):
    monkeypatch.setattr(repeats, "MOST_KNOWN", 8)
    known = repeats.Repeats()
    assert len(list(known.without(numbered(message, 1 + number % 4).request for number in range(100)))) == 4
    assert len(list(known.without(numbered(message, number).request for number in range(5, 200)))) == 195
    assert len(known._known) + len(known._earlier) <= 8


# --- parts of merged files ---


@pytest.fixture
def parts(message, tmp_path):
    """Files a, b and c of two exports each, with allocations beside the CPU time, and merged files of them."""
    for first, name in enumerate("abc"):
        written(tmp_path / name, *(numbered(message, 1 + 2 * first + number, kind, time=1 + first) for number in range(2)
                                   for kind in ("samples", "alloc_space")))
    for name in ("ab", "bc", "abc"):
        assert otelprof("merge", *name, "-o", name, cwd=tmp_path).returncode == 0
    return tmp_path


def digits(*files):
    """What the exports of these files add up to."""
    return sum(10 ** (1 + 2 * "abc".index(name) + number) for name in files for number in range(2))


@pytest.mark.parametrize("files, parts_in", [
    (["ab", "a"], "ab"), (["a", "ab"], "ab"), (["ab", "c"], "abc"), (["c", "b", "ab", "a"], "abc"), (["ab", "abc"], "abc"),
    (["abc", "ab", "bc"], "abc"), (["ab", "abc", "bc", "c"], "abc"),
])
def test_a_merged_file_and_its_parts_count_once(parts, files, parts_in):
    """It did not once: only whole files were recognized."""
    found, said = merge_of(parts, "all", *files)
    assert found["samples"] == found["alloc_space"] == digits(*parts_in)
    assert ("left out" in said) == (files != ["ab", "c"])
    (parts / "cat").write_bytes(b"".join((parts / name).read_bytes() for name in files))
    shown = otelprof("export", "cat", "--format", "collapsed", cwd=parts)
    assert sum(int(line.rpartition(" ")[2]) for line in shown.stdout.splitlines()) == digits(*parts_in)


def test_a_merge_of_merged_files_has_the_parts_of_all(parts):
    merge_of(parts, "deep", "ab", "c")
    assert merge_of(parts, "all", "a", "deep", "bc")[0]["samples"] == digits(*"abc")


def test_json_of_a_merged_file_keeps_its_parts(parts):
    succeeds("export", "ab", "--format", "otlp-json", "-o", "ab.jsonl", cwd=parts)
    assert merge_of(parts, "all", "a", "ab.jsonl")[0]["samples"] == digits(*"ab")


def test_merged_files_that_share_a_part_are_refused(parts):
    """b can be taken out of neither."""
    done = otelprof("merge", "ab", "bc", "-o", "all", cwd=parts)
    assert done.returncode == 2 and "merge the files that they were made of" in done.stderr
    assert not (parts / "all").exists()


def test_parts_of_another_process_are_no_parts(parts, message):
    written(parts / "other", numbered(message, 1, instance="two"))
    assert merge_of(parts, "all", "ab", "other")[0]["samples"] == digits(*"ab") + 10


def test_the_list_of_parts_is_bounded(parts, monkeypatch):
    monkeypatch.setattr(combined, "MOST_PARTS", 3)
    (message,) = [combined.combined(repeats.each_once_of([parts / name for name in "ab"])).message()]
    assert repeats.PARTS not in message.dictionary.string_table
