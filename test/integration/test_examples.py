"""The examples of docs/examples: each is built as it says, runs without the profiler, and with it the samples of a span
lie in the function that ran for it."""

import os
import shutil
import subprocess

import pytest
from linked_samples import linked_samples
from profiled import ROOT

EXAMPLES = ROOT / "docs/examples"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
IMAGES, REPORTS = "01" * 8, "02" * 8
ROUTES = {IMAGES: "/images", REPORTS: "/reports"}
COMPILED = {
    "spans.c": ["gcc", "-O1", "-Wall", "-Wextra", "-Werror"],
    "event_loop.c": ["gcc", "-O1", "-Wall", "-Wextra", "-Werror"],
    "spans.cpp": ["g++", "-O1", "-Wall", "-Wextra", "-Werror"],
    "spans.rs": ["rustc", "-g", "-O"],
    "spans.go": ["go", "build"],
}
WORK = {
    "spans.go": {IMAGES: "main.resizeImage", REPORTS: "main.writeReport"},
    # interpreted functions have no names; what they call has
    "spans.py": {IMAGES: "libz.so", REPORTS: "libcrypto.so"},
    "spans_asyncio.py": {IMAGES: "libz.so", REPORTS: "libcrypto.so"},
}


def found(tool):
    path = shutil.which(tool, path=os.environ["PATH"] + ":/usr/local/go/bin:/root/.cargo/bin")
    if not path and not os.environ.get("CI"):
        pytest.skip(f"{tool} is not installed")
    assert path, f"{tool} is missing"
    return path


@pytest.fixture(params=sorted(path.name for path in EXAMPLES.iterdir()))
def example(request, tmp_path):
    """(its name, the command that runs it)"""
    source = EXAMPLES / request.param
    if source.suffix == ".py":
        return source.name, ["/usr/bin/python3", source]
    tool, *options = COMPILED[source.name]
    include = [f"-I{ROOT}/shim"] if source.suffix in (".c", ".cpp") else []
    built = tmp_path / source.stem
    copy = shutil.copy(source, tmp_path)
    subprocess.run([found(tool), *options, *include, "-o", built, copy], check=True, cwd=tmp_path, timeout=600,
                   env={**os.environ, "CGO_ENABLED": "1", "CGO_CFLAGS": f"-O1 -I{ROOT}/shim", "GO111MODULE": "off"})
    return source.name, [built]


def test_the_samples_of_a_span_lie_in_what_ran_for_it(example, run):
    name, command = example
    outcome = run(command)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
    work = WORK.get(name, {IMAGES: "resize_image", REPORTS: "write_report"})
    samples = linked_samples(outcome)
    for span, function in work.items():
        other = next(work[other] for other in work if other != span)
        within = [sample for sample in samples if function in " ".join(sample.stack + sample.objects)]
        linked = [sample for sample in samples if sample.span == span]
        assert sum(samples[sample] for sample in within) > 3, f"{function} was not met"
        assert {(sample.trace, sample.span) for sample in within} == {(TRACE, span)}
        assert not [sample for sample in linked if other in " ".join(sample.stack + sample.objects)]
        if name != "spans_asyncio.py":
            assert {sample.labels for sample in within} == {frozenset({("http.route", ROUTES[span])})}


def test_an_example_does_the_same_without_the_profiler(example, run):
    outcome = run(example[1], profiled=False)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
