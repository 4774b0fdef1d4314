"""Builds messages by hand for the tests of the otelprof command."""

import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.path[:0] = [str(ROOT / "scripts"), str(BUILD / "python"), str(ROOT / "test" / "lib")]

import profiles_service_pb2  # noqa: E402
from browser import browser, driver  # noqa: E402, F401 # fixtures
from google.protobuf import json_format  # noqa: E402
from own_machine import Machine, can_be_made  # noqa: E402


class Code(NamedTuple):
    """Is a frame with its type (profile.frame.type) and the file of its source."""

    language: str
    function: str
    file: str = ""
    module: str = ""
    line: int = 3


class Message:
    """Builds one export from stacks of names, leaf first."""

    def __init__(self, instance="one"):
        self.request = profiles_service_pb2.ExportProfilesServiceRequest()
        self.dictionary = self.request.dictionary
        for table in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(self.dictionary, f"{table}_table").add()
        self.dictionary.string_table.append("")
        self._strings = {"": 0}
        resource_profiles = self.request.resource_profiles.add()
        attribute = resource_profiles.resource.attributes.add()
        attribute.key = "service.instance.id"
        attribute.value.string_value = instance
        self.scope = resource_profiles.scope_profiles.add()

    def string(self, text):
        if text not in self._strings:
            self._strings[text] = len(self.dictionary.string_table)
            self.dictionary.string_table.append(text)
        return self._strings[text]

    def mapping(self, module):
        self.dictionary.mapping_table.add(filename_strindex=self.string(module))
        return len(self.dictionary.mapping_table) - 1

    def location(self, name):
        """Returns the location of a function; of `module!function`; or of `module!`, code without a name."""
        if isinstance(name, Code):
            return self.typed_location(name)
        module, _, name = name.rpartition("!")
        mapping = self.mapping(module) if module else 0
        if module and not name:
            location = self.dictionary.location_table.add(mapping_index=mapping)
            location.address = 0x1000 + len(self.dictionary.location_table)
            return len(self.dictionary.location_table) - 1
        function = self.dictionary.function_table.add(name_strindex=self.string(name))
        location = self.dictionary.location_table.add(address=1, mapping_index=mapping)
        location.lines.add(function_index=len(self.dictionary.function_table) - 1, line=3)
        assert function
        return len(self.dictionary.location_table) - 1

    def typed_location(self, code):
        mapping = self.mapping(code.module) if code.module else 0
        kind = self.attribute("profile.frame.type", code.language)
        location = self.dictionary.location_table.add(mapping_index=mapping, attribute_indices=[kind])
        if code.function:
            self.dictionary.function_table.add(name_strindex=self.string(code.function), filename_strindex=self.string(code.file))
            location.lines.add(function_index=len(self.dictionary.function_table) - 1, line=code.line)
        return len(self.dictionary.location_table) - 1

    def profile(self, kind, unit, period, stacks):
        profile = self.scope.profiles.add(period=period)
        profile.sample_type.type_strindex = self.string(kind)
        profile.sample_type.unit_strindex = self.string(unit)
        for names, value in stacks.items():
            stack = self.dictionary.stack_table.add()
            stack.location_indices.extend(self.location(name) for name in names)
            profile.samples.add(stack_index=len(self.dictionary.stack_table) - 1, values=[value])
        return self

    def link(self, span, trace):
        self.dictionary.link_table.add(span_id=bytes.fromhex(span), trace_id=bytes.fromhex(trace))
        return len(self.dictionary.link_table) - 1

    def attribute(self, key, value):
        attribute = self.dictionary.attribute_table.add(key_strindex=self.string(key))
        if isinstance(value, list):
            for item in value:
                attribute.value.array_value.values.add(string_value=item)
            return len(self.dictionary.attribute_table) - 1
        setattr(attribute.value, {str: "string_value", int: "int_value", bool: "bool_value", float: "double_value"}[type(value)], value)
        return len(self.dictionary.attribute_table) - 1

    def labelled(self, kind, unit, period, rows):
        """Adds a profile of (stack, value, (span, trace) or None, attributes)."""
        self.profile(kind, unit, period, {})
        profile = self.scope.profiles[-1]
        for names, value, ids, attributes in rows:
            stack = self.dictionary.stack_table.add()
            stack.location_indices.extend(self.location(name) for name in names)
            profile.samples.add(
                stack_index=len(self.dictionary.stack_table) - 1, values=[value], link_index=self.link(*ids) if ids else 0,
                attribute_indices=[self.attribute(key, value) for key, value in attributes.items()])
        return self

    def bytes(self):
        return self.request.SerializeToString()


@pytest.fixture
def message():
    return Message


@pytest.fixture
def machine():
    if not can_be_made() and os.environ.get("CI") != "true":
        pytest.skip("needs root's right to a mount namespace")
    machine = Machine()
    yield machine
    machine.end()


def cpu(message, instance="one"):
    return message(instance).profile("samples", "count", 10_000_000, {("leaf", "main"): 50})


def as_json(export):
    """Returns an export with one profile in OTLP's JSON."""
    tree = json.loads(json_format.MessageToJson(export.request))
    profile = tree["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]
    profile["profileId"] = export.scope.profiles[0].profile_id.hex()
    return json.dumps(tree)
