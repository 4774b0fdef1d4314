"""Finds what the lines of one function account for, and their text where the file is on this machine.

A file is opened only because the profile names it, as an absolute path. No more of it is given than the lines around those
that have samples.
"""

import os
import stat

from .aggregate import WAIT_KIND, Names, outside_libc, process_of
from .foreign import printable
from .kinds import KINDS
from .labels import Labels
from .waits import WALL

MOST_BYTES = 4 << 20  # of a source file
MOST_LINES = 3000  # lines of a file that are shown
AROUND = 6  # lines above the first and below the last
OF_WALL = ("cpu", "sched_delay", "off_cpu")


# --- shares ---


def _kinds_of(kind):
    """Returns names by sample type."""
    return {KINDS[name].shown.type: name for name in (OF_WALL if kind == WALL else (kind,))}


class SourceLines:
    """Sums the lines of one message that holds all exports (combined.py)."""

    def __init__(self, message, inside_libc=False):
        self._message = message
        self._inside_libc = inside_libc
        self._names = Names(message.dictionary, False, False)
        self._labels = Labels(message.dictionary)

    def of(self, kind, frame, is_wanted):
        """Returns {path: {line: [self, total]}} in the profile's unit."""
        places = {at: found for at, _ in enumerate(self._message.dictionary.location_table)
                  if (found := self._names.lines_of(at, frame))}
        stacks = {}
        for at, stack in enumerate(self._message.dictionary.stack_table):
            if not places.keys().isdisjoint(stack.location_indices):
                stacks[at] = [place for index in stack.location_indices for place in places.get(index, ())]
        sums = {}
        kinds = _kinds_of(kind)
        for process, type_name, profile in self._profiles():
            if type_name in kinds:
                has_own = kind != WALL or kinds[type_name] == "cpu"  # in wall time, a wait's self value belongs to the waiting function
                self._add(sums, profile, stacks, lambda labels: is_wanted({*labels, *process}), frame if has_own else None)
        return sums

    def _profiles(self):
        for resource_profiles in self._message.resource_profiles:
            process = process_of(resource_profiles.resource)
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    yield process, self._names.string(profile.sample_type.type_strindex), profile

    def _add(self, sums, profile, stacks, is_wanted, leaf):
        """Adds a sample. `leaf`: the frame whose self is counted."""
        measured = self._names.measured(profile)
        for sample in profile.samples:
            places = stacks.get(sample.stack_index)
            labels = self._labels.of(sample) if places else ()
            if not places or not is_wanted(labels):
                continue
            value = measured(sum(sample.values))
            for path, line in set(places):  # recursion counts once
                sums.setdefault(path, {}).setdefault(line, [0, 0])[1] += value
            if self._leaf(sample, labels) == leaf:
                path, line = places[0]
                sums[path][line][0] += value

    def _leaf(self, sample, labels):
        """Returns the frame where the sample is counted, as in the graph."""
        stack = self._names.stack(sample)
        if not self._inside_libc and any(name == WAIT_KIND for name, _ in labels):
            stack = outside_libc(stack)
        return stack[0]


# --- text ---


def _opened(path):
    """Returns the descriptor of a regular file of bounded size. Opening a device or a FIFO has effects, so nothing else
    is opened: the file is found and checked first without such effects (O_PATH), and then that very file is opened."""
    if not os.path.isabs(path):
        raise ValueError("the profile does not say in which folder it is")
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        facts = os.fstat(found)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size == 0:  # the kernel's files, whose contents may be gone after a read
            raise ValueError("it is no file, or empty")
        if facts.st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
        return os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), facts
    finally:
        os.close(found)


def _text(path):
    """Returns (lines, when the file was changed); raises OSError or ValueError with the reason."""
    descriptor, facts = _opened(path)
    with open(descriptor, "rb") as file:
        data = file.read(MOST_BYTES) or b""
    if b"\0" in data:
        raise ValueError("it is no text")
    return data.decode("utf-8", "replace").split("\n"), facts.st_mtime


def _shown(text):
    """Returns a line for the page. Tabs stay: they lay the file out."""
    return "\t".join(map(printable, text.rstrip("\r").split("\t")))


def _rows(lines, text):
    if text is None:
        numbers = sorted(lines)
    else:
        numbers = range(max(1, min(lines) - AROUND), min(max(lines) + AROUND, max(len(text), max(lines))) + 1)
    for number in numbers[:MOST_LINES]:
        own, total = lines.get(number, (0, 0))
        known = text is not None and number <= len(text)
        yield {"number": number, "self": own, "total": total, "text": _shown(text[number - 1]) if known else None}


def _note(changed, end, lines, count):
    notes = []
    if end and changed > end:
        notes.append("the file was changed after the profile was taken")
    if max(lines) > count:
        notes.append("the file has fewer lines than the profile says: it is another version")
    return "; ".join(notes)


def files(sums, end):
    """Returns the files for the page. `end`: of the profile, in seconds since 1970; 0: not known."""
    shown = []
    for path, lines in sorted(sums.items(), key=lambda item: -sum(total for _, total in item[1].values())):
        text, note = None, ""
        try:
            text, changed = _text(path)
            note = _note(changed, end, lines, len(text))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            note = f"its text cannot be shown: {reason}"
        shown.append({"path": printable(path), "note": printable(note), "lines": list(_rows(lines, text))})
    return {"files": shown}
