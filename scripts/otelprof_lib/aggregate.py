"""Sums messages up: what each stack accounts for, over all processes and intervals.

CPU and allocations add up. The live heap is a snapshot, so only each process's last one counts, in all its parts.
"""

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from .capture_file import MOST_LETTERS, BadSum, entry_at
from .coverage import Coverage
from .foreign import say
from .kinds import KINDS
from .labels import Labels, text_of
from .python_frames import PYTHON, function_in_module, outside_interpreter
from .sampling import Sampling


# these values count samples, each of which stands for one period, in nanoseconds
IN_PERIODS = {value.type for kind in KINDS.values() for value in kind.values if value.in_periods}
# these values are shown in seconds
IN_NANOSECONDS = {value.type for kind in KINDS.values() for value in kind.values if value.unit == "nanoseconds"}
FRAME_TYPE = "profile.frame.type"  # an attribute of locations
WAIT_KIND = "otelprof.wait.kind"  # an attribute of samples of waits
LIBC = "libc.so.6"
LIBC_BEGINS = ("__libc_start_main", "start_thread")  # by these libc calls the program: they are no calls of the program's
# attributes of resources, which distinguish the processes of a file with several
INSTANCE = "service.instance.id"
PROCESS = (INSTANCE, "process.executable.name", "process.pid")
# Bounds of one message: a small file can refer to one long string, or to one location with many inlined calls, very
# often.
MOST_MEAN_INLINED = 8  # calls at a location, on average over all stacks: compilers make two or three
FEW_FRAMES = 1 << 22  # frames in all stacks: this many do no harm, however they come about


class Frame(NamedTuple):
    name: str
    module: str = ""  # base name of the file that the code is in
    language: str = ""  # OpenTelemetry's profile.frame.type; "" where a sample does not have it, or for a frame that is no code


def nameless(module, language=""):
    """Returns the frame of all code in a module that has no name; [vdso] and the like have brackets already."""
    return Frame(module if module.startswith("[") else f"[{module}]", module, language)


class Stack(tuple):
    """Is a tuple of frames that keeps its hash: a deep stack is looked up many times."""

    def __hash__(self):
        try:
            return self._hash
        except AttributeError:
            self._hash = super().__hash__()
            return self._hash


UNKNOWN = Stack((Frame("[unknown]"),))
# stands for the callers that a stack lacks
TRUNCATED = Frame("[truncated]")
TRUNCATED_KEYS = ("otelprof.stack.truncated", "otelprof.stack.depth_cut")


def _by_stack(samples):
    sums = {}
    for (stack, _), value in samples.items():
        sums[stack] = sums.get(stack, 0) + value
    return sums


@dataclass
class Profile:
    """Holds one kind of measurement: value by stack of frames, leaf first, and labels."""

    title: str
    unit: str
    samples: dict = field(default_factory=dict)
    counts: dict = field(default_factory=dict)  # number of objects by the same key; empty for CPU time
    noun: str = "objects"  # name of the counted objects
    sampling: Sampling = field(default_factory=Sampling)
    places: dict = field(default_factory=dict)  # (path, line) of the source of each frame that has one

    @cached_property
    def stacks(self):
        """Returns the value by stack, whatever the labels."""
        return _by_stack(self.samples)

    @cached_property
    def objects(self):
        return _by_stack(self.counts)

    @cached_property
    def total(self):
        return sum(self.samples.values())

    def of(self, is_wanted):
        """Returns a profile of the samples whose set of labels is wanted."""

        def kept(sums):
            return {key: value for key, value in sums.items() if is_wanted(frozenset(key[1]))}

        return replace(self, samples=kept(self.samples), counts=kept(self.counts))

    def under(self, name):
        """Returns a profile with a label as the outermost frame of each stack that has the label."""

        def placed(sums):
            result = {}
            for (stack, labels), value in sums.items():
                value_of_label = dict(labels).get(name, "[none]")
                result[(*stack, Frame(f"{name}={value_of_label}")), labels] = value
            return result

        return replace(self, samples=placed(self.samples), counts=placed(self.counts))


# --- one message ---


