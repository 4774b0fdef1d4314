"""Unchanged programs that use OpenTelemetry's C++ API get samples that are linked to their spans."""

import subprocess
import sys

import pytest
from profiled import BUILD, LIBRARY, ROOT

sys.path.insert(0, str(ROOT / "test/spans"))

from builds import FEW, Build, compiled  # noqa: E402

pytestmark = pytest.mark.system

ADAPTOR = BUILD / "libotelprof-cpp.so"
ENVIRONMENT = {"ADAPTOR": str(ADAPTOR), "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_LOG_LEVEL": "debug",
               "OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "60000"}
BUILDS = [pytest.param(build, id=build.name) for build in FEW]
FOLLOWED_SOON_OR_NEVER = {"WAIT_MS": "500"}
PLAIN = Build("plain", "g++", ("-O1",), True)


def links_of(requests, frame):
    """Returns (link, count) of the CPU samples that have the function `frame` in their stacks."""
    for request in requests:
        dictionary = request.dictionary
        strings = dictionary.string_table
        functions = [strings[function.name_strindex] for function in dictionary.function_table]
        inside = [any(functions[line.function_index] == frame for index in stack.location_indices
                      for line in dictionary.location_table[index].lines) for stack in dictionary.stack_table]
        for resource in request.resource_profiles:
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    for sample in profile.samples if strings[profile.sample_type.type_strindex] == "samples" else ():
                        if inside[sample.stack_index]:
                            yield dictionary.link_table[sample.link_index], sample.values[0]


def spans_of(outcome, frame):
    """Counts, for each span (0: none), its CPU samples that have the function `frame` in their stacks."""
    spans = {}
    for link, count in links_of(outcome.requests, frame):
        number = int.from_bytes(link.span_id, "little")
        assert number == 0 or link.trace_id[:2] == b"\x0a\x0b"
        assert number == int.from_bytes(link.trace_id[8:], "little")
        spans[number] = spans.get(number, 0) + count
    return spans


def judge(outcome):
    """Counts all samples in functions that belong to spans: with the right span, with a wrong one, and with none."""
    right = wrong = none = 0
    for kind in range(4):
        for number, count in spans_of(outcome, f"burns_{kind}").items():
            if number == 0:
                none += count
            elif number % 4 == kind and 64 <= number < 64 * 9:
                right += count
            else:
                wrong += count
    return right, wrong, none


OTHER = Build("other", "g++", ("-O2", "-std=c++17"), True)


@pytest.mark.parametrize("variant", range(1, 13))
def test_a_class_of_that_name_with_other_signatures_works(run, variant):
    """Results in memory, on the floating-point stack, in registers; arguments on the stack; exceptions and jumps."""
    made = compiled("other_signatures.cpp", OTHER, f"-DVARIANT={variant}", name=f"other-signatures-{variant}")
    outcome = run([made], env=ENVIRONMENT)
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr


def test_a_fork_of_the_api_gets_all_of_its_arguments(run):
    """Those behind the API's own, some of them on the stack, and results that are no bool."""
    outcome = run([compiled("forked_api.cpp", OTHER)], env=ENVIRONMENT)
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr


@pytest.mark.parametrize("build", BUILDS)
def test_each_step_is_published(run, build):
    """Covers spans nested a hundred deep, left by exceptions, out of order, on another thread; ended threads; a
    forked child."""
    outcome = run([compiled("follows.cpp", build)], env=ENVIRONMENT)
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr


@pytest.mark.parametrize("build", BUILDS)
def test_empty_contexts_before_the_first_span_do_not_end_the_links(run, build):
    """Three hundred of them show nothing about the storage; the spans that follow are published."""
    outcome = run([compiled("empties_first.cpp", build)], env=ENVIRONMENT)
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr


@pytest.mark.parametrize("build", BUILDS[:2])
def test_samples_are_of_the_right_span(run, build):
    """Eight threads change the span a thousand times a second: no span is wrong, and hardly any is missing."""
    outcome = run([compiled("burns.cpp", build), "0.2"], env={**ENVIRONMENT, "OTEL_PROFILER_CPU_FREQUENCY": "250"}, log_to_stderr=True)
    assert outcome.stdout == "burnt in spans\n", outcome.stderr
    right, wrong, none = judge(outcome)
    assert right > 100 and wrong == 0 and none <= 0.001 * right, (right, wrong, none)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_each_copy_of_the_api_is_followed(run, compiler):
    """An executable, and a library that is loaded and unloaded twenty times, each have a copy of the API."""
    own = ("-fno-gnu-unique",) if compiler == "g++" else ()  # otherwise the library could not be unloaded
    library = compiled("plugin.cpp", Build(compiler, compiler, ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", *own), True))
    outcome = run([compiled("hosts_plugins.cpp", PLAIN), str(library)], env=ENVIRONMENT)
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr


@pytest.mark.parametrize("replaced", ["attach-and-detach", "all"])
def test_functions_that_a_program_has_replaced_behind_us_stay_its_storages(run, replaced):
    """A program puts its own functions in front of ours; the library that it loads then gets other ones of ours."""
    library = compiled("plugin.cpp", Build("g++", "g++", ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique"), True))
    outcome = run([compiled("replaces_behind.cpp", PLAIN), str(library), replaced], env=ENVIRONMENT)
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr


def test_where_memory_stays_as_it_is_nothing_is_replaced(run, tmp_path):
    """The kernel refuses to make the table writable: one line reports that, and the program runs on."""
    sandbox = tmp_path / "sandbox.so"
    subprocess.run(["gcc", "-shared", "-fPIC", ROOT / "test/spans/refuses_mprotect.c", "-o", sandbox], check=True)
    outcome = run([compiled("burns.cpp", FEW[0]), "0.05"], log_to_stderr=True,
                  env={**ENVIRONMENT, **FOLLOWED_SOON_OR_NEVER, "LD_PRELOAD": f"{sandbox}:{LIBRARY}"})
    assert (outcome.stdout, outcome.returncode) == ("not followed\n", 0)
    assert outcome.stderr.count("and its functions cannot be replaced; its spans are in no profile") == 1
    assert judge(outcome)[:2] == (0, 0)


def test_without_names_of_types_nothing_is_done(run):
    """With -fno-rtti the adaptor is not loaded, and nothing is logged."""
    outcome = run([compiled("burns.cpp", Build("no-rtti", "g++", ("-O1", "-fno-rtti"), True)), "0.05"],
                  env={**ENVIRONMENT, **FOLLOWED_SOON_OR_NEVER}, log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("not followed\n", 0)
    assert "OpenTelemetry's C++ API" not in outcome.stderr
    assert judge(outcome)[:2] == (0, 0)


def test_memory_that_the_program_has_closed_is_not_read(run):
    """Neither the search for names nor the search for tables reads such memory."""
    outcome = run([compiled("closes.cpp", PLAIN)], env=ENVIRONMENT)
    assert (outcome.stdout, outcome.returncode) == ("ended\n", 0), outcome.stderr


def test_the_programs_own_process_context_replaces_ours(run):
    """A process has one context (OTEL_CTX): the profiler publishes its own only as long as there is no other."""
    outcome = run([compiled("publishes.cpp", PLAIN)], env=ENVIRONMENT)
    assert outcome.stdout == "followed 1, contexts 1, published 1, contexts 1\n", outcome.stderr
    resource = outcome.requests[-1].resource_profiles[0].resource
    assert {a.key: a.value.string_value for a in resource.attributes}["service.version"] == "1.2.3"


def test_the_setting_turns_it_off(run):
    for sources in ("none", "thread_context"):
        outcome = run([compiled("burns.cpp", FEW[0]), "0.05"], log_to_stderr=True,
                      env={**ENVIRONMENT, **FOLLOWED_SOON_OR_NEVER, "OTEL_PROFILER_CONTEXT": sources})
        assert outcome.stdout == "not followed\n"
        assert "OpenTelemetry's C++ API" not in outcome.stderr
        assert judge(outcome)[:2] == (0, 0)


def test_a_program_without_the_api_does_not_load_the_adaptor(run, program):
    """The program is C++, with threads."""
    outcome = run([program("thread_kinds")], env={"OTEL_LOG_LEVEL": "debug"}, log_to_stderr=True)
    assert "OpenTelemetry's C++ API" not in outcome.stderr
