"""The command line."""

import argparse
import signal
import sys
import threading

from .aggregate import KINDS, aggregate
from .capture_file import BadFile, append_message, read_messages
from .flamegraph import page
from .places import NotFound
from .receiver import Receiver
from .report import report
from .run import run


def receive(options):
    host, _, port = options.listen.rpartition(":")
    if not port.isdigit():
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


def top(options):
    kinds = [options.kind] if options.kind else None
    print(report(aggregate(read_messages(options.file)), options.rows, kinds))
    return 0


def flamegraph(options):
    profiles = aggregate(read_messages(options.file))
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(page(options.title or options.file, profiles))
    print(f"otelprof: flame graph in {options.output}", file=sys.stderr)
    return 0


def parser():
    top_level = argparse.ArgumentParser(
        prog="otelprof", description="Profile native programs with libotelprof."
    )
    commands = top_level.add_subparsers(dest="name", required=True, metavar="COMMAND")

    sub = commands.add_parser("run", help="profile a program, then show where it spent itself")
    sub.add_argument("-o", "--output", help="file for the profile (default otelprof-NAME-PID.otlp)")
    sub.add_argument("-n", "--rows", type=int, default=15, help="rows of each table")
    sub.add_argument("--flamegraph", metavar="HTML", help="write a flame graph as well")
    sub.add_argument("--frequency", help="CPU samples a second of each thread's CPU time")
    sub.add_argument("--alloc-interval", help="mean bytes between two sampled allocations")
    sub.add_argument("--types", help="cpu,alloc,heap")
    sub.add_argument("--quiet", action="store_true", help="no tables")
    sub.add_argument("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM [ARG ...]")
    sub.set_defaults(action=run)

    sub = commands.add_parser("receive", help="receive profiles over OTLP/HTTP into a file")
    sub.add_argument("--listen", default="127.0.0.1:4318", metavar="HOST:PORT")
    sub.add_argument("-o", "--output", default="otelprof.otlp")
    sub.add_argument("--count", type=int, help="stop after so many exports")
    sub.set_defaults(action=receive)

    sub = commands.add_parser("top", help="the hottest functions of a file")
    sub.add_argument("file")
    sub.add_argument("-n", "--rows", type=int, default=20)
    sub.add_argument("--kind", choices=sorted(KINDS))
    sub.set_defaults(action=top)

    sub = commands.add_parser("flamegraph", help="a flame graph of a file, as one page")
    sub.add_argument("file")
    sub.add_argument("-o", "--output", required=True, metavar="HTML")
    sub.add_argument("--title")
    sub.set_defaults(action=flamegraph)
    return top_level


def main(arguments):
    options = parser().parse_args(arguments)
    if options.name == "run":
        if options.command[:1] == ["--"]:
            options.command = options.command[1:]
        if not options.command:
            print("otelprof: no program to run", file=sys.stderr)
            return 2
    try:
        return options.action(options)
    except (NotFound, BadFile, OSError) as error:
        print(f"otelprof: {error}", file=sys.stderr)
        return 2
