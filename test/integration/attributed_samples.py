"""Lists the samples of an export with all attributes: of the thread, of its wait, and of its lock."""

from dataclasses import dataclass

from profiled import names_of, value_of


@dataclass(frozen=True)
class AttributedSample:
    kind: str  # the profile's sample type
    value: int
    stack: tuple  # function names, leaf first
    attributes: dict  # key -> value
    export: int  # the number of the request in the outcome


def attributed_samples(outcome, *kinds):
    """Returns all samples of those types, of all processes and exports."""
    found = []
    for number, request in enumerate(outcome.requests):
        dictionary = request.dictionary
        strings = dictionary.string_table
        for profile in (profile for resource in request.resource_profiles for scope in resource.scope_profiles
                        for profile in scope.profiles):
            kind = strings[profile.sample_type.type_strindex]
            if kind not in kinds:
                continue
            for sample in profile.samples:
                attributes = {strings[a.key_strindex]: value_of(a.value)
                              for a in (dictionary.attribute_table[i] for i in sample.attribute_indices)}
                found.append(AttributedSample(kind, sum(sample.values), names_of(dictionary, sample.stack_index),
                                              attributes, number))
    return found
