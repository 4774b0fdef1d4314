"""Is an OTLP/HTTP receiver for profiles. It has no page, so no page may send it anything (request_origin.py).

Every user of this machine can connect to a port. Where only one program may send, its endpoint has a secret: only the same user
can read the environment that has the endpoint. The secret is the query, which libotelprof never logs. Requests of others cost a
bounded number of connections and bytes, and are unpacked one at a time.
"""

import contextlib
import hmac
import http.server
import secrets
import shutil
import socket
import subprocess
import threading
import time
import zlib

from .capture_file import BROKEN, decode_json, decoded
from .foreign import say
from .http_service import HttpService
from .request_origin import host_of, is_bound_to_no_name, is_loopback_address, is_of_own_site

PATH = "/v1development/profiles"
MAX_BYTES = 64 << 20
CHUNK = 1 << 16
PROTOBUF = "application/x-protobuf"
JSON = "application/json"
TOO_LARGE = f"more than {MAX_BYTES >> 20} MiB"
MOST_CONNECTIONS = 64
MOST_BYTES_HELD = 2 * MAX_BYTES  # bytes of bodies, as they came
BODY_SECONDS = 60  # until a body is there, and the time that it waits for room


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


# --- the parts of a request ---


def _unzstd(data):
    program = shutil.which("zstd")
    if not program:
        raise Refused(415, "zstd needs the zstd program on this machine")
    with subprocess.Popen(
        [program, "-dcq"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as unpacking:
        feeder = threading.Thread(target=_feed, args=(unpacking.stdin, data))
        feeder.start()
        text = unpacking.stdout.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            unpacking.kill()
        status = unpacking.wait()
        feeder.join()
    if len(text) > MAX_BYTES:
        raise Refused(413, TOO_LARGE)
    if status:
        raise Refused(400, "the body is not zstd")
    return text


def _feed(pipe, data):
    try:
        with pipe:
            pipe.write(data)
    except BrokenPipeError:  # the decompressor gave up: its status shows that
        pass


def _inflate(data, window_bits):
    inflater = zlib.decompressobj(window_bits)
    try:
        text = inflater.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise Refused(400, f"the body cannot be decompressed: {error}") from error
    if len(text) > MAX_BYTES:
        raise Refused(413, TOO_LARGE)
    if not inflater.eof:
        raise Refused(400, "the compressed body is cut short")
    return text


def decompress(data, encoding):
    encoding = (encoding or "identity").strip().lower()
    if encoding == "identity":
        return data
    if encoding == "gzip":
        return _inflate(data, 16 + zlib.MAX_WBITS)
    if encoding == "deflate":
        return _inflate(data, zlib.MAX_WBITS)
    if encoding == "zstd":
        return _unzstd(data)
    raise Refused(415, f"Content-Encoding {encoding} is not supported")


def content_type(headers):
    return (headers.get("Content-Type") or "").split(";")[0].strip().lower()


def check_origin(headers, is_loopback):
    """Refuses web pages. Other machines may know us by any name, unless only this machine reaches us."""
    if "Origin" in headers or not is_of_own_site(headers):
        raise Refused(403, "a web page sends no profiles")
    if is_loopback and not is_bound_to_no_name(host_of(headers)):
        raise Refused(403, "the Host header must be localhost or an address")


def check_path(path, secret):
    """Accepts any path with the right end: a proxy may put its own before it."""
    path, _, query = path.partition("?")
    if not path.endswith(PATH) or (secret and not is_equal(query, secret)):
        raise Refused(404, f"profiles are taken at {PATH}{'?SECRET' if secret else ''}")


def is_equal(given, secret):
    """Compares in a time that reveals nothing of the secret."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def check_headers(headers):
    """Refuses requests whose headers are wrong; returns the body's size otherwise."""
    if content_type(headers) not in (PROTOBUF, JSON):
        raise Refused(415, f"Content-Type must be {PROTOBUF} or {JSON}")
    size = headers.get("Content-Length") or ""
    if not (size.isascii() and size.isdigit()):
        raise Refused(411, "Content-Length is missing")
    if int(size) > MAX_BYTES:
        raise Refused(413, TOO_LARGE)
    return int(size)


def check_body(data, headers):
    """The message as protobuf, decompressed and known to be one that every reader takes: the file would be lost for its sake."""
    data = decompress(data, headers.get("Content-Encoding"))
    if len(data) > MAX_BYTES:
        raise Refused(413, TOO_LARGE)
    try:
        if content_type(headers) == JSON:
            return decoded(data, decode_json).SerializeToString()
        decoded(data)
    except BROKEN as error:
        raise Refused(400, f"the body is not an export of profiles: {error}") from error
    return data


# --- the server ---


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30  # for a client that stops in the middle

    def do_POST(self):
        try:
            check_path(self.path, self.server.secret)
        except Refused as error:  # another user's request: not even our end waits for it
            return self._refuse(error.status, str(error))
        with self.server.busy():
            try:
                check_origin(self.headers, self.server.is_loopback)
                size = check_headers(self.headers)
                with self.server.connections.in_use(self.connection), self.server.room.for_bytes(size):
                    self.server.take(self._body(size), self.headers)
            except Refused as error:
                self._refuse(error.status, str(error))
            except OSError as error:  # an error of our file: another attempt would not help
                self._refuse(500, f"the export cannot be kept: {error}")
                say(f"an export is lost: {error}")
            else:
                # an empty response, in the encoding of the request
                kind = content_type(self.headers)
                self._answer(200, b"{}" if kind == JSON else b"", kind)

    def _body(self, size):
        until = time.monotonic() + BODY_SECONDS
        parts = []
        while size > 0:
            part = self.rfile.read1(min(size, CHUNK))
            if not part:
                raise Refused(400, "the body is cut short")
            if time.monotonic() > until:
                raise Refused(408, f"the body has not come within {BODY_SECONDS} s")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _refuse(self, status, text):
        self.close_connection = True
        self._answer(status, text.encode(), "text/plain; charset=utf-8")
        self._drain()

    def _drain(self):
        """Reads the rest: closing with unread bytes would reset the connection before the client saw our response."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(0.5)
        until = time.monotonic() + 5
        try:
            while time.monotonic() < until and self.rfile.read1(CHUNK):
                pass
        except OSError:
            pass

    def _answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class _Busy:
    """Counts the requests in progress."""

    def __init__(self):
        self.count = 0
        self._lock = threading.Lock()

    def __enter__(self):
        with self._lock:
            self.count += 1

    def __exit__(self, *_):
        with self._lock:
            self.count -= 1


class _Room:
    """Counts the bytes of all bodies in progress."""

    def __init__(self, most):
        self._left = most
        self._freed = threading.Condition()

    @contextlib.contextmanager
    def for_bytes(self, size):
        with self._freed:
            if not self._freed.wait_for(lambda: self._left >= size, BODY_SECONDS):
                raise Refused(503, "other exports take all the room: try again")
            self._left -= size
        try:
            yield
        finally:
            with self._freed:
                self._left += size
                self._freed.notify_all()


class _Connections:
    """Keeps the open connections. A new one replaces the one that has sent nothing useful for the longest time."""

    def __init__(self, most):
        self._most = most
        self._lock = threading.Lock()
        self._idle, self._used = {}, set()  # the one that is idle longest first

    def add(self, connection):
        """Returns whether there is a place for the connection."""
        with self._lock:
            if len(self._idle) + len(self._used) >= self._most:
                if not self._idle:
                    return False
                oldest = next(iter(self._idle))
                del self._idle[oldest]
                with contextlib.suppress(OSError):  # the connection has ended meanwhile
                    oldest.shutdown(socket.SHUT_RDWR)
            self._idle[connection] = None
            return True

    def count(self):
        with self._lock:
            return len(self._idle) + len(self._used)

    def remove(self, connection):
        with self._lock:
            self._idle.pop(connection, None)

    @contextlib.contextmanager
    def in_use(self, connection):
        """Keeps the connection's place while its request is being served."""
        with self._lock:
            self._idle.pop(connection, None)
            self._used.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._used.discard(connection)
                self._idle[connection] = None


class Receiver(HttpService):
    """Calls `on_message(bytes)` for each export, one at a time. With `is_secret` only those are taken that know the endpoint."""

    request_queue_size = 1024  # all workers of a large server export at its end
    allow_reuse_address = True

    def __init__(self, host, port, on_message, is_secret=False):
        if ":" in host:
            self.address_family = socket.AF_INET6
        self._on_message = on_message
        self.secret = secrets.token_urlsafe(24) if is_secret else ""
        self.room = _Room(MOST_BYTES_HELD)
        self.connections = _Connections(MOST_CONNECTIONS)
        self._lock = threading.Lock()
        self._busy = _Busy()
        self._stopped = False
        self.count = 0
        super().__init__((host, port), _Handler)
        self.is_loopback = is_loopback_address(self.server_address[0])
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def endpoint(self):
        host, port = self.server_address[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}{f'?{self.secret}' if self.secret else ''}"

    def start(self):
        self._thread.start()
        return self

    def busy(self):
        return self._busy

    def wait_until_idle(self, quiet_seconds, at_most):
        """Returns when no request was in progress for a while."""
        end = time.monotonic() + at_most
        quiet_since = time.monotonic()
        seen = self.count
        while time.monotonic() < end and time.monotonic() - quiet_since < quiet_seconds:
            time.sleep(0.02)
            if self._busy.count or self.count != seen:
                quiet_since = time.monotonic()
                seen = self.count

    def stop(self):
        """Stops: then `on_message` is not called any more, and each accepted sender has its response."""
        self.shutdown()
        self.server_close()
        with self._lock:
            self._stopped = True
        self.wait_until_idle(0.05, 1)

    def take(self, data, headers):
        """Unpacks one body at a time: it may then have a thousand times the size."""
        with self._lock:
            if self._stopped:
                raise Refused(503, "the receiver is ending")
            data = check_body(data, headers)
            self.count += 1
            self._on_message(data)

    def process_request(self, request, client_address):
        if self.connections.add(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request):
        self.connections.remove(request)
        super().shutdown_request(request)
