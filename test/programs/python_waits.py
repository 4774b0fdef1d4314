"""Waits in functions that are named after the cause, each on a line of its own, while a lock is held and memory kept:
until it is ended."""

import os
import threading
import time

SECONDS = 1000
lock = threading.Lock()
reader, writer = os.pipe()


def sleeps():
    time.sleep(SECONDS)  # sleeps waits here


def takes_lock():
    with lock:  # takes_lock waits here
        pass


def reads_pipe():
    os.read(reader, 1)  # reads_pipe waits here


def keeps(kept):
    for _ in range(16):
        kept.append(bytearray(1_000_000))  # keeps allocates here


def holds_lock(threads):
    with lock:
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)  # holds_lock waits here
    os.write(writer, b"x")


def main():
    kept = []
    keeps(kept)
    threads = [threading.Thread(target=function) for function in (sleeps, takes_lock, reads_pipe)]
    holds_lock(threads)
    for thread in threads:
        thread.join()


main()
