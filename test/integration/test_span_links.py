"""The span that a thread works for reaches receivers as a link, and its labels as attributes."""

import json

import pytest

from profiled import EXACT_CPU, names_of
from pyroscope_rules import refusals, series, spans

import common_pb2

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPANS = {"a": "00f067aa0ba902b7", "b": "fff067aa0ba90200"}
# the function that works for each span, and for no span
WORK = {"works_for_a": ("a", "/a"), "works_for_b": ("b", "/b"), "works_for_none": (None, None)}
EVERY = {**EXACT_CPU, "OTEL_PROFILER_ALLOC_INTERVAL": "20000", "OTEL_PROFILER_TYPES": "cpu,alloc"}


@pytest.fixture
def work(run, program):
    def go(times=2, **env):
        outcome = run([program("serves_spans"), str(times)], env={**EVERY, **env}, log_to_stderr=True)
        assert (outcome.returncode, outcome.stdout) == (0, "worked\n")
        return outcome

    return go


def attributes_of(dictionary, sample):
    found = {}
    for index in sample.attribute_indices:
        attribute = dictionary.attribute_table[index]
        value = attribute.value
        found[dictionary.string_table[attribute.key_strindex]] = getattr(value, value.WhichOneof("value"))
    return found


def samples_of(requests):
    """Returns (type, function of WORK, its link as (trace, span) or None, attributes, value) of each sample."""
    for request in requests:
        dictionary = request.dictionary
        for profile in (p for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles):
            kind = dictionary.string_table[profile.sample_type.type_strindex]
            for sample in profile.samples:
                work = next((n for n in names_of(dictionary, sample.stack_index) if n in WORK), None)
                link = dictionary.link_table[sample.link_index]
                ids = (link.trace_id.hex(), link.span_id.hex()) if sample.link_index else None
                if work:
                    yield kind, work, ids, attributes_of(dictionary, sample), sample.values[0]


