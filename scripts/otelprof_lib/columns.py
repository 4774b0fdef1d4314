"""Packs page data as bytes that a browser uses without copying: JSON behind its length, then columns of numbers.

The length has 4 bytes, the least significant first. In the JSON a column is {type, at, count}: `i` is of 4 bytes, `d` of 8,
`at` counts bytes from the next multiple of 8 behind the JSON.
"""

import json
import struct
from array import array

WHOLE, FRACTIONAL = "i", "d"
TYPES = dict.fromkeys(("parents", "frames", "at", "labels", "stacks", "sizes"), WHOLE)  # all other columns are values
TABLES = ("tree", "samples", "stacks")  # tables that have columns, of a profile or of the page
ALIGNMENT = 8


def _padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


class _Columns:
    def __init__(self):
        self.parts = []
        self._at = 0

    def put(self, columns):
        """Returns the value with a description in place of each column."""
        described = {}
        for name, values in columns.items():
            kind = TYPES.get(name, FRACTIONAL)
            self.parts.append(_padded(array(kind, values).tobytes()))
            described[name] = {"type": kind, "at": self._at, "count": len(values)}
            self._at += len(self.parts[-1])
        return described


def packed(data):
    columns = _Columns()

    def described(part):
        return {**part, **{name: columns.put(part[name]) for name in TABLES if name in part}}

    profiles = list(map(described, data["profiles"]))
    head = json.dumps({**described(data), "profiles": profiles}, separators=(",", ":")).encode()
    return b"".join([_padded(struct.pack("<I", len(head)) + head), *columns.parts])
