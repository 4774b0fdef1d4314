"""The command line."""

import argparse
import os
import signal
import sys
import threading

from .aggregate import aggregate
from .capture_file import BadFile, append_message, read_messages
from .flamegraph import write_page
from .formats import printable
from .kinds import ALL, KINDS, SOURCES, TYPES
from .labels import SPAN, TRACE, NothingChosen, check_name, id_label, label, select
from .locks import lock_table
from .places import NotFound
from .receiver import Receiver
from .report import report
from .run import run
from .threads import thread_dump
from .waits import WALL, with_wall, without_idle


def receive(options):
    host, _, port = options.listen.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        print(f"otelprof: --listen {options.listen} is not HOST:PORT", file=sys.stderr)
        return 2
    enough = threading.Event()
    with open(options.output, "ab") as file:

        def take(data):
            append_message(file, data)
            if options.count and receiver.count >= options.count:
                enough.set()

        receiver = Receiver(host.strip("[]") or "127.0.0.1", int(port), take)
        receiver.start()
        print(f"otelprof: receiving at {receiver.endpoint}", file=sys.stderr, flush=True)
        # explicit: a background job of a shell inherits SIGINT ignored
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: enough.set())
        enough.wait()
        receiver.stop()
    print(f"otelprof: {receiver.count} exports in {options.output}", file=sys.stderr)
    return 0


def chosen(options):
    """What the options of `add_choice` leave of a file's profiles, and a title for it."""
    profiles = aggregate(read_messages(options.file), options.addresses, options.lines, options.inside_libc)
    wanted = [it for it in (options.span, options.trace, *options.label) if it]
    profiles, labels = select(profiles, wanted)
    if options.hide_idle:
        profiles = without_idle(profiles)
    if options.group_by:
        check_name(profiles, options.group_by)
    return profiles, ", ".join(printable(f"{it.name}={it.value}") for it in labels)


def top(options):
    profiles, title = chosen(options)
    if title:
        print(f"{title}\n")
    kinds = [options.kind] if options.kind else None
    print(report(profiles, options.rows, kinds, options.group_by, is_part=bool(title)))
    return 0


def locks(options):
    profiles, title = chosen(options)
    if title:
        print(f"{title}\n")
    print(lock_table(profiles, options.rows) or "no sample waited for a lock")
    return 0


def threads(options):
    profiles, title = chosen(options)
    if title:
        print(f"{title}\n")
    print(thread_dump(profiles["threads"]) if "threads" in profiles else "no samples of threads")
    return 0


def flamegraph(options):
    profiles, title = chosen(options)
    profiles = with_wall(profiles)
    if options.group_by:
        profiles = {name: profile.under(options.group_by) for name, profile in profiles.items()}
    write_page(options.output, options.title or ": ".join(filter(None, (options.file, title))), profiles)
    print(f"otelprof: flame graph in {options.output}", file=sys.stderr)
    return 0


def host(_):
    print("otelprof: `host` is to be the first argument", file=sys.stderr)
    return 2


def positive(text):
    value = int(text)
    if value <= 0:
        raise ValueError
    return value


positive.__name__ = "positive number"  # argparse shows it


