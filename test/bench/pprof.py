"""The samples of an OTLP export as one message of pprof's profile.proto, for comparing sizes.

Written from the published field numbers. Everything that a sample, location, function or mapping
says in the export is said here, too; what the five OTLP profiles share (pprof has one list of
samples with a value of each type) is said once. Resource attributes have no place in pprof.
"""

TYPES = ("samples", "alloc_objects", "alloc_space", "inuse_objects", "inuse_space")


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    """A varint field; 0 is left out, as proto3 does."""
    return varint(field << 3) + varint(value) if value else b""


def block(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def packed(field, values):
    content = b"".join(map(varint, values))
    return block(field, content) if content else b""


class Message:
    """profile.proto's Profile; its tables keep the dictionary's numbers, whose 0 means not set."""

    def __init__(self, request):
        self.dictionary = request.dictionary
        self.strings = {"": 0}
        for text in self.dictionary.string_table:
            self.string(text)
        self.samples = {}  # (stack, attributes) -> value of each type
        profiles = [
            profile
            for resource in request.resource_profiles
            for scope in resource.scope_profiles
            for profile in scope.profiles
        ]
        for profile in profiles:
            self.add(profile)
        self.first = profiles[0]

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def type_of(self, profile):
        return self.dictionary.string_table[profile.sample_type.type_strindex]

    def add(self, profile):
        at = TYPES.index(self.type_of(profile))
        for sample in profile.samples:
            key = (sample.stack_index, tuple(sample.attribute_indices))
            self.samples.setdefault(key, [0] * len(TYPES))[at] += sample.values[0]

    def value_type(self, kind, unit):
        return number(1, self.string(kind)) + number(2, self.string(unit))

    def label(self, index):
        attribute = self.dictionary.attribute_table[index]
        key = number(1, self.string(self.dictionary.string_table[attribute.key_strindex]))
        kind = attribute.value.WhichOneof("value")
        if kind == "int_value":
            return key + number(3, attribute.value.int_value)
        text = attribute.value.string_value if kind == "string_value" else "true"
        return key + number(2, self.string(text))

    def sample(self, key, values):
        stack, attributes = key
        locations = self.dictionary.stack_table[stack].location_indices
        labels = b"".join(block(3, self.label(index)) for index in attributes)
        return packed(1, locations) + packed(2, values) + labels

    def mapping(self, index, mapping):
        build_id = 0
        for at in mapping.attribute_indices:
            attribute = self.dictionary.attribute_table[at]
            if self.dictionary.string_table[attribute.key_strindex].endswith("build_id.gnu"):
                build_id = self.string(attribute.value.string_value)
        return (
            number(1, index) + number(2, mapping.memory_start) + number(3, mapping.memory_limit)
            + number(4, mapping.file_offset) + number(5, mapping.filename_strindex)
            + number(6, build_id) + b"".join(number(field, 1) for field in (7, 8, 9, 10))
        )

    def location(self, index, location):
        lines = b"".join(
            block(4, number(1, line.function_index) + number(2, line.line))
            for line in location.lines
        )
        return (
            number(1, index) + number(2, location.mapping_index) + number(3, location.address) + lines
        )

    def function(self, index, function):
        return (
            number(1, index) + number(2, function.name_strindex)
            + number(3, function.system_name_strindex) + number(4, function.filename_strindex)
            + number(5, function.start_line)
        )

    def table(self, field, items, encode):
        return b"".join(block(field, encode(i, item)) for i, item in enumerate(items) if i)

    def encode(self):
        d = self.dictionary
        units = {"samples": "count", "alloc_space": "bytes", "inuse_space": "bytes"}
        body = b"".join(block(1, self.value_type(t, units.get(t, "count"))) for t in TYPES)
        body += b"".join(block(2, self.sample(key, v)) for key, v in self.samples.items())
        body += self.table(3, d.mapping_table, self.mapping)
        body += self.table(4, d.location_table, self.location)
        body += self.table(5, d.function_table, self.function)
        body += number(9, self.first.time_unix_nano) + number(10, self.first.duration_nano)
        body += block(11, self.value_type("cpu", "nanoseconds")) + number(12, self.first.period)
        return body + b"".join(block(6, text.encode()) for text in self.strings)
