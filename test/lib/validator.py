"""Checks what a receiver may require of an export: `problems(request)` lists what is wrong.

The first part has the checks of OpenTelemetry's own conformance checker (zero values, ranges, unique items, no
orphans, link lengths, one shape, timestamps); the second has others (addresses within mappings, build ids,
identities, periods, units, our own promises).
"""

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from otelprof_lib.listening import HELPERS  # noqa: E402
from otelprof_lib.kinds import ATTRIBUTES, KINDS  # noqa: E402
from otelprof_lib.lists import entries  # noqa: E402

TABLES = (
    "mapping_table", "location_table", "function_table", "link_table", "string_table",
    "attribute_table", "stack_table",
)
# (sample type, unit): its kind of common/profile_kinds.def
PROFILE_TYPES = {(value.type, value.unit): kind for kind in KINDS.values() for value in kind.values}
REQUIRED_RESOURCE = (
    "service.name", "service.instance.id", "process.pid", "process.creation.time",
    "process.executable.name", "process.executable.path", "host.name", "host.arch", "os.type",
    "telemetry.sdk.name", "telemetry.sdk.language", "telemetry.sdk.version",
)
MAX_RESOURCE_ATTRIBUTES = 30  # the most that Pyroscope takes as labels
MERGED = ("otelprof.merged.intervals", "otelprof.merged.profiles")  # attributes of `otelprof merge`
OWN_COUNTS = ("otelprof.self.cpu_time", "otelprof.shed.time", "otelprof.foreign_stack.cpu_time",
              "otelprof.short_child.cpu_time", "otelprof.stacks.finished_by_libunwind")
SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
# OpenTelemetry's values of profile.frame.type
FRAME_TYPES = ("native", "kernel", "cpython", "jvm", "v8js", "dotnet", "ruby", "php", "perl", "beam", "go", "rust")
OWN_OBJECTS = ("libotelprof.so", "libotelprof-flush.so")


WAIT_KINDS = {word for _, word, *_ in entries((ROOT / "common/wait_kinds.def").read_text(), "WAIT_KIND")}
HOLDER = "otelprof.lock.holder."


def is_text(value):
    return isinstance(value, str) and value != ""


# the form of the values of a sample's attributes; the program's labels are texts
WELL_FORMED = {
    "thread.id": lambda value: isinstance(value, int) and value > 0,
    "thread.name": is_text,
    "otelprof.idle": lambda value: value is True,
    "otelprof.wait.kind": lambda value: value in WAIT_KINDS,
    "otelprof.lock.address": lambda value: is_text(value) and re.fullmatch("0x[1-9a-f][0-9a-f]*", value),
    "otelprof.lock.name": is_text,
    HOLDER + "thread.id": lambda value: isinstance(value, int) and value > 0,
    HOLDER + "thread.name": is_text,
    HOLDER + "stack": lambda value: isinstance(value, tuple) and 0 < len(value) <= 32 and all(map(is_text, value)),
    "otelprof.thread.state": lambda value: value in ("running", "blocked"),
    "otelprof.wait.duration": lambda value: isinstance(value, float) and value > 0,
}


