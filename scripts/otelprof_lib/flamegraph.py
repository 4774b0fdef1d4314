"""One self-contained page with the flame graphs of a capture: no server, no network.

The page holds its data as flat lists: each tree's nodes in preorder, the widest of siblings first. Its
scripts and styles are allowed by their hashes, so nothing that a name could smuggle in would run.
"""

import base64
import hashlib
import html
import json
import os
import re

from .aggregate import Frame, by_function, self_and_total
from .languages import name_of
from .locks import lock_rows
from .places import page_parts
from .threads import deadlock_text, idle_rows, thread_rows
from .waits import HOLDER_STACK, NOT_RUNNING, WAIT_TIME, WALL, idle_part, is_idle
from .formats import headline, printable

ALL = Frame("all")
# More would be too narrow to see, and slow to open.
MOST_NODES = 100_000
MOST_FUNCTIONS = 500
SCRIPTS = ("filter.js", "states.js", "changes.js", "languages.js", "page.js")
MOST_ROWS = 200  # of locks, and of threads that do the same
NOT_CHOSEN_BY = (WAIT_TIME, HOLDER_STACK)  # labels with a value of its own for nearly each sample
MOST_SAMPLES = 200_000  # what the page can filter by label; beyond it the smallest are in no filtered view


class _Node:
    __slots__ = ("children", "frame", "is_kept", "own", "value")

    def __init__(self, frame):
        self.frame = frame
        self.value = self.own = 0
        self.children = {}
        self.is_kept = False


def _tree(stacks):
    root = _Node(ALL)
    for stack, value in stacks.items():
        node = root
        node.value += value
        for frame in reversed(stack):
            if frame not in node.children:
                node.children[frame] = _Node(frame)
            node = node.children[frame]
            node.value += value
        node.own += value
    return root


def _preorder(root, wanted=lambda node: True):
    """(depth, node) of each, without recursion: stacks may be deep."""
    pending = [(0, root)]
    while pending:
        depth, node = pending.pop()
        if not wanted(node):
            continue
        yield depth, node
        children = sorted(node.children.values(), key=lambda child: (child.value, child.frame))
        pending.extend((depth + 1, child) for child in children)


def _keep_largest(root, most):
    """Marks the nodes to draw; returns how many are left out. Whoever calls one of them is no smaller."""
    nodes = sorted(_preorder(root), key=lambda item: (-item[1].value, item[0]))
    for _, node in nodes[:most]:
        node.is_kept = True
    return max(0, len(nodes) - most)


class _Frames:
    """The page's list of frames; nodes and rows have indices into it."""

    def __init__(self, profiles):
        own = {}
        for profile in profiles:
            total = profile.total
            for stack, value in profile.stacks.items():
                own[stack[0].module] = own.get(stack[0].module, 0) + value / total
        modules = {frame.module for profile in profiles for stack in profile.stacks for frame in stack} | {""}
        # the largest first, whichever profile it is in: a module has one colour in all of them
        self._modules = sorted(modules, key=lambda module: (module in ("", NOT_RUNNING), -own.get(module, 0), module))
        self._places = {module: place for place, module in enumerate(self._modules)}
        self._languages = sorted({frame.language for profile in profiles for stack in profile.stacks for frame in stack} | {""})
        self._indices = {}

    def index(self, frame):
        return self._indices.setdefault(frame, len(self._indices))

    def sums_of_modules(self, profile):
        sums = [0] * len(self._modules)
        for stack, value in profile.stacks.items():
            sums[self._places[stack[0].module]] += value
        return sums

    def sums_of_languages(self, profile):
        sums = [0] * len(self._languages)
        for stack, value in profile.stacks.items():
            sums[self._languages.index(stack[0].language)] += value
        return sums

    def lists(self):
        return {
            "modules": [printable(module) for module in self._modules],
            "languages": [printable(language) for language in self._languages],
            "language_names": [printable(name_of(language)) for language in self._languages],
            "frames": [[printable(frame.name), self._places[frame.module]] for frame in self._indices],
            "spoken": [self._languages.index(frame.language) for frame in self._indices],
        }


def _functions(profile, frames):
    objects = self_and_total(profile.objects)
    for frame, own, total in by_function(profile)[:MOST_FUNCTIONS]:
        yield [frames.index(frame), own, total, *(objects.get(frame, (0, 0)) if objects else ())]


class _LabelSets:
    """The page's list of sets of labels; samples have indices into it."""

    def __init__(self):
        self._indices = {}
        self.is_cut = False

    def index(self, labels):
        kept = tuple(label for label in labels if label[0] not in NOT_CHOSEN_BY)
        return self._indices.setdefault(kept, len(self._indices))

    def lists(self):
        sets = [[[printable(name), printable(value)] for name, value in labels] for labels in self._indices]
        idle = [is_idle(labels) for labels in self._indices]
        return {"labels": sets, "idle": idle, "unlabelled": self.is_cut}


