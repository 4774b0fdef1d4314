"""A greenlet that another greenlet has started works on, while the stack that it was started on is in use by main.

usage: greenlets.py takes_cpu_sample.so SECONDS
"""

import ctypes
import sys
import time

import greenlet


sampler = ctypes.PyDLL(sys.argv[1])


def burns():
    end = time.process_time() + float(sys.argv[2])
    total = 0
    while time.process_time() < end:
        for number in range(2000):
            total += number * number
        sampler.take_cpu_sample()
    return total


def works():
    main.switch()
    burns()


def starts():
    worker.switch()


def resumes(depth):
    if depth:
        return max([depth], key=lambda _: resumes(depth - 1))
    return worker.switch()


main = greenlet.getcurrent()
worker = greenlet.greenlet(works)
sorted([1], key=lambda _: greenlet.greenlet(starts).switch() or 0)
resumes(5)
