"""Runs an OTLP/HTTP receiver on loopback that accepts every export, for tests, soaks and benches."""

import http.server
import threading


class OtlpSink:
    """Calls `take(body, headers)` for each export, from several threads, before the response: an export that its sender
    knows as sent has been taken, even if the sender has ended since."""

    def __init__(self, take=lambda body, headers: None, port=0):
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

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
