"""Makes the data of a page of flame graphs, as flat lists: frames, the columns of each profile's tree of calls, samples
by label."""

from typing import NamedTuple

from .aggregate import Frame, by_function, self_and_total
from .call_tree import CallTree
from .capture_file import MOST_LETTERS, BadSum
from .foreign import printable
from .formats import headline
from .kinds import KINDS
from .languages import name_of
from .locks import lock_rows
from .stack_columns import StackColumns
from .threads import deadlock_text, idle_rows, thread_rows
from .waits import HOLDER_STACK, NOT_RUNNING, WAIT_TIME, WALL, idle_part, is_idle

ALL = Frame("all")
# Bounds the nodes of a file: with more it would open slowly.
MOST_NODES = 100_000
MOST_FUNCTIONS = 500
MOST_ROWS = 200  # rows of locks, and of threads that do the same
MOST_OF_NAME = 1 << 14  # letters that a page has of a name: a megabyte would block the page, and no reader needs it
MOST_OF_PATH = 200
NOT_CHOSEN_BY = (WAIT_TIME, HOLDER_STACK)  # labels with a value of its own for nearly each sample
MOST_SAMPLES = 200_000  # samples that the page can filter by label; beyond them the smallest are in no filtered view


class _Index(dict):
    """Gives an index to each frame that is looked up in it."""

    def __missing__(self, frame):
        self[frame] = place = len(self)
        return place


def _readable(name):
    return printable(name if len(name) <= MOST_OF_NAME else f"{name[:MOST_OF_NAME]}\u2026")


def _short_path(path):
    """Returns a path's file with the folder that it is in: others need not see where the sources were."""
    return "/".join(path[-MOST_OF_PATH:].rsplit("/", 2)[-2:])


def _leaf_sums(profile):
    """Returns by module, and by language, the self value of its code."""
    leaves, modules, languages = {}, {}, {}
    for (stack, _), value in profile.samples.items():
        leaf = stack[0]
        leaves[leaf] = leaves.get(leaf, 0) + value
    for frame, value in leaves.items():
        modules[frame.module] = modules.get(frame.module, 0) + value
        languages[frame.language] = languages.get(frame.language, 0) + value
    return modules, languages


class _Frames:
    """Is the page's list of frames; nodes and rows have indices into it."""

    def __init__(self):
        self.index = _Index()
        self.places = {}
        self._own = {}  # by module: the sum of its shares

    def sums(self, profile):
        """Sums by the indices of modules and of languages, once all frames are known."""
        modules, languages = _leaf_sums(profile)
        self.places = profile.places or self.places
        for module, value in modules.items():
            self._own[module] = self._own.get(module, 0) + value / profile.total
        return {"modules": modules, "languages": languages}

    def lists(self, shown):
        """Returns the lists. `shown`: the profiles of the page, whose sums become lists."""
        # the largest first, whichever profile it is in: a module has one colour in all of them
        modules = sorted({frame.module for frame in self.index} | {""},
                         key=lambda module: (module in ("", NOT_RUNNING), -self._own.get(module, 0), module))
        languages = sorted({frame.language for frame in self.index} | {""})
        for profile in shown:
            for key, names in (("modules", modules), ("languages", languages)):
                profile[key] = [profile[key].get(name, 0) for name in names]
        places = {module: place for place, module in enumerate(modules)}
        return {
            "modules": [_readable(module) for module in modules],
            "languages": [_readable(language) for language in languages],
            "language_names": [_readable(name_of(language)) for language in languages],
            "frames": [[_readable(frame.name), places[frame.module]] for frame in self.index],
            "spoken": [languages.index(frame.language) for frame in self.index],
            **self._sources(),
        }

    def _sources(self):
        """Returns where functions are in their sources: the last folder, the file and the line, for the tooltip."""
        texts = _Index({"": 0})
        found = [self.places.get(frame) for frame in self.index]
        files = [texts[_short_path(place[0])] if place else 0 for place in found]
        return {"files": [_readable(text) for text in texts], "file_of": files, "line_of": [place[1] if place else 0 for place in found]}


def _functions(profile, frames):
    objects = self_and_total(profile.objects)
    for frame, own, total in by_function(profile)[:MOST_FUNCTIONS]:
        yield [frames.index[frame], own, total, *(objects.get(frame, (0, 0)) if objects else ())]


class _LabelSets:
    """Is the page's list of sets of labels; samples have indices into it."""

    def __init__(self):
        self._indices = {}
        self._known = {}  # indices by the labels of a sample
        self.is_cut = False

    def index(self, labels):
        if labels not in self._known:
            kept = tuple(label for label in labels if label[0] not in NOT_CHOSEN_BY)
            self._known[labels] = self._indices.setdefault(kept, len(self._indices))
        return self._known[labels]

    @property
    def sets(self):
        return list(self._indices)

    def letters(self):
        return sum(len(name) + len(value) for labels in self._indices for name, value in labels)

    def lists(self):
        sets = [[[printable(name), printable(value)] for name, value in labels] for labels in self._indices]
        idle = [is_idle(labels) for labels in self._indices]
        return {"labels": sets, "idle": idle, "unlabelled": self.is_cut}


