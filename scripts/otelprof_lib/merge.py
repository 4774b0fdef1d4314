"""Implements `otelprof merge`: writes several files as one, with the sums of each process."""


from .capture_file import BadFile, append_message
from .combined import combined, without_orphans
from .foreign import say
from .labels import counted
from .repeats import each_once_of
from .whole_file import whole_file


def merge(options):
    sums = combined(each_once_of(options.files))
    if not sums.processes:
        raise BadFile(f"{', '.join(options.files)}: no profiles")
    data = without_orphans(sums.message()).SerializeToString()
    with whole_file(options.output) as file:
        append_message(file, data)
    say(f"{counted(len(sums.processes), 'profiled instance')} in {options.output}")
    return 0


def add_arguments(sub):
    sub.add_argument("files", nargs="+", metavar="FILE", help="files of profiles, in any order")
    sub.add_argument("-o", "--output", required=True, metavar="FILE", help="one export with the sums of each process")
