"""Sums exports up: no stack, line, address or attribute is lost, only the time of each.

Each export has tables of its own, and its samples refer to them by index. Here is one set of tables for all; an entry
that several exports have is there once. Deltas of one process and kind are added up. Of a snapshot the latest stays.
"""

import hashlib
import os

from .aggregate import INSTANCE
from .capture_file import BadSum, entry_at
from .coverage import INTERVALS, Coverage, end_of
from .kinds import KINDS, kinds_of
from .places import load_messages
from .repeats import PARTS, parts_of, process_of

SNAPSHOTS = {value.type for kind in KINDS.values() if kind.is_snapshot for value in kind.values}
ORDER = [value.type for kind in KINDS.values() for value in kind.values]
OF_SUMS = (INTERVALS, PARTS)  # attributes of a merged profile, which its sum has anew
ID_BYTES = 16
MOST_PARTS = 1 << 17  # of a merged profile: with more it is known only as a whole
MOST = (1 << 63) - 1  # largest value in a file


class _Table(dict):
    """Maps an entry to its index; index 0 is the entry that means `not set`."""

    def __init__(self, zero):
        super().__init__({zero: 0})
        self.entries = [zero]  # entries by index
        self.size = 0  # letters, or items, of all entries

    def index(self, entry):
        found = self.get(entry)
        if found is None:
            found = self[entry] = len(self.entries)
            self.entries.append(entry)
            self.size += len(entry)
        return found


class Tables:
    """Are the tables of all exports. Entries are tuples; their references are indices of these tables."""

    def __init__(self):
        self.strings = _Table("")
        self.functions = _Table((0, 0, 0, 0))  # name, system name, file, first line
        self.mappings = _Table((0, 0, 0, 0, ()))  # start, limit, offset, file, attributes
        self.locations = _Table((0, 0, (), ()))  # mapping, address, (function, line, column) of each line, attributes
        self.stacks = _Table(())  # locations
        self.links = _Table((b"", b""))  # trace, span
        self.attributes = _Table((0, b"", 0))  # key, serialized value, unit


class _Translation:
    """Translates the indices of one export to those of the common tables; only used entries are taken over."""

    def __init__(self, dictionary, tables):
        self.dictionary = dictionary
        self._strings = list(dictionary.string_table)  # each string is made once, however many references it has
        self._tables = tables
        self._known = {}  # (table, index there) -> index here

    def _translated(self, table, index, make):
        """Returns the index here. `make` gives the entry; an index outside of a table means `not set`."""
        key = table, index
        if key not in self._known:
            entries = getattr(self.dictionary, table)
            self._known[key] = make(entries[index]) if 0 < index < len(entries) else 0
        return self._known[key]

    def string(self, index):
        return self._translated("string_table", index, self._tables.strings.index)

    def text(self, index):
        return entry_at(self._strings, index) or ""

    def here(self, index):
        """Returns a string of the common tables."""
        return self._tables.strings.entries[index]

    def attribute(self, index):
        def make(attribute):
            value = attribute.value
            if value.WhichOneof("value") == "string_value_strindex":
                value.string_value = self.text(value.string_value_strindex)
            return self._tables.attributes.index(
                (
                    self.string(attribute.key_strindex),
                    value.SerializeToString(deterministic=True),
                    self.string(attribute.unit_strindex),
                )
            )

        return self._translated("attribute_table", index, make)

    def attributes(self, indices):
        return tuple(sorted({self.attribute(index) for index in indices} - {0}))

    def link(self, index):
        return self._translated(
            "link_table",
            index,
            lambda link: self._tables.links.index(
                (link.trace_id, link.span_id) if any(link.trace_id) or any(link.span_id) else (b"", b"")
            ),
        )

    def _mapping(self, index):
        return self._translated(
            "mapping_table",
            index,
            lambda mapping: self._tables.mappings.index(
                (
                    mapping.memory_start,
                    mapping.memory_limit,
                    mapping.file_offset,
                    self.string(mapping.filename_strindex),
                    self.attributes(mapping.attribute_indices),
                )
            ),
        )

    def _function(self, index):
        return self._translated(
            "function_table",
            index,
            lambda function: self._tables.functions.index(
                (
                    self.string(function.name_strindex),
                    self.string(function.system_name_strindex),
                    self.string(function.filename_strindex),
                    function.start_line,
                )
            ),
        )

    def _location(self, index):
        return self._translated(
            "location_table",
            index,
            lambda location: self._tables.locations.index(
                (
                    self._mapping(location.mapping_index),
                    location.address,
                    tuple((self._function(line.function_index), line.line, line.column) for line in location.lines),
                    self.attributes(location.attribute_indices),
                )
            ),
        )

    def stack(self, index):
        return self._translated(
            "stack_table",
            index,
            lambda stack: self._tables.stacks.index(tuple(map(self._location, stack.location_indices))),
        )


