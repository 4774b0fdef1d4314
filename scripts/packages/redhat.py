"""Makes the .rpm, by rpmbuild."""

import os
import shutil
import subprocess
import time

from components import EXPORTER, components, licences_of
from installed import DOCUMENTS, HERE
from tree import settle

LICENCES = "usr/share/licenses/otelprof"


def write_rpm(staged, scratch, file, release):
    """staged: the installed files; scratch: a folder that does not exist yet."""
    root = scratch / "given"
    shutil.copytree(staged, root, symlinks=True)
    (root / LICENCES).parent.mkdir(parents=True)
    (root / DOCUMENTS / "licences").rename(root / LICENCES)
    settle(root, release.time)
    given = {"given_root": root, "given_version": release.version, "given_maintainer": release.maintainer,
             "given_day": time.strftime("%a %b %d %Y", time.gmtime(release.time)),
             "given_licence": licences_of(components(release.tree, EXPORTER)),
             "_topdir": scratch / "rpm", "_tmppath": scratch / "tmp", "_dbpath": scratch / "db", "_rpmdir": scratch / "made",
             "_rpmfilename": "made.rpm", "_buildhost": "localhost", "use_source_date_epoch_as_buildtime": 1,
             "clamp_mtime_to_source_date_epoch": 1}
    (scratch / "tmp").mkdir()
    defined = [part for name, value in given.items() for part in ("--define", f"{name} {value}")]
    done = subprocess.run(["rpmbuild", "-bb", "--quiet", "--nodeps", "--target", f"{release.arch}-linux", *defined, HERE / "otelprof.spec"],
                          env={**os.environ, "SOURCE_DATE_EPOCH": str(release.time), "LC_ALL": "C.UTF-8"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"rpmbuild failed:\n{done.stdout}")
    shutil.move(scratch / "made/made.rpm", file)
