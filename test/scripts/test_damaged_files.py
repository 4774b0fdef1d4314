"""Files that no profiler wrote, to each command that reads one: it answers, or refuses the file in one line, within bounds."""

import functools
import re
import resource
import struct

import pytest
from conftest import as_json, cpu
from forked_command import run_commands
from otelprof_lib.capture_file import MOST_INLINED, append_message, decoded
from otelprof_lib.message_count import FEW
from otelprof_lib.receiver import Refused, check_body
from waiting import TIMEOUT_S

MOST = (1 << 63) - 1
MANY = FEW + FEW // 8  # repeats of a message that is too short to be there so often
MEMORY = 1 << 30  # bytes of address space beyond what the child has: the files are of a megabyte at most
UNDECODED = 1 << 25  # bytes of the same, for a file of 2 MiB that is refused unread
CPU_SECONDS = int(TIMEOUT_S)  # which only an endless loop needs
REFUSED = 2
COMMANDS = {
    "top": ("top", "FILE"),
    "locks": ("locks", "FILE"),
    "threads": ("threads", "FILE"),
    "flamegraph": ("flamegraph", "FILE", "-o", "out"),
    "view": ("view", "--no-open", "FILE"),
    "diff": ("diff", "FILE", "FILE"),
    "diff_page": ("diff", "good", "FILE", "-o", "out"),
    "merge": ("merge", "good", "FILE", "-o", "out"),
    "pprof": ("pprof", "FILE", "-o", "out"),
    **{f"export_{form}": ("export", "FILE", "--format", form, "-o", "out") for form in ("speedscope", "firefox", "collapsed", "otlp-json")},
}


# --- the files ---


def changed(message, change):
    """An export, with one thing of it changed."""
    export = cpu(message).labelled("off_cpu_count", "count", 1, [(("wait", "main"), 1, ("11" * 8, "22" * 16), {"thread.name": "a", "list": ["b"]})])
    change(export.dictionary, export.scope.profiles[0], export)
    return export.request


def of_indices(index):
    def change(dictionary, profile, export):
        dictionary.location_table.add(mapping_index=index, attribute_indices=[index]).lines.add(function_index=index, line=index)
        dictionary.function_table.add(name_strindex=index, filename_strindex=index, system_name_strindex=index)
        dictionary.mapping_table.add(filename_strindex=index, attribute_indices=[index])
        dictionary.attribute_table.add(key_strindex=index, unit_strindex=index).value.string_value_strindex = index
        last = len(dictionary.location_table) - 1
        dictionary.stack_table.add(location_indices=[index, last, -index])
        profile.samples.add(stack_index=len(dictionary.stack_table) - 1, values=[1], link_index=index, attribute_indices=[index])
        profile.samples.add(stack_index=index, values=[1])
        profile.period_type.type_strindex = index
        export.request.resource_profiles[0].resource.attributes.add(key_strindex=index).value.string_value_strindex = index
    return change


def of_values(*values):
    def change(_dictionary, profile, _export):
        profile.samples[0].values[:] = values
    return change


def of_profile(**fields):
    def change(_dictionary, profile, _export):
        for name, value in fields.items():
            setattr(profile, name, value)
    return change


def of_lines(count):
    def change(dictionary, _profile, _export):
        for _ in range(count):
            dictionary.location_table[1].lines.add(function_index=1)
    return change


def of_numbers(dictionary, profile, _export):
    dictionary.mapping_table.add(memory_start=(1 << 64) - 1, memory_limit=0, file_offset=(1 << 64) - 1)
    location = dictionary.location_table.add(address=(1 << 64) - 1, mapping_index=len(dictionary.mapping_table) - 1)
    location.lines.add(function_index=1, line=MOST, column=-MOST)
    dictionary.function_table[1].start_line = -MOST
    dictionary.stack_table.add(location_indices=[len(dictionary.location_table) - 1])
    profile.samples.add(stack_index=len(dictionary.stack_table) - 1, values=[MOST], timestamps_unix_nano=[(1 << 64) - 1])