def value_of(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return tuple(value_of(part) for part in any_value.array_value.values)
    return getattr(any_value, kind) if kind else None


def is_empty_snapshot(profile, kind):
    """Returns whether the profile shows an empty live heap: one sample of value 0 that has neither stack nor thread."""
    nothing = [(sample.stack_index, list(sample.attribute_indices), list(sample.values)) for sample in profile.samples]
    return kind.is_snapshot and nothing == [(0, [], [0])]


class Checker:
    def __init__(self, request):
        self.request = request
        self.dictionary = request.dictionary
        self.strings = list(request.dictionary.string_table)
        self.found = []
        self.used = {table: {0} for table in TABLES}

    def say(self, problem):
        self.found.append(problem)

    # --- the dictionary ---

    def zero_values(self):
        for table in TABLES:
            items = getattr(self.dictionary, table)
            if not items:
                self.say(f"{table} is empty")
            elif table == "string_table":
                if items[0] != "":
                    self.say("string_table[0] is not empty")
            elif items[0].ByteSize():
                self.say(f"{table}[0] is not the zero value")

    def duplicates(self):
        for table in TABLES:
            seen = set()
            for item in getattr(self.dictionary, table):
                key = item if table == "string_table" else item.SerializeToString(deterministic=True)
                if key in seen:
                    self.say(f"{table} lists an item twice: {item!r}")
                seen.add(key)

    def use(self, table, index, where):
        """Notes a reference; returns the item, or None if the index is out of range."""
        items = getattr(self.dictionary, table)
        if not 0 <= index < len(items):
            self.say(f"{where}: {table}[{index}] is out of range")
            return None
        self.used[table].add(index)
        return items[index]

    def string(self, index, where):
        return self.use("string_table", index, where) or ""

    def orphans(self):
        for table in TABLES:
            for index in range(len(getattr(self.dictionary, table))):
                if index not in self.used[table]:
                    self.say(f"{table}[{index}] is an orphan")

    def attributes(self, indices, where):
        """Returns {key: value} of a list of attribute indices."""
        result = {}
        for index in indices:
            item = self.use("attribute_table", index, where)
            if item is None:
                continue
            key = self.string(item.key_strindex, where)
            self.string(item.unit_strindex, where)
            if index == 0 or not key:
                self.say(f"{where}: an attribute without key")
            if key in result:
                self.say(f"{where}: attribute {key} twice")
            if item.value.string_value_strindex:
                self.say(f"{where}: attribute {key} refers to its value's string")
            result[key] = value_of(item.value)
        return result

    def walk_tables(self):
        """Checks what locations, functions and mappings refer to. Orphans among them are found separately."""
        for number, mapping in enumerate(self.dictionary.mapping_table):
            if number:
                self.mapping(number, mapping)
        for number, location in enumerate(self.dictionary.location_table):
            if number:
                self.location(number, location)
        for number, function in enumerate(self.dictionary.function_table):
            names = [
                self.string(index, f"function {number}")
                for index in (
                    function.name_strindex, function.system_name_strindex,
                    function.filename_strindex,
                )
            ]
            if number and not any(names):
                self.say(f"function {number} has no name")
        for link in list(self.dictionary.link_table)[1:]:
            if (len(link.trace_id), len(link.span_id)) != (16, 8):
                self.say("a link's ids are not 16 and 8 bytes")

    def mapping(self, number, mapping):
        where = f"mapping {number}"
        name = self.string(mapping.filename_strindex, where)
        attributes = self.attributes(mapping.attribute_indices, where)
        if not name or "/" in name:
            self.say(f"{where}: file name {name!r} is not a base name")
        if name in OWN_OBJECTS:
            self.say(f"{where}: a frame of the profiler itself ({name})")
        if mapping.memory_start >= mapping.memory_limit:
            self.say(f"{where}: empty range")
        if not any(
            attributes.get(f"process.executable.build_id.{kind}") for kind in ("gnu", "go", "htlhash")
        ):
            self.say(f"{where}: no build id")

    def location(self, number, location):
        where = f"location {number}"
        mapping = self.use("mapping_table", location.mapping_index, where)
        attributes = self.attributes(location.attribute_indices, where)
        if attributes.get("profile.frame.type") not in FRAME_TYPES:
            self.say(f"{where}: no frame type that the semantic conventions have")
        if not location.lines and not location.address:
            self.say(f"{where}: neither lines nor address")
        if mapping is not None and location.mapping_index:
            if not mapping.memory_start <= location.address < mapping.memory_limit:
                name = self.strings[mapping.filename_strindex]
                self.say(f"{where}: address 0x{location.address:x} is outside of {name}'s mapping")
        elif not location.lines:
            self.say(f"{where}: neither mapping nor lines")
        for line in location.lines:
            if self.use("function_table", line.function_index, where) is None:
                continue
            if not line.function_index:
                self.say(f"{where}: a line without function")
            if line.line < 0:
                self.say(f"{where}: negative line")

    # --- resources and profiles ---

    def resource(self, resource):
        attributes = {}
        for attribute in resource.attributes:
            if attribute.key_strindex:
                self.say("a resource attribute refers to its key's string")
            if attribute.key in attributes:
                self.say(f"resource attribute {attribute.key} twice")
            attributes[attribute.key] = value_of(attribute.value)
        for key in REQUIRED_RESOURCE:
            if not attributes.get(key):
                self.say(f"resource attribute {key} is missing")
        if len(attributes) > MAX_RESOURCE_ATTRIBUTES:
            self.say(f"{len(attributes)} resource attributes")

    def profile(self, profile, position):
        sample_type = tuple(
            self.string(index, "sample_type")
            for index in (profile.sample_type.type_strindex, profile.sample_type.unit_strindex)
        )
        period = tuple(
            self.string(index, "period_type")
            for index in (profile.period_type.type_strindex, profile.period_type.unit_strindex)
        )
        where = f"profile {position} {sample_type[0]}"
        kind = PROFILE_TYPES.get(sample_type)
        if not kind:
            self.say(f"{where}: unknown sample type {sample_type}")
            return
        if (kind.period_type, kind.period_unit) != period:
            self.say(f"{where}: period type {period}")
        is_idle_time = not profile.samples and not kind.is_snapshot
        if sample_type[0] == "samples" and position and not is_idle_time:
            self.say(f"{where}: CPU is not the first profile")
        if profile.period <= 0:
            self.say(f"{where}: no period")
        if len(profile.profile_id) != 16 or not any(profile.profile_id):
            self.say(f"{where}: no id")
        if not profile.time_unix_nano:
            self.say(f"{where}: no time")
        if (profile.duration_nano == 0) != kind.is_snapshot:
            self.say(f"{where}: duration {profile.duration_nano}")
        if not profile.samples and not is_idle_time:
            self.say(f"{where}: no samples")
        for key, value in self.attributes(profile.attribute_indices, where).items():
            known = key in OWN_COUNTS or key.startswith("otelprof.dropped.")
            known = known or (key.startswith("otelprof.heap.peak.") and sample_type[0].startswith("peak_"))
            if key in MERGED:
                continue
            if not known or not isinstance(value, int) or value <= 0:
                self.say(f"{where}: attribute {key}={value}")
        if is_empty_snapshot(profile, kind):
            return
        identities = set()
        threads = Counter(self.sample(sample, kind, where, identities) for sample in profile.samples)
        if sample_type[0] == "threads":
            for thread, times in threads.items():
                if thread and times > 1:
                    self.say(f"{where}: thread {thread} {times} times")

    def sample(self, sample, kind, where, identities):
        """Checks a sample; returns its thread.id, or None."""
        stack = self.use("stack_table", sample.stack_index, where)
        attributes = self.attributes(sample.attribute_indices, where)
        identity = (sample.stack_index, frozenset(sample.attribute_indices), sample.link_index)
        if identity in identities:
            self.say(f"{where}: identity {identity} twice")
        identities.add(identity)
        self.use("link_table", sample.link_index, where)
        if stack is None or not stack.location_indices:
            self.say(f"{where}: a sample without stack")
        if len(sample.values) != 1 or sample.values[0] <= 0 or sample.timestamps_unix_nano:
            self.say(f"{where}: values {list(sample.values)}")
        for key in attributes.keys() - set(kind.attributes):
            # a label that the program has set on a thread
            if key in ATTRIBUTES or key.startswith("otelprof.") or "thread.id" not in kind.attributes:
                self.say(f"{where}: attribute {key}, which samples of this kind do not have")
            elif not isinstance(attributes[key], str):
                self.say(f"{where}: label {key} is no text")
        for key, value in attributes.items():
            if not WELL_FORMED.get(key, lambda _: True)(value):
                self.say(f"{where}: attribute {key}={value!r}")
        self.wait(attributes, where)
        if attributes.get("thread.name") in HELPERS:
            self.say(f"{where}: the profiler's own thread")
        return attributes.get("thread.id")

    def wait(self, attributes, where):
        if any(key.startswith(HOLDER) for key in attributes):
            if HOLDER + "thread.id" not in attributes:
                self.say(f"{where}: a holder without thread.id")
            if "otelprof.lock.address" not in attributes:
                self.say(f"{where}: a holder of no lock")
        if "otelprof.lock.name" in attributes and "otelprof.lock.address" not in attributes:
            self.say(f"{where}: the name of no lock")
        if attributes.get("otelprof.thread.state") == "running" and "otelprof.wait.kind" in attributes:
            self.say(f"{where}: a thread that runs waits")

    def stacks(self):
        for number, stack in enumerate(self.dictionary.stack_table):
            for index in stack.location_indices:
                self.use("location_table", index, f"stack {number}")
                if not index:
                    self.say(f"stack {number}: location 0")

    def check(self):
        self.zero_values()
        self.duplicates()
        ids = set()
        if not self.request.resource_profiles:
            self.say("an export without resource")
        for resource_profiles in self.request.resource_profiles:
            self.resource(resource_profiles.resource)
            if resource_profiles.schema_url != SCHEMA_URL:
                self.say(f"the resource's schema is {resource_profiles.schema_url!r}")
            for scope in resource_profiles.scope_profiles:
                if not scope.scope.name or not scope.scope.version:
                    self.say("the scope has no name or version")
                if scope.schema_url != SCHEMA_URL:
                    self.say(f"the scope's schema is {scope.schema_url!r}")
                if not scope.profiles:
                    self.say("a scope without profiles")
                for position, profile in enumerate(scope.profiles):
                    self.profile(profile, position)
                    if profile.profile_id in ids:
                        self.say("a profile id twice")
                    ids.add(profile.profile_id)
        self.stacks()
        self.walk_tables()
        self.orphans()
        return self.found


def problems(request):
    """Returns what is wrong with an ExportProfilesServiceRequest, as sentences; [] if nothing is."""
    return Checker(request).check()
