"""Serves a page to the browser of one user, on loopback alone.

Another user of this machine can reach the port, and so can a web page of another site in the same browser. Therefore all that
is served is below a random token. A request must have one Host, which is ours: a name that was rebound to 127.0.0.1 is refused.
If a request has an Origin, that must be the one of this Host, and a request that Sec-Fetch-Site marks as another site's is
refused. The page may send requests to this server alone (its Content-Security-Policy).

A browser's arguments can be read by every user. It is therefore given a file that only the user can read, which leads to an
entry that works once, and that leads to the token.
"""

import hmac
import http.client
import http.server
import json
import pathlib
import secrets
import sys
import tempfile
import threading
import urllib.parse
import webbrowser

from .flamegraph import served_page
from .foreign import printable, say
from .http_service import HttpService
from .request_origin import has_own_origin, host_of, is_of_own_site
from .waking import Waking

HTML, JSON, BINARY = "text/html; charset=utf-8", "application/json", "application/octet-stream"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
}


class BadQuestion(Exception):
    """Is raised for a request that the page would not make."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30  # for a client that stops in the middle

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if not self._is_from_own_origin():
            return self._refuse()
        if self.server.takes_way_in(path):
            return self._answer(302, b"", "text/plain", {"Location": self.server.root})
        name = self._name(path)
        if name is None or not self._is_asked_by_us(name):
            return self._refuse()
        try:
            kind, body = self.server.answers[name](dict(urllib.parse.parse_qsl(query)))
        except BadQuestion as error:
            return self._answer(403, f"{error}\n".encode(), "text/plain; charset=utf-8")
        except Exception as error:  # the page reports the error, and goes on
            text = f"otelprof has failed to answer: {printable(str(error)) or type(error).__name__}\n"
            return self._answer(500, text.encode("utf-8", "backslashreplace"), "text/plain; charset=utf-8")
        return self._answer(200, body, kind)

    def _is_from_own_origin(self):
        """Returns whether the request names this server as its Host, and as its Origin if it has one. A navigation
        has none."""
        return host_of(self.headers) in self.server.hosts and has_own_origin(self.headers)

    def _is_asked_by_us(self, name):
        """Returns whether our page made the request. The user's file leads to the page itself, and is another site to
        a browser."""
        is_page = name == "" and self.headers.get("Sec-Fetch-Dest") == "document"
        return is_page or is_of_own_site(self.headers)

    def _name(self, path):
        """Returns the requested name; None: there is none, or the token is wrong."""
        root = self.server.root
        if not hmac.compare_digest(path[: len(root)].encode("utf-8", "replace"), root.encode()):
            return None
        name = path[len(root) :]
        return name if name in self.server.answers else None

    def _refuse(self):
        self.close_connection = True
        self._answer(403, b"refused\n", "text/plain; charset=utf-8")

    def __getattr__(self, name):
        if name.startswith("do_"):  # every other method
            return self._refuse
        raise AttributeError(name)

    def _answer(self, status, body, kind, more=None):
        self.send_response(status)
        for header, value in {**HEADERS, **(more or {}), "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(header, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def version_string(self):
        return "otelprof"

    def log_message(self, *_):
        pass


class PageServer(HttpService):
    """Is the server. `answers`: by name, functions of a request's fields that return a type and bytes, for any thread."""

    request_queue_size = 128  # a browser opens six connections

    def __init__(self, port, title, answers):
        page = served_page(title).encode("utf-8", "backslashreplace")
        self.answers = {"": lambda _: (HTML, page), **answers}
        self.root = f"/{secrets.token_urlsafe(24)}/"
        self._way_in = ""
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def hosts(self):
        """Returns what a browser sends as Host: without the port where that is HTTP's own."""
        port = "" if self.server_port == http.client.HTTP_PORT else f":{self.server_port}"
        return f"127.0.0.1{port}", f"localhost{port}"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}{self.root}"

    def start(self, opens):
        """Serves from a thread of its own; `opens`: shows the page in the user's browser."""
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        if opens:
            self._way_in = f"/{secrets.token_urlsafe(24)}"
            leading = self._leading_file()
            threading.Thread(target=webbrowser.open, args=(leading.as_uri(),), daemon=True).start()
        return self

    def _leading_file(self):
        """Makes a file that leads to the entry; the file is removed with the server."""
        self._folder = tempfile.TemporaryDirectory(prefix="otelprof-")  # of mode 0700
        leading = pathlib.Path(self._folder.name) / "open.html"
        url = f"http://127.0.0.1:{self.server_port}{self._way_in}"
        leading.write_text(f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={url}"><a href="{url}">otelprof</a>\n')
        return leading

    def takes_way_in(self, path):
        with self._lock:
            is_it = self._way_in != "" and hmac.compare_digest(path.encode("utf-8", "replace"), self._way_in.encode())
            if is_it:
                self._way_in = ""
            return is_it


def as_json(value):
    return JSON, json.dumps(value).encode()


def tell(server):
    say(f"{server.url}")


def until_ctrl_c(server, begin):
    """Serves until Ctrl-C, which is an ordinary end as soon as begin() has printed something for the user."""
    try:
        with Waking() as waking:
            begin()
            waking.wait(lambda: False)
    except KeyboardInterrupt:
        print(file=sys.stderr, flush=True)
    server.shutdown()