def check_samples(requests, ids_as_attributes=False):
    """Asserts that each sample of a function has that function's span and label, and that each kind has all
    functions."""
    seen = {}
    for kind, work, ids, attributes, value in samples_of(requests):
        span, route = WORK[work]
        assert ids == (span and (TRACE, SPANS[span])), (kind, work)
        assert attributes.get("http.route") == route, (kind, work)
        assert attributes["thread.name"] == "serves_spans", "what the profiler knows wins"
        wanted = ids if ids_as_attributes and ids else (None, None)
        assert (attributes.get("trace_id"), attributes.get("span_id")) == wanted
        seen.setdefault(kind, set()).add(work)
        assert value > 0
    assert seen == {kind: set(WORK) for kind in ("samples", "alloc_objects", "alloc_space")}


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_samples_of_a_span_have_its_link_and_its_labels(work, protocol):
    outcome = work(OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
    check_samples(outcome.requests)
    (instance,) = outcome.instances()
    assert instance.dropped["context_key"] > 0, "a label that has the name of one of ours"
    assert outcome.stderr == ""


def test_ids_are_attributes_on_request(work):
    check_samples(work(OTEL_PROFILER_LINK_ATTRIBUTES="true").requests, ids_as_attributes=True)


def test_nothing_is_linked_where_no_source_is_read(work):
    found = list(samples_of(work(OTEL_PROFILER_CONTEXT="none").requests))
    assert found
    for _, _, ids, attributes, _ in found:
        assert ids is None and "http.route" not in attributes


def test_labels_can_be_hidden(work):
    outcome = work(OTEL_PROFILER_REDACT="http.*")
    routes = {a.get("http.route") for _, _, _, a, _ in samples_of(outcome.requests)}
    assert routes == {None, "[REDACTED]"}
    assert not any(b'/a"' in body or b"\x02/a" in body for body in outcome.bodies)


def test_labels_are_sent_by_choice_and_spans_stay_linked(work):
    for choice, routes in (("none", {None}), ("user*,http.rout?", {None, "/a", "/b"})):
        outcome = work(OTEL_PROFILER_LABELS=choice)
        found = list(samples_of(outcome.requests))
        assert {a.get("http.route") for _, _, _, a, _ in found} == routes
        assert {ids for _, _, ids, _, _ in found} == {None, *((TRACE, span) for span in SPANS.values())}
        (instance,) = outcome.instances()
        assert "context_key" not in instance.dropped, "what was not chosen is not lost"


def test_pyroscope_selects_by_spans_and_makes_no_series_of_them(work):
    for environment in ({}, {"OTEL_PROFILER_LINK_ATTRIBUTES": "true"}):
        outcome = work(**environment)
        found = set()
        for request in outcome.requests:
            assert refusals(request) == []
            for profile, _, labels in series(request):
                names = [name for name, _ in labels]
                assert not {"span_id", "trace_id"} & set(names) and len(set(names)) == len(names)
                found |= set(spans(profile, request.dictionary))
        assert found == {(None, None), *((TRACE, span) for span in SPANS.values())}


def test_the_console_has_the_share_of_spans(run, program):
    outcome = run(
        [program("serves_spans"), "2"], log_to_stderr=True,
        env={**EVERY, "OTEL_PROFILES_EXPORTER": "console", "OTEL_PROFILE_EXPORT_INTERVAL": "86400000"},
    )
    assert outcome.returncode == 0
    assert outcome.stderr.count("% of it belongs to 2 spans\n") == 2, outcome.stderr


def test_a_file_has_ids_in_hexadecimal_digits(work, tmp_path):
    file = tmp_path / "profiles.jsonl"
    work(OTEL_PROFILES_EXPORTER="otlp_file", OTEL_PROFILER_FILE=str(file))
    found = set()
    for line in file.read_text().splitlines():
        found |= {(link.get("traceId", ""), link.get("spanId", "")) for link in json.loads(line)["dictionary"]["linkTable"]}
    assert found == {("", ""), *((TRACE, span) for span in SPANS.values())}


def payload(schema, *names):
    """Returns ProcessContext {2: attributes} with the names of keys, as hexadecimal digits."""
    texts = [common_pb2.AnyValue(string_value=name) for name in names]
    attributes = {
        "threadlocal.schema_version": common_pb2.AnyValue(string_value=schema),
        "threadlocal.attribute_key_map": common_pb2.AnyValue(array_value=common_pb2.ArrayValue(values=texts)),
    }
    pairs = [common_pb2.KeyValue(key=key, value=value).SerializeToString() for key, value in attributes.items()]
    return b"".join(b"\x12" + bytes([len(pair)]) + pair for pair in pairs).hex()


@pytest.fixture
def published(run, program):
    """published(payload...) -> (attributes of its linked samples, how many labels were left out)."""

    def go(*arguments):
        outcome = run([program("publishes_spans"), "3", *arguments], env={**EVERY, "OTEL_PROFILER_TYPES": "cpu"}, log_to_stderr=True)
        assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "worked\n", "")
        found = list(samples_of(outcome.requests))
        assert {work for _, work, *_ in found} == {"works_for_a", "works_for_none"}
        for _, work, ids, attributes, _ in found:
            assert ids == ((TRACE, SPANS["a"]) if work == "works_for_a" else None)
            assert ids or set(attributes) <= {"thread.id", "thread.name"}
        (instance,) = outcome.instances()
        linked = [attributes for _, _, ids, attributes, _ in found if ids]
        assert linked
        return linked, instance.dropped.get("context_key", 0)

    return go


@pytest.mark.parametrize("schema", ["tlsdesc_v1_dev", "tls_v1"])
def test_keys_get_their_names_from_the_process_context(published, schema):
    linked, left_out = published(payload(schema, "http.route", "tenant"))
    for attributes in linked:
        assert (attributes["http.route"], attributes["tenant"]) == ("/a", "last")
        assert set(attributes) == {"http.route", "tenant", "thread.id", "thread.name"}
    assert left_out >= len(linked), "key 9 has no name"


def test_without_a_process_context_a_span_is_linked(published):
    for arguments in ([], [payload("tls_v9", "http.route", "tenant")]):
        linked, left_out = published(*arguments)
        assert all(set(attributes) == {"thread.id", "thread.name"} for attributes in linked)
        assert left_out >= 3 * len(linked), "without names of keys"


def test_a_key_that_pyroscope_refuses_is_sent_as_it_is_and_can_be_left_out(run, program):
    command = [program("publishes_spans"), "3", payload("tls_v1", "http.route", "user-id")]
    for choice, keys, refused in (("*", {"http.route", "user-id"}, True), ("http.*", {"http.route"}, False)):
        outcome = run(command, env={**EVERY, "OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILER_LABELS": choice})
        found = {key for *_, attributes, _ in samples_of(outcome.requests) for key in attributes}
        assert found - {"thread.id", "thread.name"} == keys
        said = [text for request in outcome.requests for text in refusals(request)]
        assert bool(said) == refused and all("invalid label name 'user-id'" in text for text in said)
