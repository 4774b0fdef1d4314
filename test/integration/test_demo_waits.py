"""scripts/demo-waits shows a program that is slow on idle processors, and the lock that it waits for."""

import os
import re
import subprocess
import sys

import pytest

from profiled import ROOT

sys.path[:0] = [str(ROOT / "scripts")]
from otelprof_lib.aggregate import aggregate  # noqa: E402
from otelprof_lib.capture_file import read_messages  # noqa: E402
from otelprof_lib.locks import locks  # noqa: E402
from otelprof_lib.waits import WAIT_KIND  # noqa: E402

pytestmark = pytest.mark.system

TIMEOUTS = ("OTEL_PROFILER_SHUTDOWN_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_PROFILE_EXPORT_TIMEOUT")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(its output, its profiles)"""
    folder = tmp_path_factory.mktemp("demo-waits")
    environment = {**os.environ, **dict.fromkeys(TIMEOUTS, "120000")}
    done = subprocess.run([ROOT / "scripts" / "demo-waits", folder], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wall time" in (folder / "demo.html").read_text()
    return done.stdout, aggregate(read_messages(folder / "demo.otlp"))


def waits_of(profiles, thread):
    """Returns seconds by kind, of the waits that a poll has met."""
    sums = {}
    for (_, labels), value in profiles["off_cpu"].samples.items():
        labels = dict(labels)
        kind = labels.get(WAIT_KIND)
        if kind and re.fullmatch(thread, labels.get("thread.name", "")):
            sums[kind] = sums.get(kind, 0) + value
    return sums


@pytest.mark.parametrize("thread, kind", [(r"worker-\d", "lock"), ("archiver", "net"), ("pool", "cond")])
def test_each_thread_waits_most_for_its_lock(demo, thread, kind):
    waits = waits_of(demo[1], thread)
    assert max(waits, key=waits.get) == kind, waits


def test_the_demo_leads_to_the_holder_of_the_lock_and_its_place(demo):
    printed, profiles = demo
    first = locks(profiles)[0]
    assert max(first.holders, key=first.holders.get)[1] == "archiver"
    assert max(first.places, key=first.places.get) == "write_journal (orders)"
    assert re.search(r"^ +held by +[\d.]+%  archiver \(thread \d+\)$", printed, re.M)
