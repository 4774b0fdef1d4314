"""Runs a tree of calls of random shape, and writes which stacks it can have:

    python_calls.py SEED SECONDS THREADS LIBRARY RESULT

The functions are made from SEED, of every kind that Python has. The tree is run three times while sys.setprofile()
records, at each call and return, what sys._getframe() returns: the caller, the callee, and the line. Then it is run
unobserved, for SECONDS of CPU time in each thread, or until test/differential/python.so.c has sampled enough. RESULT, a
JSON file, has the stacks below rounds(), outermost frame first: {"codes": [[file, function, first line, [lines], whether
a generator]], "calls": [[code, line, code, line, ..., code]]}. LIBRARY is burns_natively.so.
"""

import contextlib
import ctypes
import inspect
import json
import random
import sys
import threading
import time

NODES = 120
DEEPEST = 14
GENERATOR = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
FILE = "/made/calls_%d.py"

HEADER = """
import contextlib, functools, json, re
def first(*given): return given[0]
"""

# NAME() runs the children, CALLS, a line each; CALL is the first of them, or a leaf.
KINDS = {
    "function": """
def NAME():
    x = 1
    CALLS
    return x
""",
    "method": """
class CNAME:
    def work(self, given):
        CALLS
        return given
def NAME():
    return CNAME().work(3)
""",
    "init": """
class CNAME:
    def __init__(self, given):
        self.given = given
        CALLS
def NAME():
    return CNAME(1).given
""",
    "super": """
class BNAME:
    @classmethod
    def work(cls):
        CALLS
class CNAME(BNAME):
    @classmethod
    def work(cls):
        return super().work()
def NAME():
    CNAME.work()
""",
    "property": """
class CNAME:
    @property
    def value(self):
        CALLS
        return 1
def NAME():
    return CNAME().value + 1
""",
    "operators": """
class CNAME:
    def __getitem__(self, key):
        CALL
        return self
    def __add__(self, other):
        CALLS
        return self
    def __len__(self):
        return 3
def NAME():
    value = CNAME()
    return len(value[1] + value)
""",
    "lambda": """
NAME = lambda: (
    1,
    CALL,
    2)
""",
    "comprehension": """
def NAME():
    x = [
        CALL
        for _ in range(2)]
    y = {i:
        CALL
        for i in range(2)}
    return x
""",
    "genexpr": """
def NAME():
    return sum((
        CALL
        and 1) or 2 for _ in range(3))
""",
    "generator": """
def gNAME():
    yield 1
    CALLS
    yield 2
def NAME():
    for _ in gNAME():
        pass
    return list(gNAME())
""",
    "delegating": """
def hNAME():
    x = yield 1
    CALLS
    return x
def gNAME():
    yield from hNAME()
    yield 3
def NAME():
    g = gNAME()
    next(g)
    g.send(3)
    g.close()
""",
    "coroutine": """
async def hNAME():
    CALLS
    return 1
async def gNAME():
    return await hNAME()
def NAME():
    try:
        gNAME().send(None)
    except StopIteration:
        pass
""",
    "asyncgen": """
async def hNAME():
    yield 1
    CALLS
    yield 2
async def gNAME():
    async for x in hNAME():
        pass
def NAME():
    try:
        gNAME().send(None)
    except StopIteration:
        pass
""",
    "classbody": """
def NAME():
    class Body:
        x = 1
        CALLS
    return Body
""",
    "decorated": """
def dNAME(function):
    @functools.wraps(function)
    def wrapper(*given, **named):
        return function(*given, **named)
    return wrapper
@dNAME
def NAME(x=1, *y, z=2, **w):
    CALLS
    return x
""",
    "sorted": """
def kNAME(x):
    CALLS
    return -x
def NAME():
    return sorted(
        range(3), key=kNAME)
""",
    "map": """
def NAME():
    return list(map(lambda x:
        CALL,
        range(2)))
""",
    "reduce": """
def rNAME(a, b):
    CALLS
    return a + b
def NAME():
    return functools.reduce(rNAME, range(3))
""",
    "partial": """
def pNAME(a, b):
    CALLS
NAME = functools.partial(pNAME, 1, b=2)
""",
    "resub": """
def rNAME(match):
    CALLS
    return "b"
def NAME():
    return re.sub("a", rNAME, "aab")
""",
    "json": """
def hNAME(found):
    CALLS
    return 1
def NAME():
    return json.loads('[{"a": {}}]', object_hook=hNAME)
""",
    "exec": """
def NAME():
    exec(compile("x = 1\\nCALL\\n", "/made/exec_NAME.py", "exec"), globals())
    return eval("CALL")
""",
    "made": """
def NAME():
    scope = dict(globals())
    exec(compile("def made():\\n    return CALL\\n", "/made/function_NAME.py", "exec"), scope)
    return scope["made"]()
""",
    "raises": """
def rNAME():
    try:
        raise KeyError
    finally:
        CALL
def NAME():
    try:
        rNAME()
    except KeyError:
        CALLS
""",
    "manager": """
@contextlib.contextmanager
def mNAME():
    CALL
    yield 1
    CALL
def NAME():
    with mNAME() as x:
        CALLS
""",
    "del": """
class CNAME:
    def __del__(self):
        CALLS
def NAME():
    CNAME()
    return 1
""",
    "recursion": """
def NAME(depth=4):
    if depth:
        return NAME(depth - 1)
    CALLS
""",
    "closure": """
def NAME():
    x = 1
    def inner():
        nonlocal x
        CALLS
        x += 1
    inner()
    return x
""",
    "native": """
@CALLBACK
def back_NAME(x):
    CALLS
    return x
def native_NAME():
    return known_call(back_NAME, 3)
NAME = native_NAME
""",
}

