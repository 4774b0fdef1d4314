"""Holds what the servers of http_server.py and grpc_server.py share: an accept loop that runs scripts.

A script is a function of an exchange, which is one connection. The server runs the scripts in turn, one for each
connection, the last one for ever.
"""

import socket
import ssl
import struct
import threading


QUEUE = 1024  # who may have connected before the accept loop runs


class Gone(Exception):
    """The connection is at its end."""


class ScriptedExchange:
    """Is one connection. The subclass's receive() reads what comes, or raises Gone."""

    def __init__(self, connection):
        self.socket = connection

    def wait_until_the_client_speaks(self):
        """Waits for the client's first bytes: before that the client may not know that it is connected, and would
        take a reset for a failed connection."""
        if not self.socket.recv(1, socket.MSG_PEEK):
            raise Gone

    def shut(self):
        """Closes the sending side: what was sent so far is all there is."""
        self.socket.shutdown(socket.SHUT_WR)

    def break_off(self):
        """Resets the connection; the client may not see what was sent last."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone

    def wait_until_the_client_goes(self):
        while True:
            self.receive()


class ScriptedServer:
    """Accepts connections; the subclass's exchange(connection, script) runs the script, and closes the connection.

    With `listening` false, connections are refused until listen() is called."""

    def __init__(self, scripts, listening=True):
        self.scripts = scripts
        self.calls = []  # calls in the order in which they came
        self.connections = 0
        self.failures = []
        self.thread = None
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        if listening:
            self.listen()

    def listen(self):
        self.listener.listen(QUEUE)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            script = self.scripts[min(self.connections, len(self.scripts) - 1)]
            self.connections += 1
            connection.settimeout(20)
            try:
                self.exchange(connection, script)
            except (Gone, ConnectionError, ssl.SSLError):
                pass
            except Exception as error:  # kept for the test
                self.failures.append(error)

    def stop(self):
        if self.thread:
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        if self.thread:
            self.thread.join(30)
            assert not self.thread.is_alive()
        assert not self.failures, self.failures
