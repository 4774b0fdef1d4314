"""Runs a program with OpenTelemetry's own C++ SDK, as the release has it: it does the same with the profiler as
without, and each sample of its threads is linked to the span that the SDK exported."""

import re
import shutil
from collections import Counter

import installed
import layers
import roots
from machine import check_conformance
from profiled import ROOT, Receiver
from test_cpp_spans import links_of

BUILDS = (("g++", "-O2"), ("g++", "-O0"), ("clang++", "-O2"))
PROCESSORS = ("simple", "batch")
LIBRARIES = "$(pkg-config --cflags --libs opentelemetry_trace opentelemetry_api) -lopentelemetry_exporter_ostream_span"
KINDS, SPANS, LEAST_SAMPLES = 4, 8 * 1000 * 2, 200
SPAN = re.compile(r"^  name          : (.*)\n  trace_id      : (.*)\n  span_id       : (.*)\n.*\n  parent_span_id: (.*)$", re.M)
SETTINGS = {"LD_PRELOAD": f"/{installed.FOLDER}/libotelprof.so", "ADAPTOR": f"/{installed.FOLDER}/libotelprof-cpp.so",
            "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "60000", "OTEL_PROFILER_TYPES": "cpu"}


def build(root, compiler):
    command = f"{compiler} -g1 -pthread /tmp/source/real_sdk.cpp -o /tmp/real_sdk {LIBRARIES}"
    status, _, errors = layers.in_root(root, ["sh", "-c", command])
    if status != 0:
        raise RuntimeError(f"{command}: {errors}")


def exported(root):
    """Returns {(trace, span): (its name, the name of the span around it)}."""
    found = [words.groups() for words in SPAN.finditer((root / "tmp/spans").read_text())]
    names = {span: name for name, _, span, _ in found}
    return {(trace, span): (name, names.get(parent)) for name, trace, span, parent in found}


def judge(requests, spans):
    """Returns the numbers of samples with the right span, with a wrong one, and with none."""
    right = wrong = none = 0
    for kind in range(KINDS):
        for link, count in links_of(requests, f"burns_{kind}"):
            name, _ = spans.get((link.trace_id.hex(), link.span_id.hex()), (None, None))
            right += count if name == f"burns_{kind}" else 0
            none += count if not any(link.span_id) else 0
            wrong += count if any(link.span_id) and name != f"burns_{kind}" else 0
    return right, wrong, none


def amiss(root, processor):
    """Returns the verdict, and lines: what differs with the profiler, or is linked wrongly."""
    command, lines = ["/tmp/real_sdk", processor, "/tmp/spans"], []
    said = layers.in_root(root, command)
    plain = Counter(exported(root).values())
    receiver = Receiver()
    with_us = layers.in_root(root, command, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **SETTINGS)
    receiver.close()
    for request in receiver.requests:
        check_conformance(request)
    spans = exported(root)
    if (said, with_us) != ((3, "not followed\n", ""), (3, "followed\n", "")):
        lines.append(f"{said} without, {with_us} with")
    if sum(plain.values()) != SPANS or Counter(spans.values()) != plain:
        lines.append(f"exported {plain} without, {Counter(spans.values())} with")
    right, wrong, none = judge(receiver.requests, spans)
    if right < LEAST_SAMPLES or wrong or none > 0.001 * right:
        lines.append(f"{right} samples of the right span, {wrong} of a wrong one, {none} of none")
    return (right, wrong, none), lines


def check(suite, debian, bundle, scratch):
    if suite not in roots.WITH_SDK:
        return
    found, sums = [], Counter()
    with layers.layered(scratch / "spans", roots.with_sdk(suite), debian) as root, layers.at_work(root):
        installed.install(root, bundle, suite)
        shutil.copytree(ROOT / "test/spans", root / "tmp/source")
        shutil.copy(ROOT / "shim/otelprof.h", root / "tmp/source")
        for compiler, flag in BUILDS:
            build(root, f"{compiler} {flag}")
            for processor in PROCESSORS:
                verdict, lines = amiss(root, processor)
                sums.update(dict(zip(("right", "wrong", "none"), verdict)))
                found += [f"{compiler} {flag}, {processor}: {line}" for line in lines]
        version = layers.in_root(root, ["dpkg-query", "-W", "-f", "${Version}", "opentelemetry-cpp-dev"])[1]
    yield suite, f"SDK {version}: {sums['right']} samples right, {sums['wrong']} wrong, {sums['none']} of no span", found