class Names:
    """Holds a message's strings and stacks."""

    def __init__(self, dictionary, addresses, lines, places=None):
        self._dictionary = dictionary
        self._strings = list(dictionary.string_table)  # each string is made once, however many references it has
        self._frames = {}  # each frame is made once
        self._letters = 0
        self._bases = {}  # base names of paths, by the index of the string
        self._addresses = addresses
        self._lines = lines
        self._places = {} if places is None else places
        self._languages = {
            index: attribute.value.string_value
            for index, attribute in enumerate(dictionary.attribute_table)
            if self.string(attribute.key_strindex) == FRAME_TYPE
        }
        self._has_python = PYTHON in self._languages.values()
        self._locations = [self._of_location(location) for location in dictionary.location_table]
        self._location_at = dict(enumerate(self._locations)).__getitem__  # a list would accept an index of -1
        self._only_frame_at = {index: frames[0] for index, frames in enumerate(self._locations) if len(frames) == 1}.__getitem__
        self._check_lengths()
        self._stacks = {index: self._of_stack(stack) or UNKNOWN for index, stack in enumerate(dictionary.stack_table)}
        self._cut = {
            index
            for index, attribute in enumerate(dictionary.attribute_table)
            if attribute.value.bool_value and self.string(attribute.key_strindex) in TRUNCATED_KEYS
        }

    def string(self, index):
        return entry_at(self._strings, index) or ""

    def _base(self, index):
        """Returns the base name of a path."""
        if index not in self._bases:
            self._bases[index] = os.path.basename(self.string(index))
        return self._bases[index]

    def _frame(self, *fields):
        frame = Frame(*fields)
        known = self._frames.setdefault(frame, frame)
        if known is frame:
            self._letters += len(frame.name) + len(frame.module)
            if self._letters > MOST_LETTERS:
                raise BadSum(f"the names of the file's functions have more than {MOST_LETTERS >> 20} million letters: no profiler wrote it")
        return known

    def _check_lengths(self):
        """Refuses stacks that are long only because the file refers to one location very often."""
        lengths = list(map(len, self._locations))
        if max(lengths, default=0) <= MOST_MEAN_INLINED:
            return
        frames = indices = 0
        for stack in self._dictionary.stack_table:
            indices += len(stack.location_indices)
            frames += sum(lengths[index] for index in stack.location_indices if 0 <= index < len(lengths))
        if frames > max(FEW_FRAMES, MOST_MEAN_INLINED * indices):
            raise BadSum(f"the file's stacks have more than {MOST_MEAN_INLINED} inlined calls at each place: no profiler wrote it")

    def stack(self, sample):
        stack = self._stacks.get(sample.stack_index, UNKNOWN)
        is_cut = self._cut and not self._cut.isdisjoint(sample.attribute_indices)
        return Stack((*stack, TRUNCATED)) if is_cut else stack

    def _of_line(self, line, module, language):
        function = entry_at(self._dictionary.function_table, line.function_index)
        if not function:
            return self._frame(UNKNOWN[0].name, module, language)
        path = self.string(function.filename_strindex)
        file = self._base(function.filename_strindex)
        name = self.string(function.name_strindex) or self.string(function.system_name_strindex)
        if language == PYTHON:
            name = function_in_module(name, path)
        place = f"{file}:{line.line}" if self._lines and line.line else ""
        # code that is in no file of the process belongs to its source
        frame = self._frame(f"{name} {place}" if name and place else name or UNKNOWN[0].name, module or file, language)
        if path:
            self._places.setdefault(frame, (path, function.start_line))
        return frame

    def lines_of(self, at, frame):
        """Returns (path, line) of each function at a location; none where it has no lines."""
        lines = self._dictionary.location_table[at].lines
        known = [entry_at(self._dictionary.function_table, line.function_index) if found == frame and line.line else None
                 for line, found in zip(lines, self._locations[at])]
        return [(path, line.line) for line, function in zip(lines, known)
                if function and (path := self.string(function.filename_strindex))]

    def measured(self, profile):
        """Returns a function that gives what a value stands for."""
        return _measured(self.string(profile.sample_type.type_strindex), profile.period)

    def _language(self, location):
        return next((self._languages[at] for at in location.attribute_indices if at in self._languages), "")

    def _of_location(self, location):
        """Returns the frames of a location, the innermost first: inlined functions come before their callers."""
        mapping = entry_at(self._dictionary.mapping_table, location.mapping_index)
        module = self._base(mapping.filename_strindex) if mapping else ""
        language = self._language(location)
        if location.lines:
            return tuple(self._of_line(line, module, language) for line in location.lines)
        if self._addresses and location.address:
            # as for addr2line: profilers send addresses as in the file, not as in the process
            return (self._frame(f"{module}+{location.address:#x}" if module else f"{location.address:#x}", module, language),)
        # an address means nothing to a reader, and would make many functions of one
        return (self._frame(*nameless(module, language)),) if module else UNKNOWN

    def _with_inlined(self, indices):
        try:
            return Stack(chain.from_iterable(map(self._location_at, indices)))
        except KeyError:
            return Stack(chain.from_iterable(entry_at(self._locations, index) or UNKNOWN for index in indices))

    def _of_stack(self, stack):
        indices = stack.location_indices[:]
        try:
            frames = Stack(map(self._only_frame_at, indices))
        except KeyError:
            frames = self._with_inlined(indices)
        return Stack(outside_interpreter(frames)) if self._has_python else frames


