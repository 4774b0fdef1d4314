"""A program that is started through the dynamic loader is reported as that program, not as the loader."""

import pytest
from profiled import EXACT_CPU

pytestmark = pytest.mark.fast

LOADER = "/lib64/ld-linux-x86-64.so.2"
DEBUG = {**EXACT_CPU, "OTEL_LOG_LEVEL": "debug"}


@pytest.mark.parametrize("options", [[], ["--argv0", "another"], ["--library-path", "/nowhere"]], ids=" ".join)
def test_it_has_its_own_name_and_functions(run, program, options):
    outcome = run([LOADER, *options, program("burn"), "20", "1"], env=EXACT_CPU)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    (instance,) = outcome.instances()
    assert instance.executable == "burn"
    assert "burns_cpu" in instance.names()


@pytest.mark.parametrize("excluded, is_profiled", [("burn", False), ("ld-linux-x86-64.so.2", True)])
def test_it_is_chosen_by_its_own_name(run, program, excluded, is_profiled):
    outcome = run([LOADER, program("burn"), "20", "1"], env={**EXACT_CPU, "OTEL_PROFILER_EXCLUDE": excluded})
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert bool(outcome.requests) == is_profiled


def test_the_c_library_as_a_program_prints_the_same(run):
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    plain = run([libc], profiled=False)
    assert "GNU C Library" in plain.stdout and plain.returncode == 0
    ours = run([libc], log_to_stderr=True)
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, "", 0)
