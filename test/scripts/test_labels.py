"""`otelprof` selects and groups samples by span, trace and attribute, and reports links."""

import json
from pathlib import Path

import pytest
from google.protobuf import json_format
from otelprof_lib.aggregate import Frame, aggregate
from otelprof_lib.capture_file import append_message
from otelprof_lib.cli import main
from otelprof_lib.labels import Label, Labels, select

CHECKOUT, SEARCH, CHILD = "00f067aa0ba902b7", "00f0aaaabbbbcccc", "c0ffee0000000001"
TRACE, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
ROWS = [
    (("app!compress", "app!serve", "app!main"), 60, (CHECKOUT, TRACE), {"thread.name": "worker", "http.route": "/cart"}),
    (("app!find", "app!serve", "app!main"), 20, (SEARCH, OTHER), {"thread.name": "worker", "http.route": "/search"}),
    (("app!hash", "app!serve", "app!main"), 10, (CHILD, TRACE), {"thread.name": "pool", "retry": True, "thread.id": 7}),
    (("app!idle", "app!main"), 10, None, {"thread.name": "pool"}),
]


@pytest.fixture
def export(message):
    sizes = [(names, value << 10, ids, attributes) for names, value, ids, attributes in ROWS[:2]]
    counts = [(names, value, ids, attributes) for names, value, ids, attributes in ROWS[:2]]
    return (message().labelled("samples", "count", 10_000_000, ROWS)
            .labelled("alloc_space", "bytes", 1, sizes).labelled("alloc_objects", "count", 1, counts))


def as_the_collector_writes_it(request):
    """Returns OTLP's JSON with ids in hexadecimal, and resource strings in the dictionary."""
    tree = json.loads(json_format.MessageToJson(request))
    for link, written in zip(request.dictionary.link_table, tree["dictionary"]["linkTable"]):
        written.update(traceId=link.trace_id.hex(), spanId=link.span_id.hex())
    return json.dumps(tree) + "\n"


@pytest.fixture(params=["protobuf", "json"])
def file(request, tmp_path, export):
    path = tmp_path / "profile"
    if request.param == "json":
        path.write_text(as_the_collector_writes_it(export.request))
    else:
        with open(path, "wb") as out:
            append_message(out, export.bytes())
    return str(path)


@pytest.fixture
def otelprof(file, capsys):
    """otelprof(command, *options): (status, what it prints)."""

    def call(command, *options):
        status = main([command, file, *options])
        out, err = capsys.readouterr()
        return status, out + err

    return call


def functions(text):
    return {line.split()[-2] for line in text.splitlines() if line.endswith("(app)")}


def test_one_span_is_shown(otelprof):
    status, shown = otelprof("top", "--span", CHECKOUT)
    assert status == 0 and "CPU time: 0.600 s" in shown and "allocated: 60.0 KiB in 60 objects" in shown
    assert functions(shown) == {"compress", "serve", "main"}
    assert shown.startswith(f"span_id={CHECKOUT}\n")


def test_one_trace_is_shown_with_all_its_spans(otelprof):
    _, shown = otelprof("top", "--kind", "cpu", "--trace", TRACE)
    assert "CPU time: 0.700 s" in shown and functions(shown) == {"compress", "hash", "serve", "main"}


@pytest.mark.parametrize("option, text, meant", [
    ("--span", "00F067AA0BA902B7", CHECKOUT), ("--span", "00f06", CHECKOUT), ("--span", "C0FF", CHILD),
    ("--trace", "4bf9", TRACE), ("--trace", TRACE.upper(), TRACE),
])
def test_ids_are_taken_in_either_case_and_by_their_first_digits(otelprof, option, text, meant):
    status, shown = otelprof("top", option, text)
    assert status == 0 and meant in shown.splitlines()[0]


