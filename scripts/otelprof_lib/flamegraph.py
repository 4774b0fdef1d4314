"""Writes one page with the flame graphs of a capture, in one file: no library, no network.

The page has its data (page_data.py), or requests it from its server (page_server.py). Its scripts and styles are allowed
by their hashes, so no code that a name could smuggle in would run.
"""

import base64
import hashlib
import html
import json
import os
import re

from .foreign import printable
from .page_data import Limits, page_data
from .places import page_parts
from .whole_file import whole_file

SCRIPTS = ("data.js", "numbers.js", "names.js", "tree.js", "chart.js", "notes.js", "filter.js", "threads.js", "derive.js", "states.js",
           "changes.js", "languages.js", "legend.js", "search.js", "tables.js", "sandwich.js", "source.js", "scheme.js", "menu.js", "save.js",
           "keys.js", "state.js", "live.js", "page.js")
NOWHERE, OWN_SERVER = "'none'", "'self'"  # addresses that the page may request data from


def _json(data):
    """Encodes JSON so that no name can end the script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page(title, profiles, limits=Limits(), about=None):
    """Returns the page as text."""
    return page_of(page_data(title, profiles, limits=limits, about=about))


def served_page(title):
    """Returns the page that requests data from its server."""
    return page_of({"title": printable(title), "is_served": True}, OWN_SERVER)


def page_of(data, server=NOWHERE):

    def part(name):
        with open(os.path.join(page_parts(), name), encoding="utf-8") as file:
            return file.read()

    parts = {
        "TITLE": html.escape(data["title"]),
        "STYLE": part("page.css"),
        "SCRIPT": "".join(map(part, SCRIPTS)),
        "DATA": _json(data),
        "SERVER": server,
    }
    parts |= {f"{name}_HASH": _hash(parts[name]) for name in ("STYLE", "SCRIPT")}
    # replaces all marks in one pass, so that a mark in a title or name stays unchanged
    return re.sub(f"@({'|'.join(parts)})@", lambda mark: parts[mark[1]], part("page.html"))


def write_text(path, text):
    # a command line may hold bytes that are no UTF-8
    with whole_file(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def write_page(path, title, profiles, about=None):
    write_text(path, page(title, profiles, about=about))
