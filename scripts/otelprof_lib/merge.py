"""`otelprof merge`: several files as one, with the sums of each process."""

import os
import sys
import tempfile

from .capture_file import BadFile, append_message, each_message
from .combined import Combined, without_orphans
from .labels import counted


def _write_beside(path, data):
    """And put it in place when it is whole: the output may be one of the files that were read."""
    with tempfile.NamedTemporaryFile("wb", dir=os.path.dirname(path), prefix=".otelprof-", delete=False) as file:
        try:
            append_message(file, data)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(file.name, 0o666 & ~mask)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _write(path, data):
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe, a device
        with open(path, "wb") as file:
            append_message(file, data)
    else:
        _write_beside(path, data)


def merge(options):
    sums = Combined()
    for path in options.files:
        for message in each_message(path):
            sums.add(message)
    if not sums.processes:
        raise BadFile(f"{', '.join(options.files)}: no profiles")
    _write(options.output, without_orphans(sums.message()).SerializeToString())
    print(f"otelprof: {counted(len(sums.processes), 'profiled instance')} in {options.output}", file=sys.stderr)
    return 0


def add_arguments(sub):
    sub.add_argument("files", nargs="+", metavar="FILE")
    sub.add_argument("-o", "--output", required=True, metavar="FILE", help="one export with the sums of each process")
