"""What of others is in a release: the rows of scripts/bundle/sources. THIRD_PARTY.md, the list of materials (SPDX) and
the packages' copyright file say the same."""

from collections import namedtuple
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "bundle/sources"
OURS = "Apache-2.0"
EXPORTER = "libotelprof-flush.so"
COPY = "cp"  # of the image alone

# release: Debian's; hash: SHA-256 of the source package's .dsc; inside: the file that it is linked into
Component = namedtuple("Component", "release package version hash licence inside")


def components(inside=None):
    """The rows, in their order; those that one file has inside, or all."""
    lines = [line for line in TABLE.read_text().splitlines() if line[0] != "#"]
    rows = [Component(*line.split()) for line in lines]
    return [row for row in rows if inside in (None, row.inside)]


def licences_of(rows, ours=OURS):
    """The licence of what has all of these inside, as an SPDX expression; ours: of what they are inside."""
    return " AND ".join(sorted({row.licence for row in rows} | ({ours} - {None})))
