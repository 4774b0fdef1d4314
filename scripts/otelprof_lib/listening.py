"""Finds the profiled processes of this machine, and where each listens (OTEL_PROFILER_LISTEN), by /proc.

The profiler's helper thread has descriptors of its own, and /proc shows them at that thread alone. Its listening sockets are
where the process listens, whatever the setting said: `%p`, a folder, port 0. For a Unix socket it holds the file open.

Any process can give a thread that name and send anything: all that is read of a process has a bound of bytes, and what it
sends has a time limit, too.
"""

import contextlib

import http.client
import os
import pwd
import re
import socket
import stat
import struct
import threading
from typing import NamedTuple

from .foreign import printable

HELPERS = ("otelprof", "otelprof unsent")  # the thread's names (common/helper_name.h)
LIBRARY = re.compile(r"/libotelprof\.so(?:\.\d+)*$", re.M)
TIMEOUT_SECONDS = 60  # of a response, beyond the time that the request asks for
MOST_BYTES = 1 << 28  # of a response with profiles
MOST_SAID = 1 << 20  # of any other response
MOST_OF_AN_ERROR = 1000  # letters
MOST_READ = 1 << 16  # of a file in /proc
MOST_MAPPED = 1 << 26  # of the list of mappings
LISTENING = "0A"  # of TCP, in /proc/net/tcp


class NoResponse(OSError):
    """No process can respond; the message gives the reason."""


class Refused(NoResponse):
    """Is raised for a response that is no 200."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


class Port(NamedTuple):
    """Is a port at which a process listens, at one address of this machine: another process may have the same port at
    another address."""

    host: str
    number: int
    inode: str  # of the listening socket, which no two sockets share

    def __str__(self):
        return f"[{self.host}]:{self.number}" if ":" in self.host else f"{self.host}:{self.number}"


class Process(NamedTuple):
    pid: int
    user: str
    command: str
    helper: str  # the helper thread's folder in /proc; "": the library is loaded, and there is no such thread

    def address(self):
        """Returns the path of a socket, or a Port; None: the process does not listen, or this user may not see where."""
        return next(iter(_unix_sockets(self.helper)), None) or _port(self.pid, self.helper)


# --- the processes ---


def _read(path, most=MOST_READ):
    try:
        with open(path, "rb") as file:
            return file.read(most).decode(errors="replace")
    except OSError:  # the process ended, or is another user's
        return ""


def _helper(pid):
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return ""
    for thread in threads:
        if _read(f"/proc/{pid}/task/{thread}/comm").rstrip("\n") in HELPERS:
            return f"/proc/{pid}/task/{thread}"
    return ""


def _user(pid):
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return "?"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _command(pid):
    words = _read(f"/proc/{pid}/cmdline").rstrip("\0").split("\0")
    return " ".join(words) or _read(f"/proc/{pid}/comm").strip()


def process(pid):
    """Returns the process of that id: it is profiled, or has loaded the library, which is no sign of that by itself. A process
    that is excluded or disabled has the library and no helper thread, and so has a forked child that has not computed yet."""
    if not os.path.exists(f"/proc/{pid}"):
        raise NoResponse(f"there is no process {pid}")
    helper = _helper(pid)
    if not helper and not LIBRARY.search(_read(f"/proc/{pid}/maps", MOST_MAPPED)):
        raise NoResponse(f"process {pid} is not profiled, or is another user's")
    return Process(pid, _user(pid), _command(pid), helper)


def processes():
    """Returns the processes that have the library and that this user may see."""
    found = []
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        with contextlib.suppress(OSError):  # the process is not profiled, or has ended
            found.append(process(pid))
    return found


# --- where they listen ---


def _sockets(helper):
    """Returns the helper's descriptors that are sockets, and where each link leads: to an inode, or to a file."""
    found = {}
    try:
        names = os.listdir(f"{helper}/fd") if helper else []
    except OSError:  # the process ended, or is another user's
        return {}
    for path in (f"{helper}/fd/{name}" for name in names):
        try:
            if stat.S_ISSOCK(os.stat(path).st_mode):
                found[path] = os.readlink(path)
        except OSError:  # closed meanwhile
            pass
    return found


def _unix_sockets(helper):
    """Returns the files of its sockets, each by the helper's descriptor of the file, which works from any root and namespace
    of mounts."""
    return {path: link for path, link in _sockets(helper).items() if link.startswith("/")}


def _host(digits):
    """Returns an address of /proc/net/tcp or tcp6 as text: it is in words of 32 bits, each in the machine's byte order."""
    words = (int(digits[at : at + 8], 16) for at in range(0, len(digits), 8))
    packed = b"".join(struct.pack("=I", word) for word in words)
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


