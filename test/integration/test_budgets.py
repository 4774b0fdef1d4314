"""What others wrote is worked on within bounds of CPU time and memory: shim/capture/memory_guard.h."""

import pytest
from profiled import BUILD

LIBRARY_OF_NAMES = BUILD / "test/programs/costly_names.so"
OFTEN = {"OTEL_PROFILE_EXPORT_INTERVAL": "300", "OTEL_PROFILER_MIN_LIFETIME": "0"}


def functions(outcome):
    return {name for request in outcome.requests for name in request.dictionary.string_table}


@pytest.mark.parametrize("types", ["cpu", "cpu,alloc,heap"])
def test_a_name_without_end_keeps_no_export_from_going(run, program, types):
    """The demangler would take a second for the one, and for ever for the other."""
    program("costly_names.so")
    outcome = run([program("uses_library"), str(LIBRARY_OF_NAMES), "900"],
                  env={**OFTEN, "OTEL_PROFILER_TYPES": types, "OTEL_LOG_LEVEL": "debug"},
                  log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("loaded\n", 0), outcome.stderr
    names = functions(outcome)
    assert "shop::Cart::add" in names, "what is beside it has its name"
    assert {name.count("cvT_I") for name in names if name.startswith("_ZcvT_I")} == {25, 60}
    assert len(outcome.requests) > 3
    said = [line for line in outcome.stderr.splitlines() if "more CPU time or memory than they may" in line]
    assert len(said) == 1, "once"
    # each is tried once, however many addresses it has
    assert [line for line in outcome.stderr.splitlines() if "name: " in line][-1].endswith("name: 2 so far")


def test_names_are_bounded_where_cpu_time_is_not_sampled(run, program):
    """No signal of ours is there then until the helper wants one."""
    outcome = run([program("uses_library"), str(LIBRARY_OF_NAMES), "900"],
                  env={**OFTEN, "OTEL_PROFILER_TYPES": "alloc", "OTEL_PROFILER_ALLOC_INTERVAL": "1"})
    assert outcome.returncode == 0, outcome.stderr
    names = functions(outcome)
    assert "shop::Cart::add" in names
    assert {name.count("cvT_I") for name in names if name.startswith("_ZcvT_I")} == {25, 60}
