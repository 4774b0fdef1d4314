"""Runs pprof's own tools, and reads the pages that they show of a profile (`pprof -http`), on loopback."""

import contextlib
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from waiting import TIMEOUT_S, eventually

GO = shutil.which("go") or "/usr/local/go/bin/go"
SERVING = re.compile(rb"Serving web UI on (http://\S+)")
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever proxy the environment names


def need(path, what):
    """Skips a test without the tool; in CI the tool must be there."""
    if os.path.exists(path):
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing")


def tool(name, build):
    """Returns Go's tool, or that of its module, which reads binaries by their build id."""
    command = {"go": [GO, "tool", "pprof"], "module": [str(build / "pprof" / "pprof")]}[name]
    need(command[0], "test/pprof, which needs Go 1.26,")
    return command


class Pages:
    def __init__(self, address):
        self.address = address

    def page(self, name, function=None):
        """Returns (status, text)."""
        query = "?" + urllib.parse.urlencode({"f": function}) if function else ""
        try:
            with DIRECTLY.open(f"{self.address}/ui/{name}{query}", timeout=TIMEOUT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def _until_it_serves(process, said):
    text = eventually(said.read_bytes, "its address", unless=process.poll, holds=SERVING.search)
    return Pages(SERVING.search(text)[1].decode())


@contextlib.contextmanager
def pages(command, source, folder, binaries):
    """Yields what a tool shows of the profile at `source`, a path or an address; the tool keeps what it fetches in
    `folder`."""
    said = folder / "pprof.said"
    environment = {
        **os.environ,
        "PPROF_TMPDIR": str(folder),
        "PPROF_BINARY_PATH": str(binaries),
        "XDG_CONFIG_HOME": str(folder),
        "NO_PROXY": "*",
    }
    command = [*command, "-http=127.0.0.1:", "-no_browser", str(source)]
    with open(said, "wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, start_new_session=True
        )
    try:
        yield _until_it_serves(process, said)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        process.wait(TIMEOUT_S)
