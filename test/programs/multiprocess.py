"""Four children that burn CPU and end as multiprocessing ends them."""

import multiprocessing
import time


def work(number):
    start = time.process_time()
    while time.process_time() - start < 0.4:
        sum(range(1000))
    return number


def run(number, results):
    results.put(work(number))


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=run, args=(n, queue)) for n in range(4)]
    for child in children:
        child.start()
    print(sorted(queue.get() for _ in children))
    for child in children:
        child.join()
