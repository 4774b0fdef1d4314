"""Parses stacks with frames of Python, and judges the stacks of programs/python_calls.py: whether each can be a stack
of that program."""

import collections
import json
import re
from pathlib import Path

import pytest
from profiled import BUILD, ROOT, value_of

PROGRAMS = ROOT / "test" / "programs"
LIBRARY = BUILD / "test" / "programs" / "burns_natively.so"
STEPPER = BUILD / "test" / "differential" / "python.so"
PYENV = Path.home() / ".pyenv" / "versions"

Frame = collections.namedtuple("Frame", "type name file line start")
Stack = collections.namedtuple("Stack", "frames value marks")  # leaf first


def interpreters():
    """Returns Debian's Python, and those of pyenv that have frames of known kinds: name -> command."""
    found = {"debian": ["/usr/bin/python3"]}
    for path in sorted(PYENV.glob("3.1[1-5].*/bin/python3")):
        found[path.parent.parent.name] = [str(path)]
    return found


# For parametrize: only Debian's Python is a package, so the others are not everywhere.
PYTHONS = [name if name == "debian" else pytest.param(name, marks=pytest.mark.system) for name in interpreters()]


def stacks_of(requests, kind="samples", pid=None):
    """Returns all stacks, of one process or of all."""
    for request in requests:
        known = {}
        for resource_profiles in request.resource_profiles:
            if pid and pid not in [a.value.int_value for a in resource_profiles.resource.attributes if a.key == "process.pid"]:
                continue
            for profile in (p for scope in resource_profiles.scope_profiles for p in scope.profiles):
                if request.dictionary.string_table[profile.sample_type.type_strindex] != kind:
                    continue
                for sample in profile.samples:
                    if sample.values[0]:
                        yield Stack(frames_of(request.dictionary, sample.stack_index, known), sample.values[0],
                                    marks_of(request.dictionary, sample))


def marks_of(dictionary, sample):
    attributes = (dictionary.attribute_table[index] for index in sample.attribute_indices)
    return {dictionary.string_table[a.key_strindex]: value_of(a.value) for a in attributes}


def frames_of(dictionary, stack_index, known):
    frames = []
    for index in dictionary.stack_table[stack_index].location_indices:
        if index not in known:
            known[index] = location_frames(dictionary, dictionary.location_table[index])
        frames += known[index]
    return tuple(frames)


def location_frames(dictionary, location):
    """Counts code without a name, as inside a stripped libc, as a frame, too."""
    strings = dictionary.string_table
    attributes = (dictionary.attribute_table[index] for index in location.attribute_indices)
    kinds = [a.value.string_value for a in attributes if strings[a.key_strindex] == "profile.frame.type"]
    if not location.lines:
        return [Frame(kinds[0] if kinds else "", "", "", 0, 0)]
    frames = []
    for line in location.lines:
        function = dictionary.function_table[line.function_index]
        frames.append(Frame(kinds[0] if kinds else "", strings[function.name_strindex],
                            strings[function.filename_strindex], line.line, function.start_line))
    return frames


def python_frames(stack):
    return [frame for frame in stack.frames if frame.type == "cpython"]


def is_loop(frame):
    """Returns whether the frame is the interpreter's own, which Python's frames replace."""
    return frame.type == "native" and bool(re.match(r"_PyEval_EvalFrameDefault\b", frame.name))


class Judge:
    """Judges the stacks of a run of python_calls.py, counted in samples."""

    def __init__(self, result):
        truth = json.loads(Path(result).read_text())
        self.numbers = {tuple(code[:3]): n for n, code in enumerate(truth["codes"])}
        self.lines = [set(code[3]) for code in truth["codes"]]
        self.generators = {n for n, code in enumerate(truth["codes"]) if code[4]}
        self.calls = {tuple(call) for call in truth["calls"]}
        self.verdicts = collections.Counter()
        self.wrong = []

    def judge(self, stack):
        verdict, why = self.verdict_of(stack)
        self.verdicts[verdict] += stack.value
        if verdict == "wrong":
            self.wrong.append(f"{why}: {stack.marks} {stack.value}: " + " < ".join(f"{f.name}:{f.line}" for f in stack.frames[:60]))

    def verdict_of(self, stack):
        frames = python_frames(stack)
        names = [frame.name for frame in frames]
        if not frames:
            return "without", ""
        if any(name.startswith("Record.") for name in names):
            return "outside", ""  # (a sample may come at any time)
        if "rounds" not in names:
            lost = any(frame.file.startswith("/made/") for frame in frames) and "main" not in names
            if lost and not ("otelprof.stack.truncated" in stack.marks or "otelprof.stack.depth_cut" in stack.marks):
                return "wrong", "outermost frames are missing"
            return ("cut" if lost else "outside"), ""
        bottom = frames[-1].name
        if bottom not in ("<module>", "Thread._bootstrap"):
            return "wrong", f"the outermost is {bottom}"
        why = self.why_impossible(frames[: names.index("rounds") + 1]) or self.why_torn(stack.frames)
        if why and any(map(is_loop, stack.frames)):
            return "holed", ""  # the walker left the interpreter's own function where it had doubts
        return ("wrong", why) if why else ("right", "")

    def why_impossible(self, frames):
        """Returns why the program has recorded no stack with these frames, from rounds() on; "" if it has."""
        chain = []
        for frame in reversed(frames):
            number = self.numbers.get((frame.file, frame.name, frame.start))
            if number is None:
                return f"no function {frame.name} of {frame.file}:{frame.start}"
            if frame.line not in self.lines[number]:
                return f"{frame.name} has no line {frame.line}"
            chain += (number, frame.line)
        # a call of its function makes a generator, and the program records no such call
        if chain[-2] in self.generators and chain[-1] in (0, frames[0].start):
            chain = chain[:-2]
        known = len(chain) <= 2 or tuple(chain[:-1]) in self.calls
        return "" if known else f"{self.innermost_known(chain)} did not call so"

    def innermost_known(self, chain):
        length = max(n for n in range(1, len(chain), 2) if n == 1 or tuple(chain[:n]) in self.calls)
        (_, name, _), line = next(code for code, n in self.numbers.items() if n == chain[length - 1]), chain[length]
        return f"{name}:{line}"

    @staticmethod
    def why_torn(frames):
        """Returns why the program's native functions cannot be where they are; "" if they can."""
        python = [frame for frame in frames if frame.type == "cpython" or frame.name in ("known_burn", "known_call")]
        for inner, outer in zip(python, python[1:]):
            if inner.name == "known_burn" and not outer.name.startswith("burns_"):
                return "known_burn() is called by another"
            if inner.name.startswith("back_") and outer.name != "known_call":
                return "no known_call() around what it calls"
            if inner.name == "known_call" and not outer.name.startswith("native_"):
                return "known_call() is called by another"
        return ""


def stepped_stacks(path):
    """Reads the output of test/differential/python.so.c: (stack, whether its walk had doubts)."""
    with open(path) as file:
        for line in file:
            times, *rest = json.loads(line)
            if not rest:
                assert times == 0, f"{times} stacks had no room"
                return
            doubt, end, pc, *frames = rest
            marks = {"pc": hex(pc), **({} if end == 0 else {"otelprof.stack.truncated": True})}
            yield Stack(tuple(stepped_frame(*frame) for frame in frames), times, marks), bool(doubt)


def stepped_frame(name="?", file=None, line=0, start=0):
    return Frame("native" if file is None and name != "?" else "cpython", name, file or "", line, start)
