"""README and docs/ agree with the code, and lead to what there is."""

import re
import subprocess

from profiled import ROOT

README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BACKENDS = (ROOT / "docs" / "backends.md").read_text()


def test_the_table_of_variables_is_the_codes():
    made = subprocess.run(
        [ROOT / "scripts" / "options-table"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    options = (ROOT / "common" / "options.def").read_text()
    assert len(made) == len(re.findall(r"^OPTION\(", options, re.M)) > 20
    table = [line for line in README.splitlines() if line.startswith("| `OTEL_")]
    assert table == made


def test_the_table_of_the_resource_is_the_codes():
    made = subprocess.run(
        [ROOT / "scripts" / "resource-table"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    attributes = (ROOT / "common" / "resource_attributes.def").read_text()
    assert len(made) == len(re.findall(r"^RESOURCE_ATTRIBUTE\(", attributes, re.M)) > 20
    table = [line for line in BACKENDS.splitlines() if re.match(r"\| `[a-z.]+` \| (always|`full`) \|", line.replace("_", "."))]
    assert table == made


def test_no_other_variable_is_named():
    options = (ROOT / "common" / "options.def").read_text()
    known = set(re.findall(r'"(OTEL_\w+)"', options)) | {
        "OTEL_EXPORTER_OTLP_X", "OTEL_EXPORTER_OTLP_PROFILES_X", "OTEL_CONFIG_FILE", "OTEL_CTX"}
    for page in PAGES:
        for name in re.findall(r"OTEL_[A-Z_]+[A-Z]", page.read_text()):
            assert name in known, f"{page.name}: {name}"


def test_every_link_leads_somewhere_and_every_page_is_linked():
    linked = set()
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if "://" not in link:
                linked.add((page.parent / link).resolve())
                assert (page.parent / link).exists(), f"{page.name}: {link}"
    assert set(PAGES[1:]) <= linked, "a page that nobody finds"


def test_the_two_commands_exist():
    targets = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True)
    for target in ("demo", "test", "test-apps", "test-suites", "check", "bench", "install", "uninstall", "clean"):
        assert re.search(rf"^{target}\s", targets.stdout, re.M), target


def test_every_test_named_in_traps_exists():
    text = (ROOT / "test" / "TRAPS.md").read_text()
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", text)
    assert len(named) > 30
    for file, test in named:
        source = (ROOT / "test" / "integration" / file).read_text()
        assert f"def {test}(" in source, f"{file}::{test}"
    for file in re.findall(r"`(test_\w+\.c)`", text):
        assert (ROOT / "test" / "unit" / file).exists(), file
