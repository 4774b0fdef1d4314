"""Lists what libotelprof profiles, from its own list: common/profile_kinds.def explains the columns."""

from dataclasses import dataclass

from .lists import entries
from .places import profile_kinds

# the unit in which a value is shown, by the unit of the samples
_SHOWN = {"nanoseconds": "seconds"}


@dataclass(frozen=True)
class Value:
    """Is one value of a kind."""

    type: str
    unit: str
    in_periods: bool  # each sample counts for one period
    meaning: str


@dataclass(frozen=True)
class Kind:
    title: str
    is_snapshot: bool
    period_type: str
    period_unit: str
    attributes: tuple  # keys that its samples can have
    values: tuple

    @property
    def shown(self):
        """Returns the value for tables and flame graphs."""
        return self.values[-1]

    @property
    def unit(self):
        unit = self.period_unit if self.shown.in_periods else self.shown.unit
        if self.objects and unit == "nanoseconds":
            return "duration"  # each sample is a short duration
        return _SHOWN.get(unit, unit)

    @property
    def objects(self):
        """Returns the value that counts the objects of `shown`, or None."""
        return self.values[0] if len(self.values) > 1 else None

    @property
    def noun(self):
        """Returns the name of what `objects` counts: `objects` for alloc_objects."""
        return self.objects.type.rpartition("_")[2] if self.objects else ""


def _read():
    with open(profile_kinds(), encoding="utf-8") as file:
        text = file.read()
    attributes = {constant: (key, meaning) for constant, _, key, meaning in entries(text, "ATTRIBUTE")}
    values = {}
    for kind, _, measure, type_name, unit, meaning in entries(text, "VALUE"):
        values.setdefault(kind, []).append(Value(type_name, unit, measure == "PERIODS", meaning))
    kinds = {}
    names = {}
    for constant, profile, name, title, time, _, period_type, period_unit, own in entries(text, "KIND"):
        names[profile] = name
        keys = tuple(attributes[attribute.strip()][0] for attribute in own.split("|"))
        kinds[name] = Kind(title, time == "SNAPSHOT", period_type, period_unit, keys, tuple(values[constant]))
    sources = {
        name: tuple(names[profile.strip()] for profile in of.split("|"))
        for _, name, of in entries(text, "SOURCE")
    }
    return kinds, sources, tuple(attributes.values())


# by name, in the order of display; sources that add to kinds, and to which; (key, meaning) of samples' attributes
KINDS, SOURCES, ATTRIBUTES = _read()
TYPES = (*KINDS, *SOURCES)  # the words of OTEL_PROFILER_TYPES
ALL = "all"  # stands for each of them


def kinds_of(types):
    """Returns the names of the kinds whose shown values are of these types, in the order of display."""
    return [name for name, kind in KINDS.items() if kind.shown.type in types]


def missing(path, name, there):
    """Returns the message for a file that has other kinds."""
    return f"{path} has no profile of kind {name}" + (f"; it has {', '.join(there)}" if there else "")
