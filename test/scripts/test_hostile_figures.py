"""For figures that no profiler writes, each command gives a result, or one line that reports what is wrong."""

import pytest
from captured import otelprof, succeeds
from otelprof_lib.capture_file import append_message

MOST = (1 << 63) - 1
PERIOD = 10_000_000
STACK = ("work", "main")


def of_cpu(message, count=50, period=PERIOD):
    return message().profile("samples", "count", period, {STACK: count})


def write(path, *exports):
    with open(path, "wb") as file:
        for export in exports:
            append_message(file, export.bytes())


def changed(export, **fields):
    for name, value in fields.items():
        setattr(export.scope.profiles[0], name, value)
    return export


def refused(folder, words, *command):
    done = otelprof(*command, cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("otelprof: ") and words in done.stderr


@pytest.mark.parametrize("command", ["pprof", "merge"])
def test_a_sum_that_no_file_can_hold_is_an_error(message, tmp_path, command):
    write(tmp_path / "a", of_cpu(message, MOST), of_cpu(message, MOST))
    refused(tmp_path, "more than a file can hold", command, "a", "-o", "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"period": -PERIOD}, "the period of a profile is negative"),
        ({"time_unix_nano": (1 << 64) - 1}, "the time of a profile is past the year 2262"),
        ({"time_unix_nano": MOST, "duration_nano": 1}, "the time of a profile is past the year 2262"),
    ],
)
def test_a_file_with_such_a_figure_is_refused(message, tmp_path, fields, words):
    write(tmp_path / "a", changed(of_cpu(message), **fields))
    refused(tmp_path, words, "pprof", "a", "-o", "out")
    refused(tmp_path, words, "diff", "a", "a")


def test_samples_without_a_period_stand_for_no_time(message, tmp_path):
    write(tmp_path / "a", of_cpu(message, period=0))
    succeeds("flamegraph", "a", "-o", "a.html", cwd=tmp_path)
    refused(tmp_path, "cpu", "diff", "a", "a")


@pytest.mark.parametrize("value", ["nan", "inf", "", "1e400", "9" * 30, "\u0661"])
def test_a_number_that_is_none_is_0(message, tmp_path, value):
    """Such numbers are the time of a wait, and the id of a thread."""
    labels = {"thread.id": value, "otelprof.wait.duration": value, "otelprof.wait.kind": "futex"}
    write(
        tmp_path / "a",
        message().labelled("threads", "count", 1, [(STACK, 1, None, labels)]),
        message().labelled("samples", "count", PERIOD, [(STACK, 1, None, labels)]),
    )
    assert "work" in succeeds("threads", "a", cwd=tmp_path).stdout
    succeeds("flamegraph", "a", "-o", "a.html", cwd=tmp_path)
    succeeds("export", "a", "--format", "firefox", "-o", "firefox", cwd=tmp_path)
    assert '"tid":0,' in (tmp_path / "firefox").read_text()


def test_a_build_id_that_is_a_number_is_its_text(message, tmp_path):
    export = of_cpu(message)
    key = export.attribute("process.executable.build_id.gnu", "")
    export.dictionary.attribute_table[key].value.int_value = MOST
    mapping = export.mapping("program")
    export.dictionary.mapping_table[mapping].attribute_indices.append(key)
    export.dictionary.location_table[1].mapping_index = mapping
    write(tmp_path / "a", export)
    succeeds("pprof", "a", "-o", "a.pb.gz", cwd=tmp_path)
