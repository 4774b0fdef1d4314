"""Implements `otelprof ps`, `ctl` and `record` for processes that are profiled now."""

import argparse
import http.client
import json
import os
import sys
import time
import urllib.parse

from . import listening
from .about import has_samples
from .aggregate import aggregate
from .arguments import positive, seconds
from .capture_file import BROKEN, BadFile, decoded
from .flamegraph import write_page
from .following import messages_in
from .foreign import printable, printable_lines, say
from .waits import with_wall
from .waking import ended_by_ctrl_c
from .whole_file import check_outputs, drop_output, refuse_one_file, whole_file

START = "OTEL_PROFILER_START"


# --- ps ---


def _fitting(text, width):
    text = printable(text)
    return text if len(text) <= width else text[: width - 3] + "..."


def ps(options):
    found = listening.processes()
    if not found:
        say("no process of this user is profiled")
        return 1
    rows = [(str(it.pid), printable(it.user), printable(listening.shown(it)), it.command) for it in found]
    head = ("PID", "USER", "ANSWERS AT", "COMMAND")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(3)]
    rest = max(20, options.width - sum(widths) - 6)
    for row in (head, *rows):
        print(f"{row[0]:>{widths[0]}}  {row[1]:{widths[1]}}  {row[2]:{widths[2]}}  {_fitting(row[3], rest)}".rstrip())
    return 0


def _columns():
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 1 << 16  # a file, a pipe: nothing is cut


def add_ps(sub):
    sub.set_defaults(width=_columns())


# --- ctl ---


def _setting(text):
    name, equals, _ = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return text


