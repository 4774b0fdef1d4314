"""Each example of docs/examples is built by its own instructions, runs without the profiler, and with it the samples
of a span are in the function that ran for the span."""

import os
import shutil
import subprocess
from collections import Counter

import pytest
from linked_samples import linked_samples
from profiled import ROOT

pytestmark = pytest.mark.system

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
    # found by the library that works, under whatever name
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
    """(the example's name, the command that runs it)"""
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


def is_work(sample):
    """Excludes the loading and unloading of libcrypto by Python, which takes a moment."""
    return not any("python" in name for name in sample.objects) or ("<module>" in sample.stack and "_find_and_load" not in sample.stack)


def samples_of(run, command, functions):
    """Returns the samples by function, of as many runs as it takes until each function was met: they work for tenths of a
    second, and Go's example ends by a system call of its own, which loses what was sampled since the last export."""
    samples = Counter()
    for _ in range(10):
        outcome = run(command)
        assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
        samples += linked_samples(outcome)
        within = {function: [sample for sample in samples if function in " ".join(sample.stack + sample.objects) and is_work(sample)]
                  for function in functions}
        if all(sum(samples[sample] for sample in within[function]) > 3 for function in functions):
            return samples, within
    raise AssertionError(f"not met: {within}")


def test_the_samples_of_a_span_lie_in_its_functions(example, run):
    name, command = example
    work = WORK.get(name, {IMAGES: "resize_image", REPORTS: "write_report"})
    samples, within = samples_of(run, command, work.values())
    for span, function in work.items():
        other = next(work[other] for other in work if other != span)
        linked = [sample for sample in samples if sample.span == span]
        assert {(sample.trace, sample.span) for sample in within[function]} == {(TRACE, span)}
        assert not [sample for sample in linked if other in " ".join(sample.stack + sample.objects)]
        if name != "spans_asyncio.py":
            assert {sample.labels for sample in within[function]} == {frozenset({("http.route", ROUTES[span])})}


def test_an_example_does_the_same_without_the_profiler(example, run):
    outcome = run(example[1], profiled=False)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
