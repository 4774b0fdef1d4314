"""The calls of shim/otelprof.h work with the preload, and do nothing without it."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from endpoint import Process
from linked_samples import linked_samples
from profiled import EXACT_CPU, LIBRARY, ROOT, START_NS, attributes_of
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

TRACE = b"trace of program".hex()
SPAN_1, SPAN_2 = b"span   1".hex(), b"span   2".hex()
NONE = ("", "", frozenset())


def in_span(span, **labels):
    return (TRACE, span, frozenset(labels.items()))


@pytest.fixture
def calls(run, program):
    """calls(part, ...) -> the outcome of that part of the program."""
    def run_part(part, **options):
        outcome = run([program("program_calls"), part], **options)
        assert (outcome.returncode, outcome.stderr) == (0, "")
        return outcome

    return run_part


def contexts_of(outcome, function):
    """Returns {(trace, span, labels)} of the samples that have the function on their stack."""
    return {(sample.trace, sample.span, sample.labels) for sample in linked_samples(outcome) if function in sample.stack}


def test_scopes_nest_and_restore_the_one_before(calls):
    outcome = calls("scopes")
    assert contexts_of(outcome, "in_span_1") == {in_span(SPAN_1, tenant="outer")}
    assert contexts_of(outcome, "in_span_2") == {in_span(SPAN_2, tenant="inner", route="/")}
    assert contexts_of(outcome, "in_span_1_again") == {in_span(SPAN_1, tenant="outer")}
    assert contexts_of(outcome, "in_none") == {NONE}
    assert contexts_of(outcome, "in_label") == {("", "", frozenset({("tenant", "alone")}))}


def test_labels_that_do_not_fit_are_counted_and_none_is_wrong(calls):
    """16 of the first 20 fit; each is hidden by a newer label of its key, which does not fit."""
    outcome = calls("too_many")
    instance = outcome.instance("program_calls")
    assert contexts_of(outcome, "in_too_many") == {NONE}
    assert instance.dropped["context_cut"] > 0
    assert contexts_of(outcome, "in_label") == {("", "", frozenset({("k0", "old")}))}


def test_labels_go_with_the_span_of_another_source(calls):
    """A span that the program sets goes before the other source's."""
    outcome = calls("beside")
    published = (b"another trace  \0".hex(), b"span  9\0".hex())
    label = frozenset({("tenant", "own")})
    linked, not_found_yet = (*published, label), ("", "", label)
    assert {linked} <= contexts_of(outcome, "in_label") <= {linked, not_found_yet}
    assert contexts_of(outcome, "in_span_1") == {(TRACE, SPAN_1, label)}


def test_each_thread_has_a_context_of_its_own(calls):
    """This holds also for a thread that takes the place of a thread which ended with a span."""
    outcome = calls("threads")
    expected = {in_span(bytes([ord("t"), number, 0, 0, 0, 0, 0, 1]).hex(), worker=f"worker-{number}") for number in range(1, 5)}
    assert contexts_of(outcome, "in_thread") == expected
    assert contexts_of(outcome, "in_none") == {NONE}


def test_a_forked_thread_goes_on_with_its_context(calls):
    outcome = calls("fork")
    assert contexts_of(outcome, "in_span_1") == {in_span(SPAN_1, tenant="parent")}
    assert contexts_of(outcome, "in_span_2") == {in_span(SPAN_2)}
    assert contexts_of(outcome, "in_none") == {NONE}
    assert contexts_of(outcome, "in_span_1_again") == {in_span(SPAN_1, tenant="parent")}


def test_a_handler_may_call_at_any_instruction(calls):
    """The handler interrupts changes of the program's; samples of both have their own span or, in the middle of a
    change, none."""
    outcome = calls("handler")
    assert contexts_of(outcome, "in_handler") == {in_span(SPAN_2, tenant="handler")}
    samples = linked_samples(outcome)
    seen = {(sample.span, label) for sample in samples if "in_change" in sample.stack and "on_signal" not in sample.stack
            for label in sample.labels or [None]}
    program = ("tenant", "program")
    assert seen <= {(SPAN_1, program), (SPAN_1, None), ("", program), ("", None)}
    assert contexts_of(outcome, "in_none") == {NONE}


def test_nothing_is_sampled_while_it_is_stopped(calls):
    outcome = calls("stop")
    assert outcome.stdout == "1 1\n"
    assert outcome.instance("program_calls").value_of("while_stopped", "samples") == 0
    assert outcome.instance("program_calls").value_of("while_started", "samples") > 0


