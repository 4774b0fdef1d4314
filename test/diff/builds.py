"""Makes two builds of one program, in one of which a function does 20 % more, and compares them by `otelprof diff`."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OTELPROF = ROOT / "scripts" / "otelprof"
SOURCE = ROOT / "test" / "programs" / "four_parts.c"
CHANGED = "hashes"
THREADS = 2


def build(folder, name, hashes):
    """Builds each in a folder of its own, under one name."""
    path = Path(folder) / name / "four_parts"
    path.parent.mkdir()
    subprocess.run(
        [os.environ.get("CC", "cc"), "-O2", "-g", f"-DHASHES={hashes}", "-o", path, SOURCE, "-pthread"], check=True
    )
    return path


def profile(program, output, rounds):
    """Runs once: so many rounds of some 0.13 ms of CPU."""
    command = [
        OTELPROF,
        "run",
        "--quiet",
        "--types",
        "cpu",
        "--frequency",
        "999",
        "-o",
        output,
        "--",
        program,
        THREADS,
        rounds // THREADS,
    ]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return output


def difference(before, after, *options):
    done = subprocess.run([OTELPROF, "diff", *options, before, after], capture_output=True, text=True, check=True)
    return done.stdout


def named(text):
    """Returns the functions that changed, in the table's order."""
    if "\n\n" not in text or "chance  function\n" not in text:
        return []
    table = text.split("chance  function\n")[1].split("\n\n")[0]
    return [line.split("  ")[-1].split(" (")[0] for line in table.splitlines()]
