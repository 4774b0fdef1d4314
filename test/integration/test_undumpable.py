"""A process that gave up root: the kernel keeps its files of /proc for root."""

import os
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from profiled import LIBRARY

pytestmark = [pytest.mark.system, pytest.mark.skipif(os.getuid() != 0, reason="only root can give up root")]

NOBODY = 65534


@pytest.fixture
def folder():
    """Every user can write here."""
    with tempfile.TemporaryDirectory(prefix="otelprof-undumpable-", dir="/var/tmp") as name:
        Path(name).chmod(0o1777)
        yield Path(name)


@pytest.fixture
def traced(folder):
    """traced(program, ..., types) -> the command that runs it under strace, and the log."""
    def command(*words, types):
        log = folder / "trace"
        settings = {"LD_PRELOAD": LIBRARY, "OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_TYPES": types,
                    "OTEL_PROFILER_EXCLUDE": "none", "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_MAX_OVERHEAD": "none",
                    "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "300000", "OTEL_PROFILER_LOG_FILE": folder / "log"}
        return ["strace", "-f", "-qq", "-ttt", "-o", log, *(f"-E{name}={value}" for name, value in settings.items()), *words], log
    return command


def test_unwind_tables_are_read_by_whole_pages_and_once_an_export(traced, program, folder):
    """By the helper's own unwinder, which a rule needs that the handler leaves to it."""
    command, log = traced(program("unusual_rule"), "700", NOBODY, types="cpu")
    assert subprocess.run(list(map(str, command)), cwd=folder, check=False, timeout=600).returncode == 7
    exported = next(folder.glob("otelprof-*.jsonl")).read_text()
    assert '"main"' in exported and '"calls_the_unusual"' in exported
    reads = re.findall(r"process_vm_readv\(.*iov_base=(0x\w+), iov_len=(\d+)\}\], 1, 0", log.read_text(errors="replace"))
    pages = Counter(address for address, size in reads if size == "4096")
    assert pages and max(pages.values()) <= len(exported.splitlines()) + 1
    assert not [size for _, size in reads if int(size) <= 8], "a word at a time"
