"""Implements `otelprof live`: the page of `view` follows a program that runs and listens, or one that is started here.

A program that is started here sends its exports to this command, as under `otelprof run`: including those of its children,
which no request could get.
"""

import contextlib
import re
import threading
import time

from . import places, run
from .about import About, readable_time
from .aggregate import aggregate
from .arguments import positive, seconds, types
from .capture_file import BROKEN, BadFile, decoded
from .combined import Combined
from .following import Address, ById, Poller
from .foreign import printable, say
from .kinds import ALL, TYPES
from .page_server import BINARY, PageServer, as_json, tell, until_ctrl_c
from .receiver import Receiver
from .shown_data import Shown
from .view import add_server
from .waits import with_wall
from .waking import ended_by_ctrl_c, wait_for


MOST_HELD = 1 << 25  # bound of Combined.size(): six times a page of 200,000 stacks


class Live:
    """Holds all that a program has exported so far, and serves the page's requests. Any thread may call it.

    `on_refusal` is called once, when exports have come that cannot be shown: more of them would change nothing."""

    def __init__(self, title, on_refusal=lambda: None):
        self._title, self._on_refusal = title, on_refusal
        self._sums, self._about = Combined(), About()
        self._lock = threading.Lock()
        self._count = self._made = 0  # messages: received, and in the data that is shown
        self._end = ""
        self._refused = False  # exports have come that cannot be shown: the earlier data stays
        self._begin, self._last = time.monotonic(), None
        self._shown = Shown(title, {}, is_live=True)
        self._kept = {}  # data by version: those that a page may still request

    def add(self, message):
        with self._lock:
            if self._refused:
                return
            self._about.add(message)
            self._sums.add(message)
            self._count += 1
            self._last = time.monotonic()
            if self._sums.size() > MOST_HELD:
                self._refuse("its samples have become more than a page can show")

    def _refuse(self, why):
        """The first reason stays: what had been taken then may be looked at again, and be no better."""
        if self._refused:
            return
        self._refused, self._end = True, f"followed no more, since {why}"
        say(f"{self._title}: {self._end}")
        self._on_refusal()

    def is_refused(self):
        return self._refused

    def has_ended(self, why):
        with self._lock:
            self._end = self._end or f"{why} after {readable_time(time.monotonic() - self._begin)}"

    def _newest(self):
        """Returns the newest data, which is made when a page requests it, and exports have come since."""
        with self._lock:
            if self._count != self._made:
                self._made = self._count
                try:
                    self._shown = self._made_anew()
                except BadFile as error:
                    self._refuse(f"what it sends cannot be shown: {printable(str(error))}")
            return self._shown

    def _made_anew(self):
        message = self._sums.message()
        profiles = aggregate([message])
        return Shown(self._title, with_wall(profiles), message, self._about.lines(profiles), is_live=True)

    def state(self):
        version = self._newest().version
        now = time.monotonic()
        text = self._end or f"running, followed for {readable_time(now - self._begin)}" + (
            f", last export {readable_time(now - self._last)} ago" if self._last else ", no export yet")
        return {"version": version, "has_ended": bool(self._end), "text": text}

    def data(self):
        shown = self._newest()
        with self._lock:
            self._kept = {**dict([*self._kept.items()][-1:]), shown.version: shown}
        return shown.bytes

    def lines(self, fields):
        with self._lock:
            kept = {str(version): shown for version, shown in self._kept.items()}
        return kept.get(fields.get("version"), self._shown).lines(fields)


def _server(options, live, title):
    return PageServer(options.port, title, {
        "data": lambda _: (BINARY, live.data()),
        "state": lambda _: as_json(live.state()),
        "lines": lambda fields: as_json(live.lines(fields)),
    }).start(opens=not options.no_open)


# --- a running program ---


def _asked(text):
    return ById(int(text)) if re.fullmatch(r"\d+", text) else Address(text)


def followed(asked, seconds, title=None):
    """Returns what a process has exported, and the poller that requests it, until one of both ends."""
    over = threading.Event()
    live = Live(title or asked.text, over.set)
    return live, Poller(asked, seconds, live.add, live.has_ended, over)


def _follow(options):
    asked = _asked(options.who)
    live, poller = followed(asked, options.seconds, options.title)
    with ended_by_ctrl_c():
        poller.start()
    server = _server(options, live, options.title or asked.text)
    until_ctrl_c(server, lambda: tell(server))
    poller.stop()
    return 0


# --- a program that is started here ---


def _take(live, data):
    if live.is_refused():
        return
    with contextlib.suppress(*BROKEN):  # what is no export is left out, as in a process's response
        live.add(decoded(data))


def _start_and_follow(options):
    places.library()  # reports a missing library before the program runs
    title = options.title or run.program_name(options.command)
    live = Live(title)
    receiver = Receiver("127.0.0.1", 0, lambda data: _take(live, data), is_secret=True).start()
    env = run.environment(receiver.endpoint, options)
    run.leave_interrupts_to_the_program()
    termination = run.Termination()
    child, status = run.start(options.command, env)
    if not child:
        receiver.stop()
        return status
    termination.goes_to(child)
    server = _server(options, live, title)
    tell(server)
    status = wait_for(child)
    receiver.wait_until_idle(run.QUIET_SECONDS, run.GRACE_SECONDS)
    receiver.stop()
    live.has_ended(f"ended with status {status}" if status >= 0 else f"ended by signal {-status}")

    def stays():
        run.take_interrupts_again()
        say("the program has ended; the page stays until Ctrl-C")

    until_ctrl_c(server, stays)
    return run.end_like(status)


def live(options):
    if options.command and not options.who:
        return _start_and_follow(options)
    if options.who and options.command is None:
        return _follow(options)
    say("a process id, an address, or `-- PROGRAM [ARG ...]`")
    return 2


def add_arguments(sub):
    add_server(sub)
    sub.add_argument("--title", help="of the page; the program's name, or the process, if it is not said")
    sub.add_argument("--seconds", type=seconds, default=2, metavar="N", help="between two updates of a process that is asked; 2 if it is not said")
    sub.add_argument("--frequency", type=positive, help="of a program started here: CPU samples a second of each thread's CPU time")
    sub.add_argument("--alloc-interval", type=positive, help="likewise: mean bytes between two sampled allocations")
    sub.add_argument("--types", type=types, help=f"likewise: {ALL}, or any of {','.join(TYPES)}")
    sub.add_argument("who", nargs="?", metavar="PID | URL | -- PROGRAM [ARG ...]",
                     help="a process of `otelprof ps`, the address where one listens, or a program to start")
