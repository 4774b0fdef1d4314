"""Hostile files do no harm: small ones that stand for very much, and names that no program should have."""

import resource

import pytest
from captured import otelprof, succeeds
from forked_command import run_commands
from otelprof_lib.capture_file import BadFile, append_message
from otelprof_lib.shown_data import Shown
from otelprof_lib import live as live_module
from otelprof_lib.aggregate import aggregate

PERIOD = 10_000_000
LONG = 1 << 20  # letters
MEMORY = 1 << 30  # bytes of address space beyond the command's own, which must suffice for a file of a megabyte
REFERENCES = 2000


def write(path, *exports):
    with open(path, "wb") as file:
        for export in exports:
            append_message(file, export.bytes())


def with_little_memory(*arguments, cwd):
    """Runs the command; it must succeed, or refuse in one line."""
    (done,) = run_commands([arguments], cwd, {resource.RLIMIT_AS: MEMORY})
    done.stderr = done.stderr.decode()
    assert done.returncode == 0 or (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    return done


def sample(export, locations, count=1, attributes=()):
    export.dictionary.stack_table.add(location_indices=locations)
    export.profile("samples", "count", PERIOD, {})
    for number in range(count):
        own = [attributes[number]] if attributes else []
        export.scope.profiles[-1].samples.add(stack_index=len(export.dictionary.stack_table) - 1, values=[1], attribute_indices=own)
    return export


def one_long_name(message, modules):
    """Makes locations that all refer to one function."""
    export = message()
    name = export.string("N" * LONG)
    export.dictionary.function_table.add(name_strindex=name, filename_strindex=name)
    for number in range(REFERENCES):
        mapping = export.mapping(f"module {number}") if modules else 0
        export.dictionary.location_table.add(address=1, mapping_index=mapping).lines.add(function_index=1, line=1 + number)
    return sample(export, range(1, REFERENCES + 1))


def inlined(message, count):
    """Makes one location with very many inlined calls, very often in a stack."""
    export = message()
    export.location("f")
    location = export.dictionary.location_table.add(address=1)
    for _ in range(count):
        location.lines.add(function_index=1, line=1)
    return sample(export, [2] * count)


def referring(message, is_array):
    """Makes labels that all refer to one long text."""
    export = message()
    text = export.string("V" * LONG)
    attributes = []
    for number in range(REFERENCES):
        attribute = export.dictionary.attribute_table.add(key_strindex=export.string(f"key {number % 10}"))
        value = attribute.value.array_value.values.add() if is_array else attribute.value
        value.string_value_strindex = text
        attributes.append(len(export.dictionary.attribute_table) - 1)
    return sample(export, [export.location("f")], REFERENCES, attributes)


def of_resource(message):
    """Makes attributes of the resource as the Collector has them."""
    export = sample(message(), [1])
    text = export.string("R" * LONG)
    for _ in range(REFERENCES):
        export.request.resource_profiles[0].resource.attributes.add(key="a").value.string_value_strindex = text
    return export


def test_one_long_name_costs_its_length_once(message, tmp_path):
    write(tmp_path / "a", one_long_name(message, modules=False))
    assert with_little_memory("top", "a", cwd=tmp_path).returncode == 0
    assert with_little_memory("flamegraph", "a", "-o", "a.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.html").stat().st_size < LONG


@pytest.mark.parametrize("export, words", [
    (lambda message: one_long_name(message, modules=True), "million letters"),
    (lambda message: inlined(message, 20_000), "inlined calls"),
    (lambda message: referring(message, is_array=False), "million letters"),
    (lambda message: referring(message, is_array=True), "million letters"),
    (of_resource, "million letters"),
], ids=["names", "inlined", "labels", "lists", "resource"])
@pytest.mark.parametrize("command", [("top", "a"), ("flamegraph", "a", "-o", "a.html"), ("view", "--no-open", "a")], ids=lambda command: command[0])
def test_a_small_file_that_stands_for_very_much_is_refused(message, tmp_path, export, words, command):
    write(tmp_path / "a", export(message))
    done = with_little_memory(*command, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr


def test_samples_with_one_long_label_are_more_than_a_page_can_show(message, tmp_path):
    export = message()
    long = export.attribute("long", "V" * LONG)
    sample(export, [export.location("f")], REFERENCES, [export.attribute("number", str(number)) for number in range(REFERENCES)])
    for it in export.scope.profiles[-1].samples:
        it.attribute_indices.append(long)
    write(tmp_path / "a", export)
    assert "more than a page can show" in with_little_memory("view", "--no-open", "a", cwd=tmp_path).stderr
    assert with_little_memory("top", "a", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("command", [
    ("top", "a"), ("threads", "a"), ("locks", "a"), ("diff", "a", "a"), ("merge", "a", "-o", "out"), ("pprof", "a", "-o", "out"),
    ("export", "a", "--format", "collapsed"), ("export", "a", "--format", "otlp-json"), ("flamegraph", "a", "-o", "out"),
], ids=" ".join)
def test_a_location_of_very_many_lines_is_refused_by_each_command(message, tmp_path, command):
    write(tmp_path / "a", inlined(message, 20_000))
    done = with_little_memory(*command, cwd=tmp_path)
    assert done.returncode == 2 and "more than 16384 inlined calls" in done.stderr


def test_code_that_is_inlined_often_is_none_to_refuse(message, tmp_path):
    write(tmp_path / "a", inlined(message, 200))
    succeeds("flamegraph", "a", "-o", "a.html", cwd=tmp_path)


def test_lines_of_a_file_that_points_outside_its_tables(message):
    export = message()
    sample(export, [1, 2, 99])
    for index in (99, -1):
        export.dictionary.location_table.add(mapping_index=index).lines.add(function_index=index, line=1)
    export.profile("other", "count", 1, {})
    export.scope.profiles[-1].sample_type.type_strindex = 999
    shown = Shown("", aggregate([export.request]), export.request)
    assert shown.lines({"kind": "cpu", "function": "0"}) == {"files": []}


def test_a_warning_of_protobuf_is_an_error_in_one_line(message, tmp_path):
    write(tmp_path / "a", sample(message(), [1]))
    with open(tmp_path / "a", "ab") as file:
        append_message(file, b"\x0c")  # the end of a group that has not begun
    done = otelprof("top", "a", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "after the first 1" in done.stderr


@pytest.mark.parametrize("content", [bytes(4 << 20), b"\0\0\0\2\x0a\0" * (1 << 17), b"{}\n" * (1 << 17)], ids=["zeros", "empty", "lines"])
def test_a_file_of_very_many_messages_with_nothing_in_them_is_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    told = with_little_memory("top", "a", cwd=tmp_path).stderr
    assert told.startswith("otelprof: a holds no profiles") and "messages of less than" in told


def test_a_process_that_sends_without_end_is_followed_no_more(message, monkeypatch):
    """The page keeps what it has shown."""
    monkeypatch.setattr(live_module, "MOST_HELD", 1000)
    live = live_module.Live("")
    for number in range(1000):
        live.add(message().profile("samples", "count", PERIOD, {(f"f{number}",): 1}).request)
        if live.state()["has_ended"]:
            break
    held = live._sums.size()
    live.add(message().profile("samples", "count", PERIOD, {("late",): 1}).request)
    assert "more than a page can show" in live.state()["text"] and live._sums.size() == held < 2000


def test_a_process_is_refused_once(message, monkeypatch, capsys):
    """A page that asks afterwards has the sums made that were too many; they may not be shown for another reason."""
    monkeypatch.setattr(live_module, "MOST_HELD", 1)
    refusals = []
    live = live_module.Live("program", lambda: refusals.append(1))

    def cannot_be_shown():
        raise BadFile("another reason")

    monkeypatch.setattr(live, "_made_anew", cannot_be_shown)
    live.add(message().profile("samples", "count", PERIOD, {("f",): 1}).request)
    assert "more than a page can show" in live.state()["text"] and refusals == [1]
    assert capsys.readouterr().err.count("followed no more") == 1
