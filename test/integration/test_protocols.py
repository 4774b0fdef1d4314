"""Exports reach a real Collector in each way: every pair of a protocol, a compression, a security and an address
occurs, each way in a process of its own whose allocations are known to the byte."""

import itertools
import json
import re
import subprocess
import sys

import pytest

from collector import Collector, skip_without_collector
from ports import reserved_port
from profiled import BUILD, ROOT, Outcome, Run, attributes_of

sys.path.insert(0, str(ROOT / "scripts"))
from otelprof_lib.capture_file import read_messages  # noqa: E402

pytestmark = pytest.mark.system

HOSTS = {"ipv4": "127.0.0.1", "ipv6": "::1"}
SECURITY = ("plain", "tls", "mtls")
PROTOCOLS = {"http": "http/protobuf", "json": "http/json", "grpc": "grpc"}
TRANSPORTS = {"http": "http", "json": "http", "grpc": "grpc"}  # as the Collector names them
PLACES = [(s, h) for s in SECURITY for h in (*HOSTS, "unix")]
COMPRESSIONS = ("none", "gzip", "zstd")
WAYS = [
    ("http", "none", ("plain", "ipv4")),
    ("http", "gzip", ("tls", "unix")),
    ("http", "zstd", ("mtls", "ipv6")),
    ("grpc", "none", ("tls", "ipv6")),
    ("grpc", "gzip", ("mtls", "ipv4")),
    ("grpc", "zstd", ("plain", "unix")),
    ("json", "none", ("mtls", "unix")),
    ("json", "gzip", ("plain", "ipv6")),
    ("json", "zstd", ("tls", "ipv4")),
    # a socket agrees on HTTP/2 in another way, with TLS and without
    ("grpc", "gzip", ("tls", "unix")),
    ("grpc", "none", ("mtls", "unix")),
    ("http", "none", ("plain", "unix")),
]
MEBIBYTES = 64
OBJECTS = MEBIBYTES + 1  # objects that `burn` allocates, and its last of 3,000 bytes
BYTES = (MEBIBYTES << 20) + 3000


def name_of(way):
    protocol, compression, (security, host) = way
    return f"{protocol}-{compression}-{security}-{host}"


