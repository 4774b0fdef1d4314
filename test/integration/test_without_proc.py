"""A root that holds a program and its libraries, and no /proc: names come from the file that was given to exec."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from profiled import LIBRARY, decode

pytestmark = [pytest.mark.system, pytest.mark.skipif(os.getuid() != 0, reason="only root may chroot")]

ENTER = "import os, sys; os.chroot(sys.argv[1]); os.chdir(sys.argv[2]); os.execv(sys.argv[3], sys.argv[3:])"


@pytest.fixture
def bare_root(program):
    """A root with unusual_rule in /app, its libraries and the exporter's; only root can write there."""
    exporter = LIBRARY.with_name("libotelprof-flush.so")
    with tempfile.TemporaryDirectory(prefix="otelprof-bare-", dir="/var/tmp") as name:
        root = Path(name)
        root.chmod(0o755)
        listed = subprocess.run(["ldd", exporter, program("unusual_rule")], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"(?:=> |^\s+)(/\S+) \(0x", listed, re.M)
        for file in {*needed, "/lib64/ld-linux-x86-64.so.2"}:
            (root / file[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, root / file[1:])
        for folder, files in {"app": [program("unusual_rule")], "prof": [LIBRARY, exporter], "tmp": []}.items():
            (root / folder).mkdir()
            for file in files:
                shutil.copy(file, root / folder)
        yield root


@pytest.mark.parametrize("folder, name", [("/", "/app/unusual_rule"), ("/app", "./unusual_rule"), ("/app", "unusual_rule")])
def test_the_executable_has_its_name_and_its_functions(bare_root, folder, name):
    settings = {"LD_PRELOAD": "/prof/libotelprof.so", "OTEL_PROFILES_EXPORTER": "otlp_file",
                "OTEL_PROFILER_FILE": "/tmp/exports", "OTEL_PROFILER_MIN_LIFETIME": "0",
                "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "300000", "OTEL_PROFILER_MAX_OVERHEAD": "none"}
    # the settings begin with the exec in the root: the program before it is not profiled
    enter = ENTER.replace("os.execv(sys.argv[3], sys.argv[3:])", f"os.execve(sys.argv[3], sys.argv[3:], {settings!r})")
    done = subprocess.run([sys.executable, "-c", enter, bare_root, folder, name, "500"], check=False, timeout=600)
    assert done.returncode == 7
    exports = (bare_root / "tmp/exports").read_text().splitlines()
    request = decode(exports[0].encode(), "application/json")
    assert {"main", "calls_the_unusual"} <= set(request.dictionary.string_table)
    attributes = {a.key: a.value.string_value for a in request.resource_profiles[0].resource.attributes}
    assert attributes["process.executable.path"] == "/app/unusual_rule"
    assert attributes["service.name"] == "unknown_service:unusual_rule"
