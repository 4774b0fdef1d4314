"""Implements `otelprof pprof`: writes one kind of a file for `go tool pprof` and similar tools.

All values of a kind are in one profile, as in Go's: samples and cpu, alloc_objects and alloc_space. All else that a
sample has besides its stack is a label: the thread, the span, the program's own attributes, and, where there are
several, the process.
"""

import gzip
import os

from .aggregate import FRAME_TYPE, UNKNOWN, process_of
from .capture_file import BadFile
from .combined import combined, in_a_file
from .foreign import say
from .kinds import KINDS, missing
from .labels import SPAN, TRACE, text_of
from .places import load_messages, load_pprof
from .python_frames import PYTHON, function_in_module
from .repeats import each_once
from .whole_file import whole_file

BUILD_IDS = (
    "process.executable.build_id.gnu",
    "process.executable.build_id.go",
)  # attributes of mappings; the first that exists
EXECUTABLE = "process.executable.name"


def columns(kind):
    """Returns (sample type, unit, type of the value in a file, whether to multiply it by the period) of each value of
    pprof's samples."""
    for value in kind.values:
        yield value.type, value.unit, value.type, False
        if value.in_periods:
            yield kind.period_type, kind.period_unit, value.type, True


class _Attributes:
    """Holds the common table's attributes by index: (key, value), where a value is an int or a text."""

    def __init__(self, tables):
        any_value = type(load_messages()[0].ProfilesData().dictionary.attribute_table.add().value)
        self._all = []
        for key, serialized, _ in tables.attributes.entries:
            value = any_value.FromString(serialized)
            is_number = value.WhichOneof("value") == "int_value"
            self._all.append((tables.strings.entries[key], value.int_value if is_number else text_of(value, ())))

    def of(self, indices):
        return [self._all[index] for index in indices]


