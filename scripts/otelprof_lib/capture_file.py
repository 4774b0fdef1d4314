"""Files of profiles.

What we write: messages, each behind its length as 4 bytes, big-endian (what the Collector's file
exporter writes with `format: proto`, and libotelprof with OTEL_PROFILER_FILE_FORMAT=protobuf). What
we read: that, a single bare message, and JSON lines (of libotelprof or the Collector).
"""

import base64
import json
import struct
import sys

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from .places import load_messages

LENGTH = struct.Struct(">I")
# the tags of ProfilesData's two fields, one of which a bare message begins with
FIRST_BYTES = (0x0A, 0x12)
# what decoding raises for content that is something else
BROKEN = (DecodeError, json_format.ParseError, ValueError, TypeError, IndexError, RecursionError)


class BadFile(Exception):
    """Not a file of profiles; the message says why."""


def append_message(file, data):
    file.write(LENGTH.pack(len(data)) + data)
    file.flush()


def _split(data):
    """The messages of a file with lengths, or None if the lengths do not add up."""
    parts = []
    at = 0
    while at < len(data):
        if at + LENGTH.size > len(data):
            return None
        (size,) = LENGTH.unpack_from(data, at)
        at += LENGTH.size
        if at + size > len(data):
            return None
        parts.append(data[at : at + size])
        at += size
    return parts


def _decode(data):
    message = load_messages()[0].ProfilesData()
    message.ParseFromString(data)
    return _inline_strings(message)


def _hex_to_base64(value):
    """OTLP's JSON has ids in hex where protobuf's JSON has base64."""
    if isinstance(value, list):
        return [_hex_to_base64(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("profileId", "traceId", "spanId")
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else _hex_to_base64(item)
        for key, item in value.items()
    }


def _inline_strings(message):
    """The Collector moves the resource's strings into the dictionary; here they are put back."""
    strings = message.dictionary.string_table
    for resource_profiles in message.resource_profiles:
        for attribute in resource_profiles.resource.attributes:
            if attribute.key_strindex:
                attribute.key = strings[attribute.key_strindex]
                attribute.key_strindex = 0
            if attribute.value.WhichOneof("value") == "string_value_strindex":
                attribute.value.string_value = strings[attribute.value.string_value_strindex]
    return message


def decode_json(line):
    """One message in OTLP's JSON, as ProfilesData. Raises one of BROKEN."""
    message = load_messages()[0].ProfilesData()
    json_format.ParseDict(_hex_to_base64(json.loads(line)), message, ignore_unknown_fields=True)
    return _inline_strings(message)


def _decode_lines(path, data):
    """Those lines that can be read; a process that was killed may have left half of one."""
    messages = []
    broken = []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            if line.strip():
                messages.append(decode_json(line))
        except json.JSONDecodeError:
            broken.append(number)
    if broken and messages:
        numbers = ", ".join(map(str, broken))
        print(f"otelprof: {path}: line {numbers} is broken and left out", file=sys.stderr)
    return messages


def _decode_all_json(path, data):
    """A single message, maybe over several lines, or one on each line."""
    try:
        return [decode_json(data)]
    except json.JSONDecodeError:
        messages = _decode_lines(path, data)
        if not messages:
            raise
        return messages


def read_messages(path):
    """All messages of a file, as ProfilesData."""
    with open(path, "rb") as file:
        data = file.read()
    if not data:
        raise BadFile(f"{path} is empty")
    try:
        if data.lstrip()[:1] == b"{":
            return _decode_all_json(path, data)
        parts = _split(data)
        if parts is None and data[0] not in FIRST_BYTES:
            raise BadFile(f"{path} holds no profiles: it is cut short, or something else")
        return [_decode(part) for part in (parts if parts is not None else [data])]
    except BROKEN as error:
        raise BadFile(f"{path} holds no profiles: {error}") from error
