"""Four functions burn 10, 20, 30 and 40 % of the CPU time, in each of the ways that Python has of running
a function, and each says what it burnt by the thread's own clock: {way: {function: ns}}.

    python_shares.py THREADS ROUNDS [WAY...]

`# hot` ends the lines that burn.
"""

import asyncio
import functools
import json
import re
import sys
import threading
import time
from collections import Counter

SHARES = (10, 20, 30, 40)
UNIT_NS = 10_000_000
burnt = Counter()
lock = threading.Lock()


def burning(work):
    """The function, called with the time at which it ends; what it took is added up."""

    @functools.wraps(work)
    def measured(share):
        start = time.thread_time_ns()
        result = work(start + share * UNIT_NS)
        with lock:
            burnt[work.__name__] += time.thread_time_ns() - start
        return result

    return measured


# --- a function of Python's own, on one line and on two ---

@burning
def calls_10(end):
    while time.thread_time_ns() < end: sum(range(300))  # hot


@burning
def calls_20(end):
    x = 0
    while time.thread_time_ns() < end: x = (x * 7 + 3) % 1009 + len("abc")  # hot


def multiply(x):
    return x * 7 % 1009


@burning
def calls_30(end):
    x = 0
    while time.thread_time_ns() < end:  # hot
        x = multiply(x) + 1  # hot


class Worker:
    def __init__(self, end):
        self.end = end

    def work(self):
        while time.thread_time_ns() < self.end:  # hot
            [multiply(i) for i in range(50)]  # hot


@burning
def calls_40(end):
    Worker(end).work()


# --- generators ---

def numbers(end):
    x = 0
    while time.thread_time_ns() < end:  # hot
        x = x * 5 % 1013  # hot
        yield x  # hot


def delegates(end):
    yield from numbers(end)


@burning
def generators_10(end):
    for _ in numbers(end): pass  # hot


@burning
def generators_20(end):
    for _ in delegates(end): pass  # hot


@burning
def generators_30(end):
    sum(x for x in delegates(end))


@burning
def generators_40(end):
    list(map(multiply, delegates(end)))


# --- recursion ---

def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)  # hot


def descend(depth, end):
    if depth:
        return descend(depth - 1, end)
    while time.thread_time_ns() < end: sum(range(300))  # hot


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


@burning
def recursion_40(end):
    def inner(depth):
        return inner(depth - 1) if depth else descend(3, end)

    inner(40)


# --- Python that C calls, and C that Python calls ---

def key_of(number):
    return -number * 3 % 101  # hot


def replaced(match):
    return match.group(0).upper()  # hot


def hooked(pairs):
    return len(pairs)  # hot


@burning
def extensions_10(end):
    while time.thread_time_ns() < end:
        sorted(range(500), key=key_of)


@burning
def extensions_20(end):
    while time.thread_time_ns() < end:
        functools.reduce(lambda a, b: a ^ key_of(b), range(500))


@burning
def extensions_30(end):
    text = "words that are to be replaced " * 20
    while time.thread_time_ns() < end:
        re.sub(r"\w+", replaced, text)


@burning
def extensions_40(end):
    text = json.dumps([{"a": 1, "b": [2, 3]}] * 40)
    while time.thread_time_ns() < end:
        json.loads(text, object_hook=hooked)


# --- asyncio's tasks, one after the other: what the loop does between their turns is not theirs ---

def tasks_burn(end):
    while time.thread_time_ns() < end: sum(range(300))  # hot


def task(share):
    async def body():
        for _ in range(share):
            start = time.thread_time_ns()
            tasks_burn(start + UNIT_NS)
            with lock:
                burnt[body.__name__] += time.thread_time_ns() - start
            await asyncio.sleep(0)

    body.__name__ = f"tasks_{share}"
    body.__code__ = body.__code__.replace(co_name=body.__name__, co_qualname=body.__name__)
    return body()


async def run_tasks():
    await task(10)
    await asyncio.gather(task(20))
    await asyncio.create_task(task(30))
    await asyncio.wait_for(task(40), 1000)


# --- numpy, where it is installed: it has no frames of Python's ---

@burning
def arrays_10(end):
    import numpy
    array = numpy.arange(20000.0)
    while time.thread_time_ns() < end: array = numpy.sqrt(array + 1)  # hot


@burning
def arrays_20(end):
    import numpy
    array = numpy.arange(20000.0)
    while time.thread_time_ns() < end: numpy.sort(array[::-1])  # hot


@burning
def arrays_30(end):
    import numpy
    array = numpy.ones((60, 60))
    while time.thread_time_ns() < end: array = array @ array % 7  # hot


@burning
def arrays_40(end):
    import numpy
    called = numpy.vectorize(key_of)
    while time.thread_time_ns() < end: called(numpy.arange(200))  # hot


WAYS = ("calls", "generators", "recursion", "extensions", "tasks", "arrays")


def run(way):
    names = [f"{way}_{share}" for share in SHARES]
    if way == "tasks":
        return asyncio.run(run_tasks())
    for share, name in zip(SHARES, names):
        globals()[name](share)


def main():
    threads, rounds, ways = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or WAYS[:-1]
    truth = {}
    for way in ways:
        if way == "arrays":
            import numpy  # noqa: F401 (not a thread's first use)
        burnt.clear()
        for _ in range(rounds):
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
