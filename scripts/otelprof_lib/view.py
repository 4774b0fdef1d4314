"""Implements `otelprof view`: shows a file in the browser, served by this machine for its user alone."""

import gc
from concurrent.futures import Future

from .about import About, count_samples, file_title
from .arguments import port
from .choice import add_choice, chosen, is_chosen
from .combined import combined
from .kinds import KINDS
from .page_server import BINARY, PageServer, as_json, tell, until_ctrl_c
from .repeats import each_once
from .shown_data import Shown
from .views import for_page

OPENED_WITH = ("cpu", "sched_delay", "off_cpu")  # the kinds that the page shows first, CPU time or wall time, are made of these
MANY_SAMPLES = 30_000  # with more the page opens before all kinds are summed up


def whole(messages):
    """Returns all messages as one: a single message unchanged, several summed up."""
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
    return whole(about.watched(each_once(options.file))), about


def _shown(options, message, about, kinds=KINDS, **more):
    profiles, title = chosen(options, [message] if message else [], kinds)
    has_lines = not (options.lines or options.addresses)  # these options change the frames
    return Shown(options.title or ": ".join(filter(None, (file_title(options.file), title))), for_page(profiles, options),
                 message if has_lines else None, about.lines(profiles), options.inside_libc, **more)


def _first_shown(options, message, about):
    """Returns what the page opens with where summing up all kinds takes seconds, else None."""
    if not message or sum(map(count_samples, message.resource_profiles)) <= MANY_SAMPLES or is_chosen(options):
        return None
    shown = _shown(options, message, about, OPENED_WITH, has_more=True)
    return shown if shown.has_profiles else None


def view(options):
    """Shows a file. The browser opens the page as soon as the file is read, and the page waits for its data."""
    gc.disable()  # millions of entries, and no circles among them
    message, about = _read(options)
    first, whole_file = Future(), Future()

    def lines(fields):
        shown = first.result()
        return as_json((shown if shown.is_version(fields.get("version")) else whole_file.result()).lines(fields))

    server = PageServer(options.port, options.file, {
        "data": lambda _: (BINARY, first.result().bytes),
        "all": lambda _: (BINARY, whole_file.result().bytes),
        "lines": lines,
    }).start(opens=not options.no_open)
    opened_with = _first_shown(options, message, about)
    if opened_with:
        first.set_result(opened_with)

    def sum_up():
        whole_file.set_result(_shown(options, message, about))
        gc.enable()
        gc.freeze()

    def begin():
        tell(server)
        if opened_with:
            sum_up()

    if not opened_with:
        sum_up()
        first.set_result(whole_file.result())
    until_ctrl_c(server, begin)
    return 0


def add_server(sub):
    sub.add_argument("--port", type=port, default=0, help="of the page on 127.0.0.1; a free one if it is not said")
    sub.add_argument("--no-open", action="store_true", help="print the page's address alone, and open no browser")


def add_arguments(sub):
    add_choice(sub)
    add_server(sub)
    sub.add_argument("--title", help="of the page; the file's name if it is not said")
