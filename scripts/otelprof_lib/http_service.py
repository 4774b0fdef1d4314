"""The HTTP server that the receiver and the page share.

While its thread is not scheduled, the kernel keeps those who connect in a queue. A queue of socketserver's 5 overflows as soon as a
few programs export at once: the kernel drops what they send, or resets it. The server asks no name service for this host's name.
"""

import http.server
import socketserver


class HttpService(http.server.ThreadingHTTPServer):
    """A subclass states `request_queue_size`: how many may connect before the server accepts one."""

    daemon_threads = True

    def server_bind(self):
        # HTTPServer's would ask the name service for the host's name
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, request, client_address):
        """A client that went away is no news, and a traceback none for the app's terminal."""
