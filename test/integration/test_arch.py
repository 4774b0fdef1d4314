"""Code for one processor is in two folders only: common/arch/NAME and shim/capture/arch/NAME."""

import re
import subprocess

from profiled import ARCH, BUILD, ROOT

REGISTER = re.compile(
    r"\b[re](?:[abcd]x|[sd]i|[sb]p|ip|flags)\b"  # registers of the processor
    r"|\br(?:8|9|1[0-5])[dwb]?\b|\b[xyz]mm\d*\b|\bmxcsr\b|\bREG_\w+|_R[SBI]P\b"
    r"|\bgregs\b|\b\w*x86_\w*|[\"`]amd64",
    re.IGNORECASE,
)
# Matches instructions. A directive that names a symbol (a label, .weak, .symver) belongs to no architecture.
ASSEMBLER = re.compile(r"\basm\s+volatile|__asm__\s+(?:volatile|goto)|\bnaked\b")
# Lists files and what they may mention: an example of a value.
ALLOWED = {"common/resource_attributes.def": "amd64", "shim/flush/encode/emulated_program.c": '"x86_64"'}


def folders(arch):
    return [ROOT / "common/arch" / arch, ROOT / "shim/capture/arch" / arch]


def sources():
    """Lists the sources that must not depend on an architecture. otelprof.h is left out: programs include it alone,
    without the files beside it."""
    paths = [path for folder in ("common", "shim") for path in sorted((ROOT / folder).rglob("*"))]
    return [path for path in paths if path.is_file() and "arch" not in path.relative_to(ROOT).parts and path.name != "otelprof.h"]


def found(pattern):
    lines = []
    for path in sources():
        name = str(path.relative_to(ROOT))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if pattern.search(line) and ALLOWED.get(name, "\0") not in line:
                lines.append(f"{name}:{number}: {line.strip()}")
    return lines


def test_no_register_is_named_outside_of_its_architecture():
    assert len(sources()) > 200
    assert found(REGISTER) == []


def test_no_instruction_is_written_outside_of_an_architecture():
    assert found(ASSEMBLER) == []


def test_both_are_found_where_they_are():
    text = "".join(path.read_text() for folder in folders("x86_64") for path in folder.iterdir())
    assert len(REGISTER.findall(text)) > 100
    assert len(ASSEMBLER.findall(text)) > 5


def test_an_unknown_architecture_is_refused_in_one_line():
    done = subprocess.run(
        ["make", "-n", "--no-print-directory", "all", "ARCH=sparc64", f"BUILD={BUILD}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    assert done.returncode != 0
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and "sparc64" in lines[0] and "docs/internals/port.md" in lines[0], done.stderr


def test_architectures_have_the_same_files():
    there = {arch.name: {f"{path.parent.parent.name}/{path.name}" for folder in folders(arch.name) for path in folder.iterdir()}
             for arch in (ROOT / "shim/capture/arch").iterdir()}
    assert len(there) > 1
    assert len({frozenset(files) for files in there.values()}) == 1, there


def test_the_page_about_ports_lists_every_file():
    page = (ROOT / "docs/internals/port.md").read_text()
    listed = set(re.findall(r"^\| `([^`]+)` \|", page, re.M))
    there = {str(path.relative_to(ROOT)) for folder in folders(ARCH) for path in folder.iterdir()}
    assert listed == {name.replace(f"/{ARCH}/", "/NAME/") for name in there}
