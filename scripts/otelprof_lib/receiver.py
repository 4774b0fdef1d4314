"""An OTLP/HTTP receiver for profiles on loopback."""

import http.server
import shutil
import subprocess
import threading
import zlib

from google.protobuf.message import DecodeError

from .places import load_messages

PATH = "/v1development/profiles"
MAX_BYTES = 64 << 20


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def _unzstd(data):
    if not shutil.which("zstd"):
        raise Refused(415, "zstd needs the zstd program on this machine")
    done = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=False)
    if done.returncode:
        raise Refused(400, "the body is not zstd")
    return done.stdout


def _inflate(data, window_bits):
    inflater = zlib.decompressobj(window_bits)
    try:
        text = inflater.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise Refused(400, f"the body cannot be decompressed: {error}") from error
    if len(text) > MAX_BYTES:
        raise Refused(413, "the body is too large")
    return text


def decompress(data, encoding):
    if encoding in (None, ""):
        return data
    if encoding == "gzip":
        return _inflate(data, 16 + zlib.MAX_WBITS)
    if encoding == "deflate":
        return _inflate(data, zlib.MAX_WBITS)
    if encoding == "zstd":
        return _unzstd(data)
    raise Refused(415, f"Content-Encoding {encoding} is not supported")


def check(path, headers, data):
    """The message's bytes, decompressed and known to decode."""
    if not path.split("?")[0].endswith(PATH):
        raise Refused(404, f"profiles are taken at {PATH}")
    if (headers.get("Content-Type") or "").split(";")[0].strip() != "application/x-protobuf":
        raise Refused(415, "Content-Type must be application/x-protobuf")
    data = decompress(data, headers.get("Content-Encoding"))
    if len(data) > MAX_BYTES:
        raise Refused(413, "the body is too large")
    try:
        load_messages()[1].ExportProfilesServiceRequest().ParseFromString(data)
    except DecodeError as error:
        raise Refused(400, f"the body is not an export of profiles: {error}") from error
    return data


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        size = self.headers.get("Content-Length", "")
        try:
            if not size.isdigit():
                raise Refused(411, "Content-Length is missing")
            if int(size) > MAX_BYTES:
                raise Refused(413, "the body is too large")
            self.server.take(check(self.path, self.headers, self.rfile.read(int(size))))
            self._answer(200, b"", "application/x-protobuf")
        except Refused as error:
            self.close_connection = True
            self._answer(error.status, str(error).encode(), "text/plain; charset=utf-8")

    def _answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Receiver(http.server.ThreadingHTTPServer):
    """Calls `on_message(bytes)` for each export, one at a time."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, host, port, on_message):
        super().__init__((host, port), _Handler)
        self._on_message = on_message
        self._lock = threading.Lock()
        self.count = 0
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def endpoint(self):
        host, port = self.server_address[:2]
        return f"http://{host}:{port}{PATH}"

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self.shutdown()
        self.server_close()

    def take(self, data):
        with self._lock:
            self.count += 1
            self._on_message(data)