def _port(pid, helper):
    links = _sockets(helper).values()
    sockets = {match[1] for link in links if (match := re.fullmatch(r"socket:\[(\d+)\]", link))}
    for table in ("tcp", "tcp6"):
        for line in _read(f"/proc/{pid}/net/{table}", MOST_MAPPED).splitlines()[1:] if sockets else ():
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in sockets:
                host, _, port = fields[1].rpartition(":")
                return Port(_host(host), int(port, 16), fields[9])
    return None


def shown(process_found):
    """Returns where a process listens, as text. The process may end at any time: each of its links is read once."""
    if not process_found.helper:
        return "loaded"
    for file in _unix_sockets(process_found.helper).values():
        return f"unix:{file}"
    port = _port(process_found.pid, process_found.helper)
    return str(port) if port else "-"


# --- requests ---


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout, pid=0):
        super().__init__("localhost", timeout=timeout)
        self._path = path
        self._pid = pid  # the process that must respond; 0: any process

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
        pid, _, _ = struct.unpack("iii", self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iii")))
        if self._pid and pid and pid != self._pid:  # 0: a process of another namespace
            raise NoResponse(f"process {pid} answers at its socket")


class PortConnection(http.client.HTTPConnection):
    """Sends nothing, and so no token, to another process than the one that is asked."""

    def __init__(self, asked, port, timeout):
        super().__init__(port.host, port.number, timeout=timeout)
        self._asked, self._port = asked, port

    def connect(self):
        """The listening socket that is there before and after has taken the connection: the process binds one address, and
        no other socket is preferred to it."""
        super().connect()
        if _port(self._asked.pid, self._asked.helper) != self._port:
            self.close()
            raise NoResponse(f"process {self._asked.pid} does not listen at {self._port} any more")


def _is_elsewhere(pid):
    """Returns whether the process is in another network namespace: its ports are not ours."""
    try:
        theirs = os.readlink(f"/proc/{pid}/ns/net")
    except OSError as error:
        raise NoResponse(f"process {pid} has ended, or is another user's") from error
    return theirs != os.readlink("/proc/self/ns/net")


def _connection(asked, timeout):
    if not asked.helper:
        raise NoResponse(f"process {asked.pid} has loaded the library, and is not profiled: it is excluded or disabled, or has no "
                         "helper thread yet (a forked child has none until it has computed for 10 ms)")
    address = asked.address()
    if address is None:
        raise NoResponse(f"process {asked.pid} is profiled and does not answer: start it with OTEL_PROFILER_LISTEN, such as "
                         "unix:/run/user/UID/, and run this command as its user or as root")
    if isinstance(address, str):
        return UnixConnection(address, timeout, asked.pid)
    if _is_elsewhere(asked.pid):
        raise NoResponse(f"process {asked.pid} answers at a port of another network namespace: enter it with `nsenter --net`, "
                         "or have it answer at a Unix socket")
    return PortConnection(asked, address, timeout)


@contextlib.contextmanager
def _deadline(connection, is_over):
    """Ends a connection whose time is over: the connection's own timeout would begin again with each byte."""
    connection.connect()
    connected = connection.sock

    def end():
        is_over.set()
        with contextlib.suppress(OSError):  # the connection has ended meanwhile
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(connection.timeout, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        connection.close()


def _exchange(connection, who, method, path, body, headers, most):
    """Returns (status, body of the response)."""
    is_over = threading.Event()
    try:
        with _deadline(connection, is_over):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = response.read(most + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if not is_over.is_set():
            raise NoResponse(f"{who} has not answered: {error}") from error
    if is_over.is_set():
        raise NoResponse(f"{who} has not answered within {connection.timeout:g} s")
    if len(answer) > most:
        raise NoResponse(f"{who} has answered with more than {most >> 20} MiB")
    return response.status, answer


def response_of(connection, who, path, method="GET", body=None, most=MOST_SAID):
    """Returns the body of the response; the connection is closed. The token is sent only where one is required: for a
    Unix socket the kernel reports the user."""
    status, answer = _exchange(connection, who, method, path, body, {}, most)
    token = os.environ.get("OTEL_PROFILER_LISTEN_TOKEN")
    if status == http.client.UNAUTHORIZED and token and not isinstance(connection, UnixConnection):
        status, answer = _exchange(connection, who, method, path, body, {"Authorization": f"Bearer {token}"}, most)
    if status != http.client.OK:
        raise Refused(f"{who}: {printable(answer[:MOST_OF_AN_ERROR].decode(errors='replace').strip())}", status)
    return answer


def ask(asked, path, method="GET", body=None, timeout=30, most=MOST_SAID):
    """Returns the body of a process's response."""
    return response_of(_connection(asked, timeout), f"process {asked.pid}", path, method, body, most)