@pytest.mark.parametrize("options, words", [
    (["--span", "00f0"], f"00f0 begins the ids of 2 spans: {CHECKOUT}, {SEARCH}"),
    (["--span", "1234567890abcdef"], "no sample belongs to span 1234567890abcdef; there are samples of 3 spans"),
    (["--span", "67aa"], "no sample belongs to span 67aa"),
    (["--trace", "1234"], "no sample belongs to trace 1234; there are samples of 2 traces"),
    (["--span", TRACE[:16]], "is no span, but a trace: use --trace"),
    (["--trace", CHILD], "is no trace, but a span: use --span"),
    (["--label", "http.route=/no"], "no sample has http.route=/no; values are /cart, /search"),
    (["--label", "colour=red"], "no sample has the label colour; labels are http.route, retry, span_id, thread.id, thread.name, trace_id"),
    (["--group-by", "colour"], "no sample has the label colour; labels are "),
    (["--span", CHILD, "--trace", OTHER], f"no sample has all of span_id={CHILD}, trace_id={OTHER}"),
])
@pytest.mark.parametrize("command", ["top", "flamegraph"])
def test_why_nothing_is_chosen_is_said(otelprof, tmp_path, command, options, words):
    page = tmp_path / "page.html"
    status, said = otelprof(command, *options, *(["-o", str(page)] if command == "flamegraph" else []))
    assert status == 2 and words in said and not page.exists()


@pytest.mark.parametrize("option", [("--span", "00f"), ("--span", TRACE), ("--trace", TRACE + "0"), ("--span", "xyzw"), ("--label", "x")])
def test_a_text_that_is_no_id_is_refused(otelprof, option):
    status, said = otelprof("top", *option)
    assert status == 2 and ("first 4 or more" in said or "NAME=VALUE" in said)


def test_a_file_without_links_is_reported(message, tmp_path, capsys):
    path = tmp_path / "plain"
    path.write_bytes(message().profile("samples", "count", 10**9, {("f",): 1}).bytes())
    assert main(["top", str(path), "--span", CHILD]) == 2
    assert "no sample is linked to a span" in capsys.readouterr().err
    assert main(["top", str(path), "--group-by", "trace_id"]) == 2
    assert "no sample is linked to a trace" in capsys.readouterr().err
    assert main(["top", str(path)]) == 0
    assert "linked" not in capsys.readouterr().out


def test_labels_choose_together(otelprof):
    _, shown = otelprof("top", "--label", "thread.name=pool", "--kind", "cpu")
    assert "CPU time: 0.200 s" in shown
    _, shown = otelprof("top", "--label", "thread.name=pool", "--label", "retry=true", "--kind", "cpu")
    assert "CPU time: 0.100 s" in shown and functions(shown) == {"hash", "serve", "main"}


def grouped(text):
    """Returns [value, seconds, share, hottest function] of each row."""
    rows = [line.split() for line in text.splitlines()[2:] if "%" in line and "linked" not in line]
    return [[row[3], row[0], row[2], row[-2]] for row in rows]


@pytest.mark.parametrize("name, rows", [
    ("span_id", [[CHECKOUT, "0.600", "60.0%", "compress"], [SEARCH, "0.200", "20.0%", "find"], ["(none)", "0.100", "10.0%", "idle"],
                 [CHILD, "0.100", "10.0%", "hash"]]),
    ("trace_id", [[TRACE, "0.700", "70.0%", "compress"], [OTHER, "0.200", "20.0%", "find"], ["(none)", "0.100", "10.0%", "idle"]]),
    ("thread.name", [["worker", "0.800", "80.0%", "compress"], ["pool", "0.200", "20.0%", "hash"]]),
    ("thread.id", [["(none)", "0.900", "90.0%", "compress"], ["7", "0.100", "10.0%", "hash"]]),
])
def test_samples_are_grouped(otelprof, name, rows):
    status, shown = otelprof("top", "--kind", "cpu", "--group-by", name)
    assert status == 0 and grouped(shown) == rows


def test_a_label_without_text_is_not_none(message, tmp_path, capsys):
    path = tmp_path / "file"
    rows = [(("app!a",), 3, None, {"tenant": ""}), (("app!b",), 1, None, {}), (("app!c",), 2, None, {"tenant": "x"})]
    path.write_bytes(message().labelled("samples", "count", 10**9, rows).bytes())
    assert main(["top", str(path), "--group-by", "tenant"]) == 0
    assert grouped(capsys.readouterr().out) == [
        ['""', "3.000", "50.0%", "a"], ["x", "2.000", "33.3%", "c"], ["(none)", "1.000", "16.7%", "b"]]


def test_blanks_belong_to_a_value(message, tmp_path, capsys):
    path = tmp_path / "file"
    rows = [(("app!a",), 3, None, {"tenant": " x\n"}), (("app!b",), 1, None, {"tenant": "x"})]
    path.write_bytes(message().labelled("samples", "count", 10**9, rows).bytes())
    assert main(["top", str(path), "--label", "tenant=x"]) == 0
    assert functions(capsys.readouterr().out) == {"b"}
    assert main(["top", str(path), "--label", "tenant= x\n"]) == 0
    assert functions(capsys.readouterr().out) == {"a"}


