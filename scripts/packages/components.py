"""Lists the third-party parts of a release: the rows of the bundle's licences/sources, which are those of
scripts/bundle/sources with the versions that were really built. THIRD_PARTY.md, the list of materials (SPDX) and the
packages' copyright file list the same parts."""

from collections import namedtuple

OURS = "Apache-2.0"
EXPORTER = "libotelprof-flush.so"
COPY = "cp"  # in the image alone

# release: Debian's; hash: SHA-256 of the source package's .dsc; inside: the file that it is linked into
Component = namedtuple("Component", "release package version hash licence inside")


def components(tree, inside=None):
    """Returns the rows, in their order; those that one file has inside, or all. tree: the bundle's folder."""
    lines = [line for line in (tree / "licences/sources").read_text().splitlines() if line[0] != "#"]
    rows = [Component(*line.split()) for line in lines]
    return [row for row in rows if inside in (None, row.inside)]


def licences_of(rows, ours=OURS):
    """Returns the licence of a file that has all of these inside, as an SPDX expression; ours: of the file itself."""
    return " AND ".join(sorted({row.licence for row in rows} | ({ours} - {None})))
