"""Follows a running program by repeated requests: gets each of its exports once, and loses no time between them.

A process responds to `/otlp?seconds=N` with the exports of that time. The next request is made before the response to the last
has come: an export that is in both responses is taken once. Requests have threads of their own.
"""

import hashlib
import http.client
import threading
import time
import urllib.parse

from . import listening
from .capture_file import BROKEN, LEAST_BYTES, LENGTH, BadFile, check_count, decoded

OVERLAP_SECONDS = 1
GRACE_SECONDS = 5  # for a process that ends
POLL_SECONDS = 0.2
MOST_ASKING = 8  # requests at once: a process that responds slowly gets no more
MOST_KNOWN = 256  # exports that may come again


class Address:
    """Is a process at an address: `http://127.0.0.1:6060` or `unix:/run/app/1.sock`."""

    def __init__(self, text):
        self.text = text
        self._is_unix = text.startswith("unix:")
        self._at = urllib.parse.urlsplit(text)
        if not self._is_unix and (self._at.scheme != "http" or not self._at.hostname):
            raise listening.NoResponse(f"{text} is no address: a process id, http://HOST:PORT or unix:PATH is")

    def ask(self, path, timeout):
        connection = (listening.UnixConnection(self.text[len("unix:"):], timeout) if self._is_unix
                      else http.client.HTTPConnection(self._at.hostname, self._at.port or 80, timeout=timeout))
        return listening.response_of(connection, self.text, path, most=listening.MOST_BYTES)

    def is_there(self):
        try:
            self.ask("/status", listening.TIMEOUT_SECONDS)
        except listening.NoResponse:
            return False
        return True


class ById:
    """Is a process of this machine."""

    def __init__(self, pid):
        self.text = f"process {pid}"
        self._process = listening.process(pid)

    def ask(self, path, timeout):
        return listening.ask(self._process, path, timeout=timeout, most=listening.MOST_BYTES)

    def is_there(self):
        try:
            listening.process(self._process.pid)
        except listening.NoResponse:
            return False
        return True


def messages_in(answer):
    """Returns the exports of a response, as bytes."""
    at = count = 0
    while at + LENGTH.size <= len(answer):
        count += 1
        check_count(count, at + LEAST_BYTES)
        (size,) = LENGTH.unpack_from(answer, at)
        at += LENGTH.size
        yield answer[at : at + size]
        at += size


class Poller:
    """Calls `on_message(message)` for each export, one at a time, and `on_end(why)` once. It also ends when `over` is
    set: then it makes no more requests, and no more calls."""

    def __init__(self, asked, seconds, on_message, on_end, over=None):
        self._asked, self._seconds = asked, seconds
        self._on_message, self._on_end = on_message, on_end
        self._known = {}  # digests, the oldest first
        self._lock = threading.Lock()
        self._over = over or threading.Event()

    def start(self):
        self._asked.ask("/status", listening.TIMEOUT_SECONDS)  # raises NoResponse, with the remedy
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def stop(self):
        self._over.set()

    def _run(self):
        asking = []
        while not self._over.is_set():
            asking = [thread for thread in asking if thread.is_alive()]
            if len(asking) < MOST_ASKING:
                asking.append(threading.Thread(target=self._ask, daemon=True))
                asking[-1].start()
            self._over.wait(self._seconds)

    def _ask(self):
        seconds = self._seconds + OVERLAP_SECONDS
        try:
            answer = self._asked.ask(f"/otlp?seconds={seconds}", seconds + listening.TIMEOUT_SECONDS)
        except listening.NoResponse as error:
            return self._end(error)
        with self._lock:
            if self._over.is_set():
                return
            try:
                for data in messages_in(answer):
                    if self._over.is_set():
                        return
                    self._take(data)
            except (BadFile, ValueError) as error:
                self._over.set()
                self._on_end(f"followed no more, since {error}")

    def _take(self, data):
        digest = hashlib.sha256(data).digest()
        if digest in self._known:
            return
        self._known[digest] = None
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        try:
            self._on_message(decoded(data))
        except BROKEN:
            pass  # cut short by the process's end, or no export

    def _end(self, error):
        """Finds the reason: the process may be ending, which takes a moment; or it was once too busy to respond."""
        deadline = time.monotonic() + GRACE_SECONDS
        is_there = self._asked.is_there()
        while is_there and time.monotonic() < deadline and not self._over.wait(POLL_SECONDS):
            is_there = self._asked.is_there()
        if is_there and self._answers():
            return
        with self._lock:
            if self._over.is_set():
                return
            self._over.set()
        self._on_end(str(error) if is_there else f"{self._asked.text} has ended")

    def _answers(self):
        try:
            self._asked.ask("/status", listening.TIMEOUT_SECONDS)
        except listening.NoResponse:
            return False
        return True
