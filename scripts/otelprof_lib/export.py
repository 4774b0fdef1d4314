"""Implements `otelprof export`: writes a file for other tools."""

import contextlib
import hashlib
import io
import sys

from .capture_file import BadFile, encode_json, entry_at
from .choice import add_choice, chosen, check_untouched
from .collapsed import write_collapsed
from .combined import ID_BYTES, Combined
from .firefox import write_firefox
from .foreign import printable, say
from .kinds import KINDS, kinds_of, missing
from .repeats import PARTS, each_once
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


def _shows_time_alone(profile, dictionary):
    """Leaves the profile's time and removes its samples. A new id shows that it is another profile, without the parts of a
    merged one: a merge with the whole file must not take it for the one that it was."""
    del profile.samples[:]
    entries = [entry_at(dictionary.attribute_table, index) for index in profile.attribute_indices]
    keys = [entry and entry_at(dictionary.string_table, entry.key_strindex) for entry in entries]
    profile.attribute_indices[:] = [index for index, key in zip(profile.attribute_indices, keys) if key != PARTS]
    if any(profile.profile_id):
        profile.profile_id = hashlib.blake2b(profile.profile_id, digest_size=ID_BYTES, person=b"time alone").digest()


def _sampled_types(message):
    """Yields the type of each profile that has samples."""
    for resource_profiles in message.resource_profiles:
        for scope in resource_profiles.scope_profiles:
            for profile in scope.profiles:
                if profile.samples:
                    yield entry_at(message.dictionary.string_table, profile.sample_type.type_strindex)


def _of_one_kind(message, kind):
    """Returns the export's profiles of one kind. Where none of them covers the export's time, one of another kind stays
    without its samples, because the time was recorded: without it `diff --by time` would take it for a gap."""
    wanted = {value.type for value in KINDS[kind].values}
    strings = message.dictionary.string_table
    for resource_profiles in message.resource_profiles:
        for scope in resource_profiles.scope_profiles:
            taken = [entry_at(strings, it.sample_type.type_strindex) in wanted for it in scope.profiles]
            covered = {(it.time_unix_nano, it.duration_nano) for it, is_taken in zip(scope.profiles, taken) if is_taken}
            for place in reversed(range(len(taken))):
                profile = scope.profiles[place]
                time = profile.time_unix_nano, profile.duration_nano
                if taken[place]:
                    continue
                if KINDS[kind].is_snapshot or not profile.duration_nano or time in covered:
                    del scope.profiles[place]
                    continue
                covered.add(time)
                _shows_time_alone(profile, message.dictionary)
    return Combined().add(message).message()


def _otlp_json(options):
    """Writes one export after the other, each as a line."""
    check_untouched(options, "--format otlp-json")
    if options.kind == WALL:
        raise BadFile(f"{WALL} is made of several kinds: OTLP has them alone")
    sampled, is_empty = set(), True
    with _opened(options.output) as file:
        for message in each_once(options.file):
            if options.kind:
                sampled.update(_sampled_types(message))
                message = _of_one_kind(message, options.kind)
            if message.resource_profiles:
                file.write(encode_json(message) + "\n")
                is_empty = False
        known = kinds_of(sampled)
        if is_empty or (options.kind and options.kind not in known):
            raise BadFile(missing(options.file, options.kind, known) if options.kind else f"{options.file} has no samples")


FORMATS = {"speedscope": _speedscope, "firefox": _firefox, "collapsed": _collapsed, "otlp-json": _otlp_json}


def export(options):
    FORMATS[options.format](options)
    if options.output:
        say(f"{options.format} in {options.output}")
    return 0


def add_arguments(sub):
    add_choice(sub)
    sub.add_argument("--format", choices=tuple(FORMATS), required=True, help="what to write")
    sub.add_argument("-o", "--output", metavar="FILE", help="where to write (default: standard output)")
    sub.add_argument("--kind", choices=(*KINDS, WALL), help="of speedscope and otlp-json all by default, otherwise cpu")
