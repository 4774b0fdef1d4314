"""An HTTP/1.1 server that answers as a test tells it to: right, wrong, slowly, cut short or not at all.

A script is one function of an exchange, which is one connection; the server runs the scripts in turn,
one for each connection, the last for ever. It writes bytes: whatever is wrong with them is meant.
"""

import socket
import ssl
import struct
import threading
import time


class Gone(Exception):
    """The connection is at its end."""


class Call:
    """What was asked, and whether it was answered with success, so that it must not come again."""

    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.line = lines[0]
        self.fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
        self.body = b""
        self.taken = False
        self.at = time.monotonic()


class Exchange:
    def __init__(self, connection, calls):
        self.socket = connection
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
        self.call.body = self.rest  # what came of it
        self.calls.append(self.call)

    def read(self):
        """The whole request."""
        self.read_head()
        while len(self.call.body) < int(self.call.fields["content-length"]):
            self.call.body += self.receive()

    def say(self, data):
        self.socket.sendall(data)

    def head(self, status, *fields, length=0):
        self.call.taken = 200 <= status < 300
        lines = [f"HTTP/1.1 {status} X", *fields, *([] if length is None else [f"Content-Length: {length}"])]
        self.say("\r\n".join(lines).encode() + b"\r\n\r\n")

    def shut(self):
        """What was said so far is all there is."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        """Time enough for what was said to be read: a reset may overtake it."""
        time.sleep(0.05)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone

    def wait_until_the_client_goes(self):
        while True:
            self.receive()


def status(code, *fields, body=b""):
    """The ordinary answer."""

    def script(exchange):
        exchange.read()
        exchange.head(code, *fields, length=len(body))
        exchange.say(body)

    return script


OK = status(200, "Content-Type: application/x-protobuf")


class HttpServer:
    """Not `listening`: connections are refused until listen() is called. `tls`: (certificate, key)."""

    def __init__(self, *scripts, listening=True, tls=None):
        self.scripts = scripts
        self.calls = []  # in the order in which they came
        self.connections = 0
        self.failures = []
        self.thread = None
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        if listening:
            self.listen()

    def listen(self):
        self.listener.listen(16)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def taken(self):
        """The bodies that were answered with success, in their order."""
        return [call.body for call in self.calls if call.taken]

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            script = self.scripts[min(self.connections, len(self.scripts) - 1)]
            self.connections += 1
            try:
                self._exchange(connection, script)
            except (Gone, ConnectionError, ssl.SSLError):
                pass
            except Exception as error:  # for the test to find
                self.failures.append(error)

    def _exchange(self, connection, script):
        connection.settimeout(20)
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            exchange = Exchange(connection, self.calls)
            script(exchange)
            exchange.wait_until_the_client_goes()
        finally:
            connection.close()

    def stop(self):
        if self.thread:
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        if self.thread:
            self.thread.join(30)
            assert not self.thread.is_alive()
        assert not self.failures, self.failures
