"""`otelprof view`: a file in the browser, served by this machine for its user alone."""

import gc
from concurrent.futures import Future

from .about import About
from .arguments import port
from .capture_file import each_message
from .choice import add_choice, chosen
from .combined import combined
from .page_server import BINARY, PageServer, as_json, tell, until_ctrl_c
from .shown_data import Shown
from .views import for_page


def whole(messages):
    """All messages as one: the only one as it is, several summed up."""
    first = next(messages, None)
    second = next(messages, None) if first else None
    if second is None:
        return first

    def all_of_them():
        yield first
        yield second
        yield from messages

    return combined(all_of_them()).message()


def _read(options):
    about = About()
    return whole(about.watched(each_message(options.file))), about


def _shown(options, message, about):
    profiles, title = chosen(options, [message] if message else [])
    has_lines = not (options.lines or options.addresses)  # with them the frames are other ones
    return Shown(options.title or ": ".join(filter(None, (options.file, title))), for_page(profiles, options),
                 message if has_lines else None, about.lines(profiles), options.inside_libc)


def view(options):
    """The browser opens the page as soon as the file is read, and it waits for what is shown."""
    gc.disable()  # millions of entries, and no circles among them
    message, about = _read(options)
    shown = Future()
    server = PageServer(options.port, options.file, {
        "data": lambda _: (BINARY, shown.result().bytes),
        "lines": lambda fields: as_json(shown.result().lines(fields)),
    }).start(opens=not options.no_open)
    shown.set_result(_shown(options, message, about))
    gc.enable()
    gc.freeze()
    until_ctrl_c(server, lambda: tell(server))
    return 0


def add_server(sub):
    sub.add_argument("--port", type=port, default=0, help="of the page on 127.0.0.1; a free one if it is not said")
    sub.add_argument("--no-open", action="store_true", help="print the page's address alone, and open no browser")


def add_arguments(sub):
    add_choice(sub)
    add_server(sub)
    sub.add_argument("--title")