def _settings(asked):
    """Returns the settings that the process can change, with their values."""
    answer = listening.ask(asked, "/status")
    try:
        return {str(name): value for name, value in json.loads(answer)["settings"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise listening.NoResponse(f"process {asked.pid} answers with something else than its status") from error


class NoSetting(Exception):
    """Is raised for a name that is no setting of the process."""


def _full_names(asked, values):
    """Returns each NAME=VALUE with the variable's name: OTEL_PROFILER_ or OTEL_ may be left out, in small letters, too."""
    if not values:
        return []
    settings = _settings(asked)
    full = {}
    for prefix in ("OTEL_PROFILER_", "OTEL_", ""):
        full |= {name.removeprefix(prefix): name for name in settings if name.startswith(prefix)}
    found = []
    for name, _, value in (it.partition("=") for it in values):
        if name.upper() not in full:
            raise NoSetting(f"{name} is no setting that a running process can change; these are: "
                            f"{', '.join(map(_short, settings))}")
        found.append(f"{full[name.upper()]}={value}")
    return found


def _short(name):
    return name.removeprefix("OTEL_").removeprefix("PROFILER_")


def _print(answer):
    print(printable_lines(answer.decode(errors="replace")), end="")
    return 0


def _set(asked, lines):
    return _print(listening.ask(asked, "/control", "POST", "\n".join(lines)))


def status(asked, _):
    return _print(listening.ask(asked, "/status"))


def turn_on(asked, _):
    return _set(asked, [f"{START}=on"])


def turn_off(asked, _):
    return _set(asked, [f"{START}=off"])


def set_values(asked, values):
    return _set(asked, _full_names(asked, values))


def flush(asked, _):
    return _print(listening.ask(asked, "/flush", "POST", timeout=listening.TIMEOUT_SECONDS))


WHAT = {"status": status, "on": turn_on, "off": turn_off, "flush": flush, "set": set_values}


def ctl(options):
    if (options.what == "set") != bool(options.values):
        needs = "needs NAME=VALUE, such as CPU_FREQUENCY=499" if options.what == "set" else "takes no NAME=VALUE; `set` does"
        say(f"ctl: `{options.what}` {needs}")
        return 2
    with ended_by_ctrl_c():
        return WHAT[options.what](listening.process(options.pid), options.values)


def add_ctl(sub):
    sub.usage = "%(prog)s [-h] PID status|on|off|flush\n       %(prog)s [-h] PID set NAME=VALUE ..."
    sub.add_argument("pid", type=int, metavar="PID", help="a process of `otelprof ps`")
    sub.add_argument("what", choices=WHAT, metavar="|".join(WHAT), help="status: settings in force, own cost, what was dropped; on, off: "
                     "sampling; flush: an export now; set: other settings")
    sub.add_argument("values", nargs="*", default=[], type=_setting, metavar="NAME=VALUE",
                     help="of set alone: CPU_FREQUENCY=499, say; without a value: as it was before")


# --- record ---


def _additions(asked, options):
    """Returns the settings of a recording. A recording turns sampling on even where it is on: another recording may have
    turned it on, and may end first. No recording turns on what a program has stopped by a call."""
    fields = {START: "on"}
    if options.frequency:
        fields["OTEL_PROFILER_CPU_FREQUENCY"] = options.frequency
    fields.update(value.split("=", 1) for value in _full_names(asked, options.set))
    return fields


def _recorded(asked, options):
    def ask(additions):
        query = urllib.parse.urlencode({"seconds": options.seconds, **additions})
        return listening.ask(asked, f"/otlp?{query}", timeout=options.seconds + listening.TIMEOUT_SECONDS, most=listening.MOST_BYTES)

    additions = _additions(asked, options)
    try:
        return ask(additions)
    except listening.Refused as refused:
        # a port without OTEL_PROFILER_LISTEN_CONTROL: what is on can be recorded as it is
        if refused.status != http.client.FORBIDDEN or additions != {START: "on"} or _settings(asked).get(START) != "on":
            raise
    return ask({})


def _duration(begin, options):
    """Returns how long was recorded, as text: a process that ends responds at once with what it has."""
    took = time.monotonic() - begin
    return f"{options.seconds} s" if took >= options.seconds else f"the last {took:.1f} s"


def _has_samples(answer):
    """Returns whether exports have samples: a process also exports that it had none in a time. Exports that cannot be read may
    have some."""
    try:
        return any(map(has_samples, map(decoded, messages_in(answer))))
    except BROKEN:
        return True


def _profiles(answer, who):
    try:
        return with_wall(aggregate(map(decoded, messages_in(answer)), False, False, False))
    except BROKEN as error:
        raise BadFile(f"{who} has answered with something else than profiles: {error}") from error


def record(options):
    refuse_one_file(options.output, options.flamegraph)
    check_outputs(options.output, options.flamegraph)
    asked = listening.process(options.pid)
    begin = time.monotonic()
    with ended_by_ctrl_c():
        answer = _recorded(asked, options)
    duration = _duration(begin, options)
    if not _has_samples(answer):
        raise listening.NoResponse(f"process {options.pid} has exported nothing in that time: nothing was sampled")
    what = f"{duration} of process {options.pid}"
    try:
        with whole_file(options.output) as file:
            file.write(answer)
        say(f"{what} {'on standard output' if options.output == '-' else f'in {options.output}'}")
    except BrokenPipeError:  # `-o - --flamegraph page.html | head`: the page is written all the same
        drop_output()
        say(f"{what} was not read to its end")
    if options.flamegraph:
        write_page(options.flamegraph, f"process {options.pid}", _profiles(answer, f"process {options.pid}"))
        say(f"flame graph in {options.flamegraph}")
    return 0


def add_record(sub):
    sub.add_argument("pid", type=int, metavar="PID", help="a process of `otelprof ps`")
    sub.add_argument("--seconds", type=seconds, default=30, metavar="N", help="30 if it is not said; an hour at most")
    sub.add_argument("-o", "--output", required=True, metavar="FILE", help="what `otelprof top` and the others read; -: standard output")
    sub.add_argument("--frequency", type=positive, metavar="HZ", help="of CPU samples, for that time")
    sub.add_argument("--set", action="append", default=[], type=_setting, metavar="NAME=VALUE", help="another setting, for that time")
    sub.add_argument("--flamegraph", metavar="HTML", help="also a page of it")