def process_of(resource):
    """Returns the process's identity as labels; () where the resource has none."""
    found = {attribute.key: attribute.value for attribute in resource.attributes if attribute.key in PROCESS}
    return tuple((key, text_of(found[key], ())) for key in PROCESS if key in found)


def _measured(sample_type, period):
    """Returns a function that gives what a value of such samples stands for."""
    if sample_type in IN_PERIODS:
        return lambda value: value * period / 1e9
    if sample_type in IN_NANOSECONDS:
        return lambda value: value / 1e9
    return lambda value: value


def _sums(profile, names, labels):
    """Returns the value by stack and labels."""
    sums = {}
    for sample in profile.samples:
        values = sample.values
        # without values, each timestamp is one observation
        value = sum(values) if values else len(sample.timestamps_unix_nano)
        if value > 0:
            known = len(sums)
            key = names.stack(sample), labels.of(sample)
            before = sums.setdefault(key, value)
            if len(sums) == known:
                sums[key] = before + value
    measured = names.measured(profile)
    if measured(1) <= 0:  # with a period of 0 samples stand for nothing
        return {}
    for key, value in sums.items():
        sums[key] = measured(value)
    return sums


def _profiles(message, sample_types, addresses, lines, places):
    """Yields (process, sample type, profile, value by stack and labels) of each profile of these types."""
    names = Names(message.dictionary, addresses, lines, places)
    labels = Labels(message.dictionary)
    for resource_profiles in message.resource_profiles:
        process = process_of(resource_profiles.resource)
        for scope in resource_profiles.scope_profiles:
            for profile in scope.profiles:
                sample_type = names.string(profile.sample_type.type_strindex)
                if sample_type in sample_types:
                    yield process, sample_type, profile, _sums(profile, names, labels)


# --- all messages ---


def outside_libc(stack):
    """Returns the stack of a wait without frames inside of the libc function that the program called.
    pthread_mutex_lock means more to a reader than futex_wait, which has other names in other libcs."""
    inside = next((depth for depth, frame in enumerate(stack) if frame.module != LIBC), len(stack))
    if not 0 < inside < len(stack) or stack[inside - 1].name.startswith(LIBC_BEGINS):
        return stack
    return stack[inside - 1 :]


def _waits_outside_libc(profile):
    samples = {}
    waiting = {labels: any(name == WAIT_KIND for name, _ in labels) for _, labels in profile.samples}
    for (stack, labels), value in profile.samples.items():
        key = outside_libc(stack) if waiting[labels] else stack, labels
        samples[key] = samples.get(key, 0) + value
    return replace(profile, samples=samples)


def _add(target, sums):
    if not target:
        target.update(sums)
        return
    for key, value in sums.items():
        target[key] = target.get(key, 0) + value


