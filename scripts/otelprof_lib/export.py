"""Implements `otelprof export`: writes a file for other tools."""

import contextlib
import io
import sys

from .capture_file import BadFile, encode_json
from .choice import add_choice, chosen, check_untouched
from .collapsed import write_collapsed
from .combined import Combined
from .firefox import write_firefox
from .foreign import printable, say
from .kinds import KINDS, missing
from .repeats import each_once
from .speedscope import write_speedscope
from .waits import WALL, with_wall
from .whole_file import whole_file


@contextlib.contextmanager
def _opened(path):
    """Returns the output; a name that is no UTF-8 ends no export."""
    if not path:
        yield sys.stdout
        return
    with whole_file(path) as whole:
        file = io.TextIOWrapper(whole, encoding="utf-8", errors="backslashreplace")
        yield file
        file.detach()  # must not close the file below, which is put in place after this


def _profiles(options):
    profiles, title = chosen(options)
    profiles = with_wall(profiles)
    if options.group_by:
        profiles = {name: profile.under(options.group_by) for name, profile in profiles.items()}
    if options.kind and options.kind not in profiles:
        raise BadFile(missing(options.file, options.kind, profiles))
    if not profiles:
        raise BadFile(f"{options.file} has no samples")
    return profiles, ": ".join(filter(None, (printable(options.file), title)))


def _one(options):
    """Returns the requested kind; by default CPU time, or the first that there is."""
    profiles, title = _profiles(options)
    kind = options.kind or ("cpu" if "cpu" in profiles else next(iter(profiles)))
    return profiles[kind], title


def _speedscope(options):
    profiles, title = _profiles(options)
    shown = {options.kind: profiles[options.kind]} if options.kind else profiles
    with _opened(options.output) as file:
        write_speedscope(file, title, shown)


def _firefox(options):
    profile, title = _one(options)
    with _opened(options.output) as file:
        write_firefox(file, title, profile)


def _collapsed(options):
    profile, _ = _one(options)
    with _opened(options.output) as file:
        write_collapsed(file, profile)


def _otlp_json(options):
    """Writes one export after the other, each as a line."""
    check_untouched(options, "--format otlp-json")
    if options.kind == WALL:
        raise BadFile(f"{WALL} is made of several kinds: OTLP has them alone")
    there, is_empty = set(), True
    with _opened(options.output) as file:
        for message in each_once(options.file):
            if options.kind:
                sums = Combined([options.kind]).add(message)
                there.update(sums.kinds)
                message = sums.message()
            if message.resource_profiles:
                file.write(encode_json(message) + "\n")
                is_empty = False
        if is_empty:
            known = [name for name in KINDS if name in there]
            raise BadFile(missing(options.file, options.kind, known) if options.kind else f"{options.file} has no samples")


FORMATS = {"speedscope": _speedscope, "firefox": _firefox, "collapsed": _collapsed, "otlp-json": _otlp_json}


def export(options):
    FORMATS[options.format](options)
    if options.output:
        say(f"{options.format} in {options.output}")
    return 0


def add_arguments(sub):
    add_choice(sub)
    sub.add_argument("--format", choices=tuple(FORMATS), required=True)
    sub.add_argument("-o", "--output", metavar="FILE", help="where to write (default: standard output)")
    sub.add_argument("--kind", choices=(*KINDS, WALL), help="of speedscope and otlp-json all by default, otherwise cpu")
