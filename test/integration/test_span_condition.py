"""OTEL_PROFILER_CONDITION=span>200ms exports samples of long spans alone; test/programs/flushes_spans.c has both
kinds."""

import json

import pytest
from linked_samples import linked_samples

BOUND = 200e6  # the programs' long spans exceed this bound by their sleep alone
OBJECTS = 100  # objects that a span allocates at a time
# each allocation is sampled, so that the exports add up
EVERY = {"OTEL_PROFILE_EXPORT_INTERVAL": "86400000", "OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_TYPES": "alloc"}


class Spans:
    def __init__(self, run, program, condition, steps, **environment):
        self.outcome = run([program("flushes_spans"), *steps],
                           env={**EVERY, "OTEL_PROFILER_CONDITION": condition, **environment}, log_to_stderr=True)
        assert self.outcome.returncode == 0, self.outcome.stderr
        self.lasted = {}  # the longest span of each name
        for name, nano in json.loads(self.outcome.stdout):
            self.lasted[name] = max(nano, self.lasted.get(name, 0))

    def objects(self, function):
        return sum(instance.value_of(function, "alloc_objects") for instance in self.outcome.instances())

    def samples(self):
        """Returns how many lines of allocations were exported."""
        return sum(len(profile.samples) for request in self.outcome.requests for of in request.resource_profiles
                   for scope in of.scope_profiles for profile in scope.profiles
                   if request.dictionary.string_table[profile.sample_type.type_strindex] == "alloc_objects")

    def check_short(self, function="in_short", name="short"):
        """On a machine that stops for a while a short span lasts long, and may be exported or not."""
        assert self.lasted[name] > BOUND or self.objects(function) == 0


@pytest.fixture
def spans(run, program):
    return lambda condition, *steps, **environment: Spans(run, program, condition, steps, **environment)


def test_long_spans_alone_are_exported(spans):
    """This holds whatever happens beside the spans in the interval, at once or at the end of the process."""
    it = spans("span>200ms", "short", "long+", "short", "none", "short+", "long+", "none+")
    assert it.objects("in_long") == 4 * OBJECTS, "both of the long spans, and not what had none"
    it.check_short()
    assert it.objects("in_none") == 0
    assert all(sample.span for sample in linked_samples(it.outcome, "alloc_objects"))


def test_exported_and_dropped_samples_are_all(spans):
    steps = ["short", "none", "long+", "short+", "none", "long+"]
    everything, it = spans("none", *steps), spans("span>200ms", *steps)
    (instance,) = it.outcome.instances()
    assert it.samples() < everything.samples()
    assert it.samples() + instance.dropped["condition"] == everything.samples()
    assert it.objects("in_long") == 4 * OBJECTS
    assert "spans_full" not in instance.dropped


def test_a_span_may_pass_from_thread_to_thread(spans):
    assert spans("span>200ms", "passed").objects("passed_on") == 2 * OBJECTS


def test_samples_before_the_bound_are_not_exported(spans):
    it = spans("span>200ms", "begun", "short", "resumed")
    assert it.objects("in_resumed") == OBJECTS
    it.check_short("in_begun", "begun")
    it.check_short()


def test_a_span_that_sleeps_in_one_call_is_as_long_as_that(spans):
    """No CPU time of the span is sampled, and nothing is allocated in it."""
    it = spans("span>200ms", "sleeps", OTEL_PROFILER_TYPES="alloc,off_cpu", OTEL_PROFILER_WAIT_FREQUENCY="49")
    waits = linked_samples(it.outcome, "off_cpu")
    assert all(sample.span for sample in waits)
    assert sum(nano for sample, nano in waits.items() if "sleeps" in sample.stack) > BOUND


def test_nothing_is_sent_where_no_span_is_that_long(spans):
    it = spans("span>60min", "long", "short", "none", "passed+", OTEL_PROFILER_TYPES="cpu,alloc,heap,threads,off_cpu")
    assert it.outcome.requests == []


def test_any_of_several_is_enough(spans):
    """Where resident memory is above its bound the whole interval is exported, and its live heap."""
    it = spans("span>60min,rss>1KiB", "short", "none+", OTEL_PROFILER_TYPES="alloc,heap")
    assert it.objects("in_short") == OBJECTS
    assert it.objects("in_none") == 2 * OBJECTS
    it = spans("rss>4095GiB,span>200ms", "long", "none+")
    assert it.objects("in_long") == 2 * OBJECTS
    assert it.objects("in_none") == 0


def test_a_forked_child_measures_by_itself(spans):
    """Of the span that it was forked in, the child counts what it has seen itself."""
    it = spans("span>200ms", "forks")
    assert it.objects("child_in_own_span") == 2 * OBJECTS
    assert it.objects("in_forks") == 4 * OBJECTS, "the child was forked in there"
    it.check_short("child_in_parents_span", "child")


def test_the_live_heap_is_left_out_of_an_interval_that_is_exported_in_part(spans):
    """The live heap belongs to no span; and what is left out is not reported as freed."""
    it = spans("span>200ms", "long", "short+", OTEL_PROFILER_TYPES="alloc,heap")
    kinds = {request.dictionary.string_table[profile.sample_type.type_strindex] for request in it.outcome.requests
             for of in request.resource_profiles for scope in of.scope_profiles for profile in scope.profiles
             if profile.samples}
    assert kinds == {"alloc_objects", "alloc_space"}


def test_exports_are_the_same_with_a_listener(spans, tmp_path):
    """A client gets all samples: they are encoded before the condition, and the exports do not differ. (A short span
    may be long on a machine that stops for a while.)"""
    steps = ["short", "none", "long+", "short+", "none", "long+"]
    alone, asked = (spans("span>200ms", *steps, **listen) for listen in
                    ({}, {"OTEL_PROFILER_LISTEN": f"unix:{tmp_path / 'socket'}"}))
    lines = [it.samples() + it.outcome.instances()[0].dropped["condition"] for it in (asked, alone)]
    assert lines[0] == lines[1]
    exported = [{sample: value for sample, value in linked_samples(it.outcome, "alloc_objects").items()
                 if "in_short" not in sample.stack} for it in (asked, alone)]
    assert exported[0] == exported[1] != {}
    for it in (asked, alone):
        it.check_short()


def test_it_is_set_while_the_program_runs(run, program, tmp_path):
    """The control file sets the condition before the first span: capture records times from then on."""
    file = tmp_path / "runtime.conf"
    file.write_text("OTEL_PROFILER_CONDITION=span>200ms\n")
    file.chmod(0o600)
    it = Spans(run, program, "none", ["none", "long+", "none", "long+"], OTEL_PROFILER_CONTROL_FILE=str(file))
    assert it.objects("in_none") == 0
    assert it.objects("in_long") == 4 * OBJECTS


def test_every_exporter_gets_the_same(spans, tmp_path):
    file = tmp_path / "exports.jsonl"
    it = spans("span>200ms", "long+", "none", OTEL_PROFILES_EXPORTER="otlp,otlp_file,console", OTEL_PROFILER_FILE=str(file))
    written = file.read_text()
    assert len(it.outcome.requests) == len(written.splitlines()) == 1
    for text in (written, it.outcome.stderr):
        assert "in_long" in text and "in_none" not in text
