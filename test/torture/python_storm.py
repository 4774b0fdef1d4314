"""Runs Python at its worst for a reader of its frames: python_storm.py STORM [SECONDS of CPU]. As the programs of
torture.h do, it prints "share FUNCTION NANOSECONDS" for its work, then "ok"."""

import contextlib
import functools
import gc
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref

burnt = 0
lock = threading.Lock()


def work_between_storms(milliseconds):
    """Does the work that the profile must find."""
    global burnt
    start = time.thread_time_ns()
    while time.thread_time_ns() - start < milliseconds * 1_000_000:
        sum(range(200))
    with lock:
        burnt += time.thread_time_ns() - start


def check(holds, what):
    if not holds:
        print("wrong:", what, flush=True)
        os._exit(1)


def is_spent():
    """Returns whether the CPU time is spent, with that of children."""
    return sum(os.times()[:4]) > seconds


def until_spent(step, threads=1):
    """Calls step(number) again and again, in so many threads, with work between."""

    def run():
        for number in itertools.count():
            if is_spent():
                return
            step(number)
            # long enough that its start within a tick matters little: on a busy machine that is just behind a tick
            if number % 40 == 0:
                work_between_storms(20)

    others = [threading.Thread(target=run) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    run()
    for thread in others:
        thread.join()


# --- the storms ---

def interpreters_module():
    for name in ("_interpreters", "_xxsubinterpreters"):
        with contextlib.suppress(ImportError):
            return __import__(name)
    return None


def interpreters():
    """Runs threads that make interpreters, run in them, and drop them."""
    module = interpreters_module()
    check(module is not None, "there are no subinterpreters")
    text = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nclass C:\n    x = [fib(i) for i in range(10)]\n"

    def step(number):
        made = module.create()
        for _ in range(number % 3 + 1):
            module.run_string(made, text)
        module.destroy(made)

    # (in 3.12 and older, several at once are not safe without the profiler either)
    until_spent(step, 4 if sys.version_info >= (3, 13) else 1)


def codes():
    """Makes code objects without end, with names of every width, that live for one call."""
    letters = ["abc", "äöü", "жшщ", "漢字仮", "𝒳𝒴𝒵"]

    def step(number):
        name = random.choice(letters) * random.choice((1, 3, 60, 400)) + str(number)
        text = f"def {name}(x):\n" + "    x += 1\n" * random.choice((1, 10, 500)) + "    return [i for i in range(x)]\n"
        scope = {}
        exec(compile(text, f"/made/{name[:200]}.py", "exec"), scope)
        check(len(scope.popitem()[1](3)) >= 3, "what a made function returns")
        lambda_made = eval(f"lambda x: x + {number}")
        check(lambda_made(1) == number + 1, "what a made lambda returns")
        if number % 50 == 0:
            with lock:
                sys.modules.pop("colorsys", None)
                __import__("colorsys")

    until_spent(step, 3)


def recursion():
    """Recurses to the limit and over it, in Python and through C."""

    def down(depth):
        return down(depth + 1) + 1

    class Endless:
        def __getattr__(self, name):
            return getattr(self, name + "x"[:0])

        def __repr__(self):
            return repr([self])

    def through_c(depth):
        return functools.reduce(lambda a, _: through_c(a + 1), [0], depth)

    def fails(function, *given):
        try:
            function(*given)
        except RecursionError:
            return True
        return False

    def step(number):
        sys.setrecursionlimit((500, 5000, 20000)[number % 3])
        check(fails(down, 0), "no RecursionError of Python's")
        sys.setrecursionlimit(700)
        check(fails(through_c, 0), "no RecursionError through C")
        check(fails(repr, Endless()), "no RecursionError of repr()")
        check(fails(getattr, Endless(), "y"), "no RecursionError of getattr()")
        with contextlib.suppress(RecursionError):
            json.loads("[" * 5000 + "]" * 5000)

    threading.stack_size(256 << 20)
    thread = threading.Thread(target=until_spent, args=(step,))
    thread.start()
    thread.join()


def signals():
    """Handles signals of two timers in Python: the handlers call, allocate and raise."""
    counts = [0, 0]

    def on_alarm(number, frame):
        counts[0] += 1
        check(frame is None or frame.f_code is not None, "a handler's frame")
        sorted(range(20), key=lambda x: -x)

    def on_virtual(number, frame):
        counts[1] += 1
        raise InterruptedError

    def go_some_way_into_a_tick():
        """ITIMER_VIRTUAL expires in a tick, as the timers of samples do: work just behind a tick is over before the
        next."""
        end = time.thread_time_ns() + random.randrange(20_000_000)
        while time.thread_time_ns() < end:
            sum(range(200))

    def step(number):
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0007)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.005)
        with contextlib.suppress(InterruptedError):
            for i in range(200000):
                sorted(range(50), key=lambda x: -x)
            check(False, "no signal came")
        signal.setitimer(signal.ITIMER_REAL, 0)
        if number % 4 == 0:
            go_some_way_into_a_tick()

    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGVTALRM, on_virtual)
    until_spent(step)
    check(all(counts), "no signal was seen")


