"""Finds what time profiles cover: a file may have gaps, and the exports of several processes.

A profile covers the time from its begin to its end. libotelprof exports a profile without samples for time in which nothing
was sampled, so a gap is time that was not recorded. A merged profile that has gaps lists its parts' times in an attribute; its
duration is their sum, as `go tool pprof` adds durations up.
"""

from bisect import bisect_left, bisect_right

from .capture_file import entry_at

INTERVALS = "otelprof.merged.intervals"  # attribute of a profile: begin, end, begin, end, ... in nanoseconds since 1970
MOST_STRETCHES = 1 << 12  # beyond them the shortest gap counts as covered


class Coverage:
    """Is a set of times: stretches that do not touch, in their order."""

    def __init__(self):
        self._begins, self._ends = [], []

    def __len__(self):
        return len(self._begins)

    def add(self, begin, end):
        if begin >= end:
            return
        first, past = bisect_left(self._ends, begin), bisect_right(self._begins, end)
        if first < past:
            begin, end = min(begin, self._begins[first]), max(end, self._ends[past - 1])
        self._begins[first:past], self._ends[first:past] = [begin], [end]
        if len(self) > MOST_STRETCHES:
            self._close_shortest_gap()

    def _close_shortest_gap(self):
        gaps = [begin - end for begin, end in zip(self._begins[1:], self._ends)]
        shortest = gaps.index(min(gaps))
        del self._begins[shortest + 1], self._ends[shortest]

    def add_profile(self, profile, dictionary):
        for begin, end in intervals_of(profile, dictionary):
            self.add(begin, end)

    @property
    def nano(self):
        return sum(self._ends) - sum(self._begins)

    def flat(self):
        """Returns begin, end, begin, end, ..."""
        return [moment for stretch in zip(self._begins, self._ends) for moment in stretch]


def attribute_of(profile, dictionary, key):
    """Returns the value of a profile's attribute, or None."""
    for index in profile.attribute_indices:
        attribute = entry_at(dictionary.attribute_table, index)
        if attribute is not None and entry_at(dictionary.string_table, attribute.key_strindex) == key:
            return attribute.value
    return None


def intervals_of(profile, dictionary):
    """Returns (begin, end) of each stretch of time that a profile covers; none for a snapshot."""
    whole = profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano
    listed = attribute_of(profile, dictionary, INTERVALS) if profile.duration_nano else None
    moments = [value.int_value for value in listed.array_value.values] if listed is not None else []
    pairs = list(zip(moments[::2], moments[1::2]))
    is_valid = moments and moments == sorted(moments) and len(moments) == 2 * len(pairs) and moments[0] == whole[0] \
        and sum(end - begin for begin, end in pairs) == profile.duration_nano
    return pairs if is_valid else [whole] if profile.duration_nano else []


def end_of(profile, dictionary):
    return max((end for _, end in intervals_of(profile, dictionary)), default=profile.time_unix_nano)
