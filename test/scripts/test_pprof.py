"""Go's own tool and library read the output of `otelprof pprof`, and find what the file has."""

import gzip
import json
import re
import subprocess

import pytest
from captured import PROGRAMS, capture, otelprof, succeeds, sums
from conftest import BUILD
from otelprof_lib.aggregate import aggregate
from otelprof_lib.capture_file import append_message, each_message
from otelprof_lib.kinds import KINDS
from otelprof_lib.places import load_pprof
from pprof_pages import GO, need

pytestmark = pytest.mark.system

TELL = BUILD / "pprof" / "tell"
# names as in Go, where Go has them
COLUMNS = {
    "cpu": ["samples/count", "cpu/nanoseconds"],
    "alloc": ["alloc_objects/count", "alloc_space/bytes"],
    "heap": ["inuse_objects/count", "inuse_space/bytes"],
    "heap_peak": ["peak_objects/count", "peak_space/bytes"],
    "lock": ["contentions/count", "delay/nanoseconds"],
    "off_cpu": ["off_cpu/nanoseconds"],
    "sched_delay": ["sched_delay/nanoseconds"],
    "threads": ["threads/count"],
}


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("captured"))


@pytest.fixture
def written(captured, tmp_path):
    """written(kind) -> the path of its pprof."""

    def write(kind):
        succeeds("pprof", captured, "--kind", kind, "-o", f"{kind}.pb.gz", cwd=tmp_path)
        return tmp_path / f"{kind}.pb.gz"

    return write


