"""Reads and writes files of profiles.

The command writes messages, each behind its length as 4 bytes, big-endian (as the Collector's file exporter does with
`format: proto`, and libotelprof with OTEL_PROFILER_FILE_FORMAT=protobuf). It reads such files, a single bare message,
and JSON lines (of libotelprof or the Collector).
"""

import base64
import io
import json
import struct
import warnings

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from .foreign import say
from .message_count import check_json, check_messages
from .places import load_messages
from .progress import Progress

LENGTH = struct.Struct(">I")
# tags of ProfilesData's two fields: a bare message begins with one of them
FIRST_BYTES = (0x0A, 0x12)
GZIP = b"\x1f\x8b"
IDS = ("profileId", "traceId", "spanId")
LOOK = 1 << 12  # white space before JSON is shorter
MAX_ALONE = 1 << 28  # bytes of a file that is one message
FEW_MESSAGES = 1 << 12  # this many do no harm, however small they are
LEAST_BYTES = 64  # bytes of a message, on average: the smallest export of one sample has more
MOST_LETTERS = 1 << 27  # letters that attributes refer to: a small file can refer to one long string very often
MOST_INLINED = 1 << 14  # calls at one address: each stack with the address has all of them
MOST_NANOSECONDS = (1 << 63) - 1  # since 1970: what other formats can hold
# exceptions that decoding raises for other content
BROKEN = (DecodeError, json_format.ParseError, ValueError, TypeError, IndexError, RecursionError)


def entry_at(table, index):
    """Returns an entry of a dictionary's table; None where a broken message points outside."""
    return table[index] if 0 <= index < len(table) else None


class BadFile(Exception):
    """Is raised for a file that is none of profiles; the message gives the reason."""


class BadSum(BadFile):
    """What a file says cannot be summed up or shown; the message says why, and not of which file."""


def check_count(count, size):
    """Refuses a file that is long only because it has very many empty messages. Raises one of BROKEN."""
    if count > FEW_MESSAGES and size < count * LEAST_BYTES:
        raise ValueError(f"it has more than {FEW_MESSAGES} messages of less than {LEAST_BYTES} bytes on average: no profiler wrote it")


def append_message(file, data):
    file.write(LENGTH.pack(len(data)) + data)
    file.flush()


def _are_lengths(file, size):
    """Returns whether the lengths in a file add up: it is a row of messages, and none is cut short."""
    at = count = 0
    while at < size:
        count += 1
        check_count(count, at + LEAST_BYTES)
        file.seek(at)
        head = file.read(LENGTH.size)
        if len(head) < LENGTH.size:
            return False
        at += LENGTH.size + LENGTH.unpack(head)[0]
    return at == size


def _decode(data):
    check_messages(data)
    message = load_messages()[0].ProfilesData()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        message.ParseFromString(data)
    if said:  # one of protobuf's implementations only warns of what it does not understand
        raise ValueError(str(said[0].message))
    return _inline_strings(message)


def _with_ids(value, convert):
    """Converts ids: OTLP's JSON has them in hex where protobuf's JSON has base64."""
    if isinstance(value, list):
        return [_with_ids(item, convert) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: convert(item) if key in IDS else _with_ids(item, convert) for key, item in value.items()}


def _referred(value, lengths):
    """Returns how many letters a value refers to."""
    kind = value.WhichOneof("value")
    if kind == "string_value_strindex":
        return entry_at(lengths, value.string_value_strindex) or 0
    if kind == "array_value":
        return sum(_referred(part, lengths) for part in value.array_value.values)
    return 0


def _check_references(message, strings):
    lengths = list(map(len, strings))
    letters = sum(_referred(attribute.value, lengths) for attribute in message.dictionary.attribute_table)
    for resource_profiles in message.resource_profiles:
        for attribute in resource_profiles.resource.attributes:
            letters += _referred(attribute.value, lengths)
            letters += lengths[attribute.key_strindex] if 0 < attribute.key_strindex < len(lengths) else 0
    if letters > MOST_LETTERS:
        raise ValueError(f"its attributes have more than {MOST_LETTERS >> 20} million letters")


def _inline_strings(message):
    """Puts the resource's strings back, which the Collector moves into the dictionary."""
    strings = list(message.dictionary.string_table)  # each is made once
    _check_references(message, strings)
    for resource_profiles in message.resource_profiles:
        for attribute in resource_profiles.resource.attributes:
            if attribute.key_strindex:
                attribute.key = strings[attribute.key_strindex]
                attribute.key_strindex = 0
            if attribute.value.WhichOneof("value") == "string_value_strindex":
                attribute.value.string_value = strings[attribute.value.string_value_strindex]
    return message


