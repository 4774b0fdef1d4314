"""Each sample carries the span that its thread works for, or none, wherever the variable is."""

import re
import subprocess
from collections import Counter, namedtuple

import pytest
from profiled import ROOT, attributes_of

pytestmark = pytest.mark.system

PROGRAMS = ROOT / "test" / "programs"
SPAN = re.compile(r"span_(\d)$")
# Lists the ways in which a compiler accesses a thread-local variable (-ftls-model, -mtls-dialect).
MODELS = {
    "general-dynamic": ["-ftls-model=global-dynamic"],
    "descriptors": ["-ftls-model=global-dynamic", "-mtls-dialect=gnu2"],
    "initial-exec": ["-ftls-model=initial-exec"],
}
QUICK = {"OTEL_PROFILE_EXPORT_INTERVAL": "100", "OTEL_PROFILER_CPU_FREQUENCY": "500"}

Tally = namedtuple("Tally", "right wrong without by_span")
# Is a sample: the number of its request; its thread; the spans that the stack and the link name.
Sample = namedtuple("Sample", "request thread span link value")


def samples_of(requests, kind):
    """Returns each sample of that kind whose stack names a span."""
    for number, request in enumerate(requests):
        strings = request.dictionary.string_table
        for profile in (p for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles):
            if strings[profile.sample_type.type_strindex] != kind:
                continue
            for sample in profile.samples:
                span = span_of(request.dictionary, sample.stack_index)
                if span:
                    link = link_of(request.dictionary.link_table[sample.link_index])
                    yield Sample(number, thread_of(request.dictionary, sample), span, link, sample.values[0])


def thread_of(dictionary, sample):
    for attribute in (dictionary.attribute_table[index] for index in sample.attribute_indices):
        if dictionary.string_table[attribute.key_strindex] == "thread.id":
            return attribute.value.int_value
    raise AssertionError("a sample has no thread")


def span_of(dictionary, stack):
    for index in dictionary.stack_table[stack].location_indices:
        for line in dictionary.location_table[index].lines:
            found = SPAN.match(dictionary.string_table[dictionary.function_table[line.function_index].name_strindex])
            if found:
                return int(found[1])
    return 0


def link_of(link):
    """Returns the span of a link; 0: no link; -1: an id that no record has."""
    if not link.span_id:
        return 0
    span = link.span_id[-1]
    whole = link.trace_id == bytes([span]) * 16 and link.span_id[1:] == bytes([span]) * 7 and 0 < link.span_id[0] <= 8
    return span if whole else -1


def tally(requests, kind="samples"):
    return tally_of(samples_of(requests, kind))


def tally_of(samples):
    right, wrong, without, by_span = 0, [], 0, Counter()
    for sample in samples:
        right += sample.value if sample.link == sample.span else 0
        without += sample.value if sample.link == 0 else 0
        by_span[sample.span] += sample.value
        if sample.link not in (0, sample.span):
            wrong.append((sample.span, sample.link))
    return Tally(right, wrong, without, by_span)


def tally_from_first_link(requests, kind="samples"):
    """Tallies of each thread the samples in requests behind the request with the thread's own first link. A variable
    is found some milliseconds after it was loaded, or whenever the helper runs; a handler that began before ends when
    its thread runs, and another thread may have links by then. So a thread that never has a link may be late by one
    sample: it counts from its second request behind the first link of any thread."""
    samples = list(samples_of(requests, kind))
    linked = [s for s in samples if s.link]
    assert linked, "no sample has a link"
    begin = {}
    for sample in linked + [s for s in samples if s.request > linked[0].request]:
        begin.setdefault(sample.thread, sample.request)
    return tally_of(s for s in samples if s.thread in begin and s.request > begin[s.thread])


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """build(source, name, *flags) -> the path of what gcc makes of the source."""
    folder = tmp_path_factory.mktemp("spans")

    def compile_it(source, name, *flags):
        path = folder / name
        if not path.exists():
            subprocess.run(["gcc", "-O2", "-g", "-o", path, PROGRAMS / source, "-pthread", "-ldl", *flags], check=True)
        return path

    return compile_it


def library_of(build, model):
    return build("spans.so.c", f"libspans-{model}.so", "-shared", "-fPIC", *MODELS[model])


def program_of(build, place, model):
    """Returns the command without its arguments."""
    if place == "executable":
        return [build("works_for_spans.c", f"own-{model}", "-rdynamic", *MODELS[model])], []
    library = library_of(build, model)
    if place == "linked":
        return [build("works_for_spans.c", f"linked-{model}", "-DLINKED", library, f"-Wl,-rpath,{library.parent}")], []
    return [build("works_for_spans.c", "loads", "-rdynamic")], [library]