def told(path):
    """Returns the output of pprof's library; its checker must find no fault."""
    need(TELL, "test/pprof, which needs Go 1.26,")
    done = subprocess.run([TELL, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def go_pprof(*arguments):
    need(GO, "Go")
    return subprocess.run([GO, "tool", "pprof", *arguments], capture_output=True, text=True, check=True).stdout


def read(path):
    with gzip.open(path) as file:
        return load_pprof().Profile.FromString(file.read())


def of_one(message, tmp_path, *exports, kind="cpu"):
    """Returns the pprof of hand-made exports."""
    with open(tmp_path / "a.otlp", "wb") as file:
        for export in exports:
            append_message(file, export.bytes())
    succeeds("pprof", "a.otlp", "-o", "a.pb.gz", "--kind", kind, cwd=tmp_path)
    return read(tmp_path / "a.pb.gz")


def test_every_kind_is_tested():
    assert COLUMNS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_totals_are_the_files_to_the_sample(captured, written, kind):
    answer = told(written(kind))
    assert answer["Types"] == COLUMNS[kind]
    expected = sums(captured)
    assert answer["Totals"] == [expected[column.split("/")[0]] for column in COLUMNS[kind]]
    assert all(value > 0 for value in answer["Totals"])


@pytest.mark.parametrize("kind", ["cpu", "alloc", "heap", "lock"])
def test_functions_have_the_figures_of_otelprof_top(captured, written, kind):
    own = {}
    for stack, value in aggregate(each_message(captured))[kind].stacks.items():
        if not stack[0].name.startswith("[") and stack[0].language != "cpython":
            own[stack[0].name] = own.get(stack[0].name, 0) + value
    unit = 1e9 if kind in ("cpu", "lock") else 1
    found = told(written(kind))["Functions"]
    assert len(own) >= 2
    # code without a name counts for the function of Python that it ran: there pprof has more detail
    assert {name: found[name][-1] for name in own} == {
        name: pytest.approx(value * unit, rel=1e-9) for name, value in own.items()
    }


def test_go_tool_pprof_shows_it(captured, written):
    path = written("cpu")
    text = go_pprof("-top", "-unit=ns", path)
    total = int(re.search(r"Total samples = (\d+)ns", text)[1])
    assert total == sums(captured)["cpu"]
    assert re.search(r"\bburns_cpu$", text, re.M) and re.search(r"\binlined_work \(inline\)$", text, re.M)
    assert "Type: cpu" in text and "Duration: " in text


def test_go_tool_pprof_writes_it_again(captured, written, tmp_path):
    copy = tmp_path / "copy.pb.gz"
    go_pprof("-proto", f"-output={copy}", written("alloc"))
    expected = sums(captured)
    assert told(copy)["Totals"] == [expected["alloc_objects"], expected["alloc_space"]]


def test_lines_mappings_and_build_ids(written):
    profile = read(written("cpu"))
    strings = profile.string_table
    names = {function.id: strings[function.name] for function in profile.function}
    inlined = [
        location
        for location in profile.location
        if [names[line.function_id] for line in location.line][:1] == ["inlined_work"]
    ]
    assert inlined and all(len(location.line) > 1 and location.line[0].line > 0 for location in inlined)
    mapping = profile.mapping[[it.id for it in profile.mapping].index(inlined[0].mapping_id)]
    assert strings[mapping.filename] == "inlined_work" and mapping.has_functions and mapping.has_inline_frames
    said = subprocess.run(
        ["readelf", "-n", PROGRAMS / "inlined_work"], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"Build ID: (\w+)", said)[1] == strings[mapping.build_id]
    assert all(mapping.memory_start <= it.address < mapping.memory_limit for it in inlined)


def labels_of(profile):
    strings = profile.string_table
    return [
        {strings[label.key]: strings[label.str] if label.str else label.num for label in sample.label}
        for sample in profile.sample
    ]


def test_samples_name_their_thread_and_process(captured, written):
    found = labels_of(read(written("cpu")))
    assert len({labels["process.executable.name"] for labels in found}) >= 4
    assert all(
        isinstance(labels["thread.id"], int) and labels["thread.name"] for labels in found if "thread.id" in labels
    )


def test_spans_and_labels_of_the_program_are_labels(message, tmp_path):
    rows = [
        (
            ("work", "main"),
            3,
            ("00f067aa0ba902b7", "4bf92f3577b34da6a3ce929d0e0e4736"),
            {"customer": "acme", "thread.id": 7},
        ),
        (("work", "main"), 4, None, {"otelprof.idle": True}),
    ]
    profile = of_one(message, tmp_path, message().labelled("samples", "count", 10_000_000, rows))
    first, second = labels_of(profile)
    assert first == {
        "customer": "acme",
        "span_id": "00f067aa0ba902b7",
        "thread.id": 7,
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    }
    assert second == {"otelprof.idle": "true"}
    assert [list(sample.value) for sample in profile.sample] == [[3, 30_000_000], [4, 40_000_000]]
    assert profile.period == 10_000_000


def test_time_and_duration_are_those_of_all_exports(message, tmp_path):
    """A gap is no part of the duration."""
    exports = []
    for begin in (5_000, 1_000, 3_000):
        exports.append(message().profile("samples", "count", 100, {("work",): 1}))
        exports[-1].scope.profiles[0].time_unix_nano = begin
        exports[-1].scope.profiles[0].duration_nano = 1_000
    profile = of_one(message, tmp_path, *exports)
    assert (profile.time_nanos, profile.duration_nanos) == (1_000, 3_000)
    assert [list(sample.value) for sample in profile.sample] == [[3, 300]], "one stack is one sample"


def test_code_without_a_name_is_left_to_the_reader(message, tmp_path):
    profile = of_one(message, tmp_path, message().profile("samples", "count", 100, {("/lib/libz.so!", "app!main"): 1}))
    mappings = {profile.string_table[it.filename]: it for it in profile.mapping}
    assert not mappings["/lib/libz.so"].has_functions and mappings["app"].has_functions
    nameless = profile.location[profile.sample[0].location_id[0] - 1]
    assert nameless.address and not nameless.line


def test_an_unknown_stack_has_a_frame_of_that_name(message, tmp_path):
    export = message().profile("samples", "count", 100, {("work",): 1})
    export.scope.profiles[0].samples[0].stack_index = 99
    profile = of_one(message, tmp_path, export)
    assert [profile.string_table[it.name] for it in profile.function] == ["[unknown]"]
    assert told(tmp_path / "a.pb.gz")["Totals"] == [1, 100]


def test_periods_of_their_own_make_times_of_their_own(message, tmp_path):
    exports = [message(str(period)).profile("samples", "count", period, {("work",): 10}) for period in (100, 1000)]
    profile = of_one(message, tmp_path, *exports)
    assert sorted(list(sample.value) for sample in profile.sample) == [[10, 1_000], [10, 10_000]]


def test_the_default_name_is_the_kinds(captured, tmp_path):
    succeeds("pprof", captured, cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cpu.pb.gz"]


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "is empty"),
        (b"\x00\x00\x00\x05abc", "cut short"),
        (b"{not json", "Expecting property name"),
        (b"\x7fELF" * 9, "something else"),
    ],
)
def test_errors_name_the_file_and_the_fault(tmp_path, content, words):
    (tmp_path / "bad.otlp").write_bytes(content)
    done = otelprof("pprof", "bad.otlp", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("otelprof: bad.otlp ") and words in done.stderr
    assert "Traceback" not in done.stderr and len(list(tmp_path.iterdir())) == 1


def test_the_error_for_a_missing_kind_lists_those_in_the_file(message, tmp_path):
    (tmp_path / "a.otlp").write_bytes(message().profile("samples", "count", 100, {("work",): 1}).bytes())
    done = otelprof("pprof", "a.otlp", "--kind", "heap", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "otelprof: a.otlp has no profile of kind heap; it has cpu\n")