def of_circles(dictionary, _profile, _export):
    """A stack through one place very often, and a list in a list in a list."""
    dictionary.stack_table[1].location_indices[:] = [1, 2] * 100_000
    value = dictionary.attribute_table[-1].value
    for _ in range(60):
        value = value.array_value.values.add()
    value.string_value = "innermost"


def key(number, kind):
    return bytes([number << 3 | kind])


def inside(number, data):
    size, parts = len(data), []
    while True:
        parts.append(size & 0x7F | (0x80 if size >= 0x80 else 0))
        size >>= 7
        if not size:
            return key(number, 2) + bytes(parts) + data


@functools.cache
def damaged(message):
    """{name: bytes of a file}; those behind a length have it right."""
    good = cpu(message).bytes()
    dictionary = cpu(message).dictionary.SerializeToString()
    requests = {
        "most": changed(message, of_values(MOST)),
        "negative": changed(message, of_values(-MOST - 1)),
        "both": changed(message, of_values(MOST, -MOST, MOST)),
        "no_values": changed(message, of_values()),
        "indices": changed(message, of_indices((1 << 31) - 1)),
        "negative_indices": changed(message, of_indices(-1)),
        "negative_period": changed(message, of_profile(period=-1)),
        "longest_period": changed(message, of_profile(period=MOST)),
        "latest": changed(message, of_profile(time_unix_nano=(1 << 64) - 1)),
        "longest": changed(message, of_profile(duration_nano=(1 << 64) - 1)),
        "lines": changed(message, of_lines(MOST_INLINED + 1)),
        "numbers": changed(message, of_numbers),
        "circles": changed(message, of_circles),
    }
    deep = b""
    for _ in range(5000):
        deep = inside(5, inside(1, deep))
    messages = {name: request.SerializeToString() for name, request in requests.items()} | {
        "empty": b"",
        "wrong_types": key(1, 0) + b"\1" + key(2, 5) + bytes(4),
        "wrong_tables": inside(2, b"".join(key(number, 0) + b"\1" for number in range(1, 8))),
        "groups": key(1, 3) + inside(1, b"\xff") + key(1, 4) + good,
        "end_of_group": good + key(1, 4),
        "no_utf8": inside(2, inside(5, b"\xff\xfe\x80")),
        "giant_length": key(2, 2) + b"\xff\xff\xff\xff\x0f",
        "endless_length": key(2, 2) + b"\xff" * 12,
        "deep": inside(2, inside(6, inside(2, deep))),
        "empty_tables": inside(2, b"".join(inside(number, b"") * (MANY // 6 + 1) for number in (1, 2, 3, 4, 6, 7))),
        "empty_processes": inside(1, b"") * MANY,
        "empty_samples": inside(1, inside(2, inside(2, inside(2, b"") * MANY))),
        "empty_lines": inside(2, inside(2, inside(3, b"") * 15_000) * (MANY // 15_000 + 1)),
        "unknown_fields": (key(15, 0) + b"\1") * MANY,
        "empties_cut_short": inside(2, inside(1, b"") * MANY)[:-1],
        **{f"cut_at_{at}": good[:at] for at in (1, 2, 3, len(dictionary), len(good) - len(dictionary), len(good) - 1)},
    }
    files = {name: struct.pack(">I", len(data)) + data for name, data in messages.items()} | {f"bare_{name}": data for name, data in messages.items()}
    text = as_json(cpu(message)).encode()
    return files | {
        "length_alone": b"\0\0\1\0",
        "longest_message": b"\xff\xff\xff\xff" + good,
        "gzip": b"\x1f\x8b\x08" + bytes(9),
        "zstd": b"\x28\xb5\x2f\xfd" + bytes(9),
        "zeros": bytes(1 << 20),
        "text": b"no profiles at all\n",
        "json_cut_short": text[: len(text) // 2],
        "json_list": b'{"resourceProfiles":{"resource":[]}}\n',
        "json_number": b'{"resourceProfiles":3}\n',
        "json_text": b'{"dictionary":{"stringTable":[{}]}}\n',
        "json_numbers": text.replace(b'"values":', b'"values":["1e400",' + b"9" * 400 + b"],"b'"x":'),
        "json_nan": b'{"dictionary":{"locationTable":[{"address":NaN}]}}\n',
        "json_id": b'{"dictionary":{"linkTable":[{"traceId":"xyz"}]}}\n',
        "json_deep": b'{"a":' * 100_000,
        "json_empty": b'{"resourceProfiles":[' + b"{}," * MANY + b"{}]}\n",
        "json_surrogate": b'{"dictionary":{"stringTable":["\\ud800"]}}\n',
        "json_no_utf8": b'{"dictionary":{"stringTable":["\xff"]}}\n',
    }


# --- the commands ---


def answers_of(folder, commands, memory=MEMORY):
    """[(status, or -signal; what it said)] of the commands; the last may have ended early."""
    limits = {resource.RLIMIT_CPU: CPU_SECONDS, resource.RLIMIT_AS: memory}
    return [(done.returncode, done.stderr.decode(errors="replace")) for done in run_commands(commands, folder, limits)]


def fault_of(status, said, name):
    """What is wrong with an answer; "" where nothing is."""
    if status not in (0, REFUSED) or "Traceback" in said:
        return f"{name}: status {status}: {said[-600:]}"
    if status == REFUSED and (not re.fullmatch(r"otelprof: .*\n", said) or name not in said):
        return f"{name}: not one line that names the file: {said[-600:]}"
    return ""


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_answers_or_refuses_a_damaged_file_in_one_line(message, tmp_path, command):
    with open(tmp_path / "good", "wb") as file:
        append_message(file, cpu(message).bytes())
    files = damaged(message)
    for name, content in files.items():
        (tmp_path / f"{name}.file").write_bytes(content)
    commands = [[f"{name}.file" if word == "FILE" else word for word in COMMANDS[command]] for name in files]
    answers = answers_of(tmp_path, commands)
    faults = [fault_of(*answer, f"{name}.file") for name, answer in zip(files, answers)]
    assert not any(faults), "\n".join(filter(None, faults))
    assert len(answers) == len(files)


EMPTY = {
    "processes": lambda many: inside(1, b"") * many,
    "dictionaries": lambda many: inside(2, b"") * many,
    "locations": lambda many: inside(2, inside(2, b"") * many),
    "names": lambda many: inside(2, inside(5, b"") * many),
    "samples": lambda many: inside(1, inside(2, inside(2, inside(2, b"") * many))),
    "cut_short": lambda many: inside(2, inside(2, b"") * many)[:-1],
    "unknown": lambda many: (key(15, 0) + b"\1") * many,
    "groups": lambda many: (key(1, 3) + key(1, 4)) * many,
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_file_that_repeats_an_empty_message_is_refused_before_it_is_decoded(tmp_path, name):
    """32 MiB of them took 1.9 GB: these 2 MiB would take more than the bound."""
    (tmp_path / "file").write_bytes(EMPTY[name](1 << 20))
    ((status, said),) = answers_of(tmp_path, [["top", "file"]], memory=UNDECODED)
    assert status == REFUSED and re.fullmatch("otelprof: file holds no profiles: it (has a message for each|has groups|is cut short).*\n", said), said


def test_what_the_receiver_takes_every_reader_takes(message):
    """One message that a reader refuses would take the whole file from its user."""
    headers = {"Content-Type": "application/x-protobuf"}
    assert check_body(cpu(message).bytes(), headers)
    for data in (EMPTY["processes"](2 * FEW), changed(message, of_lines(MOST_INLINED + 1)).SerializeToString(),
                 changed(message, of_profile(period=-1)).SerializeToString()):
        with pytest.raises(Refused) as refused:
            check_body(data, headers)
        assert refused.value.status == 400


def test_very_many_short_samples_are_none_to_refuse(message):
    export = cpu(message)
    sample = type(export.scope.profiles[0].samples[0])(stack_index=1, values=[1]).SerializeToString()
    export.scope.profiles[0].MergeFromString(inside(2, sample) * (2 * FEW))
    assert len(decoded(export.bytes()).resource_profiles[0].scope_profiles[0].profiles[0].samples) == 2 * FEW + 1
