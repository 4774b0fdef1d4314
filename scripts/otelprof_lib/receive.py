"""Implements `otelprof receive`: writes profiles that are sent here into a file."""

import signal
import threading

from .arguments import positive
from .capture_file import append_message
from .foreign import say
from .receiver import Receiver
from .waking import Waking
from .whole_file import append_file


def receive(options):
    host, _, port = options.listen.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        say(f"--listen {options.listen} is not HOST:PORT")
        return 2
    over = threading.Event()
    with append_file(options.output) as file, Waking() as waking:

        def take(data):
            append_message(file, data)
            if options.count and receiver.count >= options.count:
                over.set()
                waking.wake()

        receiver = Receiver(host.strip("[]") or "127.0.0.1", int(port), take)
        # Installed before the address is known: its reader may end us at once. Explicit: a background job of a shell inherits
        # SIGINT ignored.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: over.set())
        receiver.start()
        say(f"receiving at {receiver.endpoint}")
        waking.wait(over.is_set)
        receiver.stop()
    say(f"{receiver.count} exports in {options.output}")
    return 0


def add_arguments(sub):
    sub.add_argument("--listen", default="127.0.0.1:4318", metavar="HOST:PORT",
                     help="where programs send profiles to (default 127.0.0.1:4318: this machine's alone)")
    sub.add_argument("-o", "--output", default="otelprof.otlp", help="file for the profiles (default otelprof.otlp)")
    sub.add_argument("--count", type=positive, help="stop after so many exports")
