"""Tables end with a line about their largest rows that are no functions: what they stand for, and what to install or set."""

import pytest
from otelprof_lib.aggregate import aggregate
from otelprof_lib.marks import explained
from otelprof_lib.report import report


def profiles(message, stacks, kind="samples", unit="count", period=10**7):
    return aggregate([message().profile(kind, unit, period, stacks).request])


@pytest.mark.parametrize("leaf, begin, remedy", [
    ("libc.so.6!", "[libc.so.6]: 60.0% of CPU time; no names", "apt install libc6-dbg"),
    ("cc1plus!", "[cc1plus]: 60.0% of CPU time; no names", "without strip"),
    ("[anonymous]", "[anonymous]: 60.0% of CPU time; ", "docs/interpreters.md"),
    ("!", "[unknown]: 60.0% of CPU time; ", "in no file that the process had loaded"),
])
def test_a_mark_is_explained_under_the_table(message, leaf, begin, remedy):
    text = report(profiles(message, {(leaf, "main"): 6, ("app!f", "main"): 4}), 9)
    line = text.split("\n\n")[1]
    assert line.startswith(begin) and remedy in line and "\n" not in line


def test_callers_that_are_missing_are_explained(message):
    export = message().profile("samples", "count", 10**7, {("app!f", "main"): 6, ("app!g", "main"): 4})
    cut = export.dictionary.attribute_table.add(key_strindex=export.string("otelprof.stack.truncated"))
    cut.value.bool_value = True
    export.scope.profiles[0].samples[1].attribute_indices.append(1)
    assert explained(aggregate([export.request])).startswith("[truncated]: 40.0% of CPU time; callers are missing")
    assert "OTEL_PROFILER_MAX_STACK_DEPTH" in explained(aggregate([export.request]))


def test_small_rows_and_functions_need_no_line(message):
    assert explained(profiles(message, {("libc.so.6!", "main"): 4, ("app!f", "main"): 96})) == ""
    assert explained(profiles(message, {("app![no Python]", "main"): 1, ("[libotelprof]x", "main"): 1})) == ""


def test_the_largest_three_come_first(message):
    stacks = {("a!", "main"): 10, ("b!", "main"): 40, ("libm.so.6!", "main"): 30, ("[anonymous]", "main"): 20}
    assert [line.split(":")[0] for line in explained(profiles(message, stacks)).splitlines()] == ["[b]", "[libm.so.6]", "[anonymous]"]


def test_a_wait_that_no_poll_saw_is_explained(message):
    waited = profiles(message, {("libc.so.6!read", "main"): 10**9}, "off_cpu", "nanoseconds", 0)
    assert explained(waited) == "not seen: 100.0% of time off CPU; waits that began and ended between two polls of the thread"