def test_rows_of_groups_are_counted_when_cut(otelprof):
    _, shown = otelprof("top", "--kind", "cpu", "--group-by", "span_id", "-n", "1")
    assert grouped(shown) == [[CHECKOUT, "0.600", "60.0%", "compress"]] and "and 3 others" in shown


def test_groups_of_objects_are_counted(otelprof):
    _, shown = otelprof("top", "--kind", "alloc", "--group-by", "http.route")
    assert shown.splitlines()[2].split() == ["60.0", "KiB", "75.0%", "60", "/cart", "100.0%", "compress", "(app)"]


def test_the_share_of_linked_samples_is_said(otelprof):
    _, shown = otelprof("top")
    assert "linked: 90.0% of CPU time, 100.0% of allocated, to 3 spans of 2 traces" in shown.splitlines()
    _, shown = otelprof("top", "--trace", TRACE)
    assert "linked" not in shown, "all of it is"


def test_a_flame_graph_has_the_groups_as_its_outermost_frames(export):
    profile = aggregate([export.request])["cpu"].under("thread.name")
    assert {stack[-1]: value for stack, value in profile.stacks.items() if stack[0].name == "compress"} == {
        Frame("thread.name=worker"): pytest.approx(0.6)}


def test_a_flame_graph_of_a_span_is_titled_by_it(otelprof, tmp_path, file):
    page = tmp_path / "page.html"
    assert otelprof("flamegraph", "--span", "00f06", "--group-by", "http.route", "-o", str(page))[0] == 0
    text = page.read_text()
    assert f"<title>{Path(file).name}: span_id={CHECKOUT}</title>" in text and "http.route=/cart" in text and '"find"' not in text


def test_the_live_heap_is_chosen_from_after_the_latest_snapshot_wins(message):
    """A span that is only in an older snapshot has nothing alive now."""

    def at(time, ids):
        made = message().labelled("inuse_space", "bytes", 1, [(("f",), 100, ids, {})])
        made.scope.profiles[0].time_unix_nano = time
        return made.request

    profiles = aggregate([at(1, (CHILD, TRACE)), at(2, (SEARCH, OTHER))])
    assert select(profiles, [Label("trace_id", OTHER)])[0]["heap"].total == 100
    with pytest.raises(Exception, match="no sample belongs"):
        select(profiles, [Label("span_id", CHILD)])


@pytest.mark.parametrize("index", [-1, 99])
def test_links_and_attributes_that_point_nowhere(export, index):
    for sample in export.scope.profiles[0].samples:
        sample.link_index = index
        sample.attribute_indices.append(index)
    for attribute in export.dictionary.attribute_table[1:3]:
        attribute.key_strindex = index
    assert aggregate([export.request])["cpu"].total == pytest.approx(1)


def test_values_of_labels_cannot_steer_the_terminal(message, tmp_path, capsys):
    path = tmp_path / "file"
    path.write_bytes(message().labelled("samples", "count", 10**9, [(("f",), 1, None, {"\x1b[1m": "\x1b[2J"})]).bytes())
    assert main(["top", str(path), "--group-by", "\x1b[1m"]) == 0
    assert main(["top", str(path), "--label", "\x1b[1m=\x1b[2J"]) == 0
    assert main(["top", str(path), "--label", "\x1b[1m=x"]) == 2
    assert main(["top", str(path), "--group-by", "x"]) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "\\x1b[2J" in out


def test_a_list_is_one_text_and_a_whole_number_has_no_fraction(message):
    export = message().labelled("off_cpu", "nanoseconds", 1, [(("wait", "main"), 5, None, {"otelprof.wait.duration": 0})])
    attribute = export.dictionary.attribute_table[-1]
    attribute.value.double_value = 2e9
    stack = export.dictionary.attribute_table.add(key_strindex=export.string("otelprof.lock.holder.stack"))
    for name in ("main", "hold<[u8; 4]>"):
        stack.value.array_value.values.add(string_value=name)
    profile = export.scope.profiles[0]
    profile.samples[0].attribute_indices.append(len(export.dictionary.attribute_table) - 1)
    labels = dict(Labels(export.dictionary).of(profile.samples[0]))
    assert labels == {"otelprof.wait.duration": "2000000000", "otelprof.lock.holder.stack": "main;hold<[u8, 4]>"}
