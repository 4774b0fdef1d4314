"""Burns 10, 20, 30 and 40 ms of CPU time in four functions, in each of Python's ways to run a function. Prints what
each function burnt, by the thread's own clock: {way: {function: ns}}.

    python_shares.py LIBRARY THREADS [WAY...]

LIBRARY is takes_cpu_sample.so. Each function's time is charged to a line that ends by `# hot`, where it takes its
only sample; earlier time is charged to begins().
"""

import asyncio
import ctypes
import functools
import json
import re
import sys
import threading
import time
from collections import Counter

library = ctypes.PyDLL(sys.argv[1])
take_sample = library.take_cpu_sample

SHARES = (10, 20, 30, 40)
UNIT_NS = 1_000_000
burnt = Counter()
lock = threading.Lock()


def begins():
    take_sample()
    return time.thread_time_ns()


def burning(work):
    """Wraps the function: calls it with the time at which it must end, and adds up what it took."""

    @functools.wraps(work)
    def measured(share):
        start = begins()
        work(start + share * UNIT_NS)
        with lock:
            burnt[work.__name__] += time.thread_time_ns() - start

    return measured


# --- a function of Python's own, calls within it, and a method ---

@burning
def calls_10(end):
    while time.thread_time_ns() < end: sum(range(300))
    take_sample()  # hot


def multiply(x):
    return x * 7 % 1009


def sampled(x):
    take_sample()  # hot
    return x


@burning
def calls_20(end):
    x = 0
    while time.thread_time_ns() < end:
        x = multiply(x) + 1
    x = sampled(x) + 1


class Worker:
    def __init__(self, end):
        self.end = end

    def work(self):
        while time.thread_time_ns() < self.end:
            [multiply(i) for i in range(50)]
        take_sample()  # hot


@burning
def calls_30(end):
    Worker(end).work()


@burning
def calls_40(end):
    while time.thread_time_ns() < end: sum(range(300))
    for x in (1, 2): x = x + 1 if x == 1 else take_sample()  # hot


# --- generators ---

def numbers(end):
    x = 0
    while time.thread_time_ns() < end:
        x = x * 5 % 1013
        yield x
    take_sample()  # hot


def delegates(end):
    yield from numbers(end)


@burning
def generators_10(end):
    for _ in numbers(end): pass


@burning
def generators_20(end):
    for _ in delegates(end): pass


@burning
def generators_30(end):
    sum(x for x in delegates(end))


@burning
def generators_40(end):
    list(map(multiply, delegates(end)))


# --- recursion ---

def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def descend(depth, end):
    if depth:
        return descend(depth - 1, end)
    while time.thread_time_ns() < end: sum(range(300))
    take_sample()  # hot


@burning
def recursion_10(end):
    descend(10, end)


@burning
def recursion_20(end):
    descend(90, end)


@burning
def recursion_30(end):
    while time.thread_time_ns() < end:
        fibonacci(10)
    descend(5, end)


@burning
def recursion_40(end):
    def inner(depth):
        return inner(depth - 1) if depth else descend(3, end)

    inner(40)


# --- Python that C calls, and C that Python calls ---

def key_of(number):
    return -number * 3 % 101


def sampled_key(number):
    take_sample()  # hot
    return number


def replaced(match):
    take_sample()  # hot
    return match.group(0)


def hooked(pairs):
    take_sample()  # hot
    return pairs


@burning
def extensions_10(end):
    while time.thread_time_ns() < end:
        sorted(range(500), key=key_of)
    sorted([1], key=sampled_key)


@burning
def extensions_20(end):
    while time.thread_time_ns() < end:
        functools.reduce(lambda a, b: a ^ key_of(b), range(500))
    functools.reduce(lambda a, b: a ^ sampled_key(b), [1, 2])


@burning
def extensions_30(end):
    text = "words that are to be replaced " * 20
    while time.thread_time_ns() < end:
        re.sub(r"\w+", str, text[:0])
    re.sub(r"\w+", replaced, "word")


@burning
def extensions_40(end):
    text = json.dumps([{"a": 1, "b": [2, 3]}] * 40)
    while time.thread_time_ns() < end:
        json.loads(text)
    json.loads("[{}]", object_hook=hooked)


# --- asyncio's tasks, one after the other: the loop's work before they begin does not count ---

def tasks_burn(end):
    while time.thread_time_ns() < end: sum(range(300))
    take_sample()  # hot


def task(share):
    async def body():
        start = begins()
        tasks_burn(start + share * UNIT_NS / 2)
        await asyncio.sleep(0)
        tasks_burn(start + share * UNIT_NS)
        with lock:
            burnt[body.__name__] += time.thread_time_ns() - start

    body.__name__ = f"tasks_{share}"
    body.__code__ = body.__code__.replace(co_name=body.__name__, co_qualname=body.__name__)
    return body()


async def run_tasks():
    await task(10)
    await asyncio.gather(task(20))
    await asyncio.create_task(task(30))
    await asyncio.wait_for(task(40), 1000)


WAYS = ("calls", "generators", "recursion", "extensions", "tasks")


def run(way):
    library.hold_cpu_samples()
    if way == "tasks":
        return asyncio.run(run_tasks())
    for share in SHARES:
        globals()[f"{way}_{share}"](share)


def main():
    threads, ways = int(sys.argv[2]), sys.argv[3:] or WAYS
    truth = {}
    for way in ways:
        burnt.clear()
        started = [threading.Thread(target=run, args=(way,)) for _ in range(threads - 1)]
        for thread in started:
            thread.start()
        run(way)
        for thread in started:
            thread.join()
        truth[way] = dict(burnt)
    print(json.dumps(truth))


if __name__ == "__main__":
    main()
