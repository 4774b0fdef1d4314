"""The validator finds each fault that it exists for: each rule is broken once."""

import copy
import subprocess

import pytest
from conftest import BUILD
from otelprof_lib.capture_file import read_messages
from validator import problems


def has_cpu_time(message):
    kinds = {profile.sample_type.type_strindex for profile in scope(message).profiles}
    return "samples" in {message.dictionary.string_table[kind] for kind in kinds} and len(kinds) > 1


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Returns a message as the shim sends it: the largest of those with CPU time, which comes first."""
    from conftest import ROOT

    folder = tmp_path_factory.mktemp("real")
    subprocess.run(
        [ROOT / "scripts" / "otelprof", "run", "--quiet", "-o", "a.otlp", "--alloc-interval", "1",
         "--", BUILD / "test" / "programs" / "cpu_shares", "1", "1"],
        cwd=folder, check=True, capture_output=True,
    )
    messages = [message for message in read_messages(folder / "a.otlp") if has_cpu_time(message)]
    return max(messages, key=lambda message: message.ByteSize())


def test_the_real_message_is_valid(real):
    assert problems(real) == []


def scope(message):
    return message.resource_profiles[0].scope_profiles[0]


def first(message):
    return scope(message).profiles[0]


def break_zero_value(m):
    m.dictionary.string_table[0] = "x"


def break_empty_table(m):
    del m.dictionary.link_table[:]


def break_duplicate(m):
    m.dictionary.string_table.append(m.dictionary.string_table[1])


def break_orphan(m):
    m.dictionary.string_table.append("nobody refers to this")


def break_range(m):
    first(m).samples[0].stack_index = 100000


def break_attribute_twice(m):
    sample = first(m).samples[0]
    sample.attribute_indices.append(sample.attribute_indices[0])


def break_attributes_of_the_kind(m):
    m.dictionary.string_table.append("otelprof.heap.age")
    attribute = m.dictionary.attribute_table.add(key_strindex=len(m.dictionary.string_table) - 1)
    attribute.value.string_value = "<10s"
    first(m).samples[0].attribute_indices.append(len(m.dictionary.attribute_table) - 1)


def break_key_reference(m):
    m.resource_profiles[0].resource.attributes[0].key_strindex = 1


def break_mapping_range(m):
    m.dictionary.location_table[1].address = 1 << 60


def break_build_id(m):
    del m.dictionary.mapping_table[1].attribute_indices[:]


def break_file_name(m):
    mapping = m.dictionary.mapping_table[1]
    m.dictionary.string_table[mapping.filename_strindex] = "/a/b"


def break_frame_type(m):
    del m.dictionary.location_table[1].attribute_indices[:]


def break_frame_type_s_word(m):
    m.dictionary.string_table[m.dictionary.attribute_table[m.dictionary.location_table[1].attribute_indices[0]].value.string_value_strindex] = "snake"


def break_function_name(m):
    function = m.dictionary.function_table[1]
    function.name_strindex = function.system_name_strindex = function.filename_strindex = 0


def break_identity(m):
    first(m).samples.add().CopyFrom(first(m).samples[0])


def break_values(m):
    first(m).samples[0].values[0] = 0


def break_timestamps(m):
    first(m).samples[0].timestamps_unix_nano.append(1)


def break_period(m):
    first(m).period = 0


def break_period_type(m):
    first(m).period_type.type_strindex = first(m).sample_type.type_strindex


def break_profile_id(m):
    first(m).profile_id = b""


def break_same_ids(m):
    scope(m).profiles[1].profile_id = first(m).profile_id


def break_order(m):
    cpu = copy.deepcopy(first(m))
    first(m).CopyFrom(scope(m).profiles[1])
    scope(m).profiles[1].CopyFrom(cpu)


def break_time(m):
    first(m).time_unix_nano = 0


def break_duration(m):
    first(m).duration_nano = 0


def break_resource(m):
    m.resource_profiles[0].resource.attributes[0].key = "service.instance.uid"


def break_scope(m):
    scope(m).scope.name = ""


def break_resource_schema(m):
    m.resource_profiles[0].schema_url = ""


def break_scope_schema(m):
    scope(m).schema_url = ""


def break_stack(m):
    del m.dictionary.stack_table[first(m).samples[0].stack_index].location_indices[:]


def break_own_frames(m):
    mapping = m.dictionary.mapping_table[1]
    m.dictionary.string_table[mapping.filename_strindex] = "libotelprof.so"


def break_link(m):
    m.dictionary.link_table.add(trace_id=b"x")


@pytest.mark.parametrize("damage", [f for n, f in sorted(globals().items()) if n.startswith("break_")])
def test_each_rule(real, damage):
    broken = copy.deepcopy(real)
    damage(broken)
    assert problems(broken) != []


# --- waits ---

LOCK = {"otelprof.wait.kind": "lock", "otelprof.lock.address": "0x7f00beef", "otelprof.lock.name": "cache+0x18"}
HELD = {**LOCK, "otelprof.lock.holder.thread.id": 7, "otelprof.lock.holder.thread.name": "holder",
        "otelprof.lock.holder.stack": ["main", "work"]}


def waiting(real, kind, unit, attributes, samples=1):
    """Returns the message with a profile of waits in place of its second; its first samples have these attributes."""
    message = copy.deepcopy(real)
    strings = message.dictionary.string_table
    profile = scope(message).profiles[1]
    strings[profile.sample_type.type_strindex] = kind
    profile.period_type.type_strindex = profile.sample_type.type_strindex
    profile.sample_type.unit_strindex = profile.period_type.unit_strindex = list(strings).index(unit)
    profile.duration_nano *= kind != "threads"
    for key, value in attributes.items():
        strings.append(key)
        attribute = message.dictionary.attribute_table.add(key_strindex=len(strings) - 1)
        if isinstance(value, list):
            for part in value:
                attribute.value.array_value.values.add(string_value=part)
            if not value:
                attribute.value.array_value.SetInParent()
        else:
            kinds = {str: "string_value", int: "int_value", bool: "bool_value", float: "double_value"}
            setattr(attribute.value, kinds[type(value)], value)
        for sample in profile.samples[:samples]:
            sample.attribute_indices.append(len(message.dictionary.attribute_table) - 1)
    return message


@pytest.mark.parametrize("attributes", [
    {}, {"otelprof.wait.kind": "sleep", "otelprof.idle": True}, LOCK, HELD,
    {**LOCK, "otelprof.lock.holder.thread.id": 7}])
def test_waits_are_valid(real, attributes):
    assert problems(waiting(real, "off_cpu", "nanoseconds", attributes)) == []


@pytest.mark.parametrize("attributes", [
    {"otelprof.wait.kind": "hours"}, {"otelprof.idle": False}, {"otelprof.lock.address": "7f00"},
    {"otelprof.lock.address": "0x0"}, {"otelprof.lock.name": "cache"}, {**LOCK, "otelprof.lock.name": ""}, {**HELD, "otelprof.lock.holder.thread.id": 0},
    {**HELD, "otelprof.lock.holder.stack": []}, {**HELD, "otelprof.lock.holder.stack": ["main", ""]},
    {**HELD, "otelprof.lock.holder.stack": "main;work"}, {**LOCK, "otelprof.lock.holder.thread.name": "holder"},
    {"otelprof.wait.kind": "cond", "otelprof.lock.holder.thread.id": 7}, {"otelprof.thread.state": "blocked"},
    {"otelprof.wait.duration": 1.5}])
def test_each_rule_of_waits(real, attributes):
    assert problems(waiting(real, "off_cpu", "nanoseconds", attributes)) != []


def one_thread_each(message):
    """Keeps the first sample of each thread."""
    names = message.dictionary.string_table
    key = list(names).index("thread.id")
    profile = scope(message).profiles[1]
    seen = set()
    for sample in list(profile.samples):
        thread = next(i for i in sample.attribute_indices if message.dictionary.attribute_table[i].key_strindex == key)
        if thread in seen:
            profile.samples.remove(sample)
        seen.add(thread)
    return message


@pytest.mark.parametrize("attributes, valid", [
    ({"otelprof.thread.state": "blocked", "otelprof.wait.duration": 2e9, **HELD}, True),
    ({"otelprof.thread.state": "running"}, True),
    ({"otelprof.thread.state": "running", **LOCK}, False), ({"otelprof.thread.state": "tired"}, False),
    ({"otelprof.wait.duration": 2}, False), ({"otelprof.wait.duration": -2.0}, False)])
def test_each_rule_of_threads(real, attributes, valid):
    message = one_thread_each(waiting(real, "threads", "count", attributes))
    # entries that only the removed samples referred to
    found = [problem for problem in problems(message) if "is an orphan" not in problem]
    assert (found == []) == valid, found


def test_a_thread_is_there_once(real):
    message = one_thread_each(waiting(real, "threads", "count", {}))
    sample = scope(message).profiles[1].samples.add()
    sample.CopyFrom(scope(message).profiles[1].samples[0])
    sample.stack_index = next(i for i in range(1, 100) if i != sample.stack_index)
    assert any("2 times" in problem for problem in problems(message))