def make_certificates(folder):
    """Makes an authority, and a server's and a client's certificate signed by it."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:false")
    openssl(*new, "-subj", "/CN=tests", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(*new, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.pem", *signed,
            "-addext", "subjectAltName=IP:127.0.0.1,IP:::1,DNS:localhost")
    openssl(*new, "-subj", "/CN=client", "-keyout", "client.key", "-out", "client.pem", *signed)


class Places:
    """Lists the receivers of one Collector: a place for each security and host, with both protocols at each."""

    def __init__(self, folder):
        self.folder = folder
        self.output = folder / "profiles.jsonl"
        self.addresses = {}  # (transport, place) -> (host, port) or path
        self.metrics_port = reserved_port()
        make_certificates(folder)

    def receiver(self, place):
        security, host = place
        protocols = {}
        for protocol in ("http", "grpc"):
            if host == "unix":
                address = endpoint = str(self.folder / f"{protocol}-{security}.sock")
                protocols[protocol] = {"endpoint": endpoint, "transport": "unix"}
            else:
                address = (HOSTS[host], reserved_port(HOSTS[host]))
                literal = f"[{address[0]}]" if ":" in address[0] else address[0]
                protocols[protocol] = {"endpoint": f"{literal}:{address[1]}"}
            if security != "plain":
                protocols[protocol]["tls"] = {
                    "cert_file": str(self.folder / "server.pem"),
                    "key_file": str(self.folder / "server.key"),
                }
            if security == "mtls":
                protocols[protocol]["tls"]["client_ca_file"] = str(self.folder / "ca.pem")
            self.addresses[protocol, place] = address
        return {"protocols": protocols}

    def config(self):
        receivers = {f"otlp/{s}-{h}": self.receiver((s, h)) for s, h in PLACES}
        reader = {"host": "127.0.0.1", "port": self.metrics_port}
        return {
            "receivers": receivers,
            "exporters": {"file": {"path": str(self.output), "format": "json"}},
            "service": {
                "pipelines": {
                    "profiles": {"receivers": list(receivers), "exporters": ["file"]},
                },
                "telemetry": {
                    "metrics": {
                        "level": "detailed",
                        "readers": [{"pull": {"exporter": {"prometheus": reader}}}],
                    },
                },
            },
        }

    def environment(self, way):
        protocol, compression, (security, host) = way
        address = self.addresses[TRANSPORTS[protocol], (security, host)]
        literal = f"[{address[0]}]" if host == "ipv6" else address[0]
        environment = {
            "OTEL_SERVICE_NAME": name_of(way),
            "OTEL_EXPORTER_OTLP_PROTOCOL": PROTOCOLS[protocol],
            "OTEL_EXPORTER_OTLP_COMPRESSION": compression,
            "OTEL_EXPORTER_OTLP_ENDPOINT": (
                f"unix://{address}" if host == "unix"
                else f"{'http' if security == 'plain' else 'https'}://{literal}:{address[1]}"
            ),
        }
        if security != "plain":
            environment["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(self.folder / "ca.pem")
        if security == "mtls":
            environment["OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"] = str(self.folder / "client.pem")
            environment["OTEL_EXPORTER_OTLP_CLIENT_KEY"] = str(self.folder / "client.key")
        return environment


def burn(folder, environment):
    """Runs the program to its end; returns the profiler's log."""
    folder.mkdir()
    environment = {
        "OTEL_PROFILE_EXPORT_INTERVAL": "100", "OTEL_PROFILER_ALLOC_INTERVAL": "1",
        "OTEL_PROFILER_CPU_FREQUENCY": "999", **environment
    }
    command = [str(BUILD / "test/programs/burn"), "300", str(MEBIBYTES)]
    outcome = Run(command, True, None, "", environment, {}, True, folder).finish(300)
    assert (outcome.stdout, outcome.returncode, outcome.requests) == ("burnt\n", 7, [])
    return outcome.stderr


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """Sends to one Collector in each way once, and in the ways that must fail; keeps the outcomes."""
    skip_without_collector()
    folder = tmp_path_factory.mktemp("ways")
    places = Places(folder)
    config = folder / "config.yaml"
    config.write_text(json.dumps(places.config()))
    collector = Collector(folder, config, {}, places.metrics_port, places.addresses.values())
    try:
        places.said = {name_of(way): burn(folder / name_of(way), places.environment(way)) for way in WAYS}
        without_scheme(places)
        insecure_socket(places)
        must_fail(places)
        places.metrics = collector.metrics()
    finally:
        collector.stop()
    places.messages = {}
    for message in read_messages(places.output):
        attributes = attributes_of(message.resource_profiles[0].resource)
        places.messages.setdefault(attributes["service.name"], []).append(message)
    return places


def without_scheme(places):
    for security in ("plain", "tls"):
        environment = places.environment(("grpc", "none", (security, "ipv4")))
        endpoint = environment["OTEL_EXPORTER_OTLP_ENDPOINT"].split("//")[1]
        environment.update(
            OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_SERVICE_NAME=f"no-scheme-{security}"
        )
        if security == "plain":
            environment["OTEL_EXPORTER_OTLP_INSECURE"] = "true"
        name = environment["OTEL_SERVICE_NAME"]
        places.said[name] = burn(places.folder / name, environment)


def insecure_socket(places):
    """The word "insecure" wins over certificates that are set for other endpoints."""
    environment = {
        **places.environment(("http", "none", ("mtls", "unix"))),
        **places.environment(("http", "none", ("plain", "unix"))),
        "OTEL_SERVICE_NAME": "insecure-socket", "OTEL_EXPORTER_OTLP_INSECURE": "true",
    }
    places.said["insecure-socket"] = burn(places.folder / "insecure-socket", environment)


# Lists the untrusted peers, by each protocol and kind of address.
NOT_TRUSTED = {
    f"{who}-{protocol}-{host}": (who, protocol, host)
    for who in ("stranger", "nobody", "unasked")
    for protocol, host in [("grpc", "ipv4"), *((p, "unix") for p in PROTOCOLS)]
    if (who, host) != ("unasked", "ipv4")
}