class Writer:
    def __init__(self, sums, name):
        self._tables = sums.tables
        self._processes = sums.processes.values()
        self._covered = sums.covered
        self._kind = KINDS[name]
        self._columns = list(columns(self._kind))
        self._attributes = _Attributes(sums.tables)
        self._strings = {"": 0}
        self._functions = {}  # (index, whether it is of Python) -> id
        self._mappings = {}  # index -> id
        self._locations = {}  # index -> id; 0: no frame is known
        self.profile = load_pprof().Profile()

    # --- what samples refer to ---

    def _string(self, text):
        return self._strings.setdefault(text, len(self._strings))

    def _text(self, index):
        return self._tables.strings.entries[index]

    def _function(self, index, is_python):
        key = index, is_python
        if key not in self._functions:
            name, system_name, file, line = self._tables.functions.entries[index]
            shown = function_in_module(self._text(name), self._text(file)) if is_python else self._text(name)
            shown = shown or self._text(system_name) or UNKNOWN[0].name
            self._functions[key] = len(self._functions) + 1
            self.profile.function.add(
                id=self._functions[key],
                name=self._string(shown),
                system_name=self._string(self._text(system_name) or self._text(name)),
                filename=self._string(self._text(file)),
                start_line=line,
            )
        return self._functions[key]

    def _mapping(self, index):
        """Returns the mapping's id; 0: none."""
        if index and index not in self._mappings:
            start, limit, offset, file, attributes = self._tables.mappings.entries[index]
            told = dict(self._attributes.of(attributes))
            build_id = next((str(told[key]) for key in BUILD_IDS if key in told), "")
            self._mappings[index] = len(self._mappings) + 1
            self.profile.mapping.add(
                id=self._mappings[index],
                memory_start=start,
                memory_limit=limit,
                file_offset=offset,
                filename=self._string(self._text(file)),
                build_id=self._string(build_id),
                has_functions=True,
                has_filenames=True,
                has_line_numbers=True,
            )
        return self._mappings.get(index, 0)

    def _location(self, index):
        if index not in self._locations:
            mapping, address, lines, attributes = self._tables.locations.entries[index]
            self._locations[index] = len(self._locations) + 1
            is_python = (FRAME_TYPE, PYTHON) in self._attributes.of(attributes)
            location = self.profile.location.add(
                id=self._locations[index], mapping_id=self._mapping(mapping), address=address
            )
            for function, line, column in lines:
                location.line.add(function_id=self._function(function, is_python), line=line, column=column)
            if not (location.line or mapping):
                location.line.add(function_id=self._unknown())
            self._tell_of_mapping(location, lines)
        return self._locations[index]

    def _unknown(self):
        name = self._string(UNKNOWN[0].name)
        found = self._functions.setdefault("unknown", len(self._functions) + 1)
        if found > len(self.profile.function):
            self.profile.function.add(id=found, name=name, system_name=name)
        return found

    def _tell_of_mapping(self, location, lines):
        """Sets what is known of all the mapping's code: a reader looks up what is not."""
        if not location.mapping_id:
            return
        mapping = self.profile.mapping[location.mapping_id - 1]
        mapping.has_functions &= bool(lines)
        mapping.has_filenames &= any(self._tables.functions.entries[function][2] for function, *_ in lines)
        mapping.has_line_numbers &= any(line for _, line, _ in lines)
        mapping.has_inline_frames |= len(lines) > 1

    # --- samples ---

    def _labels(self, sample, key, process):
        _, attributes, link = key
        trace, span = self._tables.links.entries[link]
        ids = [(name, value.hex()) for name, value in ((SPAN, span), (TRACE, trace)) if any(value)]
        for name, value in sorted({**dict(self._attributes.of(attributes)), **dict(ids), **process}.items()):
            label = sample.label.add(key=self._string(name))
            if isinstance(value, int):
                label.num = value
            elif value:
                label.str = self._string(value)

    def _values(self, process):
        """Returns by (stack, attributes, link): a value for each column."""
        values = {}
        for series in process.series.values():
            for place, (_, _, source, is_measured) in enumerate(self._columns):
                if series.sample_type[0] != source:
                    continue
                factor = series.period if is_measured else 1
                for key, value in series.sums.items():
                    values.setdefault(key, [0] * len(self._columns))[place] += value * factor
        return values

    def _samples(self, process, labels):
        for key, values in self._values(process).items():
            sample = self.profile.sample.add(value=map(in_a_file, values))
            sample.location_id.extend(map(self._location, self._tables.stacks.entries[key[0]] or (0,)))
            self._labels(sample, key, labels)

    def _when(self):
        series = [it for process in self._processes for it in process.series.values()]
        begins = [it.begin for it in series]
        self.profile.period = max((it.period for it in series), default=0)
        self.profile.time_nanos = max(begins) if self._kind.is_snapshot else min(begins)
        self.profile.duration_nanos = 0 if self._kind.is_snapshot else self._covered.nano

    def write(self):
        """Returns the whole profile. pprof takes the first mapping for the program."""
        are_several = len(self._processes) > 1
        executable = ""
        for process in self._processes:
            labels = dict(process_of(process.resource_profiles.resource))
            executable = executable or labels.get(EXECUTABLE, "")
            self._samples(process, labels if are_several else {})
        for name, unit, *_ in self._columns:
            self.profile.sample_type.add(type=self._string(name), unit=self._string(unit))
        self.profile.default_sample_type = self.profile.sample_type[-1].type
        self.profile.period_type.type = self._string(self._kind.period_type)
        self.profile.period_type.unit = self._string(self._kind.period_unit)
        self._when()
        self._put_first(executable)
        self.profile.string_table.extend(self._strings)
        return self.profile

    def _put_first(self, executable):
        names = list(self._strings)
        mappings = sorted(self.profile.mapping, key=lambda it: os.path.basename(names[it.filename]) != executable)
        kept = [type(it).FromString(it.SerializeToString()) for it in mappings]
        del self.profile.mapping[:]
        self.profile.mapping.extend(kept)


def default_output(name):
    return f"{name}.pb.gz"


def pprof(options):
    sums = combined(each_once(options.file), [options.kind])
    if not sums.has_samples():
        raise BadFile(missing(options.file, options.kind, sums.kinds))
    output = options.output or default_output(options.kind)
    profile = Writer(sums, options.kind).write()
    with whole_file(output) as whole, gzip.GzipFile(os.path.basename(output), "wb", fileobj=whole) as file:
        file.write(profile.SerializeToString())
    say(f"{options.kind} in {output}")
    return 0


def add_arguments(sub):
    sub.add_argument("file", help="a file of profiles: of run, receive, record, the exporter otlp_file or the Collector")
    sub.add_argument("-o", "--output", metavar="FILE", help="the profile, behind gzip (default KIND.pb.gz)")
    sub.add_argument("--kind", choices=tuple(KINDS), default="cpu", help="what to write (default cpu)")
