"""Reads what the profiler reported of each thread: CPU time, time off the CPU, run-queue delay, and the stacks of the
waits, as addresses in files."""

from collections import defaultdict

UNITS = {"off_cpu": 1e-9, "sched_delay": 1e-9, "samples": None}  # factor to seconds; None: by the period


class ReportedThread:
    """Is one thread. Times in seconds."""

    def __init__(self):
        self.name = ""
        self.seconds = defaultdict(float)  # by type
        self.stacks = defaultdict(float)  # of off_cpu: frames, leaf first -> seconds
        self.kinds = defaultdict(float)
        self.unseen = 0.0  # of off_cpu: seconds without a stack, since no poll saw them


class Dictionary:
    """Reads the tables of one request."""

    def __init__(self, tables):
        self.tables = tables
        self.text = tables.string_table

    def frames(self, stack_index):
        """Returns (address in the file, function, file) of each frame, leaf first."""
        frames = []
        for index in self.tables.stack_table[stack_index].location_indices:
            location = self.tables.location_table[index]
            mapping = self.tables.mapping_table[location.mapping_index]
            names = [self.text[self.tables.function_table[line.function_index].name_strindex] for line in location.lines]
            frames.append((location.address, names[-1] if names else "", self.text[mapping.filename_strindex]))
        return tuple(frames)

    def attributes(self, indices):
        found = {}
        for index in indices:
            attribute = self.tables.attribute_table[index]
            found[self.text[attribute.key_strindex]] = getattr(
                attribute.value, attribute.value.WhichOneof("value") or "string_value"
            )
        return found


def read(requests):
    """Returns (pid, tid) -> ReportedThread."""
    threads = defaultdict(ReportedThread)
    for request in requests:
        dictionary = Dictionary(request.dictionary)
        for resource in request.resource_profiles:
            attributes = {
                a.key: getattr(a.value, a.value.WhichOneof("value") or "string_value")
                for a in resource.resource.attributes
            }
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    add(threads, dictionary, profile, attributes["process.pid"])
    return threads


def add(threads, dictionary, profile, pid):
    kind = dictionary.text[profile.sample_type.type_strindex]
    if kind not in UNITS:
        return
    unit = UNITS[kind] or profile.period * 1e-9
    for sample in profile.samples:
        attributes = dictionary.attributes(sample.attribute_indices)
        thread = threads[pid, attributes.get("thread.id", 0)]
        thread.name = attributes.get("thread.name", "")
        seconds = sum(sample.values) * unit
        thread.seconds[kind] += seconds
        if kind != "off_cpu":
            continue
        if attributes.get("otelprof.stack.unsampled"):
            thread.unseen += seconds
        else:
            thread.stacks[dictionary.frames(sample.stack_index)] += seconds
        thread.kinds[attributes.get("otelprof.wait.kind", "")] += seconds
