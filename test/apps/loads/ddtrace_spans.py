"""Makes spans of dd-trace-py, an instrumentation that publishes its threads' contexts by itself: eight threads with
spans of known cost, one after the other. Prints "SPAN TRACE NANOSECONDS" for each, of the thread's CPU time."""

import random
import threading
import time

from ddtrace import tracer

THREADS, SPANS = 8, 5
said = threading.Lock()


def burn(seconds):
    end, x = time.thread_time() + seconds, 1
    while time.thread_time() < end:
        for _ in range(200):
            x = x * 3 % 1000003


def work():
    for _ in range(SPANS):
        with tracer.trace("work") as span:
            start = time.thread_time_ns()
            burn(random.uniform(0.1, 0.5))
            spent = time.thread_time_ns() - start
        with said:
            print(f"{span.span_id:016x} {span.trace_id:032x} {spent}", flush=True)


threads = [threading.Thread(target=work) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
