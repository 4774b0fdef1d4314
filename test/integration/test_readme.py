"""README agrees with the code."""

import re
import subprocess

from profiled import ROOT

README = (ROOT / "README.md").read_text()


def test_the_table_of_variables_is_the_codes():
    made = subprocess.run(
        [ROOT / "scripts" / "options-table"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    options = (ROOT / "common" / "options.def").read_text()
    assert len(made) == len(re.findall(r"^OPTION\(", options, re.M)) > 20
    table = [line for line in README.splitlines() if line.startswith("| `OTEL_")]
    assert table == made


def test_no_other_variable_is_named():
    options = (ROOT / "common" / "options.def").read_text()
    known = set(re.findall(r'"(OTEL_\w+)"', options)) | {"OTEL_EXPORTER_OTLP_X", "OTEL_EXPORTER_OTLP_PROFILES_X"}
    for name in re.findall(r"OTEL_[A-Z_]+[A-Z]", README):
        assert name in known, name


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
