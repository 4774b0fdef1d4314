"""Leaves out profiles that came before: files of overlapping recordings, or one file given twice, hold the same exports.

A profile is a repeat only if it has an id, its process is known, and the process's profile with this id, type and time came
before. Profiles without an id are all kept. A merged profile lists its parts: it stands for all of them, in whatever order the
files are given.
"""

import hashlib
import os
import stat

from .aggregate import INSTANCE
from .capture_file import BadFile, each_message, entry_at
from .coverage import attribute_of
from .foreign import say
from .labels import counted

PID, CREATION = "process.pid", "process.creation.time"
PARTS = "otelprof.merged.profiles"  # attribute of a merged profile: its parts' digests, DIGEST_BYTES each
MOST_KNOWN = 1 << 18  # profiles, 25 MB: the later half replaces the earlier
DIGEST_BYTES = 8
LOOK = 1 << 20


def process_of(resource):
    """Returns what only one process has, or None."""
    found = {it.key: it.value for it in resource.attributes if it.key in (INSTANCE, PID, CREATION)}
    if INSTANCE in found and found[INSTANCE].string_value:
        return found[INSTANCE].string_value
    if PID in found and CREATION in found:
        return resource.SerializeToString(deterministic=True)  # another host has the same process ids
    return None


def _digest(process, profile, strings):
    what = (process, bytes(profile.profile_id), entry_at(strings, profile.sample_type.type_strindex),
            profile.period, profile.time_unix_nano, profile.duration_nano)
    return hashlib.blake2b(repr(what).encode(), digest_size=DIGEST_BYTES).digest()


def parts_of(process, profile, dictionary):
    """Returns the digests of the exports that a profile was made of; of an export, its own; none where that is not known."""
    if process is None or not any(profile.profile_id):
        return frozenset()
    listed = attribute_of(profile, dictionary, PARTS)
    data = listed.bytes_value if listed is not None else b""
    if data and len(data) % DIGEST_BYTES == 0:
        return frozenset(data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES))
    return frozenset((_digest(process, profile, dictionary.string_table),))


class Repeats:
    """Knows which profiles came: one for all files that are added up."""

    def __init__(self):
        self._known, self._earlier = set(), set()  # digests
        self._count = 0
        self._merged = []  # parts of merged profiles that are taken as a whole, where they come

    def expect(self, sets):
        """Notes the parts of merged profiles before the files are read for good: an export that is a part of one is left
        out, also where it comes first."""
        for parts in sorted(set(sets), key=len, reverse=True):
            if not any(parts <= chosen for chosen in self._merged):
                self._merged.append(parts)

    def _is_known(self, part):
        return part in self._known or part in self._earlier

    def _note(self, part):
        if len(self._known) >= MOST_KNOWN // 2:
            self._known, self._earlier = set(), self._known
        self._known.add(part)

    def _is_repeat(self, parts):
        known = sum(map(self._is_known, parts))
        if known == len(parts):
            return True
        if known:
            raise BadFile("merged profiles have some parts in common, and others not: merge the files that they were made of")
        if parts not in self._merged and any(parts < merged for merged in self._merged):
            return True
        for part in parts:
            self._note(part)
        return False

    def _left_out(self, scope, process, dictionary):
        """Removes the repeats of a scope, and returns how many there were."""
        parts = [parts_of(process, profile, dictionary) for profile in scope.profiles]
        places = [place for place, found in enumerate(parts) if found and self._is_repeat(found)]
        for place in reversed(places):
            del scope.profiles[place]
        return len(places)

    def without(self, messages):
        """Yields each message without repeats; one that has nothing else is left out."""
        for message in messages:
            before = self._count
            for resource_profiles in message.resource_profiles:
                process = process_of(resource_profiles.resource)
                for scope in resource_profiles.scope_profiles if process else ():
                    self._count += self._left_out(scope, process, message.dictionary)
            if self._count == before or any(scope.profiles for it in message.resource_profiles for scope in it.scope_profiles):
                yield message

    def report(self):
        """Writes how many were left out, if any, to standard error."""
        if self._count:
            say(f"{counted(self._count, 'profile')} left out: the same process's profile with the same id came before")


def _has_merged(path):
    """Returns whether a file has the name of the attribute; False also for a pipe, which can be read only once."""
    name, rest = PARTS.encode(), b""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return False
    with open(path, "rb") as file:
        while data := file.read(LOOK):
            if name in rest + data:
                return True
            rest = data[-len(name) :]
    return False


def _merged_in(path):
    """Yields the parts of each merged profile."""
    for message in each_message(path):
        if PARTS not in message.dictionary.string_table:
            continue
        for resource_profiles in message.resource_profiles:
            process = process_of(resource_profiles.resource)
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    parts = parts_of(process, profile, message.dictionary)
                    if len(parts) > 1:
                        yield parts


def each_once_of(paths):
    """Yields the messages of files without repeats, and reports these at the end."""
    repeats = Repeats()
    repeats.expect(parts for path in paths if _has_merged(path) for parts in _merged_in(path))
    for path in paths:
        yield from repeats.without(each_message(path))
    repeats.report()


def each_once(path):
    return each_once_of([path])
