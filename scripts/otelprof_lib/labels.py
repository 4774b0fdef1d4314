"""Reads the labels of samples, and selects samples by them.

A label is a name and a value, both text: an attribute of the sample, or the id of the span or trace that the sample
is linked to, in hexadecimal. A list, such as the stack of a lock's holder, is one text with `;` between its parts.
"""

import json
import re
from typing import NamedTuple

from .capture_file import entry_at

SPAN = "span_id"
TRACE = "trace_id"
DIGITS = {SPAN: 16, TRACE: 32}
LEAST_DIGITS = 4
NOUNS = {SPAN: "span", TRACE: "trace"}
MOST_NAMED = 5  # candidates in a message


class NothingChosen(Exception):
    """Is raised if no sample has the label, or several values match; the message names them."""


class Label(NamedTuple):
    name: str
    value: str  # of an id: as many digits as are known


# --- of one message ---


def text_of(value, strings):
    """Returns an attribute's value; the items of a list are joined by `;`."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind == "string_value_strindex":
        return entry_at(strings, value.string_value_strindex) or ""
    if kind == "bytes_value":
        return value.bytes_value.hex()
    if kind == "bool_value":
        return json.dumps(value.bool_value)
    if kind == "double_value" and value.double_value.is_integer():
        return str(int(value.double_value))
    if kind == "array_value":
        return ";".join(text_of(part, strings).replace(";", ",") for part in value.array_value.values)
    return str(getattr(value, kind)).strip() if kind else ""


def whole_number(text):
    """Returns the number in a label's value; 0 where it is no whole number."""
    return int(text) if re.fullmatch("-?[0-9]{1,19}", text) else 0


class Labels:
    """Holds the labels of a message's samples: each set of them is a sorted tuple of (name, value)."""

    def __init__(self, dictionary):
        strings = list(dictionary.string_table)  # each string is made once, however many references it has
        self._links = [self._of_link(link) for link in dictionary.link_table]
        self._attributes = [
            (strings[attribute.key_strindex], text_of(attribute.value, strings))
            if 0 <= attribute.key_strindex < len(strings) else ("", "")
            for attribute in dictionary.attribute_table
        ]
        self._sets = {}

    @staticmethod
    def _of_link(link):
        return [(name, value.hex()) for name, value in ((SPAN, link.span_id), (TRACE, link.trace_id)) if any(value)]

    def of(self, sample):
        key = sample.link_index, *sample.attribute_indices
        if key not in self._sets:
            found = [self._attributes[at] for at in sample.attribute_indices if 0 <= at < len(self._attributes)]
            if 0 <= sample.link_index < len(self._links):
                found += self._links[sample.link_index]
            # one value a name: a span's id is the link's, even if an attribute has its name
            self._sets[key] = tuple(sorted((name, value) for name, value in dict(found).items() if name))
        return self._sets[key]


# --- of all profiles ---


def values_of(profiles, name):
    """Returns the values that samples have of a label."""
    return {dict(labels).get(name) for profile in profiles.values() for _, labels in profile.samples} - {None}


def names(profiles):
    return sorted({name for profile in profiles.values() for _, labels in profile.samples for name, _ in labels})


def counted(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def _some(values):
    values = sorted(values)
    more = len(values) - MOST_NAMED
    return ", ".join(values[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _whole_id(profiles, label):
    """Returns the one id that begins with the given digits."""
    noun = NOUNS[label.name]
    present = values_of(profiles, label.name)
    if not present:
        raise NothingChosen(f"no sample is linked to a {noun}")
    found = [value for value in present if value.startswith(label.value)]
    if len(found) > 1:
        raise NothingChosen(f"{label.value} begins the ids of {counted(len(found), noun)}: {_some(found)}")
    if not found:
        other = TRACE if label.name == SPAN else SPAN
        if any(value.startswith(label.value) for value in values_of(profiles, other)):
            raise NothingChosen(f"{label.value} is no {noun}, but a {NOUNS[other]}: use --{NOUNS[other]}")
        raise NothingChosen(
            f"no sample belongs to {noun} {label.value}; there are samples of {counted(len(present), noun)}. "
            f"A {noun} that took less time than lies between two samples may have none"
        )
    return found[0]


def _resolve(profiles, label):
    """Returns the label in the samples' form."""
    if label.name in DIGITS:
        return Label(label.name, _whole_id(profiles, Label(label.name, label.value.lower())))
    present = values_of(profiles, label.name)
    if not present:
        check_name(profiles, label.name)
    if label.value not in present:
        raise NothingChosen(f"no sample has {label.name}={label.value}; values are {_some(present)}")
    return label


def check_name(profiles, name):
    there = names(profiles)
    if name in there:
        return
    if name in NOUNS:
        raise NothingChosen(f"no sample is linked to a {NOUNS[name]}")
    raise NothingChosen(f"no sample has the label {name}" + (f"; labels are {', '.join(there)}" if there else ""))


def select(profiles, wanted):
    """Returns (each profile with only the samples that have all the wanted labels, the labels in the samples' form)."""
    labels = [_resolve(profiles, label) for label in wanted]
    if not labels:
        return profiles, []
    chosen = {name: profile.of(lambda found: found.issuperset(labels)) for name, profile in profiles.items()}
    chosen = {name: profile for name, profile in chosen.items() if profile.samples}
    if not chosen:
        raise NothingChosen("no sample has all of " + ", ".join(f"{name}={value}" for name, value in labels))
    return chosen, labels


# --- arguments ---


def id_label(name):
    """Reads an argument: an id, or its first digits."""

    def read(text):
        if not re.fullmatch(f"[0-9a-fA-F]{{{LEAST_DIGITS},{DIGITS[name]}}}", text):
            raise ValueError
        return Label(name, text.lower())

    # argparse: "invalid ... value"
    read.__name__ = f"{NOUNS[name]} id ({DIGITS[name]} hexadecimal digits, or the first {LEAST_DIGITS} or more)"
    return read


def label(text):
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError
    return Label(name, value)


label.__name__ = "NAME=VALUE"