class _Sums:
    """Adds the messages up, by process and sample type."""

    def __init__(self):
        self.processes = set()
        self._deltas = {}
        self._latest = {}  # by instance and sample type: (time, parts by profile id)

    def take(self, process, sample_type, is_snapshot, profile, sums):
        if not is_snapshot:
            _add(self._deltas.setdefault((process, sample_type), {}), sums)
            return
        # uses the snapshot's time: an export that is tried again arrives late, or twice; and a large snapshot comes
        # in parts of one time
        key = dict(process).get(INSTANCE), sample_type
        time = profile.time_unix_nano
        if time > self._latest.get(key, (-1, None))[0]:
            self._latest[key] = time, {}
        if time == self._latest[key][0]:
            self._latest[key][1][profile.profile_id] = process, sums

    def _all(self):
        for (process, sample_type), sums in self._deltas.items():
            yield process, sample_type, sums
        for (_, sample_type), (_, parts) in self._latest.items():
            for process, sums in parts.values():
                yield process, sample_type, sums

    def put_into(self, targets):
        """Adds the sums to the dictionary of each sample type. Where there are several processes, each is a label."""
        are_several = len(self.processes) > 1
        for process, sample_type, sums in self._all():
            if not (are_several and process):
                _add(targets[sample_type], sums)
                continue
            marked = {labels: tuple(sorted({**dict(labels), **dict(process)}.items())) for _, labels in sums}
            _add(targets[sample_type], {(stack, marked[labels]): value for (stack, labels), value in sums.items()})


def _add_coverage(covered, message):
    """Adds the time of all profiles: one that has samples shows that the time was recorded, whatever its kind."""
    for resource_profiles in message.resource_profiles:
        for scope in resource_profiles.scope_profiles:
            for profile in scope.profiles:
                covered.add_profile(profile, message.dictionary)


def aggregate(messages, addresses=False, lines=False, inside_libc=False, kinds=KINDS):
    """Profiles by kind, those without samples and of other than `kinds` left out. `messages` is read once.

    Code without a name is one frame for each module, or, with `addresses`, for each address. A function is
    one frame, or, with `lines`, one for each of its lines, where the file has debug information. Where there are
    several processes, the samples of each have its PROCESS as labels. Waits end in the libc function that the program
    called, or, with `inside_libc`, inside of it.
    """
    result = {name: Profile(kind.title, kind.unit, noun=kind.noun) for name, kind in KINDS.items() if name in kinds}
    targets = {}  # targets by sample type
    kind_of = {}  # kinds by sample type
    for name in result:
        kind = KINDS[name]
        targets[kind.shown.type] = result[name].samples
        kind_of[kind.shown.type] = name, kind
        if kind.objects:
            targets[kind.objects.type] = result[name].counts
            kind_of[kind.objects.type] = name, kind
    found = _Sums()
    covered = Coverage()
    places = {}
    for profile in result.values():
        profile.sampling.covered, profile.places = covered, places
    for message in messages:
        _add_coverage(covered, message)
        found.processes.update(process_of(it.resource) for it in message.resource_profiles)
        for process, sample_type, profile, sums in _profiles(message, targets, addresses, lines, places):
            name, kind = kind_of[sample_type]
            result[name].sampling.add(process, profile, message.dictionary)
            found.take(process, sample_type, kind.is_snapshot, profile, sums)
    found.put_into(targets)
    if not inside_libc:
        result |= {name: _waits_outside_libc(result[name]) for name in ("off_cpu", "threads") if name in result}
    return {name: profile for name, profile in result.items() if profile.samples}


def self_and_total(values):
    """Returns [self, total] by frame, of a value by stack."""
    sums = {}
    for stack, value in values.items():
        sums.setdefault(stack[0], [0, 0])[0] += value
        for frame in set(stack):  # recursion counts once
            sums.setdefault(frame, [0, 0])[1] += value
    return sums


def by_function(profile):
    """Returns (frame, self, total) of each function, hottest first."""
    rows = [(frame, own, total) for frame, (own, total) in self_and_total(profile.stacks).items()]
    # sums of the same values differ by the order in which they are added up
    return sorted(rows, key=lambda row: (-round(row[1], 9), -round(row[2], 9), row[0]))
