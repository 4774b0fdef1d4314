"""Makes the .deb, by dpkg-deb."""

import hashlib
import os
import shutil
import subprocess
from email.utils import formatdate

from installed import COMPLETIONS, DOCUMENTS, HERE, SETTINGS
from tree import DATA, EXECUTABLE, compress, copy, mode_of, paths_in, settle, size_of, write

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SCRIPTS = ("postinst", "prerm", "postrm")


def filled(template, **values):
    text = (HERE / template).read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def md5sums(root):
    for path in paths_in(root):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not path.is_symlink() and name.split("/")[0] not in ("DEBIAN", "etc"):
            yield f"{hashlib.md5(path.read_bytes()).hexdigest()}  {name}\n"


def resolve_libraries(root):
    """Resolves libraries of objects that are not executable: on Debian they are not, and elsewhere tools read only
    executable ones."""
    for path in root.rglob("*.so"):
        path.chmod(DATA)


def move_completion(root):
    """Moves completions: Debian's zsh searches for those of packages in a folder of its own."""
    written = root / COMPLETIONS["zsh"]
    written.parent.rename(written.parent.with_name("vendor-completions"))


def add_changelog(root, release):
    text = f"otelprof ({release.version}) unstable; urgency=medium\n\n  * CHANGELOG.md beside this file says what is new.\n\n" \
           f" -- {release.maintainer}  {formatdate(release.time)}\n"
    plain = root / DOCUMENTS / "changelog"
    write(plain, text)
    compress(plain, plain.with_suffix(".gz"))
    plain.unlink()


def write_deb(staged, scratch, file, release):
    """staged: the installed files; scratch: a folder that does not exist yet."""
    architecture = ARCHITECTURES[release.arch]
    shutil.copytree(staged, scratch, symlinks=True)
    copy(HERE / "lintian-overrides", scratch / "usr/share/lintian/overrides/otelprof")
    move_completion(scratch)
    add_changelog(scratch, release)
    resolve_libraries(scratch)
    for name in SCRIPTS:
        write(scratch / "DEBIAN" / name, (HERE / name).read_text(), EXECUTABLE)
    write(scratch / "DEBIAN/conffiles", f"/{SETTINGS}/otelprof.conf\n")
    write(scratch / "DEBIAN/md5sums", "".join(md5sums(scratch)))
    write(scratch / "DEBIAN/control", filled("control.in", version=release.version, architecture=architecture, glibc=release.glibc,
                                             maintainer=release.maintainer, size=-(-size_of(staged) // 1024)))
    settle(scratch, release.time)
    # one thread: the number of threads would change the compressed bytes
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z6", "--build", scratch, file], check=True,
                   stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": str(release.time), "DPKG_DEB_THREADS_MAX": "1"})
    file.chmod(mode_of(file))
