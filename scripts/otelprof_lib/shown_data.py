"""Is a server's data of a profile while its page is open: the page's lists, and the lines of functions, which the page requests
by numbers."""

import itertools
import re
import threading

from .columns import packed
from .page_data import Limits, page_lists
from .page_server import BadQuestion
from .source_lines import SourceLines, files
from .waits import IDLE

# Sets what a browser can handle. Programs have four or more stack frames for each node.
EVERYTHING = Limits(nodes=1 << 22, samples=1 << 31, stack_frames=1 << 23)
MOST_CHOSEN = 16  # labels in a request
NUMBER = re.compile(r"\d{1,9}")


def _number(text, below):
    """Parses an index into a list of that length."""
    if not NUMBER.fullmatch(text or "") or int(text) >= below:
        raise BadQuestion("there is no such number")
    return int(text)


class Shown:
    """Holds the data of one version. `message` has all exports; None: lines are not available."""

    _versions = itertools.count(1)

    def __init__(self, title, profiles, message=None, about=None, inside_libc=False, **more):
        self.version = next(self._versions)
        self._message, self._inside_libc = message, inside_libc
        self._lines, self._lock = None, threading.Lock()
        data, self._frames, self._sets = page_lists(title, profiles, limits=EVERYTHING, about=about)
        self._kinds = set(profiles)
        self.has_profiles = bool(profiles)
        self._end = max((profile.sampling.end for profile in profiles.values()), default=0) / 1e9
        self.bytes = packed({"is_live": False, **data, **more, "version": self.version, "has_lines": message is not None})

    def is_version(self, text):
        return text == str(self.version)

    def lines(self, fields):
        """Returns the response to a request of the page: {kind, function, chosen, hides_idle}."""
        kind = fields.get("kind")
        if self._message is None or kind not in self._kinds:
            raise BadQuestion("there is no such profile")
        frame = self._frames[_number(fields.get("function"), len(self._frames))]
        wanted = self._chosen(fields.get("chosen", ""))
        hides_idle = fields.get("hides_idle") == "1"
        with self._lock:
            self._lines = self._lines or SourceLines(self._message, self._inside_libc)
            sums = self._lines.of(kind, frame, lambda labels: wanted <= labels and not (hides_idle and (IDLE, "true") in labels))
        return files(sums, self._end)

    def _chosen(self, text):
        """Parses `set.pair,set.pair`: indices of labels in the page's data."""
        places = [place.split(".") for place in text.split(",") if place]
        if len(places) > MOST_CHOSEN or any(len(place) != 2 for place in places):
            raise BadQuestion("there are no such labels")
        found = set()
        for set_text, pair_text in places:
            labels = self._sets[_number(set_text, len(self._sets))]
            found.add(labels[_number(pair_text, len(labels))])
        return found
