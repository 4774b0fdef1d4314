"""Runs threads of python3 that wait: for time, a queue, a lock that another holds, a pipe, a child, select."""

import os
import queue
import select
import subprocess
import sys
import threading
import time

END = time.monotonic() + float(sys.argv[1])
LOCK = threading.Lock()
QUEUE = queue.Queue()


def until_end(step):
    def run():
        while time.monotonic() < END:
            step()

    return run


def sleeps():
    time.sleep(0.037)


def puts():
    QUEUE.put(1)
    time.sleep(0.02)


def gets():
    try:
        QUEUE.get(timeout=0.1)
    except queue.Empty:
        pass


def holds():
    with LOCK:
        time.sleep(0.03)
    time.sleep(0.001)


def reads():
    ours, theirs = os.pipe()
    threading.Timer(0.05, os.write, (theirs, b"x")).start()
    os.read(ours, 1)
    os.close(ours)
    os.close(theirs)


def selects():
    select.select([], [], [], 0.06)


def calls():
    subprocess.run(["/bin/sleep", "0.1"], check=True)


def main():
    steps = [sleeps, puts, gets, holds, holds, reads, selects, calls]
    threads = [threading.Thread(target=until_end(step), name=step.__name__) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