def types(text):
    """What libotelprof would only warn about is refused here, before anything runs."""
    if text.lower() == ALL:
        return text
    names = [name.strip() for name in text.split(",")]
    if ALL in names:
        raise argparse.ArgumentTypeError(f"{ALL} stands alone")
    unknown = [name for name in names if name not in TYPES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{','.join(unknown) or text!r} is none of {','.join((ALL, *TYPES))}")
    for source, kinds in SOURCES.items():
        if source in names and not set(kinds) & set(names):
            raise argparse.ArgumentTypeError(f"{source} needs {' or '.join(kinds)}, which it adds to")
    return text


def add_choice(sub, grouped=True):
    """The file to show, and what of it: the same for each command that shows one."""
    sub.add_argument("file")
    sub.add_argument("--span", type=id_label(SPAN), metavar="ID", help="only this span: its id, or 4 or more of its first digits")
    sub.add_argument("--trace", type=id_label(TRACE), metavar="ID", help="only this trace, with all its spans")
    sub.add_argument("--label", type=label, action="append", default=[], metavar="NAME=VALUE",
                     help="only samples with this attribute")
    if grouped:
        sub.add_argument("--group-by", metavar="NAME", help="by the values of an attribute, span_id or trace_id")
    sub.set_defaults(group_by=None)
    sub.add_argument("--hide-idle", action="store_true", help="without threads that only wait for work")
    sub.add_argument("--inside-libc", action="store_true", help="show what waits inside of the C library's functions")
    sub.add_argument("--addresses", action="store_true", help="tell code without a name apart by its address")
    sub.add_argument("--lines", action="store_true", help="tell the lines of a function apart, where there is debug information")


def parser():
    top_level = argparse.ArgumentParser(
        prog="otelprof", description="Profile native programs with libotelprof."
    )
    commands = top_level.add_subparsers(dest="name", required=True, metavar="COMMAND")

    sub = commands.add_parser("run", help="profile a program, then show where it spent itself")
    sub.add_argument("-o", "--output", help="file for the profile (default otelprof-NAME-PID.otlp)")
    sub.add_argument("-n", "--rows", type=positive, default=15, help="rows of each table")
    sub.add_argument("--flamegraph", metavar="HTML", help="write a flame graph as well")
    sub.add_argument("--frequency", type=positive, help="CPU samples a second of each thread's CPU time")
    sub.add_argument("--alloc-interval", type=positive, help="mean bytes between two sampled allocations")
    sub.add_argument("--hide-idle", action="store_true", help="show no threads that only wait for work")
    sub.add_argument("--types", type=types, help=f"{ALL}, or any of {','.join(TYPES)}")
    sub.add_argument("--quiet", action="store_true", help="no tables")
    sub.add_argument("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM [ARG ...]")
    sub.set_defaults(action=run)

    sub = commands.add_parser("receive", help="receive profiles over OTLP/HTTP into a file")
    sub.add_argument("--listen", default="127.0.0.1:4318", metavar="HOST:PORT")
    sub.add_argument("-o", "--output", default="otelprof.otlp")
    sub.add_argument("--count", type=positive, help="stop after so many exports")
    sub.set_defaults(action=receive)

    sub = commands.add_parser("top", help="the hottest functions of a file")
    add_choice(sub)
    sub.add_argument("-n", "--rows", type=positive, default=20)
    sub.add_argument("--kind", choices=(*KINDS, WALL))
    sub.set_defaults(action=top)

    sub = commands.add_parser("locks", help="the locks that threads waited for, and who held them")
    add_choice(sub, grouped=False)
    sub.add_argument("-n", "--rows", type=positive, default=20)
    sub.set_defaults(action=locks)

    sub = commands.add_parser("threads", help="what each thread does, with its stack")
    add_choice(sub, grouped=False)
    sub.set_defaults(action=threads)

    sub = commands.add_parser("flamegraph", help="a flame graph of a file, as one page")
    add_choice(sub)
    sub.add_argument("-o", "--output", required=True, metavar="HTML")
    sub.add_argument("--title")
    sub.set_defaults(action=flamegraph)

    # done by the launcher, scripts/otelprof, without Python: this is for the list of commands
    sub = commands.add_parser("host", help="profile a whole machine: enable, disable, verify, status", add_help=False)
    sub.set_defaults(action=host)
    return top_level


def main(arguments):
    options = parser().parse_args(arguments)
    if options.name == "run":
        if options.command[:1] == ["--"]:
            options.command = options.command[1:]
        if not options.command:
            print("otelprof: no program to run", file=sys.stderr)
            return 2
    # a name that the locale cannot show must not end a report
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = options.action(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # `otelprof top FILE | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except NothingChosen as error:
        print(f"otelprof: {printable(str(error))}", file=sys.stderr)
        return 2
    except (NotFound, BadFile, OSError) as error:
        print(f"otelprof: {error}", file=sys.stderr)
        return 2
