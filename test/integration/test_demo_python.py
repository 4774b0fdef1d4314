"""scripts/demo-python shows a Python program's functions between the interpreter and the C code that they call."""

import ast
import json
import os
import re
import subprocess
import sys

import pytest

from profiled import ROOT

sys.path[:0] = [str(ROOT / "scripts")]
from otelprof_lib.aggregate import aggregate  # noqa: E402
from otelprof_lib.capture_file import read_messages  # noqa: E402
from otelprof_lib.python_frames import PYTHON  # noqa: E402

pytestmark = pytest.mark.system

TIMEOUTS = ("OTEL_PROFILER_SHUTDOWN_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_PROFILE_EXPORT_TIMEOUT")
PROGRAM = ROOT / "scripts" / "interpreters" / "report.py"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(its output, its page, the stacks of its CPU time)"""
    folder = tmp_path_factory.mktemp("demo-python")
    environment = {**os.environ, **dict.fromkeys(TIMEOUTS, "120000")}
    done = subprocess.run([ROOT / "scripts" / "demo-python", folder], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, (folder / "demo.html").read_text(), aggregate(read_messages(folder / "demo.otlp"))["cpu"].stacks


def lines_of_functions():
    functions = [node for node in ast.walk(ast.parse(PROGRAM.read_text())) if isinstance(node, ast.FunctionDef)]
    return {node.name: range(node.lineno, node.end_lineno + 1) for node in functions}


def test_it_names_python_s_functions_with_their_lines(demo):
    printed, page, _ = demo
    assert re.search(r"^ .* report\.is_alike \(report\.py\)$", printed, re.M), printed
    lines = re.findall(r"^ .* report\.(\w+) report\.py:(\d+)$", printed, re.M)
    assert lines and all(int(line) in lines_of_functions()[function] for function, line in lines), lines
    data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.S)[1])
    assert {PYTHON, "native"} <= set(data["languages"])


@pytest.mark.parametrize("library, function", [("libz.so", "report.pack"), ("libsqlite3.so", "report.orders_of")])
def test_a_stack_goes_from_main_through_python_to_c(demo, library, function):
    stacks = [stack for stack in demo[2] if stack[0].module.startswith(library) and function in {frame.name for frame in stack}]
    assert stacks
    for stack in stacks:
        languages = [frame.language for frame in stack]
        of_python = [at for at, language in enumerate(languages) if language == PYTHON]
        assert [stack[at].name for at in reversed(of_python)][:2] == ["report.<module>", "report.main"], stack
        assert languages[of_python[-1] + 1 :] and set(languages[of_python[-1] + 1 :]) == {"native"}, "the interpreter, below main"
