"""From messages to sums: what each stack accounts for, over all processes and intervals.

CPU and allocations add up. The live heap is a snapshot, so only each process's last one counts, in
all its parts.
"""

import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kind:
    title: str
    unit: str
    sample_type: str
    objects_type: str = ""  # its companion, which counts objects
    is_snapshot: bool = False


# in the order of display
KINDS = {
    "cpu": Kind("CPU time", "seconds", "samples"),
    "alloc": Kind("allocated", "bytes", "alloc_space", "alloc_objects"),
    "heap": Kind("live heap", "bytes", "inuse_space", "inuse_objects", is_snapshot=True),
}
UNKNOWN = ("[unknown]",)


@dataclass
class Profile:
    """One kind of measurement: value by stack, leaf first."""

    title: str
    unit: str
    stacks: dict = field(default_factory=dict)
    objects: dict = field(default_factory=dict)  # how many, by stack; empty for CPU time

    @property
    def total(self):
        return sum(self.stacks.values())


# --- one message ---


def _entry(table, index):
    """An entry of a dictionary's table; None where a broken message points outside."""
    return table[index] if 0 <= index < len(table) else None


class _Names:
    """A message's strings and stacks."""

    def __init__(self, dictionary):
        self._dictionary = dictionary
        self._locations = [self._of_location(location) for location in dictionary.location_table]
        self._stacks = [self._of_stack(stack) for stack in dictionary.stack_table]

    def string(self, index):
        return _entry(self._dictionary.string_table, index) or ""

    def stack(self, index):
        return _entry(self._stacks, index) or UNKNOWN

    def _of_line(self, line):
        function = _entry(self._dictionary.function_table, line.function_index)
        if not function:
            return ""
        return self.string(function.name_strindex) or self.string(function.system_name_strindex)

    def _of_location(self, location):
        """Innermost first: inlined functions come before their callers."""
        names = tuple(self._of_line(line) or UNKNOWN[0] for line in location.lines)
        if names:
            return names
        mapping = _entry(self._dictionary.mapping_table, location.mapping_index)
        module = os.path.basename(self.string(mapping.filename_strindex)) if mapping else ""
        if not module and not location.address:
            return UNKNOWN
        # what addr2line takes: profilers send addresses as in the file, not as in the process
        return (f"{module}+{location.address:#x}" if module else f"{location.address:#x}",)

    def _of_stack(self, stack):
        return tuple(
            name
            for index in stack.location_indices
            for name in (_entry(self._locations, index) or UNKNOWN)
        )


def _instance(resource):
    for attribute in resource.attributes:
        if attribute.key == "service.instance.id":
            return attribute.value.string_value
    return ""


def _sums(profile, names):
    # CPU samples are counted; each stands for one period
    is_cpu = names.string(profile.sample_type.type_strindex) == KINDS["cpu"].sample_type
    scale = profile.period / 1e9 if is_cpu else 1
    sums = {}
    for sample in profile.samples:
        # without values, each timestamp is one observation
        value = sum(sample.values) if sample.values else len(sample.timestamps_unix_nano)
        stack = names.stack(sample.stack_index)
        sums[stack] = sums.get(stack, 0) + value * scale
    return sums


def _profiles(message):
    """(instance, sample type, time, id, value by stack) of each profile."""
    names = _Names(message.dictionary)
    for resource_profiles in message.resource_profiles:
        instance = _instance(resource_profiles.resource)
        for scope in resource_profiles.scope_profiles:
            for profile in scope.profiles:
                sample_type = names.string(profile.sample_type.type_strindex)
                sums = _sums(profile, names)
                yield instance, sample_type, profile.time_unix_nano, profile.profile_id, sums


# --- all of them ---


def _add(target, sums):
    for stack, value in sums.items():
        target[stack] = target.get(stack, 0) + value


def aggregate(messages):
    """Profiles by kind, those without samples left out."""
    result = {name: Profile(kind.title, kind.unit) for name, kind in KINDS.items()}
    targets = {}  # by sample type
    for name, kind in KINDS.items():
        targets[kind.sample_type] = (result[name].stacks, kind.is_snapshot)
        targets[kind.objects_type] = (result[name].objects, kind.is_snapshot)
    targets.pop("")
    latest = {}
    for message in messages:
        for instance, sample_type, time, number, sums in _profiles(message):
            target, is_snapshot = targets.get(sample_type, (None, False))
            if target is None:
                continue
            if not is_snapshot:
                _add(target, sums)
                continue
            # by its time: an export that is tried again arrives late, or twice; and a large snapshot
            # comes in parts of one time
            key = instance, sample_type
            if time > latest.get(key, (-1, None))[0]:
                latest[key] = time, {}
            if time == latest[key][0]:
                latest[key][1][number] = sums
    for (_, sample_type), (_, parts) in latest.items():
        for sums in parts.values():
            _add(targets[sample_type][0], sums)
    return {name: profile for name, profile in result.items() if profile.stacks}


def self_and_total(values):
    """By function name: [self, total] of a value by stack."""
    sums = {}
    for stack, value in values.items():
        sums.setdefault(stack[0], [0, 0])[0] += value
        for name in set(stack):  # recursion counts once
            sums.setdefault(name, [0, 0])[1] += value
    return sums


def by_function(profile):
    """(name, self, total) of each function, hottest first."""
    rows = [(name, own, total) for name, (own, total) in self_and_total(profile.stacks).items()]
    return sorted(rows, key=lambda row: (-row[1], -row[2], row[0]))
