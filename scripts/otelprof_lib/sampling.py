"""Finds how a profile was sampled: from when to when, the period, and the expiries that the kernel merged."""

from .coverage import Coverage, end_of

OVERRUN = "otelprof.dropped.overrun"  # attribute of profiles: expiries so far that had no sample of their own


class Sampling:
    def __init__(self):
        self.period = 0  # the largest
        self.begin = 0
        self.end = 0
        self.covered = Coverage()  # time that the file covers, by whatever kind
        self._overruns = {}  # by process: a count since its start

    @property
    def overruns(self):
        return sum(self._overruns.values())

    @property
    def seconds(self):
        """Returns how long the file was recorded, without its gaps."""
        return self.covered.nano / 1e9

    def add(self, process, profile, dictionary):
        begin = profile.time_unix_nano
        self.period = max(self.period, profile.period)
        self.begin = min(self.begin or begin, begin)
        self.end = max(self.end, end_of(profile, dictionary))
        for index in profile.attribute_indices:
            if not 0 <= index < len(dictionary.attribute_table):
                continue
            attribute = dictionary.attribute_table[index]
            place = attribute.key_strindex
            if 0 <= place < len(dictionary.string_table) and dictionary.string_table[place] == OVERRUN:
                self._overruns[process] = max(self._overruns.get(process, 0), attribute.value.int_value)