def _place(root, places, stack):
    """A stack's node as the page knows it; ~node: not kept, and node is the last of its callers that is."""
    node = root
    for frame in reversed(stack):
        below = node.children[frame]
        if not below.is_kept:
            return ~places[node]
        node = below
    return places[node]


def _samples(profile, root, nodes, label_sets):
    """What the page filters by label: columns of a table. Idle ones are taken away, so that the others are needed, too."""
    places = {node: place for place, (_, node) in enumerate(nodes)}
    has_idle = idle_part(profile) > 0
    labelled = [(value, key) for key, value in profile.samples.items() if key[1] or has_idle]
    if len(labelled) > MOST_SAMPLES:
        label_sets.is_cut = True
        labelled = sorted(labelled, reverse=True)[:MOST_SAMPLES]
    columns = {
        "at": [_place(root, places, stack) for _, (stack, _) in labelled],
        "labels": [label_sets.index(labels) for _, (_, labels) in labelled],
        "values": [value for value, _ in labelled],
    }
    if profile.counts:
        columns["objects"] = [profile.counts.get(key, 0) for _, key in labelled]
    return columns


def _states(profile, frames):
    """Of wall time: those of the page's frames that say why a thread was not on a CPU, and what they say."""
    return {frames.index(stack[0]): stack[0].name for stack in profile.stacks if stack[0].module == NOT_RUNNING}


def _profile(name, profile, frames, label_sets, tables, most_nodes, also):
    root = _tree(profile.stacks)
    left_out = _keep_largest(root, most_nodes)
    nodes = list(_preorder(root, lambda node: node.is_kept))
    return {
        "title": profile.title,
        "table": next((table for table, made in tables.items() if name in made["of"]), ""),
        "headline": headline(profile),
        "unit": profile.unit,
        "noun": profile.noun,
        "total": profile.total,
        "left_out": left_out,
        "modules": frames.sums_of_modules(profile),
        "languages": frames.sums_of_languages(profile),
        "functions": list(_functions(profile, frames)),
        "depths": [depth for depth, _ in nodes],
        "frames": [frames.index(node.frame) for _, node in nodes],
        "values": [node.value for _, node in nodes],
        "own": [node.own for _, node in nodes],
        "samples": _samples(profile, root, nodes, label_sets),
        "idle": idle_part(profile),
        **({"states": _states(profile, frames)} if name == WALL else {}),
        **(also(nodes) if also else {}),
    }


def _tables(profiles):
    """What is better read as a table, by name, and the profiles that it is shown with."""
    made = {}
    rows = lock_rows(profiles, MOST_ROWS)
    if rows:
        made["locks"] = {"rows": rows, "of": [WALL, "off_cpu", "lock"]}
    if "threads" in profiles:
        threads = profiles["threads"]
        made["threads"] = {"rows": thread_rows(threads, MOST_ROWS), "idle": idle_rows(threads, MOST_ROWS),
                           "note": deadlock_text(threads), "of": ["threads"]}
    return made


def page_data(title, profiles, tables, most_nodes=MOST_NODES, also=None):
    """What the page shows. `also`: from the (depth, node) of each node in preorder to more of its lists."""
    frames = _Frames(profiles.values())
    label_sets = _LabelSets()
    shown = [_profile(name, profile, frames, label_sets, tables, most_nodes, also) for name, profile in profiles.items()]
    return {"title": printable(title), "tables": tables, "profiles": shown, **frames.lists(), **label_sets.lists()}


def _json(data):
    """No name can end the script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page(title, profiles, most_nodes=MOST_NODES):
    """The page as text."""
    return page_of(page_data(title, profiles, _tables(profiles), most_nodes))


def page_of(data):

    def part(name):
        with open(os.path.join(page_parts(), name), encoding="utf-8") as file:
            return file.read()

    parts = {
        "TITLE": html.escape(data["title"]),
        "STYLE": part("page.css"),
        "SCRIPT": "".join(map(part, SCRIPTS)),
        "DATA": _json(data),
    }
    parts |= {f"{name}_HASH": _hash(parts[name]) for name in ("STYLE", "SCRIPT")}
    # in one pass, so that a mark in a title or name stays what it is
    return re.sub(f"@({'|'.join(parts)})@", lambda mark: parts[mark[1]], part("page.html"))


def write_text(path, text):
    # a command line may hold bytes that are no UTF-8
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def write_page(path, title, profiles):
    write_text(path, page(title, profiles))
