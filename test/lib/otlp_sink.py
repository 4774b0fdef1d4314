"""Runs an OTLP/HTTP receiver on loopback that accepts every export, for tests, soaks and benches."""

import http.server
import threading


class SinkServer(http.server.ThreadingHTTPServer):
    """Accepts as many clients as a test has, also where this process is not scheduled for long."""

    request_queue_size = 1024
    daemon_threads = True


class OtlpSink:
    """`take(body, headers)` is called for each export, from several threads, before it is answered: what a sender has been told
    that it sent was taken, also if the sender has ended since. Unless it `begins`, clients connect and wait until begin()."""

    def __init__(self, take=lambda body, headers: None, port=0, begins=True):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                size = int(self.headers["Content-Length"])
                body = self.rfile.read(size)
                if len(body) < size:
                    return  # the sender gave up; the export comes again
                take(body, self.headers)
                kind = self.headers["Content-Type"]
                answer = b"{}" if kind == "application/json" else b""
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def handle(self):
                try:
                    super().handle()
                except OSError:  # the sender was killed
                    pass

            def log_message(self, *_):
                pass

        self.server = SinkServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        if begins:
            self.begin()

    def begin(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