class Ids:
    """Derives the id of a sum from the ids of its parts, in any order: who adds the same profiles up gets the same id.
    A part alone keeps its id."""

    def __init__(self):
        self._count = self._sum = 0
        self._first = b""
        self._all_have_one = True

    def add(self, profile_id):
        self._first = self._first or profile_id
        self._count += 1
        self._all_have_one &= any(profile_id)
        self._sum += int.from_bytes(hashlib.blake2b(profile_id, digest_size=ID_BYTES).digest(), "big")

    def id(self):
        if not self._all_have_one:
            return os.urandom(ID_BYTES)
        return self._first if self._count == 1 else _id_of((self._sum, self._count))


def _id_of(what):
    return hashlib.blake2b(repr(what).encode(), digest_size=ID_BYTES).digest()


class Series:
    """Holds the samples of one process and kind, taken with one period."""

    def __init__(self, sample_type, period_type, period):
        self.sample_type = sample_type  # (type, unit)
        self.period_type = period_type
        self.period = period
        self.begin = self.end = 0
        self.attributes = {}  # attributes by key: the latest
        self.sums = {}  # (stack, attributes, link) -> value
        self.covered = Coverage()  # by deltas
        self.ids = Ids()  # of deltas
        self._made_of = set()  # digests of the exports that the deltas are made of; None: not all are known
        self._parts = {}  # of a snapshot: the parts of its time, by id

    def add(self, profile, translation, key_of, process):
        begin, end = profile.time_unix_nano, end_of(profile, translation.dictionary)
        if end >= self.end:  # these attributes count since the start of the process
            found = {key_of(index): index for index in translation.attributes(profile.attribute_indices)}
            self.attributes.update((key, index) for key, index in found.items() if translation.here(key) not in OF_SUMS)
        if self.sample_type[0] in SNAPSHOTS:
            self._replace(profile, translation, begin)
            return
        self.begin = min(self.begin or begin, begin)
        self.end = max(self.end, end)
        self.covered.add_profile(profile, translation.dictionary)
        self.ids.add(profile.profile_id)
        self._add_parts(parts_of(process, profile, translation.dictionary))
        _add_samples(self.sums, profile, translation)

    def _add_parts(self, parts):
        is_known = parts and self._made_of is not None and len(self._made_of) + len(parts) <= MOST_PARTS
        if is_known:
            self._made_of |= parts
        else:
            self._made_of = None

    def made_of(self):
        """Returns the value of PARTS; b"": it is an export as it was, or its parts are not known."""
        return b"".join(sorted(self._made_of)) if self._made_of and len(self._made_of) > 1 else b""

    def parts(self):
        """Returns (id, sums) of each profile to write. The parts of a snapshot stay apart: the same part may come again
        in another file."""
        if self.sample_type[0] not in SNAPSHOTS:
            return [(self.ids.id(), self.sums)]
        return [(it if any(it) else _id_of((self.sample_type, self.begin)), sums) for it, sums in self._parts.items()]

    def _replace(self, profile, translation, time):
        if time < self.begin:
            return
        if time > self.begin:
            self._parts, self.sums = {}, {}
        self.begin = self.end = time
        self.period = profile.period
        came_before = profile.profile_id in self._parts  # an export that was tried again
        part = self._parts[profile.profile_id] = _add_samples({}, profile, translation)
        if came_before:
            self.sums = {}
        for sums in self._parts.values() if came_before else (part,):
            _add(self.sums, sums)


