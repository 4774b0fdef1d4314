"""Leaves out profiles that came before: files of overlapping recordings, or one file given twice, hold the same exports.

A profile is a repeat only if it has an id, its process is known, and the process's profile with this id, type and time came
before. Profiles without an id are all kept.
"""

import hashlib

from .aggregate import INSTANCE
from .capture_file import entry_at
from .foreign import say
from .labels import counted

PID, CREATION = "process.pid", "process.creation.time"
MOST_KNOWN = 1 << 18  # profiles, 30 MB: the later half replaces the earlier
DIGEST_BYTES = 16


def _process(resource):
    """Returns what only one process has, or None."""
    found = {it.key: it.value for it in resource.attributes if it.key in (INSTANCE, PID, CREATION)}
    if INSTANCE in found and found[INSTANCE].string_value:
        return found[INSTANCE].string_value
    if PID in found and CREATION in found:
        return resource.SerializeToString(deterministic=True)  # another host has the same process ids
    return None


class Repeats:
    """Knows which profiles came: one for all files that are added up."""

    def __init__(self):
        self._known, self._earlier = set(), set()  # digests
        self._count = 0

    def _is_repeat(self, process, profile, strings):
        what = (process, bytes(profile.profile_id), entry_at(strings, profile.sample_type.type_strindex),
                profile.period, profile.time_unix_nano, profile.duration_nano)
        digest = hashlib.blake2b(repr(what).encode(), digest_size=DIGEST_BYTES).digest()
        if digest in self._known or digest in self._earlier:
            return True
        if len(self._known) >= MOST_KNOWN // 2:
            self._known, self._earlier = set(), self._known
        self._known.add(digest)
        return False

    def _left_out(self, scope, process, strings):
        """Removes the repeats of a scope, and returns how many there were."""
        places = [place for place, profile in enumerate(scope.profiles)
                  if any(profile.profile_id) and self._is_repeat(process, profile, strings)]
        for place in reversed(places):
            del scope.profiles[place]
        return len(places)

    def without(self, messages):
        """Yields each message without repeats; one that has nothing else is left out."""
        for message in messages:
            before = self._count
            for resource_profiles in message.resource_profiles:
                process = _process(resource_profiles.resource)
                for scope in resource_profiles.scope_profiles if process else ():
                    self._count += self._left_out(scope, process, message.dictionary.string_table)
            if self._count == before or any(scope.profiles for it in message.resource_profiles for scope in it.scope_profiles):
                yield message

    def report(self):
        """Writes how many were left out, if any, to standard error."""
        if self._count:
            say(f"{counted(self._count, 'profile')} left out: the same process's profile with the same id came before")


def each_once(messages):
    """Yields the messages of one file without repeats, and reports these at the end."""
    repeats = Repeats()
    yield from repeats.without(messages)
    repeats.report()