STOPS = """
import ctypes, pathlib, sys, time
folder, libc = pathlib.Path(sys.argv[1]), ctypes.CDLL(None)
def until(name):
    while not (folder / name).exists():
        time.sleep(0.01)
for call in (libc.otelprof_stop, libc.otelprof_start):
    until(call.__name__)
    while not call():  # another thread may be changing the settings
        pass
    (folder / (call.__name__ + ".done")).touch()
until("end")
"""


def test_a_program_that_stopped_the_profiler_is_reported(start, tmp_path):
    running = start([sys.executable, "-c", STOPS, tmp_path], env={"OTEL_PROFILER_LISTEN": f"unix:{tmp_path}/socket"})
    process = Process(tmp_path / "socket")
    process.until_it_answers()

    def says():
        status, metrics = process.status(), process.ask("/metrics").text
        assert f"\notelprof_paused_by_program {int(status['paused_by_program'])}\n" in metrics
        return status["settings"]["OTEL_PROFILER_START"], status["paused_by_program"]

    assert says() == ("on", False)
    for call, said in [("otelprof_stop", ("off", True)), ("otelprof_start", ("on", False))]:
        (tmp_path / call).touch()
        eventually((tmp_path / f"{call}.done").exists, call, unless=running.process.poll)
        assert says() == said
        assert f"OTEL_PROFILER_START={said[0]}\n" in process.control("OTEL_PROFILER_START=on").text
    (tmp_path / "end").touch()
    assert running.finish(TIMEOUT_S).returncode == 0


def test_a_program_names_itself(calls):
    outcome = calls("resource")
    assert outcome.stdout == "1 1 0\n"
    resources = [attributes_of(profiles.resource) for request in outcome.requests for profiles in request.resource_profiles]
    assert {(it["service.name"], it["deployment.tier"]) for it in resources} == {("shop", "front")}


def test_a_program_flushes_and_counts(calls):
    outcome = calls("counters")
    told = json.loads(outcome.stdout)
    assert told["flushed"] == [1, 1] and told["read"] == 1
    assert 0 < told["linked"] < told["samples"]
    assert told["exports"] >= 1 and told["failed"] == told["lost"] == 0 and told["cpu"] > 0
    assert told["fewer"] == told["samples"] and told["beyond"] == 7
    assert len(outcome.requests) >= told["exports"]


