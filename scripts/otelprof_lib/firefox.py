"""Writes the processed format of the Firefox Profiler, version 70 (its src/types/profile.ts); the site reads older
ones, too.

A thread's samples follow each other, each as long as it weighs: the time axis is a sum, not the clock.
"""

import sys
from array import array

from .aggregate import INSTANCE
from .foreign import printable
from .formats import exact
from .json_stream import write_json
from .labels import whole_number
from .waits import THREAD_ID, THREAD_NAME

FORMAT_VERSION = 70
GECKO_VERSION = 34  # version of the format that the processed one is made from
LIBRARY = 1  # a type of resource
WEIGHTS = {"seconds": "tracing-ms", "duration": "tracing-ms", "bytes": "bytes"}  # all other kinds: samples
CATEGORIES = [
    {"name": "Other", "color": "grey", "subcategories": ["Other"]},
    {"name": "Native", "color": "blue", "subcategories": ["Other"]},
    {"name": "Interpreted", "color": "yellow", "subcategories": ["Other"]},
]
OTHER, NATIVE, INTERPRETED = range(3)
ONE = array("i", [1])


def _category(frame):
    return OTHER if not frame.language else NATIVE if frame.language == "native" else INTERPRETED


def _ordered(numbers):
    """Bytes that are in the order of the numbers, of which none is negative."""
    swapped = array("i", numbers)
    if sys.byteorder == "little":
        swapped.byteswap()
    return swapped.tobytes()


def _shared_length(one, other):
    """How many numbers at the begin of both are the same: by halves, since comparing two pieces is quick."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


class _Shared:
    """Holds the tables that all threads use."""

    def __init__(self):
        self._strings = {}
        self._libraries = {}
        self._frames = {}
        self._places = {}  # of each stack: its row, which is its leaf's
        # The rows: the index of a frame, and how many rows before it the caller's is, 0: none.
        self._row_frames, self._row_offsets = array("i"), array("i")

    def string(self, text):
        return self._strings.setdefault(printable(text), len(self._strings))

    def _indices(self, stack):
        """Of its frames, root first."""
        for frame in stack:
            self._frames.setdefault(frame, len(self._frames))
        return array("i", map(self._frames.__getitem__, reversed(stack)))

    def add(self, stacks):
        """Leaf first. In the order of their indices, root first, each stack goes on where it leaves the one before it: what both
        share is in the table already, and the rest follows in one piece."""
        indices = {stack: self._indices(stack) for stack in stacks}
        before, rows = array("i"), array("i")
        for stack in sorted(indices, key=lambda stack: _ordered(indices[stack])):
            frames = indices.pop(stack)
            shared = _shared_length(before, frames)
            del rows[shared:]
            begin, count = len(self._row_frames), len(frames) - shared
            if count:
                self._row_frames.extend(frames[shared:])
                self._row_offsets.append(begin - rows[-1] if rows else 0)
                self._row_offsets.extend(ONE * (count - 1))
                rows.extend(range(begin, begin + count))
            self._places[stack] = rows[-1] if rows else None
            before = frames

    def stack(self, frames):
        """Of one that has been added."""
        return self._places[frames]

    def _library(self, frame):
        return self._libraries.setdefault(frame.module, len(self._libraries)) if frame.module else -1

    def libraries(self):
        return [
            {
                "arch": "",
                "name": name,
                "path": name,
                "debugName": name,
                "debugPath": name,
                "breakpadId": "",
                "codeId": None,
            }
            for name in map(printable, self._libraries)
        ]

    def tables(self):
        frames = list(self._frames)
        count = len(frames)
        nothing = [None] * count
        libraries = [self._library(frame) for frame in frames]
        names = [self.string(frame.name) for frame in frames]
        resources = [self.string(module) for module in self._libraries]
        return {
            "stackTable": {
                "frame": self._row_frames,
                "prefixOffset": self._row_offsets,
                "length": len(self._row_frames),
            },
            "frameTable": {
                "address": [-1] * count,
                "lib": [-1] * count,
                "inlineDepth": [0] * count,
                "category": list(map(_category, frames)),
                "subcategory": [0] * count,
                "func": list(range(count)),
                "nativeSymbol": nothing,
                "innerWindowID": [0] * count,
                "line": nothing,
                "column": nothing,
                "originalLocation": nothing,
                "length": count,
            },
            "funcTable": {
                "name": names,
                "isJS": [False] * count,
                "relevantForJS": [False] * count,
                "resource": libraries,
                "source": nothing,
                "lineNumber": nothing,
                "columnNumber": nothing,
                "originalLocation": nothing,
                "length": count,
            },
            "resourceTable": {
                "name": resources,
                "host": [None] * len(resources),
                "type": [LIBRARY] * len(resources),
                "length": len(resources),
            },
            "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0},
            "sources": {
                "id": [],
                "filename": [],
                "startLine": [],
                "startColumn": [],
                "sourceMapURL": [],
                "content": [],
                "length": 0,
            },
            "sourceLocationTable": {"source": [], "line": [], "column": [], "length": 0},
            "stringArray": list(self._strings),
        }


def _by_thread(profile):
    """Returns {(process, pid, executable, thread id, name): [(stack, value)]}, the one with the most first."""
    threads = {}
    for (stack, labels), value in profile.samples.items():
        told = dict(labels)
        process = told.get(INSTANCE, ""), told.get("process.pid", "0"), told.get("process.executable.name", "")
        key = *process, told.get(THREAD_ID, "0"), told.get(THREAD_NAME, "")
        threads.setdefault(key, []).append((stack, value))
    return sorted(threads.items(), key=lambda item: -sum(value for _, value in item[1]))


def _weighed(profile, rows):
    """Returns the samples' weights, in the format's unit: whole bytes and counts, milliseconds of nanoseconds."""
    weights = [exact(profile.unit, value) for _, value in rows]
    return [weight / 1e6 for weight in weights] if WEIGHTS.get(profile.unit) == "tracing-ms" else weights


def _thread(profile, key, rows, shared, is_main):
    _, pid, executable, number, name = key
    weights = _weighed(profile, rows)
    times, end = [], 0
    for weight in weights:
        times.append(end)
        end += weight
    return {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": printable(name) or f"thread {number}",
        "isMainThread": is_main,
        "processName": printable(executable) or f"process {pid}",
        "pid": pid,
        "tid": whole_number(number),
        "samples": {
            "stack": [shared.stack(stack) for stack, _ in rows],
            "time": times,
            "weight": weights,
            "weightType": WEIGHTS.get(profile.unit, "samples"),
            "length": len(rows),
        },
        "markers": {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0},
    }


def write_firefox(file, title, profile):
    shared = _Shared()
    shared.add(profile.stacks)
    threads = [_thread(profile, key, rows, shared, place == 0) for place, (key, rows) in enumerate(_by_thread(profile))]
    tables = shared.tables()
    meta = {
        "interval": profile.sampling.period / 1e6 if profile.unit == "seconds" and profile.sampling.period else 1,
        "startTime": profile.sampling.begin / 1e6,
        "processType": 0,
        "categories": CATEGORIES,
        "product": title,
        "stackwalk": 1,
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": FORMAT_VERSION,
        "symbolicated": True,
        "markerSchema": [],
        "importedFrom": "otelprof",
        "usesOnlyOneStackType": True,
        "sourceCodeIsNotOnSearchfox": True,
    }
    write_json(file, {"meta": meta, "libs": shared.libraries(), "shared": tables, "threads": threads})
    file.write("\n")
