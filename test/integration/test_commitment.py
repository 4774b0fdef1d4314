"""The kernel charges a profiled process under vm.overcommit_memory=2 for each private writable mapping, touched or
not (mm/vma.c, accountable_mapping; MAP_NORESERVE is ignored there)."""

import re
from pathlib import Path

from waiting import eventually

MIB = 1 << 20
MOST_MIB = 16  # with the helper's stack of 2, and the pages that the loader writes in the exporter's libraries
SETTINGS = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "1000"}


def charged_bytes(pid):
    mappings = re.findall(r"^(\w+)-(\w+) .w.p ", Path(f"/proc/{pid}/maps").read_text(), re.M)
    return sum(int(end, 16) - int(start, 16) for start, end in mappings)


def is_loaded(pid):
    return "libotelprof-flush.so" in Path(f"/proc/{pid}/maps").read_text()


def test_an_idle_process_is_charged_for_used_memory_alone(start):
    plain = start(["sleep", "600"], profiled=False)
    running = start(["sleep", "600"], env=SETTINGS)
    pid = running.process.pid
    eventually(lambda: is_loaded(pid), "the exporter", unless=running.process.poll)
    eventually(lambda: charged_bytes(pid) - charged_bytes(plain.process.pid) < MOST_MIB * MIB,
               f"less than {MOST_MIB} MiB", unless=running.process.poll)
    for it in (plain, running):
        it.process.kill()