def test_a_receiver_that_is_away_makes_no_flush_succeed(run, program):
    outcome = run([program("program_calls"), "counters"], timeout=120,
                  env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_PROFILES_EXPORTER": "none"})
    told = json.loads(outcome.stdout)
    assert told["flushed"] == [0, 0] and told["read"] == 0


@pytest.mark.parametrize("env", [{}, {"OTEL_PROFILER_CONTEXT": "none"}, {"OTEL_SDK_DISABLED": "true"}])
def test_calls_do_no_harm_at_any_time(calls, env):
    """Calls come before our constructor, at exit, and where nothing is profiled."""
    assert calls("everywhere", env=env).stdout == ""


def test_no_source_means_no_link(calls):
    outcome = calls("scopes", env={"OTEL_PROFILER_CONTEXT": "none"})
    assert contexts_of(outcome, "in_span_1") == {NONE}


# --- the header ---

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Wredundant-decls", "-Wcast-qual"]
SOURCE = """
#include <otelprof.h>
#include <stdio.h>
static void (*volatile taken)(void) = otelprof_span_clear;
int main(void) {
    static const uint8_t trace[16] = {1}, span[8] = {2};
    static struct otelprof_context context;
    struct otelprof_span set = {{0}, {0}};
    OTELPROF_CONTEXT_SCOPE(&context);
    OTELPROF_SPAN_SCOPE(trace, span);
    OTELPROF_LABEL_SCOPE("key", "value");
    (void)otelprof_span_get(&set);
    taken();
    printf("%s %d\\n", otelprof_version() ? otelprof_version() : "none", set.span_id[0]);
    return 0;
}
"""
SOURCE_CPP = """
#include <otelprof.h>
#include <cstdio>
int main() {
    static const uint8_t trace[16] = {1}, span[8] = {2};
    static otelprof_context context;
    otelprof_span set = {{0}, {0}};
    otelprof::context_scope switched(context);
    otelprof::span_scope linked(trace, span);
    otelprof::label_scope labelled("key", "value");
    otelprof_span_get(&set);
    std::printf("%s %d\\n", otelprof_version() ? otelprof_version() : "none", set.span_id[0]);
}
"""
KINDS = {"PIE": ["-fPIE", "-pie"], "not PIE": ["-fno-pie", "-no-pie"], "static": ["-static"], "static PIE": ["-fPIE", "-static-pie"],
         "without PLT": ["-fno-plt", "-fno-pie", "-no-pie"]}
VERSION = re.search(r"^VERSION := (\S+)", (ROOT / "Makefile").read_text(), re.M)[1]


def compiled(folder, compiler, source, *options):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    path = folder / ("calls.cpp" if "++" in compiler else "calls.c")
    path.write_text(source)
    subprocess.run([compiler, *WARNINGS, f"-I{ROOT}/shim", *options, "-o", folder / "calls", path], check=True)
    return folder / "calls"


def said_by(command, preloaded):
    environment = {"PATH": "/usr/bin:/bin", "OTEL_PROFILER_EXCLUDE": "none"}
    done = subprocess.run([command], capture_output=True, text=True, check=True,
                          env={**environment, "LD_PRELOAD": str(LIBRARY)} if preloaded else environment)
    assert done.stderr == ""
    return done.stdout


# each compiler with each standard, and each kind of program by both families and in both languages
@pytest.mark.parametrize("compiler, standard, kind", [
    ("gcc", "c99", "PIE"), ("gcc", "c11", "not PIE"), ("clang", "c99", "static"), ("clang", "c11", "static PIE"),
    ("g++", "c++11", "without PLT"), ("g++", "c++20", "PIE"), ("clang++", "c++11", "not PIE"), ("clang++", "c++20", "static"),
    ("gcc", "c11", "static"), ("g++", "c++11", "static PIE"), ("clang", "c11", "without PLT"), ("clang++", "c++11", "PIE"),
])
def test_the_header_alone_is_enough(tmp_path, compiler, standard, kind):
    source = SOURCE_CPP if "++" in compiler else SOURCE
    for level in ("-O0", "-O2"):
        program = compiled(tmp_path, compiler, source, f"-std={standard}", level, *KINDS[kind])
        assert said_by(program, False) == "none 0\n"
        assert said_by(program, True) == ("none 0\n" if "static" in kind else f"{VERSION} 2\n")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("options", [["-flto", "-O2"], ["-fuse-ld=gold"], ["-fvisibility=hidden", "-Wl,-z,now"], ["-fno-exceptions", "-Os"]])
def test_the_header_works_with_the_usual_flags(tmp_path, compiler, options):
    for kind in ("PIE", "not PIE"):
        assert said_by(compiled(tmp_path, compiler, SOURCE, *options, *KINDS[kind]), True) == f"{VERSION} 2\n"


def test_a_shared_library_may_call(tmp_path):
    """The library is linked so that only weak symbols may stay undefined."""
    library, host = tmp_path / "libcalls.so", tmp_path / "host.c"
    compiled(tmp_path, "gcc", SOURCE.replace("int main", "int calls(void);\nint calls"), "-fPIC", "-shared", "-Wl,-z,defs",
             "-Wno-missing-prototypes").rename(library)
    host.write_text("int calls(void);\nint main(void) { return calls(); }\n")
    subprocess.run(["gcc", "-o", tmp_path / "host", host, library, f"-Wl,-rpath,{tmp_path}"], check=True)
    assert [said_by(tmp_path / "host", preloaded) for preloaded in (False, True)] == ["none 0\n", f"{VERSION} 2\n"]


def test_cpu_time_before_a_stop_is_in_the_export_that_covers_it(run, program):
    """The last export, long after the stop, has none of it: also not what no sample had counted by then."""
    outcome = run([program("stops_sampling")], env={**EXACT_CPU, "OTEL_PROFILE_EXPORT_INTERVAL": "86400000"})
    assert outcome.returncode == 0, outcome.stderr
    assert len(outcome.requests) == 1
    (instance,) = outcome.instances()
    assert instance.cpu_of("works_before") == pytest.approx(50e6, abs=START_NS)
    assert instance.cpu_total() == pytest.approx(int(outcome.stdout.split()[0]), abs=START_NS)


def test_time_after_a_stop_is_not_covered_if_the_exporter_is_loaded_later(run, program):
    """The program works on for 50 ms between the stop and its export."""
    outcome = run([program("stops_sampling")], env={**EXACT_CPU, "OTEL_PROFILER_MIN_LIFETIME": "1000"})
    assert outcome.returncode == 0, outcome.stderr
    (request,) = outcome.requests
    ((profile,),) = [scope.profiles for resource in request.resource_profiles for scope in resource.scope_profiles]
    assert profile.time_unix_nano + profile.duration_nano <= int(outcome.stdout.split()[1]) + START_NS