def forks():
    """Forks children of a process with busy threads: some go on in Python, others begin another interpreter."""

    def child():
        try:
            work_between_storms(3)
            thread = threading.Thread(target=work_between_storms, args=(1,))
            thread.start()
            thread.join()
            os._exit(7)
        except BaseException:
            os._exit(8)

    def step(number):
        pid = os.fork()
        if pid == 0:
            child()
        check(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7, "a child's status")
        if number % 8 == 0:
            done = subprocess.run([sys.executable, "-S", "-c", "print(3)"], capture_output=True, check=False)
            check(done.stdout == b"3\n", "what a child printed")

    until_spent(step)


class Cycle:
    dropped = 0

    def __init__(self):
        self.me = self
        self.data = [bytearray(100) for _ in range(10)]

    def __del__(self):
        Cycle.dropped += len([x for x in self.data])


def garbage():
    """Collects garbage at every few allocations, with finalizers, callbacks and weak references."""
    seen = []
    gc.callbacks.append(lambda phase, _: seen.append(phase) or seen.clear())
    gc.set_threshold(5, 2, 2)

    def step(_):
        made = [Cycle() for _ in range(20)]
        references = [weakref.ref(one, lambda _: sum(range(3))) for one in made]
        del made
        gc.collect(random.choice((0, 1, 2)))
        del references

    until_spent(step, 3)
    check(Cycle.dropped > 0, "nothing was finalized")


def greenlets():
    """Copies stacks away and back, and switches between them."""
    import greenlet

    def one(n):
        for i in range(n):
            [greenlet.getcurrent().parent.switch(i) for _ in range(2)]
            functools.reduce(lambda a, b: greenlet.getcurrent().parent.switch(a) or b, range(4))
        return None

    def step(_):
        all_of_them = [greenlet.greenlet(one) for _ in range(20)]
        for turn in range(30):
            for each in all_of_them:
                if not each.dead:
                    each.switch(5)

    until_spent(step, 3)


ENDING = """
import threading, time, sys, atexit
def daemon():
    while True: sorted(range(100), key=lambda x: -x)
for _ in range(3): threading.Thread(target=daemon, daemon=True).start()
class Late:
    def __del__(self): [str(i) for i in range(1000)]
late = Late()
atexit.register(lambda: sum(range(10000)))
end = time.process_time() + %f
while time.process_time() < end: sum(range(100))
print("done", flush=True)
"""


def endings():
    """Ends interpreters beside daemon threads that go on."""

    def step(number):
        text = ENDING % random.uniform(0, 0.3)
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, check=False)
        check((done.returncode, done.stdout) == (0, b"done\n"), f"an ending: {done}")
        work_between_storms(20)

    until_spent(step)


STORMS = (interpreters, codes, recursion, signals, forks, garbage, greenlets, endings)

if __name__ == "__main__":
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2
    signal.alarm(0)
    threading.Thread(target=lambda: (time.sleep(seconds * 12 + 60), print("wrong: hangs", flush=True), os._exit(1)),
                     daemon=True).start()
    {storm.__name__: storm for storm in STORMS}[sys.argv[1]]()
    # moments between waits for children begin just behind a tick: a sample is then worth more than they are
    if sys.argv[1] not in ("forks", "endings"):
        print("share work_between_storms", burnt)
    print("ok")
