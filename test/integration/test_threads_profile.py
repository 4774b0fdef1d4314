"""The profile of all threads has each thread once, with what it does and where."""

import time

import pytest
from profiled import names_of

pytestmark = pytest.mark.system

SETTINGS = {"OTEL_PROFILE_EXPORT_INTERVAL": "86400000"}
WAITS = {  # thread -> its function, the kind of its wait, and whether such waits are for work
    "holds": ("holds_it", "poll", True),
    "sleeps": ("sleeps", "sleep", True),
    "works-never": ("waits_for_work", "cond", True),
    "wants": ("wants_it", "lock", False),
    "reads": ("reads", "io", False),
}
NAMES = {*WAITS, "computes"}
TRACE, SPAN = b"a thread's trace".hex(), b"its span".hex()


class Thread:
    """Is a sample of the profile."""

    def __init__(self, dictionary, sample):
        strings = dictionary.string_table
        attributes = [dictionary.attribute_table[index] for index in sample.attribute_indices]
        self.attributes = {strings[a.key_strindex]: value_of(a.value) for a in attributes}
        self.stack = names_of(dictionary, sample.stack_index)
        self.value = list(sample.values)
        link = dictionary.link_table[sample.link_index]
        self.link = (link.trace_id.hex(), link.span_id.hex()) if sample.link_index else None

    def __getattr__(self, name):
        return self.attributes.get(f"otelprof.{name.replace('_', '.')}")


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(item) for item in value.array_value.values]
    return getattr(value, kind)


def samples_of(request, kind):
    dictionary = request.dictionary
    return [Thread(dictionary, sample) for resource in request.resource_profiles for scope in resource.scope_profiles
            for profile in scope.profiles if dictionary.string_table[profile.sample_type.type_strindex] == kind
            for sample in profile.samples]


def by_name(request):
    """Returns {name of a thread: its sample}."""
    return {thread.attributes["thread.name"]: thread for thread in samples_of(request, "threads")}


@pytest.fixture
def stands_still(run, program):
    """stands_still(...) -> the exports that have threads: those that the program requests, and the one at its end."""
    def begin(*arguments, types="cpu,off_cpu,threads", **env):
        outcome = run([program("stands_still"), *arguments],
                      env={**SETTINGS, "OTEL_PROFILER_TYPES": types, **env})
        assert (outcome.returncode, outcome.stderr) == (0, "")
        begin.bare = int(outcome.stdout)
        begin.exports = [request for request in outcome.requests if samples_of(request, "threads")]
        return begin.exports

    return begin


def test_each_thread_is_in_each_export_once(stands_still):
    exports = stands_still()
    assert len(exports) >= 2
    for request in exports:
        assert set(by_name(request)) >= NAMES
        assert all(thread.value == [1] for thread in samples_of(request, "threads"))
        ids = [thread.attributes["thread.id"] for thread in samples_of(request, "threads")]
        assert len(ids) == len(set(ids)) == len(NAMES) + 2, "two more: main, and one by clone"


def test_it_reports_the_place_and_use_of_each(stands_still):
    threads = by_name(stands_still()[0])
    for name, (function, kind, is_idle) in WAITS.items():
        thread = threads[name]
        assert (thread.thread_state, thread.wait_kind) == ("blocked", kind), name
        assert function in thread.stack and bool(thread.idle) == is_idle, name
    assert threads["computes"].thread_state == "running"
    assert "computes" in threads["computes"].stack
    assert threads["computes"].wait_kind is None and threads["computes"].wait_duration is None


def test_a_waiting_thread_has_the_start_of_its_wait(stands_still):
    """The same wait is longer in a later export: by the second between the two, at least."""
    begun = time.monotonic()
    first, second = stands_still("1")[:2]
    most = (time.monotonic() - begun) * 1e9
    for name in WAITS:
        before, after = (by_name(request)[name].wait_duration for request in (first, second))
        assert before > 0 and after - before >= 1e9 and after <= most, name


def test_a_lock_is_reported_with_its_holder_and_the_holders_place(stands_still):
    wants = by_name(stands_still(types="all")[0])["wants"]
    holder = by_name(stands_still.exports[0])["holds"]
    assert wants.wait_kind == "lock" and wants.lock_address
    assert wants.lock_holder_thread_name == "holds"
    assert wants.lock_holder_thread_id == holder.attributes["thread.id"]
    assert "holds_it" in wants.lock_holder_stack


def test_threads_carry_their_context(stands_still):
    """Another thread reads the context: of a thread that waits, and of one that runs."""
    for request in stands_still():
        threads = by_name(request)
        assert threads["wants"].link == threads["computes"].link == (TRACE, SPAN)
        assert threads["wants"].attributes["tenant"] == "blocked"
        assert "tenant" not in threads["computes"].attributes
        assert all(threads[name].link is None for name in NAMES - {"wants", "computes"})


def test_a_span_that_a_library_publishes_is_read_of_a_waiting_thread(stands_still, program):
    """OpenTelemetry's OTEP 4947 defines a thread-local variable, here of a library that was loaded late."""
    last = stands_still("0", program("spans.so"))[-1]
    assert by_name(last)["reads"].link == ("07" * 16, "03" + "07" * 7)


def test_time_off_cpu_carries_the_threads_context(stands_still):
    samples = [sample for request in stands_still() for sample in samples_of(request, "off_cpu")]
    wants = [sample for sample in samples if "wants_it" in sample.stack]
    assert wants and all(sample.link == (TRACE, SPAN) for sample in wants)
    assert {sample.attributes["tenant"] for sample in wants} == {"blocked"}
    others = [sample for sample in samples if sample not in wants]
    assert others and all(sample.link is None and "tenant" not in sample.attributes for sample in others)


def test_a_thread_made_past_us_is_there_too(stands_still):
    """clone(2) made the thread: the kernel alone knows it."""
    request = stands_still()[0]
    [thread] = [t for t in samples_of(request, "threads") if t.attributes["thread.id"] == stands_still.bare]
    assert (thread.thread_state, thread.wait_kind) == ("blocked", "poll")
    assert "waits_bare" in thread.stack


def test_without_the_type_there_is_none(stands_still):
    assert stands_still(types="cpu,off_cpu") == []


@pytest.mark.parametrize("end", ["exit", "_exit", "signal"])
def test_at_the_end_each_thread_is_where_the_program_was(run, program, end):
    """The thread that ends the process waits for the last export, which is no state of the program's."""
    outcome = run([program("ends_with_lock"), end],
                  env={**SETTINGS, "OTEL_PROFILER_TYPES": "all", "OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert outcome.returncode == (-15 if end == "signal" else 0), outcome.stderr
    last = outcome.requests[-1]
    threads = by_name(last)
    ended = threads["ends_with_lock"]
    assert "ends_here" in ended.stack and not {"[libotelprof]", "syscall"} & set(ended.stack), ended.stack
    assert (ended.thread_state, ended.wait_kind) == (("blocked", "sleep") if end == "signal" else ("running", None))
    waits = threads["waits"]
    assert (waits.thread_state, waits.wait_kind) == ("blocked", "lock")
    assert waits.lock_holder_thread_name == "ends_with_lock" and "ends_here" in waits.lock_holder_stack
    assert not [sample for sample in samples_of(last, "off_cpu") if "[libotelprof]" in sample.stack]
