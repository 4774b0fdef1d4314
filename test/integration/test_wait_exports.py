"""Exports of waits, locks and threads keep receivers' rules, as real programs make them. (profiled.py validates each
export of each test.)"""

import pytest

from attributed_samples import attributed_samples
from pyroscope_rules import MAX_LABELS, refusals, series

pytestmark = pytest.mark.system

ALL = {"OTEL_PROFILER_TYPES": "all"}
KINDS = ("off_cpu", "contentions", "delay")


@pytest.fixture
def holds_locks(run, program):
    """holds_locks(**environment) -> (outcome, {address of a lock: its name})."""

    def hold(**environment):
        outcome = run([program("holds_locks")], env={**ALL, **environment})
        assert outcome.returncode == 0
        rows = [line.split() for line in outcome.stdout.splitlines()]
        return outcome, {row[1]: f"lock_{row[0]}" for row in rows}

    return hold


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_a_wait_names_the_lock_and_its_holder(holds_locks, protocol):
    outcome, locks = holds_locks(OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
    waits = [sample for sample in attributed_samples(outcome, *KINDS) if sample.attributes.get("otelprof.lock.address") in locks]
    assert {sample.kind for sample in waits} == set(KINDS)
    for sample in waits:
        assert sample.attributes["otelprof.lock.name"] == locks[sample.attributes["otelprof.lock.address"]]
        assert sample.attributes["thread.name"] == "waiter"
        assert sample.attributes.get("otelprof.lock.holder.thread.name", "holder") == "holder"
    held = [sample for sample in waits if "otelprof.lock.holder.thread.id" in sample.attributes]
    assert held and all("otelprof.lock.holder.thread.name" in sample.attributes for sample in held)


def test_without_symbols_a_lock_has_its_place_in_the_file(holds_locks):
    outcome, locks = holds_locks(OTEL_PROFILER_SYMBOLS="none")
    low = min(int(address, 16) for address in locks)
    found = {(int(sample.attributes["otelprof.lock.address"], 16) - low, sample.attributes["otelprof.lock.name"])
             for sample in attributed_samples(outcome, "delay")}
    places = {offset - int(name.removeprefix("[holds_locks]+"), 16) for offset, name in found}
    assert len(found) > 1 and len(places) == 1


def test_names_of_locks_and_holders_can_be_hidden(holds_locks):
    outcome, _ = holds_locks(OTEL_PROFILER_REDACT="lock_*,hold*")
    samples = [sample.attributes for sample in attributed_samples(outcome, *KINDS)]
    for key in ("otelprof.lock.name", "otelprof.lock.holder.thread.name"):
        assert {attributes.get(key, "[REDACTED]") for attributes in samples} == {"[REDACTED]"}
    functions = {name for attributes in samples for name in attributes.get("otelprof.lock.holder.stack", "").split(";")}
    assert not any(name.startswith("hold") for name in functions)


def test_pyroscope_takes_all_types_with_three_attributes_of_a_users_own(holds_locks):
    outcome, _ = holds_locks(OTEL_RESOURCE_ATTRIBUTES="own.a=1,own.b=2,own.c=3", OTEL_SERVICE_NAME="service")
    assert outcome.requests
    for request in outcome.requests:
        assert refusals(request) == []
        assert all(len(labels) <= MAX_LABELS for _, _, labels in series(request))
