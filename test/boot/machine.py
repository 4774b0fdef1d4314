"""Boots a root under systemd-nspawn, and reads its journal and its processes' exports: shared by test/boot and
test/hosts."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "integration"))

import root as image  # noqa: E402
from profiled import Receiver, attributes_of, check_conformance  # noqa: E402

TOOLS = ("debootstrap", "systemd-nspawn", "journalctl", "gcc")
LIMIT_S = 400  # a boot takes ten seconds on an idle machine
MEMORY_V1 = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
OURS = re.compile(r"^libotelprof\[")
# Lines of the manager before this one may be missing in the journal: journald may not have started.
COMPLETE_FROM = "Reached target sysinit.target"
# parts that differ in every boot
TIMES = re.compile(r"\b(\d+(\.\d+)?)(us|ms|s|min|M|K|B|G)?\b")
BY_NATURE = re.compile(r"Consumed|Startup finished|System Journal|Runtime Journal|Time spent on flushing|random seed|Failed to kill control group")


@dataclasses.dataclass
class Boot:
    status: int
    failed: str  # the units, as systemctl lists them
    lines: set  # (unit or identifier, text), without ours
    ours: list  # (unit or identifier, text) of our lines
    requests: list  # the exports
    left: str  # contents of the file that the setuid program's caller named


class Relay(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Forwards a Unix socket to a port of loopback: the boot has a network of its own."""

    daemon_threads = True

    def __init__(self, path, port):
        self.port = port
        super().__init__(str(path), None)
        os.chmod(path, 0o666)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, _):
        with socket.create_connection(("127.0.0.1", self.port)) as other, contextlib.suppress(OSError):
            back = threading.Thread(target=pump, args=(other, request), daemon=True)
            back.start()
            pump(request, other)
            back.join()

    def handle_error(self, *_):
        pass  # the sender was killed


def pump(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def command_of(root, scratch, options):
    # a machine without systemd has no process that could register the boot, or give it a scope
    alone = [] if Path("/run/systemd/system").exists() else ["--keep-unit"]
    memory = [f"--bind={MEMORY_V1.parent}:/run/memory-controller"] if MEMORY_V1.exists() else []
    return ["systemd-nspawn", "--quiet", "--boot", "--register=no", *alone, "--private-network", "--console=pipe",
            "--machine=otelprof-boot", f"--directory={root}", *memory, f"--bind={scratch}/journal:/var/log/journal",
            f"--bind={scratch}/socket:{image.SOCKET}", *options]


def boot(root, scratch, *options, **environment):
    """Boots to the end, with further options of systemd-nspawn and variables for it. Its journal and its console are left in
    `scratch`."""
    (scratch / "journal").mkdir()
    receiver = Receiver()
    relay = Relay(scratch / "socket", receiver.server.server_port)
    try:
        with open(scratch / "console", "wb") as console:
            done = subprocess.run(command_of(root, scratch, options), stdin=subprocess.DEVNULL, stdout=console,
                                  stderr=console, timeout=LIMIT_S, check=False, env={**os.environ, **environment})
        status = done.returncode
    except subprocess.TimeoutExpired:
        status = f"no end within {LIMIT_S} s"
    finally:
        relay.shutdown()
        relay.server_close()
        receiver.close()
        with contextlib.suppress(OSError):
            (MEMORY_V1.parent / "boot-test").rmdir()
    failed, left = scratch / "journal" / "failed-units", scratch / "journal" / "setuid-wrapper"
    lines, ours = journal(scratch / "journal")
    return Boot(status, failed.read_text() if failed.exists() else "never came to its end", lines, ours,
                receiver.requests, left.read_text() if left.exists() else "")


def journal(folder):
    """Returns the set of (unit or identifier, text) of a journal, and the list of our lines."""
    files = sorted(folder.glob("**/*.journal"))
    if not files:
        return set(), []
    said = subprocess.run(["journalctl", "--no-pager", "-q", "-o", "json", *(f"--file={file}" for file in files)],
                          capture_output=True, text=True, check=True)
    lines, ours, complete = set(), [], False
    for entry in map(json.loads, said.stdout.splitlines()):
        text = entry.get("MESSAGE") or ""
        text = text if isinstance(text, str) else bytes(text).decode(errors="replace")
        who = entry.get("_SYSTEMD_UNIT") or entry.get("SYSLOG_IDENTIFIER") or ""
        complete = complete or text.startswith(COMPLETE_FROM)
        if OURS.match(text):
            ours.append((who, text))
        elif not BY_NATURE.search(text) and (complete or entry.get("_PID") != "1"):
            # (a program that has ended is known by its own name, its unit's or neither)
            lines.add(((entry.get("UNIT") or who).removesuffix(".service"), TIMES.sub("N", text)))
    return lines, ours


def missing(*tools):
    """Returns what is needed and missing: these tools, those of every boot, root's rights."""
    return [tool for tool in (*TOOLS, *tools) if not shutil.which(tool)] + (["root's rights"] if os.geteuid() else [])


def services(requests):
    """Returns the names of the units' program that sent a CPU profile: how many processes of each."""
    senders = {}
    for request in requests:
        check_conformance(request)
        for part in request.resource_profiles:
            attributes = attributes_of(part.resource)
            senders.setdefault(attributes["process.executable.name"], set()).add(attributes["service.instance.id"])
    return {name: len(instances) for name, instances in sorted(senders.items())}


def problems(plain, again, other):
    """`plain` and `again` are without the preload: lines that both have are those of any boot."""
    for name, one in (("without", plain), ("without, again", again), ("with", other)):
        if one.status != 0 or one.failed:
            yield f"{name} the preload: status {one.status}, failed units: {one.failed or 'none'}"
    at_work = {who for who, text in plain.lines if text.startswith("worked: well")}
    if idle := {name.removesuffix(".service") for name in image.units()} - at_work - {"boot-end"}:
        yield f"without the preload these did not work: {idle}"
    for lines, label in ((plain.lines & again.lines - other.lines, "only without"),
                         (other.lines - plain.lines - again.lines, "only with")):
        yield from (f"{label}: {who}: {text}" for who, text in sorted(lines))
    if other.left:
        yield f"a file that a setuid program's caller named was written: {other.left[:300]}"


def tell_ours(after):
    print(f"processes that sent a profile: {services(after.requests)}; lines of ours:")
    for who, text in sorted({(who, re.sub(r"\[\d+\]", "", text)) for who, text in after.ours}):
        print(f"    {who}: {text}")
