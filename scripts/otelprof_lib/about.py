"""Describes a page's profile: which processes it is of, and of what time."""

import time
from collections import Counter
from pathlib import Path

from .foreign import printable
from .formats import fixed
from .labels import text_of

SHOWN = ("service.name", "process.executable.name", "process.pid", "host.name", "process.executable.path")
MOST_NAMED = 3
UNKNOWN_SERVICE = "unknown_service"


def readable_time(seconds):
    """Returns a duration, such as 1 h 2 min, 2 min 3 s, 4.5 s."""
    if seconds < 120:
        return f"{fixed(seconds, 1)} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def file_title(path, parts=1):
    """Returns a file's name for a page's title: others who are given the page need not see the folder."""
    return "/".join(Path(path).parts[-parts:])


def _name(found):
    name = found.get("process.executable.name") or found.get("service.name") or ""
    pid = found.get("process.pid")
    return f"{name} (process {pid})" if name and pid else name or (f"process {pid}" if pid else "")


def _services(resources):
    names = {found.get("service.name", "") for found in resources}
    return sorted(name for name in names if name and not name.startswith(UNKNOWN_SERVICE))


def count_samples(resource_profiles):
    return sum(len(profile.samples) for scope in resource_profiles.scope_profiles for profile in scope.profiles)


def has_samples(message):
    return any(map(count_samples, message.resource_profiles))


class About:
    """Reads every message that `watched` passes on."""

    def __init__(self):
        self._resources = {}  # attributes, by what distinguishes processes
        self._samples = Counter()  # samples, by the same key: the process with the most is named first

    def add(self, message):
        for resource_profiles in message.resource_profiles:
            found = {it.key: text_of(it.value, ()) for it in resource_profiles.resource.attributes}
            key = found.get("service.instance.id") or found.get("process.pid")
            self._resources[key] = {name: found[name] for name in SHOWN if name in found}
            self._samples[key] += count_samples(resource_profiles)

    def watched(self, messages):
        for message in messages:
            self.add(message)
            yield message

    def lines(self, profiles):
        """Returns {text, more}: a line for the page, and the rest, which has no room in the line."""
        resources = [self._resources[key] for key, _ in self._samples.most_common()]
        more = len(resources) - MOST_NAMED
        who = ", ".join(filter(None, map(_name, resources[:MOST_NAMED]))) + (f" and {more:,} more" if more > 0 else "")
        services, hosts = _services(resources), sorted({found["host.name"] for found in resources if "host.name" in found})
        parts = [who, *([f"service {', '.join(services[:MOST_NAMED])}"] if services else []),
                 *([f"on {', '.join(hosts[:MOST_NAMED])}"] if hosts else []), _period(profiles)]
        paths = sorted({found.get("process.executable.path", "") for found in resources} - {""})
        return {"text": printable(" \u00b7 ".join(filter(None, parts))), "more": printable(", ".join(paths))}


def _period(profiles):
    spans = [(profile.sampling.begin, profile.sampling.end) for profile in profiles.values() if profile.sampling.begin]
    if not spans:
        return ""
    begin, end = min(begin for begin, _ in spans) / 1e9, max(end for _, end in spans) / 1e9
    try:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begin))
    except (OverflowError, ValueError, OSError):
        return ""
    return f"{readable_time(max(0, end - begin))} from {since}"
