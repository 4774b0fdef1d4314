"""Threads that are made past every preload are in no profile: the profiler reports how many there are."""

import pytest
from attributed_samples import attributed_samples
from profiled import EXACT_CPU

SETTINGS = {"OTEL_LOG_LEVEL": "debug", **EXACT_CPU}
SENTENCE = "threads were made past our pthread_create"


def unknown_threads(outcome):
    """Returns otelprof.dropped.unknown_thread of the last export that has it."""
    told = [0]
    for request in outcome.requests:
        dictionary = request.dictionary
        for profile in request.resource_profiles[0].scope_profiles[0].profiles:
            attributes = [dictionary.attribute_table[index] for index in profile.attribute_indices]
            told += [attribute.value.int_value for attribute in attributes
                     if dictionary.string_table[attribute.key_strindex] == "otelprof.dropped.unknown_thread"]
    assert told == sorted(told), "it never falls"
    return told[-1]


@pytest.mark.parametrize("how", ["found", "bare"])
def test_threads_made_past_us_are_counted(run, program, how):
    """The creating function is found by dlsym in libc, as in Free Pascal; or clone(2) makes the thread."""
    outcome = run([program("makes_threads"), how, "3"], env=SETTINGS, log_to_stderr=True)
    assert (outcome.returncode, outcome.stdout) == (0, "made\n")
    assert unknown_threads(outcome) == 3
    assert outcome.stderr.count(SENTENCE) == 1
    assert outcome.instance("makes_threads").cpu_of("thread_burns") == 0


def test_each_counts_once_however_many_exports_there_are(run, program):
    often = {**SETTINGS, "OTEL_PROFILE_EXPORT_INTERVAL": "50"}
    outcome = run([program("makes_threads"), "found", "3"], env=often, log_to_stderr=True)
    assert unknown_threads(outcome) == 3
    assert outcome.stderr.count(SENTENCE) == 1


def test_a_thread_that_we_know_is_not_counted(run, program):
    often = {**SETTINGS, "OTEL_PROFILE_EXPORT_INTERVAL": "50"}
    outcome = run([program("makes_threads"), "linked", "30"], env=often, log_to_stderr=True)
    assert unknown_threads(outcome) == 0 and SENTENCE not in outcome.stderr
    assert outcome.instance("makes_threads").cpu_of("thread_burns") > 30 * 19e6


@pytest.mark.parametrize("how", ["now", "dlmopen"])
def test_threads_of_constructors_that_are_bound_past_us_are_counted(run, program, how):
    """The constructor's library is loaded with RTLD_DEEPBIND, or with a C library of its own."""
    outcome = run([program("loads_deep"), how, program("early_worker.so"), "worked"], env=SETTINGS, log_to_stderr=True)
    assert outcome.stdout.startswith("worked 1\n"), outcome.stderr
    assert unknown_threads(outcome) == 1


def test_nothing_is_said_of_them_by_default(run, program):
    outcome = run([program("makes_threads"), "found", "3"], env=EXACT_CPU, log_to_stderr=True)
    assert (outcome.stdout, outcome.stderr) == ("made\n", "")
    assert unknown_threads(outcome) == 3


def test_the_kernels_threads_have_their_cpu_time_and_no_frames(run, program):
    """io_uring's pollers are threads of the process that pthread_create did not make; other threads have no invented
    frame."""
    outcome = run([program("polls_by_kernel")], env={**SETTINGS, "OTEL_PROFILER_TYPES": "all"}, log_to_stderr=True)
    if outcome.stdout == "refused\n":
        pytest.skip("no io_uring here")
    polled_ns = int(outcome.stdout)
    samples = attributed_samples(outcome, "samples", "threads")
    instance = outcome.instance("polls_by_kernel")
    by_kernel = [sample for sample in samples if sample.attributes.get("thread.name", "").startswith("iou-sqp")]
    assert {sample.stack for sample in by_kernel} == {("[kernel]",)}
    assert sum(sample.kind == "threads" for sample in by_kernel) == len({sample.export for sample in by_kernel})
    assert sum(sample.value for sample in by_kernel if sample.kind == "samples") * instance.period >= polled_ns * 0.98
    unknown = [sample for sample in samples if sample.kind == "threads" and sample not in by_kernel
               and sample.attributes["thread.id"] != instance.pid]
    assert {sample.stack for sample in unknown} == {("[unknown]",)}, unknown
    assert unknown_threads(outcome) <= 1 and outcome.stderr.count(SENTENCE) <= 1  # the thread made by clone
