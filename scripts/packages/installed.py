"""Installs what the packages have: the bundle in a folder of its own, its documents where distributions have them,
and the files of /etc and of systemd. Installing turns nothing on."""

import os
import shutil
import subprocess
from pathlib import Path

from components import EXPORTER, OURS, components, licences_of
from tree import compress, copy, write

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
HEADER = "otelprof.h"
LIBRARY = "usr/lib/opentelemetry/otelprof"
DOCUMENTS = "usr/share/doc/otelprof"
SETTINGS = "etc/opentelemetry/otelprof"
UNITS, UNIT = "usr/lib/systemd/system", "otelprof-preload.service"
# the folders that shells search by themselves
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/otelprof",
    "zsh": "usr/share/zsh/site-functions/_otelprof",
    "fish": "usr/share/fish/vendor_completions.d/otelprof.fish",
}
# parts of the bundle that are no part of the program
NOT_BESIDE_THE_LIBRARY = ("LICENSE", "THIRD_PARTY.md", "licences", HEADER)

# Maps to short names of Debian's copyright format, and to the whole text on every Debian.
COMMON_LICENCES = {"Apache-2.0": "Apache-2.0", "LGPL-3.0-or-later": "LGPL-3", "LGPL-2.0-or-later": "LGPL-2"}


def licence_paragraph(name):
    common = COMMON_LICENCES.get(name)
    place = f"/usr/share/common-licenses/{common}" if common else f"/{DOCUMENTS}/licences, in the files of the packages above"
    return f"License: {name}\n The whole text is in {place}."


def copyright_file(tree):
    """Returns Debian's machine-readable format; a library's own file names the holders of its copyright."""
    rows = components(tree, EXPORTER)
    inside = "\n".join(f"  {row.package} {row.version}: {row.licence}" for row in rows)
    licences = sorted({OURS, *(row.licence for row in rows)})
    return "\n\n".join([
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: otelprof",
        f"Files: *\nCopyright: the authors of otelprof\nLicense: {OURS}",
        f"Files: {LIBRARY}/{EXPORTER}\nCopyright: the authors of otelprof, and of the libraries that are linked into it\n"
        f"License: {licences_of(rows).replace(' AND ', ' and ')}\n"
        f"Comment: These source packages of Debian are linked into it. The copyright file of each is\n"
        f" /{DOCUMENTS}/licences/PACKAGE:\n .\n{inside}",
        *map(licence_paragraph, licences)]) + "\n"


def completion(tree, shell):
    """Returns a completion, as the bundle's own command prints it."""
    done = subprocess.run([tree / "otelprof", "completion", shell], env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                          capture_output=True, text=True, check=True)
    return done.stdout


def stage(root, tree, materials):
    """Fills the empty folder `root`. tree: the bundle's folder; materials: the list's text."""
    copy(tree, root / LIBRARY)
    for name in NOT_BESIDE_THE_LIBRARY:
        kept = root / LIBRARY / name
        if name not in ("LICENSE", HEADER):  # the former is in the copyright file
            copy(kept, root / DOCUMENTS / name)
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
    (root / "usr/bin").mkdir()
    (root / "usr/bin/otelprof").symlink_to("../lib/opentelemetry/otelprof/otelprof")
    copy(tree / HEADER, root / "usr/include" / HEADER)
    for page in (REPOSITORY / "docs/man").iterdir():
        compress(page, root / f"usr/share/man/man{page.suffix[1:]}/{page.name}.gz")
    for shell, path in COMPLETIONS.items():
        write(root / path, completion(tree, shell))
    copy(tree / "host/otelprof.conf", root / SETTINGS / "otelprof.conf")
    (root / SETTINGS / "conf.d").mkdir()
    copy(tree / "host" / UNIT, root / UNITS / UNIT)
    copy(REPOSITORY / "CHANGELOG.md", root / DOCUMENTS / "CHANGELOG.md")
    write(root / DOCUMENTS / "copyright", copyright_file(tree))
    write(root / DOCUMENTS / "otelprof.spdx.json", materials)
