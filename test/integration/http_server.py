"""Runs an HTTP/1.1 server that responds as a test scripts it: right, wrong, slowly, cut short or not at all.

A script (scripted_server.py) writes bytes: whatever is wrong with them is intended.
"""

import ssl
import time
from pathlib import Path

from scripted_server import Gone, ScriptedExchange, ScriptedServer
from waiting import eventually


class Call:
    """Holds a request, and whether it got a response of success, so that it must not come again."""

    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.line = lines[0]
        self.fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
        self.body = b""
        self.taken = False
        self.at = time.monotonic()


def is_under_way(connection):
    """Returns whether the other end, on this machine, has yet to read sent bytes. The kernel lists both ends."""
    ours, theirs = (f":{name[1]:04X}" for name in (connection.getsockname(), connection.getpeername()))
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues = line.split()[:5]
        unsent, unread = (int(size, 16) for size in queues.split(":"))
        if local.endswith(ours) and remote.endswith(theirs) and unsent or local.endswith(theirs) and remote.endswith(ours) and unread:
            return True
    return False


class Exchange(ScriptedExchange):
    def __init__(self, connection, calls):
        super().__init__(connection)
        self.calls = calls
        self.call = None
        self.rest = b""

    def receive(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise Gone
        return data

    def read_head(self):
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.receive()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        self.call = Call(head)
        self.call.body = self.rest  # the part that came
        self.calls.append(self.call)

    def read(self):
        """Reads the whole request."""
        self.read_head()
        while len(self.call.body) < int(self.call.fields["content-length"]):
            self.call.body += self.receive()

    def say(self, data):
        self.socket.sendall(data)

    def head(self, status, *fields, length=0):
        self.call.taken = 200 <= status < 300
        lines = [f"HTTP/1.1 {status} X", *fields, *([] if length is None else [f"Content-Length: {length}"])]
        self.say("\r\n".join(lines).encode() + b"\r\n\r\n")

    def reset(self):
        """Resets the connection once the client has read all bytes, which a reset may overtake."""
        eventually(lambda: not is_under_way(self.socket), "a client that reads")
        self.break_off()


def status(code, *fields, body=b""):
    """Sends the ordinary response."""

    def script(exchange):
        exchange.read()
        exchange.head(code, *fields, length=len(body))
        exchange.say(body)

    return script


OK = status(200, "Content-Type: application/x-protobuf")


class HttpServer(ScriptedServer):
    """`tls`: (certificate, key)."""

    def __init__(self, *scripts, listening=True, tls=None):
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        super().__init__(scripts, listening)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def taken(self):
        """Returns the bodies that got a response of success, in their order."""
        return [call.body for call in self.calls if call.taken]

    def exchange(self, connection, script):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            exchange = Exchange(connection, self.calls)
            script(exchange)
            exchange.wait_until_the_client_goes()
        finally:
            connection.close()
