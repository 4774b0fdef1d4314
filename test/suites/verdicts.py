"""Reads each test's verdict from the output of suites: every reader takes text and returns {name of the test: PASSED,
FAILED or SKIPPED}."""

import re
import xml.etree.ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
MISSING = "missing"  # the other side has this test


def add(found, name, verdict):
    """Adds a verdict; tests of one name are distinguished by their order."""
    number, unique = 1, name
    while unique in found:
        number += 1
        unique = f"{name} ({number})"
    found[unique] = verdict


def junit(text):
    """Reads JUnit's XML, as python's regrtest writes it."""
    found = {}
    for case in xml.etree.ElementTree.fromstring(text).iter("testcase"):
        bad = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None or case.get("status") == "notrun"
        # a subtest's name holds its parameters, which may be ports and addresses
        name = re.sub(r"0x[0-9a-f]+|\b\d{4,}\b", "N", case.get("name"))
        add(found, name, FAILED if bad else SKIPPED if skipped else PASSED)
    return found


TAP = re.compile(r"^(not )?ok\b *(\d*) *(?:- *)?([^#]*)(?:# *(\w+))?", re.IGNORECASE)


def tap(text):
    """Reads the Test Anything Protocol: tests by number, for their descriptions may hold pids and times. A test that
    the plan has and the output lacks is missing; a test marked TODO may fail."""
    found, planned, last = {}, 0, 0
    for line in text.splitlines():
        plan = re.match(r"1\.\.(\d+)", line)
        if plan:
            planned = int(plan[1])
        result = TAP.match(line)
        if not result:
            continue
        last = int(result[2] or last + 1)
        directive = (result[4] or "").upper()
        if directive.startswith("SKIP"):
            verdict = SKIPPED
        elif result[1] and directive != "TODO":
            verdict = FAILED
        else:
            verdict = PASSED
        found[f"{last}"] = verdict
    if planned == 0 and re.search(r"^1\.\.0", text, re.MULTILINE):
        found["all"] = SKIPPED
    for number in range(1, planned + 1):
        found.setdefault(f"{number}", MISSING)
    return found


def lines(patterns, text):
    """Reads each line that a pattern fits: the pattern's `name` group has the verdict that it maps to."""
    found = {}
    for line in text.splitlines():
        for pattern, verdict in patterns.items():
            result = re.search(pattern, line)
            if result:
                add(found, result["name"].strip(), verdict)
                break
    return found


def redis(text):
    """Reads `[ok]: name (12 ms)`. Numbers in names are sizes and seeds that are drawn."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r" \(\d+ ms\)$", "", text, flags=re.MULTILINE)
    return lines({
        r"^\[ok\]: (?P<name>.*)": PASSED,
        r"^\[err\]: (?P<name>.*?)( in tests/.*)?$": FAILED,
        r"^\[exception\]: (?P<name>.*)": FAILED,
        r"^\[(skip|ignore)\]: (?P<name>.*)": SKIPPED,
    }, text)


def tcl(text):
    """Reads tcltest with -verbose pslt."""
    return lines({
        r"^\+\+\+\+ (?P<name>\S+) PASSED": PASSED,
        r"^==== (?P<name>\S+) FAILED$": FAILED,
        r"^\+\+\+\+ (?P<name>\S+) SKIPPED": SKIPPED,
    }, text)


def sqlite(text):
    """Reads `select1-1.1... Ok`. A failure has lines of its own, after the name's."""
    return lines({
        r"^(?P<name>\S+)\.\.\. Ok$": PASSED,
        r"^! (?P<name>\S+) expected:": FAILED,
        r"^(?P<name>\S+)\.\.\. Omitted": SKIPPED,
    }, text)


def automake(text):
    """Reads `PASS: tests/cp/acl.sh`, at times behind what the test itself printed without an end of line."""
    return lines({
        r"(^|[^X])(PASS|XFAIL): (?P<name>tests/\S+)$": PASSED,
        r"(^|[^X])(FAIL|XPASS|ERROR): (?P<name>tests/\S+)$": FAILED,
        r"SKIP: (?P<name>tests/\S+)$": SKIPPED,
    }, text)


def diff(text):
    """Reads the output of bash's tests, a diff of their output and the expected one. The size of the diff is part of
    the verdict: a test that fails anyway may fail in more."""
    differing = [line for line in text.splitlines() if line.startswith(("< ", "> "))]
    return {"output": f"{FAILED}, {len(differing)} lines differ" if differing else PASSED}