LEAVES = (
    "def NAME():\n    x = 3\n    for i in range(40):\n        x = x * i % 7\n    return x\n",
    "def NAME():\n    return None\n",
    "def NAME():\n    return sum(range(200))\n",
    "def NAME(*a, **b):\n    return [str(x) for x in range(5)]\n",
    "class CNAME:\n    pass\ndef NAME():\n    return CNAME()\n",
    "def burns_NAME():\n    known_burn(20)\nNAME = burns_NAME\n",
)


class Tree:
    """Writes the text of a module whose function root() runs the tree."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.text = HEADER
        self.count = 0
        self.kinds = []
        root = self.node(0, "function", children=8)
        self.text += f"root = {root}\n"

    def node(self, depth, kind=None, children=None):
        self.count += 1
        name = f"n{self.count}"
        if kind is None and (depth > DEEPEST or self.count > NODES or self.random.random() < 0.15):
            self.text += self.random.choice(LEAVES).replace("NAME", name)
            return name
        if not self.kinds:
            self.kinds = self.random.sample(list(KINDS), len(KINDS))
        body = KINDS[kind or self.kinds.pop()]
        called = [self.node(depth + 1) + "()" for _ in range(children or self.random.choice((1, 1, 2, 3)))]
        for line in body.splitlines():
            indent = line[: len(line) - len(line.lstrip())]
            line = line.replace("CALLS", f"\n{indent}".join(called)).replace("CALL()", "CALL")
            self.text += self.with_call(line, called[0]).replace("NAME", name) + "\n"
        return name

    @staticmethod
    def with_call(line, call):
        return line.replace("CALLBACK", "call_back").replace("CALL", call).replace("call_back", "CALLBACK")


class Record:
    """Records what sys._getframe() returns at each call below rounds()."""

    def __init__(self):
        self.seen = {}
        self.numbers = {}
        self.codes = []
        self.calls = set()

    def number_of(self, code):
        if id(code) not in self.seen:
            self.seen[id(code)] = code, self.new_number(code)  # kept, so that no other code gets its id
        return self.seen[id(code)][1]

    def new_number(self, code):
        key = (code.co_filename, code.co_qualname, code.co_firstlineno)
        if key not in self.numbers:
            self.numbers[key] = len(self.codes)
            self.codes.append([*key, set(), bool(code.co_flags & GENERATOR)])
        number = self.numbers[key]
        self.codes[number][3].update(line or 0 for _, _, line in code.co_lines())
        return number

    def __call__(self, frame, event, _):
        if event not in ("call", "return"):  # a generator that is closed returns without having been called
            return
        chain = [self.number_of(frame.f_code)]
        while frame.f_code is not rounds.__code__:
            frame = frame.f_back
            if frame is None:
                return
            chain += (frame.f_lineno, self.number_of(frame.f_code))
        self.calls.add(tuple(reversed(chain)))

    def write(self, path):
        with open(path, "w") as file:
            json.dump({"codes": [[*code[:3], sorted(code[3]), code[4]] for code in self.codes], "calls": sorted(self.calls)}, file)


def rounds(root, times, seconds, has_looked_enough=None):
    end = time.thread_time() + seconds
    while times > 0 or time.thread_time() < end or (has_looked_enough and not has_looked_enough()):
        times -= 1
        root()


def in_thread(*given):
    thread = threading.Thread(target=rounds, args=given)
    thread.start()
    return thread


def main():
    seed, seconds, threads = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    library = ctypes.CDLL(sys.argv[4])
    called_back = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    library.known_call.argtypes = (called_back, ctypes.c_int)
    made = {"CALLBACK": called_back, "known_call": library.known_call, "known_burn": library.known_burn}
    exec(compile(Tree(seed).text, FILE % seed, "exec"), made)
    record = Record()
    sys.setprofile(record)
    rounds(made["root"], 3, 0)
    sys.setprofile(None)
    record.write(sys.argv[5])
    has_looked_enough = None
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).begin_looking()  # defined by test/differential/python.so.c, where it is preloaded
        has_looked_enough = ctypes.CDLL(None).has_looked_enough
        has_looked_enough.restype = ctypes.c_bool  # an int's other bytes may be anything
    started = [in_thread(made["root"], 0, seconds) for _ in range(threads - 1)]
    rounds(made["root"], 0, seconds, has_looked_enough)
    for thread in started:
        thread.join()
    print(len(record.calls))


if __name__ == "__main__":
    main()