def in_a_file(value):
    """Returns a sum, if it can be written."""
    if value > MOST:
        raise BadSum(f"the values of a stack add up to {value}, which is more than a file can hold")
    return value


def _add(target, sums):
    for key, value in sums.items():
        target[key] = target.get(key, 0) + value


def _add_samples(sums, profile, translation):
    for sample in profile.samples:
        value = sum(sample.values) if sample.values else len(sample.timestamps_unix_nano)
        if value > 0:
            key = (
                translation.stack(sample.stack_index),
                translation.attributes(sample.attribute_indices),
                translation.link(sample.link_index),
            )
            sums[key] = sums.get(key, 0) + value
    return sums


class Process:
    """Describes the profiled process, by its latest export."""

    def __init__(self):
        self.resource_profiles = None  # without its profiles
        self.scope_profiles = None  # likewise
        self.series = {}  # by sample type and period

    def describe(self, resource_profiles, scope):
        """Takes the description of this export."""
        profiles_pb2 = load_messages()[0]
        self.resource_profiles = profiles_pb2.ResourceProfiles(
            resource=resource_profiles.resource, schema_url=resource_profiles.schema_url
        )
        self.scope_profiles = profiles_pb2.ScopeProfiles(scope=scope.scope, schema_url=scope.schema_url)

    def add(self, profile, translation, key_of, process):
        sample_type, period_type = (
            (translation.text(it.type_strindex), translation.text(it.unit_strindex))
            for it in (profile.sample_type, profile.period_type)
        )
        is_snapshot = sample_type[0] in SNAPSHOTS
        key = sample_type, period_type, None if is_snapshot else profile.period
        if key not in self.series:
            self.series[key] = Series(sample_type, period_type, profile.period)
        self.series[key].add(profile, translation, key_of, process)


def _identity(resource):
    """Returns the instance, or all attributes of the resource."""
    instance = next((it.value.string_value for it in resource.attributes if it.key == INSTANCE), "")
    return instance or resource.SerializeToString(deterministic=True)


