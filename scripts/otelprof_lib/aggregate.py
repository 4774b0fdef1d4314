"""From messages to sums: what each stack accounts for, over all processes and intervals.

CPU and allocations add up. The live heap is a snapshot, so only each process's last one counts.
"""

from dataclasses import dataclass, field

# what is shown, from which sample type, in which unit
KINDS = {
    "cpu": ("CPU time", "samples", "seconds"),
    "alloc": ("allocated", "alloc_space", "bytes"),
    "heap": ("live heap", "inuse_space", "bytes"),
}


@dataclass
class Profile:
    """One kind of measurement: value by stack, leaf first."""

    title: str
    unit: str
    stacks: dict = field(default_factory=dict)

    @property
    def total(self):
        return sum(self.stacks.values())

    def add(self, stack, value):
        self.stacks[stack] = self.stacks.get(stack, 0) + value


def _strings(message):
    return message.dictionary.string_table


def _location_names(message):
    """The names of each location, innermost first."""
    dictionary = message.dictionary
    strings = dictionary.string_table
    names = []
    for location in dictionary.location_table:
        lines = []
        for line in location.lines:
            function = dictionary.function_table[line.function_index]
            lines.append(strings[function.name_strindex] or strings[function.system_name_strindex])
        if not lines:
            mapping = dictionary.mapping_table[location.mapping_index]
            # code without symbols is shown as its module: its functions cannot be told apart here
            lines.append(f"[{strings[mapping.filename_strindex] or 'unknown'}]")
        names.append(tuple(lines))
    return names


def _stack_names(message):
    locations = _location_names(message)
    return [
        tuple(name for index in stack.location_indices for name in locations[index])
        for stack in message.dictionary.stack_table
    ]


def _instance(resource):
    for attribute in resource.attributes:
        if attribute.key == "service.instance.id":
            return attribute.value.string_value
    return ""


def _unit_scale(profile, strings):
    """What one count is worth: seconds for CPU samples, 1 for bytes."""
    if strings[profile.sample_type.unit_strindex] == "count":
        return profile.period / 1e9
    return 1


def _sums(profile, stacks, scale):
    sums = {}
    for sample in profile.samples:
        stack = stacks[sample.stack_index] or ("[unknown]",)
        sums[stack] = sums.get(stack, 0) + sum(sample.values) * scale
    return sums


def aggregate(messages):
    """Profiles by kind, those without samples left out."""
    result = {kind: Profile(title, unit) for kind, (title, _, unit) in KINDS.items()}
    by_type = {sample_type: kind for kind, (_, sample_type, _) in KINDS.items()}
    last_heap = {}
    for message in messages:
        strings = _strings(message)
        stacks = _stack_names(message)
        for resource_profiles in message.resource_profiles:
            instance = _instance(resource_profiles.resource)
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    kind = by_type.get(strings[profile.sample_type.type_strindex])
                    if not kind:
                        continue
                    sums = _sums(profile, stacks, _unit_scale(profile, strings))
                    if kind == "heap":
                        last_heap[instance] = sums
                        continue
                    for stack, value in sums.items():
                        result[kind].add(stack, value)
    for sums in last_heap.values():
        for stack, value in sums.items():
            result["heap"].add(stack, value)
    return {kind: profile for kind, profile in result.items() if profile.stacks}


def by_function(profile):
    """(name, self, total) of each function, hottest first."""
    own = {}
    total = {}
    for stack, value in profile.stacks.items():
        own[stack[0]] = own.get(stack[0], 0) + value
        for name in set(stack):  # recursion counts once
            total[name] = total.get(name, 0) + value
    rows = [(name, own.get(name, 0), value) for name, value in total.items()]
    return sorted(rows, key=lambda row: (-row[1], -row[2], row[0]))