def not_trusted(places, who, protocol, host):
    """Lists a server signed by an authority that is not trusted (a named one, or the system's), and a client without
    a certificate."""
    environment = places.environment((protocol, "none", ("mtls" if who == "nobody" else "tls", host)))
    if who == "stranger":
        environment["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(places.folder / "client.pem")
    elif who == "nobody":
        del environment["OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"], environment["OTEL_EXPORTER_OTLP_CLIENT_KEY"]
    else:
        del environment["OTEL_EXPORTER_OTLP_CERTIFICATE"]
        environment["OTEL_EXPORTER_OTLP_INSECURE"] = "false"
    return environment


def must_fail(places):
    for name, how in NOT_TRUSTED.items():
        environment = not_trusted(places, *how)
        environment.update(OTEL_SERVICE_NAME=name, OTEL_PROFILER_SHUTDOWN_TIMEOUT="1000")
        places.said[name] = burn(places.folder / name, environment)


def assert_all_came(sent, name):
    assert sent.said[name] == ""
    messages = sent.messages[name]
    assert len(messages) >= 2, "one export an interval"
    (instance,) = Outcome(0, "", "", messages).instances()
    assert instance.value_of("allocates", "alloc_objects") == OBJECTS
    assert instance.value_of("allocates", "alloc_space") == BYTES
    assert instance.cpu_total() > 0.95 * 0.3e9


def test_the_ways_have_every_pair_of_values():
    values = (PROTOCOLS, COMPRESSIONS, SECURITY, (*HOSTS, "unix"))
    flat = [(protocol, compression, *place) for protocol, compression, place in WAYS]
    for one, other in itertools.combinations(range(len(values)), 2):
        pairs = set(itertools.product(values[one], values[other]))
        assert {(way[one], way[other]) for way in flat} == pairs
    assert {security for protocol, _, security, host in flat if (protocol, host) == ("grpc", "unix")} == set(SECURITY)


@pytest.mark.parametrize("name", [name_of(way) for way in WAYS])
def test_every_way_delivers_all(sent, name):
    assert_all_came(sent, name)


@pytest.mark.parametrize("name", ["no-scheme-plain", "no-scheme-tls", "insecure-socket"])
def test_an_endpoint_without_a_scheme(sent, name):
    assert_all_came(sent, name)


def samples_in(messages):
    return sum(
        len(profile.samples)
        for message in messages
        for resource in message.resource_profiles
        for scope in resource.scope_profiles
        for profile in scope.profiles
    )


def test_the_collector_counted_the_same_and_refused_none(sent):
    refused = [m for m in sent.metrics if ("refused" in m[0] or "failed" in m[0]) and m[2]]
    assert refused == []
    accepted = {}
    for name, labels, value in sent.metrics:
        if "receiver_accepted_profile" in name and value:
            accepted[labels["receiver"].removeprefix("otlp/"), labels["transport"]] = value
    assert accepted == samples_by_receiver(sent)


def samples_by_receiver(sent):
    ways = [(name_of(way), way) for way in WAYS]
    ways += [("insecure-socket", ("http", "none", ("plain", "unix")))]
    ways += [(f"no-scheme-{security}", ("grpc", "none", (security, "ipv4"))) for security in ("plain", "tls")]
    samples = {}
    for name, (protocol, _, place) in ways:
        receiver = "-".join(place), TRANSPORTS[protocol]
        samples[receiver] = samples.get(receiver, 0) + samples_in(sent.messages[name])
    return samples


@pytest.mark.parametrize("name", NOT_TRUSTED)
def test_an_untrusted_receiver_gets_nothing(sent, name):
    who, _, host = NOT_TRUSTED[name]
    assert name not in sent.messages
    (line,) = sent.said[name].splitlines()
    where = r"/\S+\.sock" if host == "unix" else r"127\.0\.0\.1:\d+/\S+"
    why = "" if who == "nobody" else "SSL certificate problem: "  # the refusal may be lost with the connection
    assert re.search(rf"warn: profiles cannot be sent to {where} \({why}.+\); trying again", line)