class Combined:
    """Combines exports: `add` takes one after the other. With `kinds`: only profiles of these."""

    def __init__(self, kinds=None):
        self.tables = Tables()
        self.processes = {}  # processes by identity
        self.covered = Coverage()  # time that all profiles cover, including those that are not wanted
        self._seen = set()  # all sample types that had samples, including those that are not wanted
        self._wanted = kinds and {value.type for kind in kinds for value in KINDS[kind].values}

    def add(self, message):
        translation = _Translation(message.dictionary, self.tables)
        for resource_profiles in message.resource_profiles:
            for scope in resource_profiles.scope_profiles:
                wanted = [profile for profile in scope.profiles if self._is_wanted(profile, translation)]
                for profile in scope.profiles:
                    self.covered.add_profile(profile, message.dictionary)
                if not wanted:
                    continue
                process = self.processes.setdefault(_identity(resource_profiles.resource), Process())
                process.describe(resource_profiles, scope)
                for profile in wanted:
                    process.add(profile, translation, self._key_of, process_of(resource_profiles.resource))
        return self

    def _is_wanted(self, profile, translation):
        sample_type = translation.text(profile.sample_type.type_strindex)
        if profile.samples:
            self._seen.add(sample_type)
        return not self._wanted or sample_type in self._wanted

    @property
    def kinds(self):
        """Returns all kinds that there are, in the order of display."""
        return kinds_of(self._seen)

    def has_samples(self):
        return any(series.sums for process in self.processes.values() for series in process.series.values())

    def size(self):
        """Returns how much it holds: entries of tables with their letters and items, samples, and bytes of resources."""
        size = sum(table.size + len(table) for table in vars(self.tables).values())
        for process in self.processes.values():
            size += process.resource_profiles.ByteSize() + sum(1 + len(series.sums) for series in process.series.values())
        return size

    def _key_of(self, attribute):
        return self.tables.attributes.entries[attribute][0]

    # --- as one export ---

    def message(self):
        """Returns everything as ProfilesData."""
        message = load_messages()[0].ProfilesData()
        for process in self.processes.values():
            resource_profiles = message.resource_profiles.add()
            resource_profiles.CopyFrom(process.resource_profiles)
            scope = resource_profiles.scope_profiles.add()
            scope.CopyFrom(process.scope_profiles)
            place = {name: number for number, name in enumerate(ORDER)}
            for series in sorted(process.series.values(), key=lambda it: place.get(it.sample_type[0], len(place))):
                for profile_id, sums in series.parts():
                    self._write_profile(series, profile_id, sums, scope.profiles.add())
        self._write_tables(message.dictionary)
        return message

    def _write_profile(self, series, profile_id, sums, profile):
        index = self.tables.strings.index
        profile.sample_type.type_strindex, profile.sample_type.unit_strindex = map(index, series.sample_type)
        profile.period_type.type_strindex, profile.period_type.unit_strindex = map(index, series.period_type)
        profile.period = series.period
        profile.time_unix_nano = series.begin
        profile.duration_nano = series.covered.nano
        profile.profile_id = profile_id
        profile.attribute_indices.extend(series.attributes.values())
        if len(series.covered) > 1:
            profile.attribute_indices.append(self._attribute_of_sum(INTERVALS, series.covered.flat()))
        if series.made_of():
            profile.attribute_indices.append(self._attribute_of_sum(PARTS, series.made_of()))
        for (stack, attributes, link), value in sums.items():
            profile.samples.add(
                stack_index=stack, attribute_indices=attributes, link_index=link, values=[in_a_file(value)]
            )
        if not sums and not profile.duration_nano:  # nothing is left of a snapshot
            profile.samples.add(values=[0])

    def _attribute_of_sum(self, key, value):
        """Lists an attribute with a value of integers, or of bytes."""
        listed = load_messages()[0].ProfilesData().dictionary.attribute_table.add().value
        if isinstance(value, bytes):
            listed.bytes_value = value
        else:
            for number in value:
                listed.array_value.values.add(int_value=number)
        tables = self.tables
        unit = tables.strings.index("ns" if key == INTERVALS else "")
        return tables.attributes.index((tables.strings.index(key), listed.SerializeToString(deterministic=True), unit))

    def _write_tables(self, dictionary):
        tables = self.tables
        dictionary.string_table.extend(tables.strings)
        for name, system_name, file, line in tables.functions:
            dictionary.function_table.add(
                name_strindex=name, system_name_strindex=system_name, filename_strindex=file, start_line=line
            )
        for start, limit, offset, file, attributes in tables.mappings:
            dictionary.mapping_table.add(
                memory_start=start,
                memory_limit=limit,
                file_offset=offset,
                filename_strindex=file,
                attribute_indices=attributes,
            )
        for mapping, address, lines, attributes in tables.locations:
            location = dictionary.location_table.add(
                mapping_index=mapping, address=address, attribute_indices=attributes
            )
            for function, line, column in lines:
                location.lines.add(function_index=function, line=line, column=column)
        for locations in tables.stacks:
            dictionary.stack_table.add(location_indices=locations)
        for trace, span in tables.links:
            dictionary.link_table.add(trace_id=trace, span_id=span)
        for key, value, unit in tables.attributes:
            attribute = dictionary.attribute_table.add(key_strindex=key, unit_strindex=unit)
            if value:
                attribute.value.ParseFromString(value)


def combined(messages, kinds=None):
    result = Combined(kinds)
    for message in messages:
        result.add(message)
    return result


def without_orphans(message):
    """Returns the export without entries that no sample refers to."""
    return Combined().add(message).message()