def expect_truth(outcome, least):
    """Asserts that no link is wrong, and that 99.9 % of the samples that could have a link have one."""
    assert outcome.returncode == 0, outcome.stderr
    everything = tally(outcome.requests)
    assert not everything.wrong
    late = tally_from_first_link(outcome.requests)
    assert late.right >= least, "hardly a sample to judge by"
    assert late.without <= 0.001 * (late.right + late.without) or late.without <= 1, late


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("place", ["executable", "linked", "loaded"])
def test_samples_have_their_span(run, build, place, model):
    """Tries both ways to write a record, and every way to find the variable."""
    command, library = program_of(build, place, model)
    mode = "fixed" if model == "initial-exec" else "swap"
    outcome = run([*command, "2", "600", mode, *library], env=QUICK)
    expect_truth(outcome, 20)


def test_a_thousand_spans_a_second_on_eight_threads(run, build):
    """The CPU time of each span is also what the program has measured."""
    outcome = run([build("works_for_spans.c", "loads", "-rdynamic"), "8", "800", "swap", library_of(build, "descriptors")],
                  env=QUICK)
    expect_truth(outcome, 300)
    measured = {int(span): int(microseconds) for span, microseconds in map(str.split, outcome.stdout.splitlines())}
    sampled = tally(outcome.requests).by_span
    total = sum(sampled.values())
    for span, microseconds in measured.items():
        share = microseconds / sum(measured.values())
        # the kernel's ticks are 4 ms, or 10: the bound is five standard deviations of a sum of that many ticks
        assert abs(sampled[span] / total - share) < 5 * (share / (sum(measured.values()) / 10_000)) ** 0.5, (span, share)


def test_sampled_allocations_have_their_span(run, build):
    outcome = run([build("works_for_spans.c", "own-allocations", "-rdynamic"), "2", "900", "swap"],
                  env={**QUICK, "OTEL_PROFILER_ALLOC_INTERVAL": "4096"})
    expect_truth(outcome, 20)
    allocations = tally(outcome.requests, "alloc_objects")
    assert not allocations.wrong
    late = tally_from_first_link(outcome.requests, "alloc_objects")
    assert late.right > 20 and late.without <= 0.001 * late.right, late


@pytest.mark.parametrize("model", ["general-dynamic", "descriptors"])
def test_a_library_that_is_loaded_again_is_found_again(run, build, model):
    """Other threads use the library, loaded at the same place or at another."""
    outcome = run([build("works_for_spans.c", "loads", "-rdynamic"), "2", "300", "swap", library_of(build, model), "3"],
                  env=QUICK)
    assert outcome.returncode == 0, outcome.stderr
    found = tally(outcome.requests)
    assert not found.wrong
    assert found.right > 2 * found.without, "not in the first round alone"


def test_a_forked_childs_samples_have_their_span(run, build):
    """The child uses what its parent had found."""
    outcome = run([build("works_for_spans.c", "own-child", "-rdynamic"), "2", "500", "fork"], env=QUICK)
    assert outcome.returncode == 0, outcome.stderr
    by_process = {}
    for request in outcome.requests:
        for resource in request.resource_profiles:
            by_process.setdefault(attributes_of(resource.resource)["process.pid"], []).append(request)
    assert len(by_process) == 2
    for requests in by_process.values():
        found = tally(requests)
        assert not found.wrong and found.right > 10 * found.without, found


@pytest.mark.parametrize("publisher", ["spans.so.c", "reuses_number.c"])
def test_the_context_of_an_unloaded_library_is_no_span(run, build, publisher):
    """Where a publisher has the number that the unloaded library had, a thread's vector still leads to the library's
    memory: to another variable, or, if the publisher's is behind the end of that memory, to none."""
    dynamic = ["-shared", "-fPIC", *MODELS["general-dynamic"]]
    used = build("reuses_number.c", "libused.so", *dynamic, "-DUSED")
    second = build(publisher, f"lib-{publisher}.so", *dynamic, "-DFAR_PUBLISHER")
    outcome = run([build("reuses_number.c", "reuses_number"), used, second], env=QUICK)
    assert outcome.returncode == 0, outcome.stderr
    assert len(set(outcome.stdout.split())) == 1, "it has the number"
    for request in outcome.requests:
        assert len(request.dictionary.link_table) == 1, request.dictionary.link_table