def _samples(profile, tree, label_sets, most):
    """Returns the samples that the page filters by label: columns of a table. Where idle ones can be hidden, all
    others are needed, too."""
    has_idle = idle_part(profile) > 0
    labelled = [(value, key) for key, value in profile.samples.items() if key[1] or has_idle]
    if len(labelled) > most:
        label_sets.is_cut = True
        labelled = sorted(labelled, reverse=True)[:most]
    columns = {
        "at": [tree.leaf(stack) for _, (stack, _) in labelled],
        "labels": [label_sets.index(labels) for _, (_, labels) in labelled],
        "values": [value for value, _ in labelled],
    }
    if profile.counts:
        columns["objects"] = [profile.counts.get(key, 0) for _, key in labelled]
    return columns


def _samples_of_stacks(name, profile, stacks, label_sets):
    """Returns all samples, as columns of a table, with the indices of their stacks."""
    values, places = stacks.samples_of(name)
    columns = {
        "stacks": places,
        "labels": [label_sets.index(labels) for _, labels in values],
        "values": list(values.values()),
    }
    if profile.counts:
        columns["objects"] = [profile.counts.get(key, 0) for key in values]
    return columns


def _states(profile, frames):
    """Returns for wall time those of the page's frames that give the reason why a thread was not on a CPU, and the
    reasons."""
    states = {stack[0] for stack, _ in profile.samples if stack[0].module == NOT_RUNNING}
    return {frames.index[state]: state.name for state in states}


def _tree_columns(tree):
    columns = {"parents": tree.parents, "frames": tree.frames, "own": tree.own}
    if tree.left_out:
        columns["unseen"] = tree.unseen
    if tree.objects:
        columns["objects"] = tree.objects
    return columns


def _with_tree(profile, frames, label_sets, limits, also):
    tree = CallTree(profile, frames.index, ALL, limits.nodes)
    return {
        "left_out": tree.left_out,
        # else the page computes them
        **({"functions": list(_functions(profile, frames))} if tree.left_out else {}),
        "tree": _tree_columns(tree),
        "samples": _samples(profile, tree, label_sets, limits.samples),
        **(also(tree.parents, _frames_of(tree, frames)) if also else {}),
    }


def _profile(name, profile, frames, tables):
    return {
        "kind": name,
        "title": profile.title,
        "table": next((table for table, made in tables.items() if name in made["of"]), ""),
        "headline": headline(profile),
        "unit": profile.unit,
        "noun": profile.noun,
        "total": profile.total,
        **frames.sums(profile),
        "idle": idle_part(profile),
        "period": profile.sampling.period / 1e9 if name in KINDS and KINDS[name].shown.in_periods else 0,
        **({"states": _states(profile, frames)} if name == WALL else {}),
    }


def _frames_of(tree, frames):
    known = list(frames.index)
    return [known[place] for place in tree.frames]


def tables_of(profiles):
    """Returns tables by name, and the profiles with which each is shown."""
    made = {}
    rows = lock_rows(profiles, MOST_ROWS)
    if rows:
        made["locks"] = {"rows": rows, "of": [WALL, "off_cpu", "lock"]}
    if "threads" in profiles:
        threads = profiles["threads"]
        made["threads"] = {"rows": thread_rows(threads, MOST_ROWS), "idle": idle_rows(threads, MOST_ROWS),
                           "note": deadlock_text(threads), "of": ["threads"]}
    return made


class Limits(NamedTuple):
    """Bounds what is in a page, for each profile."""

    nodes: int = MOST_NODES
    samples: int = MOST_SAMPLES
    stack_frames: int = 0  # frames of distinct stacks, from which the page grows its trees; beyond it the page gets the trees


def _stacks_of(profiles, limits, frames):
    """Returns the stacks, or None: the page gets its trees."""
    if not limits.stack_frames:
        return None
    stacks = StackColumns(profiles)
    if stacks.count_frames() > limits.stack_frames:
        return None
    frames.index[ALL]  # the root of each tree is frame 0
    return stacks


def page_lists(title, profiles, tables=None, limits=Limits(), also=None, about=None):
    """Returns (the page's lists, its frames, its sets of labels). `also`: makes more columns from the parents and
    frames of a tree's nodes."""
    frames = _Frames()
    label_sets = _LabelSets()
    tables = tables_of(profiles) if tables is None else tables
    stacks = _stacks_of(profiles, limits, frames)
    shown = []
    for name, profile in profiles.items():
        calls = ({"left_out": 0, "samples": _samples_of_stacks(name, profile, stacks, label_sets)} if stacks else
                 _with_tree(profile, frames, label_sets, limits, also))
        shown.append({**_profile(name, profile, frames, tables), **calls})
    # a small file can have samples that all refer to one long value
    if label_sets.letters() > MOST_LETTERS:
        raise BadSum(f"the labels of the samples have more than {MOST_LETTERS >> 20} million letters, which is more than a page can show")
    data = {"title": printable(title), "about": about or {}, "tables": tables, "profiles": shown,
            **({"stacks": stacks.columns(frames.index)} if stacks else {}), **frames.lists(shown), **label_sets.lists()}
    return data, list(frames.index), label_sets.sets


def page_data(*arguments, **named):
    return page_lists(*arguments, **named)[0]
