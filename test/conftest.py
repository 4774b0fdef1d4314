"""Sorts the Python tests into tiers (README.md) and records each result.

The tier of a test is its nearest marker of TIERS. A test without one is `fast`. A fast test that uses one of
SYSTEM_FIXTURES is `system`. A file that sleeps, measures or asks for root must have a marker: chance enters a suite by such files.
"""

import json
import os
import re
from pathlib import Path

import pytest

TIERS = ("fast", "timing", "system", "load")
# A test that uses one of these needs a browser, a machine of its own, or a namespace.
SYSTEM_FIXTURES = {"browser", "driver", "machine", "enterable"}
SIGNS = {
    "sleeps": r"\btime\.sleep\(|^from time import .*\bsleep\b",
    "measures CPU time": r"\b(cpu_of|cpu_total|cpu_ns)\b",
    "measures shares or compares roughly": r"\b(whole_share|mean_gap|getrusage|process_time)\b|\bapprox\(.*\b(rel|abs)=0\.",
    "asks for root or a namespace": r"\b(geteuid|getuid|unshare|nsenter|setpriv|chroot)\b",
    "needs what Debian alone does not have": r"^(from|import) (collector|containers|pods|host_root|crash_root|control_group|pprof_pages|npm_package)\b",
}
# CPU time is a fact where the program takes a sample at each function's end (integration/profiled.py).
EXCUSES = {"measures CPU time": r"\bEXACT_CPU\b"}


MARKED = re.compile(rf"^pytestmark = .*\bpytest\.mark\.({'|'.join(TIERS)})\b", re.MULTILINE)


def refuse_unmarked_files(folder):
    """Fails the run if a test file has one of SIGNS and names no tier."""
    wrong = []
    for path in sorted(folder.glob("*/test_*.py")):
        source = path.read_text(encoding="utf-8")
        found = [sign for sign, pattern in SIGNS.items()
                 if re.search(pattern, source, re.MULTILINE) and not (sign in EXCUSES and re.search(EXCUSES[sign], source))]
        if found and not MARKED.search(source):
            wrong.append(f"{path}: {', '.join(found)}: name its tier by pytestmark (test/README.md)")
    if wrong:
        raise pytest.UsageError("\n".join(wrong))


def marked_tier(item):
    """Returns the name of the test's nearest marker of TIERS, else None."""
    return next((marker.name for marker in item.iter_markers() if marker.name in TIERS), None)


def tier_of(item):
    tier = marked_tier(item) or "fast"
    return "system" if tier == "fast" and SYSTEM_FIXTURES.intersection(item.fixturenames) else tier


def pytest_addoption(parser):
    parser.addoption("--tier", choices=TIERS, help="run the tests of this tier alone")
    parser.addoption("--results", metavar="FILE", help="append a JSON line for each test")


def pytest_ignore_collect(collection_path, config):
    """Skips a file without a test of the chosen tier: what other tiers import need not be there."""
    tier = config.getoption("--tier")
    if not tier or not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    source = collection_path.read_text(encoding="utf-8")
    of_file = MARKED.search(source)
    own = of_file[1] if of_file else "fast"
    if own == tier or f"pytest.mark.{tier}" in source or (own == "fast" and tier == "system"):
        return None
    return True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    tier = config.getoption("--tier")
    if tier:
        config.hook.pytest_deselected(items=[item for item in items if tier_of(item) != tier])
        items[:] = [item for item in items if tier_of(item) == tier]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    report.tier = tier_of(item)
    report.is_hard = item.get_closest_marker("hard") is not None


class Recorder:
    """Appends one JSON line for each test to a file, once its teardown has been reported."""

    def __init__(self, path):
        self.path = path
        self.results = {}

    def pytest_collectreport(self, report):
        if report.failed:
            self.write({"test": report.nodeid, "outcome": "failed", "duration_s": 0.0, "message": report.longreprtext, "tier": None, "is_hard": True})

    def pytest_runtest_logreport(self, report):
        result = self.results.setdefault(
            report.nodeid, {"test": report.nodeid, "outcome": "passed", "duration_s": 0.0, "message": ""})
        result["duration_s"] += report.duration
        # a report of a worker that crashed has no test
        result["tier"] = getattr(report, "tier", None)
        result["is_hard"] = getattr(report, "is_hard", True)
        if report.failed:
            result["outcome"] = "failed"
            result["message"] = report.longreprtext
        elif report.skipped and result["outcome"] == "passed":
            result["outcome"] = "skipped"
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            result["message"] = reason.removeprefix("Skipped: ")
        if report.when == "teardown" or not hasattr(report, "tier"):
            self.write(result)

    def write(self, result):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(result | {"load": os.getloadavg()[0]}) + "\n")


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        return
    refuse_unmarked_files(Path(__file__).parent)
    path = config.getoption("--results")
    if path:
        config.pluginmanager.register(Recorder(path))
