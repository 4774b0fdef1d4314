"""Lists which samples of an export belong to which span, and which labels they carry."""

from collections import Counter
from dataclasses import dataclass

from profiled import names_of


@dataclass(frozen=True)
class LinkedSample:
    trace: str  # hexadecimal digits; "": no link
    span: str
    labels: frozenset  # pairs (key, value)
    stack: tuple  # function names, leaf first
    objects: tuple  # file names, leaf first


def objects_of(dictionary, stack_index):
    mappings = [dictionary.location_table[index].mapping_index
                for index in dictionary.stack_table[stack_index].location_indices]
    names = [dictionary.string_table[dictionary.mapping_table[index].filename_strindex] for index in mappings]
    return tuple(name.rsplit("/", 1)[-1] for name in names)


def labels_of(dictionary, sample):
    strings = dictionary.string_table
    attributes = [dictionary.attribute_table[index] for index in sample.attribute_indices]
    return frozenset((strings[a.key_strindex], a.value.string_value) for a in attributes
                     if not strings[a.key_strindex].startswith(("thread.", "otelprof.", "cpu.")))


def linked_samples(outcome, kind="samples"):
    """Returns LinkedSample -> value, of all processes and exports."""
    found = Counter()
    for request in outcome.requests:
        dictionary = request.dictionary
        profiles = [profile for resource in request.resource_profiles for scope in resource.scope_profiles
                    for profile in scope.profiles
                    if dictionary.string_table[profile.sample_type.type_strindex] == kind]
        for sample in (sample for profile in profiles for sample in profile.samples):
            link = dictionary.link_table[sample.link_index]
            key = LinkedSample(link.trace_id.hex() if sample.link_index else "",
                               link.span_id.hex() if sample.link_index else "", labels_of(dictionary, sample),
                               names_of(dictionary, sample.stack_index), objects_of(dictionary, sample.stack_index))
            found[key] += sum(sample.values)
    return found
