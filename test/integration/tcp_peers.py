"""Listens in place of a receiver, or in front of it: a proxy, and a server of another protocol."""

import socket
import threading


class Proxy:
    """Connects every client that requests a tunnel to `server`, whatever address the client names."""

    def __init__(self, server):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.server = server
        self.requests = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        client, _ = self.listener.accept()
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += client.recv(65536)
        self.requests.append(request)
        server = socket.create_connection(("127.0.0.1", self.server.port))
        client.sendall(b"HTTP/1.1 200 Connected\r\ngrpc-status: 3\r\n\r\n")
        threading.Thread(target=self.pass_on, args=(client, server), daemon=True).start()
        self.pass_on(server, client)

    @staticmethod
    def pass_on(source, to):
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)


class OneGreeting:
    """Sends one greeting to every client."""

    def __init__(self, greeting):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.greeting = greeting
        self.connections = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                connection.recv(65536)
                connection.sendall(self.greeting)

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
