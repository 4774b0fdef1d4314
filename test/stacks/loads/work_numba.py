"""Has functions that numba compiles: LLVM's JIT, tables by __register_frame."""

import time

import numba
import numpy


@numba.njit
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@numba.njit
def inner(values):
    total = 0.0
    for value in values:
        total += (value * 3.7) % 1.3
    return total


@numba.njit
def rows(table):
    total = 0.0
    for row in range(table.shape[0]):
        total += inner(table[row])
    return total


def main():
    table = numpy.ones((500, 500))
    end = time.process_time() + 5
    while time.process_time() < end:
        fibonacci(30)
        rows(table)


main()
print("done")
