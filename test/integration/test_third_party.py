"""THIRD_PARTY.md names all that we link or ship, and every part of libiberty that is linked."""

import re
import subprocess

import pytest
from profiled import BUILD, ROOT

pytestmark = pytest.mark.system

TEXT = (ROOT / "THIRD_PARTY.md").read_text()
LINKED = {"cp-demangle.c", "rust-demangle.c", "safe-ctype.c"}


def needed_by(name):
    sections = subprocess.run(["readelf", "-d", BUILD / name], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", sections)


@pytest.mark.parametrize("name", ["libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so"])
def test_every_library_is_named(name):
    missing = [library for library in needed_by(name) if library not in TEXT]
    assert not missing


def members_of(archive):
    """Returns member -> the functions and tables that it defines."""
    listing = subprocess.run(["nm", "-A", "--defined-only", archive], capture_output=True, text=True, check=False).stdout
    members = {}
    for line in listing.splitlines():
        place, *_, kind, symbol = line.split()
        if kind in "TDBR":
            members.setdefault(place.split(":")[1].replace(".o", ".c"), set()).add(symbol)
    return members


def test_of_libiberty_only_the_named_parts_are_linked():
    archive = subprocess.run(["cc", "-print-file-name=libiberty.a"], capture_output=True, text=True,
                             check=True).stdout.strip()
    symbols = subprocess.run(["nm", "--defined-only", BUILD / "libotelprof-flush.so"], capture_output=True, text=True,
                             check=True).stdout
    ours = {line.split()[-1] for line in symbols.splitlines()}
    members = members_of(archive)
    assert LINKED <= set(members)
    assert {member for member, defined in members.items() if defined and defined <= ours} == LINKED
    assert all(name in TEXT for name in LINKED)


def test_every_library_in_the_bundle_is_named_with_its_licence():
    sources = (ROOT / "scripts/bundle/sources").read_text().splitlines()
    rows = [line.split() for line in sources if not line.startswith("#")]
    assert [f"| {package} | {version} | {licence} |" for _, package, version, _, licence, _ in rows] == \
        TEXT.split("| --- | --- | --- |")[-1].strip().splitlines()


def test_no_file_of_others_is_shipped():
    shipped = {path.name for path in (ROOT / "scripts" / "flamegraph").iterdir()}
    ours = ("changes chart data derive filter keys languages legend live menu names notes numbers page sandwich save scheme "
            "search source state states tables threads tree")
    assert shipped == {"page.html", "page.css", *(f"{name}.js" for name in ours.split())}
