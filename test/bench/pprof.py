"""Converts the samples of an OTLP export to one message of pprof's profile.proto, for comparing sizes.

Written from the published field numbers. Everything that a sample, location, function or mapping has in the export is
kept; what the OTLP profiles share (pprof has one list of samples with a value of each type) is written once, and
nothing that no sample refers to. Resource attributes have no place in pprof.
"""

CPU = ("samples",)
HEAP = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
UNITS = {"alloc_space": "bytes", "inuse_space": "bytes"}


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    """Encodes a varint field; 0 is left out, as proto3 does."""
    return varint(field << 3) + varint(value) if value else b""


def block(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def packed(field, values):
    content = b"".join(map(varint, values))
    return block(field, content) if content else b""


class Message:
    """Is profile.proto's Profile, of the profiles of these types. Locations, functions and mappings keep the
    dictionary's numbers, whose 0 means `not set` there as well."""

    def __init__(self, request, types):
        self.types = types
        self.dictionary = request.dictionary
        self.strings = {"": 0}
        self.samples = {}  # (stack, attributes, link) -> value of each type
        self.used = {"location": set(), "function": set(), "mapping": set()}
        self.first = None
        for resource in request.resource_profiles:
            for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
                if self.type_of(profile) in types:
                    self.add(profile)

    def text(self, index):
        """Returns the string's number in this message."""
        return self.string(self.dictionary.string_table[index])

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def type_of(self, profile):
        return self.dictionary.string_table[profile.sample_type.type_strindex]

    def add(self, profile):
        self.first = self.first or profile
        at = self.types.index(self.type_of(profile))
        for sample in profile.samples:
            key = (sample.stack_index, tuple(sample.attribute_indices), sample.link_index)
            if key not in self.samples:
                self.samples[key] = [0] * len(self.types)
                self.use(self.dictionary.stack_table[sample.stack_index].location_indices)
            self.samples[key][at] += sample.values[0]

    def use(self, locations):
        for index in set(locations) - self.used["location"]:
            location = self.dictionary.location_table[index]
            self.used["location"].add(index)
            self.used["mapping"].add(location.mapping_index)
            self.used["function"].update(line.function_index for line in location.lines)

    def value_type(self, kind, unit):
        return number(1, self.string(kind)) + number(2, self.string(unit))

    def label(self, index):
        attribute = self.dictionary.attribute_table[index]
        key = number(1, self.text(attribute.key_strindex))
        kind = attribute.value.WhichOneof("value")
        if kind == "int_value":
            return key + number(3, attribute.value.int_value)
        text = attribute.value.string_value if kind == "string_value" else "true"
        return key + number(2, self.string(text))

    def span(self, index):
        link = self.dictionary.link_table[index]
        ids = (("trace_id", link.trace_id), ("span_id", link.span_id)) if index else ()
        return b"".join(block(3, number(1, self.string(k)) + number(2, self.string(v.hex()))) for k, v in ids)

    def sample(self, key, values):
        stack, attributes, link = key
        locations = self.dictionary.stack_table[stack].location_indices
        labels = b"".join(block(3, self.label(index)) for index in attributes) + self.span(link)
        return packed(1, locations) + packed(2, values) + labels

    def mapping(self, index, mapping):
        build_id = 0
        for at in mapping.attribute_indices:
            attribute = self.dictionary.attribute_table[at]
            if self.dictionary.string_table[attribute.key_strindex].endswith("build_id.gnu"):
                build_id = self.string(attribute.value.string_value)
        return (
            number(1, index) + number(2, mapping.memory_start) + number(3, mapping.memory_limit)
            + number(4, mapping.file_offset) + number(5, self.text(mapping.filename_strindex))
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
            number(1, index) + number(2, self.text(function.name_strindex))
            + number(3, self.text(function.system_name_strindex))
            + number(4, self.text(function.filename_strindex))
            + number(5, function.start_line)
        )

    def table(self, field, kind, encode):
        items = getattr(self.dictionary, f"{kind}_table")
        return b"".join(block(field, encode(i, items[i])) for i in sorted(self.used[kind]) if i)

    def encode(self):
        cpu = self.types == CPU
        body = b"".join(block(1, self.value_type(t, UNITS.get(t, "count"))) for t in self.types)
        body += b"".join(block(2, self.sample(key, v)) for key, v in self.samples.items())
        body += self.table(3, "mapping", self.mapping)
        body += self.table(4, "location", self.location)
        body += self.table(5, "function", self.function)
        body += number(9, self.first.time_unix_nano) + number(10, self.first.duration_nano)
        period = ("cpu", "nanoseconds") if cpu else ("space", "bytes")
        body += block(11, self.value_type(*period)) + number(12, self.first.period)
        return body + b"".join(block(6, text.encode()) for text in self.strings)
