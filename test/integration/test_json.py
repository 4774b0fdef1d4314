"""OpenTelemetry's own decoder reads our JSON as the message that we write as protobuf."""

import json
import os
import random
import struct
import subprocess

import pytest
from google.protobuf.descriptor import FieldDescriptor

import profiles_service_pb2
from otelprof_lib.capture_file import decode_json
from profiled import BUILD

pytestmark = pytest.mark.system

PDATA = BUILD / "collector" / "pdata"
TRANSCODE = BUILD / "test" / "unit" / "test_json"

LIMITS = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_FIXED64: (0, 2**64 - 1),
}
ID_BYTES = {"trace_id": 16, "span_id": 8, "profile_id": 16}
# references into the dictionary, which upstream resolves while it decodes
REFERENCES = ("key_strindex", "string_value_strindex")


# --- messages with every field ---


class Maker:
    """Fills every field of a message at random."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self):
        alphabet = 'az"\\/<>&\b\f\n\r\t\x00\x1f\x7fü€\u2028\ufeff\U0001f525'.replace("\x00", "")
        return "".join(self.random.choices(alphabet, k=self.random.randrange(12)))

    def number(self, low, high):
        edges = [low, high, 0, 1, 2**53 + 1 if high > 2**53 else 7]
        return self.random.choice([*edges, self.random.randint(low, high)])

    def real(self):
        # without NaN, which equals nothing
        edges = [0.1, -0.0, 1e22, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf")]
        return self.random.choice([*edges, self.random.gauss(0, 1e6), self.random.random()])

    def value(self, field):
        if field.type in LIMITS:
            return self.number(*LIMITS[field.type])
        if field.type == FieldDescriptor.TYPE_DOUBLE:
            return self.real()
        if field.type == FieldDescriptor.TYPE_BOOL:
            return self.random.random() < 0.5
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self.random.randbytes(ID_BYTES.get(field.name, self.random.randrange(9)))
        assert field.type == FieldDescriptor.TYPE_STRING
        return self.text()

    def fill(self, message, depth=0):
        fields = [f for f in message.DESCRIPTOR.fields if f.name not in REFERENCES]
        for oneof in message.DESCRIPTOR.oneofs:
            chosen = self.random.choice([f for f in oneof.fields if f in fields])
            fields = [f for f in fields if f.containing_oneof != oneof or f == chosen]
        for field in fields:
            self.fill_field(message, field, depth)
        return message

    def fill_field(self, message, field, depth):
        count = self.random.randrange(4 if depth < 8 else 1)
        is_list = field.label == FieldDescriptor.LABEL_REPEATED
        if field.message_type and is_list:
            for _ in range(count):
                self.fill(getattr(message, field.name).add(), depth + 1)
        elif field.message_type:
            child = getattr(message, field.name)
            child.SetInParent()
            if depth < 12:
                self.fill(child, depth + 1)
        elif is_list:
            getattr(message, field.name).extend(self.value(field) for _ in range(count))
        else:
            setattr(message, field.name, self.value(field))


def names_in(tree):
    if isinstance(tree, list):
        return {name for item in tree for name in names_in(item)}
    if isinstance(tree, dict):
        return set(tree) | {name for item in tree.values() for name in names_in(item)}
    return set()


def fields_of(descriptor, seen):
    for field in descriptor.fields:
        if field.name not in REFERENCES:
            yield field
        if field.message_type and field.message_type.full_name not in seen:
            seen.add(field.message_type.full_name)
            yield from fields_of(field.message_type, seen)


def transcode(message):
    done = subprocess.run(
        [TRANSCODE, "transcode"], input=message.SerializeToString(), capture_output=True, check=True
    )
    return done.stdout


def upstream(kind, data):
    """Returns the message as OpenTelemetry's decoder understands it."""
    if not PDATA.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("test/collector/pdata is not built: Go 1.26 or newer is missing")
        pytest.skip("Go 1.26 or newer is not on this machine: no decoder of OpenTelemetry")
    done = subprocess.run([PDATA, kind], input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def messages():
    return [
        Maker(seed).fill(profiles_service_pb2.ExportProfilesServiceRequest()) for seed in range(20)
    ]


def test_any_message_is_the_same_to_pythons_decoder():
    seen = set()
    for message in messages():
        text = transcode(message)
        assert b"\n" not in text
        seen |= names_in(json.loads(text))
        assert decode_json(text).SerializeToString(deterministic=True) == message.SerializeToString(
            deterministic=True
        )
    wanted = {f.json_name for f in fields_of(profiles_service_pb2.ExportProfilesServiceRequest.DESCRIPTOR, set())}
    assert seen == wanted, "every field has been there"


def test_any_message_is_the_same_to_upstreams_decoder():
    for message in messages():
        assert upstream("json", transcode(message)) == upstream("proto", message.SerializeToString())


def test_references_have_upstreams_names():
    message = profiles_service_pb2.ExportProfilesServiceRequest()
    message.dictionary.string_table.extend(["", "key", "value"])
    attribute = message.resource_profiles.add().resource.attributes.add(key_strindex=1)
    attribute.value.string_value_strindex = 2
    text = transcode(message)
    assert b'"keyStrindex":1' in text and b'"stringValueStrindex":2' in text
    assert upstream("json", text) == upstream("proto", message.SerializeToString())


# --- what a profiled program sends and writes ---


def split(data):
    """Splits a file with lengths into its messages."""
    while data:
        (size,) = struct.unpack_from(">I", data)
        yield data[4 : 4 + size]
        assert len(data) >= 4 + size
        data = data[4 + size :]


BOTH = {"OTEL_PROFILES_EXPORTER": "otlp,otlp_file", "OTEL_PROFILE_EXPORT_INTERVAL": "200"}


def assert_same(in_json, in_protobuf):
    assert len(in_json) == len(in_protobuf) >= 3
    for text, data in zip(in_json, in_protobuf):
        assert upstream("json", text) == upstream("proto", data)


def test_http_json_is_the_same_message(run, program, tmp_path):
    file = tmp_path / "a.otlp"
    outcome = run(
        [program("cpu_shares"), "2", "1"],
        env={
            **BOTH,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_PROFILER_FILE": str(file),
            "OTEL_PROFILER_FILE_FORMAT": "protobuf",
            "OTEL_RESOURCE_ATTRIBUTES": "path=C:%5Cd%C3%BCr%0A,bad=%FF,empty=",
        },
    )
    assert all(body.startswith(b'{"resourceProfiles":') for body in outcome.bodies)
    assert_same(outcome.bodies, list(split(file.read_bytes())))
    assert outcome.instance("cpu_shares").cpu_total() > 0.5e9


def test_the_jsonl_file_is_the_same_message(run, program, tmp_path):
    file = tmp_path / "a.jsonl"
    outcome = run(
        [program("cpu_shares"), "2", "1"], env={**BOTH, "OTEL_PROFILER_FILE": str(file)}
    )
    lines = file.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert_same(lines, outcome.bodies)
