"""Implements `otelprof merge`: writes several files as one, with the sums of each process."""


from .capture_file import BadFile, append_message, each_message
from .combined import Combined, without_orphans
from .foreign import say
from .labels import counted
from .repeats import Repeats
from .whole_file import whole_file


def merge(options):
    sums, repeats = Combined(), Repeats()
    for path in options.files:
        for message in repeats.without(each_message(path)):
            sums.add(message)
    repeats.report()
    if not sums.processes:
        raise BadFile(f"{', '.join(options.files)}: no profiles")
    data = without_orphans(sums.message()).SerializeToString()
    with whole_file(options.output) as file:
        append_message(file, data)
    say(f"{counted(len(sums.processes), 'profiled instance')} in {options.output}")
    return 0


def add_arguments(sub):
    sub.add_argument("files", nargs="+", metavar="FILE")
    sub.add_argument("-o", "--output", required=True, metavar="FILE", help="one export with the sums of each process")
