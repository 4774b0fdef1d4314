"""Writes JSON piece by piece: a table of millions of rows is never one text. json.dump() does so, too, but takes Python's slow path."""

import json
from array import array

ROWS = 1 << 14  # at once


def _text(value):
    return json.dumps(value, separators=(",", ":"))


def _write_rows(file, rows):
    file.write("[")
    for begin in range(0, len(rows), ROWS):
        some = rows[begin : begin + ROWS]
        file.write(("," if begin else "") + _text(some.tolist() if isinstance(some, array) else some)[1:-1])
    file.write("]")


def _write_parts(file, marks, parts):
    """Parts are (what stands before it, value)."""
    file.write(marks[0])
    for place, (before, part) in enumerate(parts):
        file.write(("," if place else "") + before)
        write_json(file, part)
    file.write(marks[1])


def write_json(file, value):
    """Of dictionaries, lists and what is in them; an array is a list."""
    if isinstance(value, dict):
        _write_parts(file, "{}", ((f"{_text(name)}:", part) for name, part in value.items()))
    elif isinstance(value, array) or isinstance(value, list) and not any(isinstance(part, (dict, list, array)) for part in value[:1]):
        _write_rows(file, value)
    elif isinstance(value, list):
        _write_parts(file, "[]", (("", part) for part in value))
    else:
        file.write(_text(value))
