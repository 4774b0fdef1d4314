"""What a message would cost to decode, told before it is decoded.

A decoder makes an object of some hundred bytes for each, however short it is: a file of 32 MiB that repeats an empty one (two
bytes) took 1.9 GB. A profiler's messages have fields. This look follows the lengths alone, by the messages' own descriptors, in
one pass; it keeps one place for each level. Text that is no UTF-8 is refused here, too, since one of protobuf's implementations
prints lines of its own about it.
"""

import functools

from .places import load_messages

FEW = 1 << 17  # they are no load, however short they are
LEAST_BYTES = 4  # of a message, on average: real files have 10 and more
LEAST_JSON_BYTES = 8  # of an object or list, on average: the shortest sample of one value has 11 for each
DEEPEST = 128  # levels: more than the decoder takes
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
NAMES = {}  # a field of text
OTHER = {}  # one of bytes
KNOWN = None  # a field that is no object of its own: a number, or several packed ones


class TooMany(ValueError):
    """No profiler wrote so many messages in so few bytes; the message says so."""


def _fields_of(descriptor, known):
    """{tag: the fields of what it holds}, or KNOWN; known: by the descriptor's name, since some hold themselves."""
    if descriptor.full_name in known:
        return known[descriptor.full_name]
    fields = known[descriptor.full_name] = {}
    for field in descriptor.fields:
        number = field.number << 3
        if field.message_type:
            fields[number | LENGTH] = _fields_of(field.message_type, known)
        elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            fields[number | LENGTH] = NAMES if field.type == field.TYPE_STRING else OTHER
        else:
            fields.update({number | kind: KNOWN for kind in (VARINT, FIXED64, LENGTH, FIXED32)})
    return fields


@functools.lru_cache(maxsize=None)
def _fields():
    return _fields_of(load_messages()[0].ProfilesData.DESCRIPTOR, {})


def _varint(data, at):
    """(value, where it ends)"""
    value = shift = 0
    while data[at] >= 0x80:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if shift > 63:
            raise IndexError
    return value | data[at] << shift, at + 1


def _count(data, most):
    """Messages, texts, and fields that the decoder does not know; no more than one over `most`. Raises IndexError where a length
    leads outside, and UnicodeDecodeError for what is no UTF-8."""
    fields, at, end = _fields(), 0, len(data)
    around = []  # the rest of each message that this one is in
    count = 0
    while count <= most:
        if at == end:
            if not around:
                break
            fields, at, end = around.pop()
            continue
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, at - 1)
        inner = fields.get(tag, fields)
        kind = tag & 7
        if inner is not KNOWN:
            count += 1
        if kind == LENGTH:
            size = data[at]
            at += 1
            if size >= 0x80:
                size, at = _varint(data, at - 1)
            if at + size > end:
                raise IndexError
            if inner and size and tag in fields:
                if len(around) >= DEEPEST:
                    raise IndexError
                around.append((fields, at + size, end))
                fields, end = inner, at + size
            else:
                if inner is NAMES:
                    data[at : at + size].decode()
                at += size
        elif kind == VARINT:
            while data[at] >= 0x80:
                at += 1
            at += 1
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        else:
            raise TooMany("it has groups of fields, which no profiler writes")
        if at > end:
            raise IndexError
    return count


def check_messages(data):
    """Raises TooMany, or another ValueError for what is broken: the decoder makes its objects before it sees that."""
    most = max(FEW, len(data) // LEAST_BYTES)
    try:
        count = _count(data, most)
    except IndexError as error:
        raise ValueError("it is cut short, or something else") from error
    if count > most:
        raise TooMany(f"it has a message for each {LEAST_BYTES} bytes, or more: no profiler wrote it")


def check_json(text):
    """The same of JSON, whose objects and lists are counted by their brackets, those in names included."""
    brackets = (b"{", b"[") if isinstance(text, bytes) else ("{", "[")
    count = sum(map(text.count, brackets))
    if count > FEW and len(text) < count * LEAST_JSON_BYTES:
        raise TooMany(f"it has an object or a list for each {LEAST_JSON_BYTES} bytes, or more: no profiler wrote it")
