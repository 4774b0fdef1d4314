"""Computes the shares of a program's CPU time by the kind of stack."""


class Shares:
    """Sums the samples that a signal took: `unsampled` time has no stack to judge.

    truncated: outer frames are missing. single: of these, those with one frame. unnamed: the innermost frame has no name.
    guided: the stack depends on a frame pointer in code without unwind tables.
    """

    def __init__(self):
        self.seconds = 0.0
        self.sums = dict.fromkeys(("truncated", "single", "unnamed", "guided"), 0.0)
        self.types = {}  # profile.frame.type of the innermost frame: seconds

    def add(self, dictionary, resource_profiles):
        for scope in resource_profiles.scope_profiles:
            for profile in scope.profiles:
                if dictionary.string_table[profile.sample_type.type_strindex] == "samples":
                    for sample in profile.samples:
                        self._add_sample(dictionary, sample, sample.values[0] * profile.period / 1e9)

    def _add_sample(self, dictionary, sample, seconds):
        marks = {dictionary.string_table[it.key_strindex] for it in map(dictionary.attribute_table.__getitem__, sample.attribute_indices)
                 if it.value.bool_value}
        if "otelprof.stack.unsampled" in marks:
            return
        stack = [dictionary.location_table[at] for at in dictionary.stack_table[sample.stack_index].location_indices]
        is_truncated = "otelprof.stack.truncated" in marks
        self.seconds += seconds
        self.sums["truncated"] += seconds * is_truncated
        self.sums["single"] += seconds * (is_truncated and len(stack) == 1)
        self.sums["unnamed"] += seconds * is_unnamed(dictionary, stack)
        self.sums["guided"] += seconds * ("otelprof.stack.frame_pointers" in marks)
        kind = type_of(dictionary, stack[0]) if stack else ""
        self.types[kind] = self.types.get(kind, 0) + seconds

    def as_table(self):
        whole = self.seconds or 1
        types = {kind: seconds / whole for kind, seconds in sorted(self.types.items(), key=lambda it: -it[1])}
        return {"seconds": self.seconds, **{name: sum_ / whole for name, sum_ in self.sums.items()}, "types": types}


def is_unnamed(dictionary, stack):
    """`[module]` stands for code of a module that has no names."""
    if not stack or not stack[0].lines:
        return True
    function = dictionary.function_table[stack[0].lines[0].function_index]
    return dictionary.string_table[function.name_strindex].startswith("[")


def type_of(dictionary, location):
    for at in location.attribute_indices:
        attribute = dictionary.attribute_table[at]
        if dictionary.string_table[attribute.key_strindex] == "profile.frame.type":
            return attribute.value.string_value
    return ""