def decode_json(line):
    """Decodes one message in OTLP's JSON, as ProfilesData. Raises one of BROKEN."""
    check_json(line)
    message = load_messages()[0].ProfilesData()
    tree = _with_ids(json.loads(line), lambda text: base64.b64encode(bytes.fromhex(text)).decode())
    json_format.ParseDict(tree, message, ignore_unknown_fields=True)
    return _inline_strings(message)


def encode_json(message):
    """Encodes ProfilesData as a line of OTLP's JSON."""
    tree = _with_ids(json_format.MessageToDict(message), lambda text: base64.b64decode(text).hex())
    return json.dumps(tree, separators=(",", ":"))


def _is_json_alone(text):
    """Returns whether a text is JSON; the decoder recognises JSON of something else."""
    check_json(text)
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


def _of_lines(path, file):
    """Yields the lines that can be read; a process that was killed may have left half of one."""
    count = 0
    broken = []
    size = 0
    for number, line in enumerate(file, 1):
        try:
            if line.strip():
                size += len(line)
                check_count(count, size)
                yield decode_json(line)
                count += 1
        except json.JSONDecodeError as error:
            broken.append(number)
            last = error
    if broken and not count:
        raise last
    if broken:
        numbers = ", ".join(map(str, broken))
        say(f"{path}: line {numbers} is broken and left out")


def _of_json(path, file, size):
    """Reads a single message, maybe over several lines, or one on each line."""
    first = file.readline()
    while first and not first.strip():
        first = file.readline()
    file.seek(0)
    if not _is_json_alone(first) and size <= MAX_ALONE:
        text = file.read()
        file.seek(0)
        if _is_json_alone(text):
            yield decode_json(text)
            return
    yield from _of_lines(path, file)


def _of_protobuf(path, file, size):
    if _are_lengths(file, size):
        file.seek(0)
        while head := file.read(LENGTH.size):
            yield _decode(file.read(LENGTH.unpack(head)[0]))
        return
    file.seek(0)
    if file.read(len(GZIP)) == GZIP:
        raise BadFile(f"{path} is compressed: unpack it with gunzip first")
    file.seek(0)
    if file.read(1)[0] not in FIRST_BYTES or size > MAX_ALONE:
        raise BadFile(f"{path} holds no profiles: it is cut short, or something else")
    file.seek(0)
    yield _decode(file.read())


def _seekable(file):
    """Returns the file, or all that comes out of a pipe."""
    return file if file.seekable() else io.BytesIO(file.read())


def _check_figures(message):
    """Refuses figures that no profiler writes, and that no result can be computed from."""
    if any(len(location.lines) > MOST_INLINED for location in message.dictionary.location_table):
        raise ValueError(f"a location has more than {MOST_INLINED} inlined calls")
    for resource_profiles in message.resource_profiles:
        for scope in resource_profiles.scope_profiles:
            for profile in scope.profiles:
                if profile.period < 0:
                    raise ValueError("the period of a profile is negative")
                if profile.time_unix_nano + profile.duration_nano > MOST_NANOSECONDS:
                    raise ValueError("the time of a profile is past the year 2262")


def decoded(data, decode=_decode):
    """Returns one message as ProfilesData, valid for computing. Raises one of BROKEN."""
    message = decode(data)
    _check_figures(message)
    return message


def each_message(path):
    """Yields one message of a file after the other, as ProfilesData: no more than one is in memory. A terminal shows
    how far a long reading has come."""
    count = 0
    with open(path, "rb") as opened:
        file = _seekable(opened)
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if not size:
            raise BadFile(f"{path} is empty")
        is_json = file.read(LOOK).lstrip()[:1] == b"{"
        file.seek(0)
        try:
            with Progress(path, size) as progress:
                for message in (_of_json if is_json else _of_protobuf)(path, file, size):
                    _check_figures(message)
                    count += 1
                    yield message
                    progress.at(file.tell)
        except BROKEN as error:
            raise BadFile(f"{path} holds no profiles{f' after the first {count}' if count else ''}: {error}") from error


def read_messages(path):
    """Returns all messages of a file at once."""
    return list(each_message(path))
