"""scripts/demo-links shows spans and profiles of a C++ server in one Collector, and the code of the slowest span."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from collector import skip_without_collector
from profiled import BUILD, ROOT

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "test" / "spans")]
from builds import headers  # noqa: E402
from otelprof_lib.aggregate import aggregate  # noqa: E402
from otelprof_lib.capture_file import read_messages  # noqa: E402

pytestmark = pytest.mark.system

# the function in which each kind of request burns its time
TRUE_FUNCTION = {"/search": "shop::wildcard_match", "/thumbnail": "shop::scale_pixels", "/checkout": "shop::hash_receipt"}
REQUESTS = 151
TIMEOUTS = ("OTEL_PROFILER_SHUTDOWN_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_PROFILE_EXPORT_TIMEOUT")


@pytest.fixture(scope="module", params=["opentelemetry-cpp", "otelprof.h", "otelprof.h, no Collector"])
def demo(request, tmp_path_factory):
    """(its output, its folder), for each way in which the profiler learns the server's spans."""
    uses_api, has_collector = request.param == "opentelemetry-cpp", "no Collector" not in request.param
    if has_collector:
        skip_without_collector()
    if uses_api:
        headers()
    folder = tmp_path_factory.mktemp("demo-links")
    build = BUILD if has_collector else tmp_path_factory.mktemp("build")
    if not has_collector:
        for built in BUILD.glob("libotelprof*.so"):
            shutil.copy(built, build)
    environment = {**os.environ, **dict.fromkeys(TIMEOUTS, "120000"), "BUILD": str(build),
                   "CXX": "g++" if uses_api else "g++ -DWITHOUT_OPENTELEMETRY"}
    done = subprocess.run([ROOT / "scripts" / "demo-links", folder], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert ("of OpenTelemetry's C++ API" in done.stdout) == uses_api
    assert ("one Collector" in done.stdout) == has_collector
    return done.stdout, folder


def profiles_of(folder):
    (profiles,) = folder.glob("profiles.*")
    return profiles


def spans_of(folder):
    """Returns {span id: (trace id, path, duration)} of what was received."""
    spans = {}
    for line in (folder / "traces.json").read_text().splitlines():
        for resource_spans in json.loads(line)["resourceSpans"]:
            for scope_spans in resource_spans["scopeSpans"]:
                for span in scope_spans["spans"]:
                    path = next(it["value"]["stringValue"] for it in span["attributes"] if it["key"] == "url.path")
                    spans[span["spanId"]] = span["traceId"], path, int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
    return spans


def test_the_function_of_the_slowest_span_is_the_true_one(demo):
    said, folder = demo
    spans = spans_of(folder)
    assert len(spans) == REQUESTS
    slowest = max(spans, key=lambda span: spans[span][2])
    trace, path, _ = spans[slowest]
    named = dict(re.findall(r"^    (\w+\.?\w*) +(.*)$", said, re.M))
    assert (named["span_id"], named["trace_id"], named["url.path"]) == (slowest, trace, path)
    of_span = said.split(f"--span {slowest} {profiles_of(folder).name}\n")[1]
    hottest = re.search(r"^ .*%  (\S+) server\.cpp:(\d+) \(shop\)$", of_span, re.M)
    assert hottest[1] == TRUE_FUNCTION[path]
    source = (ROOT / "scripts/links/server.cpp").read_text().splitlines()
    body = "\n".join(source[:int(hottest[2])]).rpartition("WORK ")[2]
    assert body.partition("(")[0].split()[-1] == TRUE_FUNCTION[path].removeprefix("shop::"), "the line is in that function"


def test_every_sample_of_a_request_has_its_span_and_no_other(demo):
    """The server's own functions identify the request that a sample belongs to."""
    spans = spans_of(demo[1])
    right, missing, wrong = 0, 0, []
    for (stack, labels), value in aggregate(read_messages(profiles_of(demo[1])))["cpu"].samples.items():
        functions = {frame.name for frame in stack} & set(TRUE_FUNCTION.values())
        ids = dict(labels)
        if not functions:
            continue
        if "span_id" not in ids:
            missing += value
            continue
        trace, path, _ = spans[ids["span_id"]]
        if (ids["trace_id"], {TRUE_FUNCTION[path]}) == (trace, functions):
            right += value
        else:
            wrong.append((stack, labels))
    assert wrong == []
    assert missing <= 0.001 * right and right > 0


def test_the_flame_graph_of_the_span_is_written(demo):
    said, folder = demo
    page = Path(re.search(r"The flame graph of this span: (.*)", said)[1])
    assert page == folder / "span.html" and "wildcard_match" in page.read_text()


def test_nothing_of_it_runs_on(demo):
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes() + os.fsencode(os.readlink(process / "exe"))
        except OSError:
            continue
        left += [command] if os.fsencode(demo[1]) in command else []
    assert left == []
