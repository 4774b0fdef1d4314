"""Applies the rules of Pyroscope's OTLP endpoint, with its default limits, and its names for what it accepts.

The rules come from its source (2.x, August 2026): the conversion of OTLP, the splitting by labels of samples, and the
validation of labels and profiles. `refusals(request)` lists why the endpoint would respond with 400; `series` lists
the resulting series. A label's value is an attribute's text or whole number; other values make no label. A link
becomes the labels `span_id` and `trace_id` of its sample, which make no series of their own; `spans` lists the linked
spans.
"""

import re
import time

MAX_LABELS = 30
MAX_NAME_BYTES = 1024
MAX_VALUE_BYTES = 2048
MAX_SAMPLES = 16000
MAX_SAMPLE_LABELS = 100
SPAN_LABELS = ("span_id", "trace_id")
MAX_PROFILE_BYTES = 4 << 20
OLDEST_S, NEWEST_S = 3600, 600


def label_value(value):
    if value.HasField("string_value"):
        return value.string_value
    return str(value.int_value) if value.HasField("int_value") else ""


class Dictionary:
    def __init__(self, dictionary):
        self.tables = dictionary

    def string(self, index):
        return self.tables.string_table[index]

    def labels(self, indices):
        """Returns the labels of a sample: [(name, value)]."""
        found = []
        for index in indices:
            attribute = self.tables.attribute_table[index]
            value = label_value(attribute.value)
            if value and self.string(attribute.key_strindex) != "service.name":
                found.append((self.string(attribute.key_strindex), value))
        return found

    def all_labels(self, sample):
        link = self.tables.link_table[sample.link_index]
        ids = [("span_id", link.span_id.hex()), ("trace_id", link.trace_id.hex())] if sample.link_index else []
        return [*self.labels(sample.attribute_indices), *ids]

    def labels_of_series(self, sample):
        return tuple(label for label in self.all_labels(sample) if label[0] not in SPAN_LABELS)


def type_of(profile, names):
    """Returns (name, type, unit, period type, period unit), which queries name with colons between."""
    kind = [names.string(i) for i in (profile.sample_type.type_strindex, profile.sample_type.unit_strindex)]
    period = [names.string(i) for i in (profile.period_type.type_strindex, profile.period_type.unit_strindex)]
    if kind + period == ["samples", "count", "cpu", "nanoseconds"]:
        return ("process_cpu", "cpu", "nanoseconds", *period)
    return (period[0] if profile.period else "", *kind, *period)


def labels_of_resource(resource, scope, name):
    """Returns the resource's labels as they are counted: the service's name is there twice."""
    labels = [("__delta__", "false"), ("__otel__", "true"), ("__name__", name)]
    seen = set()
    service = "unknown_service"
    for attribute in [*resource.attributes, *scope.attributes]:
        value = label_value(attribute.value)
        if attribute.key == "service.name" and value:
            service = value
        if value and attribute.key not in seen:
            labels.append((attribute.key, value))
            seen.add(attribute.key)
    return [*labels, ("service_name", service)]


def series(request):
    """Returns (profile, its type, labels) of each series: one for each set of labels of its samples."""
    names = Dictionary(request.dictionary)
    for resource_profiles in request.resource_profiles:
        for scope_profiles in resource_profiles.scope_profiles:
            for profile in scope_profiles.profiles:
                kind = type_of(profile, names)
                common = labels_of_resource(resource_profiles.resource, scope_profiles.scope, kind[0])
                known = {name for name, _ in common}
                for group in {names.labels_of_series(sample) for sample in profile.samples}:
                    yield profile, kind, [*common, *(label for label in group if label[0] not in known)]


def spans(profile, dictionary):
    """Returns {(trace_id, span_id): value}, None for samples with neither: a query for spans selects from these."""
    names = Dictionary(dictionary)
    found = {}
    for sample in profile.samples:
        labels = dict(names.all_labels(sample))
        key = (labels.get("trace_id"), labels.get("span_id"))
        found[key] = found.get(key, 0) + sum(sample.values)
    return found


def wrong_labels(labels):
    if len(labels) > MAX_LABELS:
        yield f"profile series '{labels}' has {len(labels)} label names; limit {MAX_LABELS}"
    if not dict(labels)["__name__"]:
        yield "invalid metric name"
    values = {}
    for name, value in labels:
        if len(name.encode()) > MAX_NAME_BYTES or len(value.encode()) > MAX_VALUE_BYTES:
            yield f"label too long: {name}"
        if not re.fullmatch(r"[a-zA-Z_.][a-zA-Z0-9_.]*", name):
            yield f"invalid label name '{name}'"
        if values.setdefault(name.replace(".", "_"), value) != value:
            yield f"duplicate label name '{name}' after sanitization"


def wrong_profile(profile, kind, now):
    if not -OLDEST_S < profile.time_unix_nano / 1e9 - now < NEWEST_S:
        yield "outside of the ingestion window"
    if profile.ByteSize() > MAX_PROFILE_BYTES:
        yield f"{profile.ByteSize()} bytes"
    if len(profile.samples) > MAX_SAMPLES:
        yield f"{len(profile.samples)} samples"
    if any(len(sample.attribute_indices) > MAX_SAMPLE_LABELS for sample in profile.samples):
        yield "too many labels of a sample"
    if any(len(sample.values) != 1 for sample in profile.samples):
        yield "sample values length mismatch"
    if "-" in kind[1]:
        yield "sample type contains -"


def refusals(request):
    if not request.resource_profiles or not request.HasField("dictionary"):
        return ["nothing to take"]
    found = set()
    for profile, kind, labels in series(request):
        found.update(wrong_labels(labels))
        found.update(wrong_profile(profile, kind, time.time()))
    return sorted(found)
