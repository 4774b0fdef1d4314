"""Pyroscope accepts our exports, and names them as docs/profiles.md says: its rules, written down in
test/lib/pyroscope_rules.py, are applied to real exports."""

import re

import pytest

from http_server import OK, HttpServer, status
from otelprof_lib.kinds import KINDS
from profiled import ROOT, attributes_of, decode
from pyroscope_rules import MAX_LABELS, refusals, series

pytestmark = pytest.mark.system

SERVER = HttpServer
EIGHT = ",".join(f"own.attribute.{number}=value-{number}" for number in range(8))
IDENTIFYING = re.findall(
    r'^RESOURCE_ATTRIBUTE\("([^"]+)", IDENTIFYING,', (ROOT / "common/resource_attributes.def").read_text(), re.M
)


@pytest.fixture
def churn(run):
    """churn(**environment) -> a program that allocates, keeps something and burns, in every profile."""
    script = "kept = [bytes(70000) for _ in range(300)]\nfor i in range(3000000): str(i)\n"

    def churn_with(**environment):
        environment = {"OTEL_PROFILER_ALLOC_INTERVAL": "65536", "OTEL_PROFILER_HEAP_AGE": "true", **environment}
        outcome = run(["/usr/bin/python3", "-c", script], env=environment)
        assert outcome.returncode == 0 and outcome.requests
        return outcome

    return churn_with


def test_defaults_and_eight_attributes_of_a_users_own_are_accepted(churn):
    outcome = churn(OTEL_RESOURCE_ATTRIBUTES=EIGHT, OTEL_SERVICE_NAME="service")
    most = 0
    for request in outcome.requests:
        assert refusals(request) == []
        for _, _, labels in series(request):
            own = [name for name, _ in labels if name.startswith("own.attribute.")]
            missing = set(IDENTIFYING) - {name for name, _ in labels}  # no container is here
            assert len(own) == 8
            most = max(most, len(labels) + len(missing))
    assert len(IDENTIFYING) == 15
    assert 8 + 15 < most <= MAX_LABELS, "in a container, too"


def test_all_that_is_detected_and_eight_more_would_not_be(churn):
    """The rules do refuse exports: otherwise the test above would show nothing."""
    outcome = churn(OTEL_RESOURCE_ATTRIBUTES=EIGHT, OTEL_PROFILER_RESOURCE="full")
    assert any("label names; limit 30" in why for request in outcome.requests for why in refusals(request))
    sent = {key for r in outcome.requests for p in r.resource_profiles for key in attributes_of(p.resource)}
    assert {"process.command", "process.parent_pid", "telemetry.distro.name"} < sent


def test_profiles_have_the_names_that_are_documented(churn):
    outcome = churn(OTEL_PROFILER_TYPES="cpu,alloc,heap,heap_peak")
    found = {":".join(kind) for request in outcome.requests for _, kind, _ in series(request)}
    documented = set(re.findall(r"^\| `(\w+:[\w:]+)` \|", (ROOT / "docs/profiles.md").read_text(), re.M))
    assert found == {name for name in documented if name.split(":")[0] in ("process_cpu", "memory")}
    assert len(found) == 7


def test_every_profile_has_its_name_in_the_documentation():
    names = []
    for kind in KINDS.values():
        for value in kind.values:
            first = ("process_cpu", "cpu", "nanoseconds") if value.in_periods else (kind.period_type, value.type, value.unit)
            names.append(":".join((*first, kind.period_type, kind.period_unit)))
    assert re.findall(r"^\| `(\w+:[\w:]+)` \|", (ROOT / "docs/profiles.md").read_text(), re.M) == names


def test_pyroscopes_refusal_of_too_many_labels_is_reported(serve, burn):
    """A server refuses by these rules, in Pyroscope's words: the limit reaches the log."""
    said = []

    def script(exchange):
        exchange.read()
        request = decode(exchange.call.body, exchange.call.fields["content-type"])
        said.extend(refusals(request))
        body = said[0].encode() if said else b""
        exchange.head(400 if said else 200, "Content-Type: text/plain; charset=utf-8", length=len(body))
        exchange.say(body)

    server = serve(script, OK)
    lines = burn(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url, "OTEL_PROFILE_EXPORT_INTERVAL": "86400000",
         "OTEL_PROFILER_RESOURCE": "full", "OTEL_RESOURCE_ATTRIBUTES": EIGHT},
        200,
    )
    assert said and len(lines) == 1
    assert re.search(r"HTTP status 400: profile series .* has \d+ label names; limit 30\)", lines[0]), lines


def test_a_scope_holds_all_profiles(churn):
    """Each request has one scope, whatever differs between its profiles: docs/profiles.md gives the reason."""
    for request in churn().requests:
        (resource_profiles,) = request.resource_profiles
        (scope_profiles,) = resource_profiles.scope_profiles
        assert scope_profiles.scope.name == "libotelprof"
