"""Runs a command that serves a page: gives its address, ends it, and sends it bare requests."""

import http.client
import json
import os
import signal
import struct
import subprocess
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

from captured import OTELPROF
from waiting import TIMEOUT_S, eventually


def described(data):
    """Returns the JSON of a page's data, which comes before the columns."""
    (size,) = struct.unpack_from("<I", data)
    return json.loads(data[struct.calcsize("<I"):][:size])


class Served:
    def __init__(self, process):
        self.process = process
        self.said = []
        threading.Thread(target=self._read, daemon=True).start()
        self.until_it_says("http://127.0.0.1:")

    def _read(self):
        for line in self.process.stderr:
            self.said.append(line)

    def until_it_says(self, words):
        """Waits for a line on the command's stderr."""
        eventually(lambda: list(self.said), words, unless=self.process.poll, holds=lambda lines: any(words in line for line in lines))

    @property
    def url(self):
        return next((word for line in self.said for word in line.split() if word.startswith("http://127.0.0.1:")), "")

    def end(self, number=signal.SIGINT):
        """Ends the command as Ctrl-C does; returns the status."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)

    def ask(self, path="", method="GET", whole_path=None, **headers):
        """Returns (status, body, headers) of a bare request below the token, or of one with another path."""
        at = urlsplit(self.url)
        connection = http.client.HTTPConnection(at.hostname, at.port, timeout=TIMEOUT_S)
        connection.putrequest(method, at.path + path if whole_path is None else whole_path, skip_host=True)
        for name, value in {"Host": at.netloc, **{name.replace("_", "-"): value for name, value in headers.items()}}.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        try:
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()


@contextmanager
def serving(*arguments, cwd, **environment):
    process = subprocess.Popen([OTELPROF, *arguments], cwd=cwd, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **environment})
    try:
        yield Served(process)
    finally:
        process.kill()
        process.wait()
