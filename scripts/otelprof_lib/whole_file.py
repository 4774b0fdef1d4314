"""Output files: each is there whole, or as it was before, and no two are one."""

import contextlib
import os
import tempfile


class OneFile(Exception):
    """Two outputs are one file; the message names both options."""


def refuse_one_file(output, page):
    """Raises OneFile if the names of --output and --flamegraph lead to one file, which need not exist yet. `page` may be None."""
    if not page:
        return
    is_one = os.path.realpath(output) == os.path.realpath(page)
    with contextlib.suppress(OSError):  # one of them does not exist
        is_one = is_one or os.path.samefile(output, page)
    if is_one:
        names = output if output == page else f"{output} and {page}"
        raise OneFile(f"--output and --flamegraph are one file, {names}: give each its own")


def _mode(path):
    """Of the file that it takes the place of, or as any new one has it."""
    with contextlib.suppress(FileNotFoundError):
        return os.stat(path).st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _beside(path):
    """A file in the same folder; None where there cannot be one."""
    with contextlib.suppress(OSError):
        return tempfile.NamedTemporaryFile("wb", dir=os.path.dirname(path), prefix=".otelprof-", delete=False)
    return None


@contextlib.contextmanager
def whole_file(path):
    """A file for bytes. It is put in place when it is whole: the output may be one of the files that are read, and a
    reading that fails or is interrupted leaves what was there."""
    path = os.path.realpath(path)
    is_special = os.path.exists(path) and not os.path.isfile(path)  # a pipe, a device
    beside = None if is_special else _beside(path)
    if not beside:  # opening it says why, if that cannot be either
        with open(path, "wb") as file:
            yield file
        return
    try:
        with beside:
            yield beside
        os.chmod(beside.name, _mode(path))
        os.replace(beside.name, path)
    except BaseException:
        os.unlink(beside.name)
        raise
