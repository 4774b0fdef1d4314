"""Makes folders of files as a release has them: every mode, owner and time is set here, none is the machine's."""

import gzip
import os
import shutil
from pathlib import Path

EXECUTABLE, DATA, FOLDER = 0o755, 0o644, 0o755


def mode_of(path):
    """Returns the mode of a file or a folder in a release, whatever the umask was where it was built."""
    if path.is_dir():
        return FOLDER
    return EXECUTABLE if path.stat().st_mode & 0o100 else DATA


def write(path, text, mode=DATA):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def copy(source, target):
    """Copies a file, or a folder with all that is in it; links stay links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)
        target.chmod(mode_of(source))


def compress(source, target):
    """Compresses a manual page or a list of changes, as Debian requires."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))
    target.chmod(DATA)


def paths_in(folder):
    """Returns all that is in the folder, sorted by name, folders before their contents."""
    return sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())


def settle(folder, time):
    """Sets the modes and times of all that is in the folder, and its own."""
    for path in [*reversed(paths_in(folder)), folder]:
        if not path.is_symlink():
            path.chmod(mode_of(path))
        os.utime(path, (time, time), follow_symlinks=False)


def size_of(folder):
    return sum(path.lstat().st_size for path in Path(folder).rglob("*") if not path.is_dir() or path.is_symlink())
