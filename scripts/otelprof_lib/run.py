"""Implements `otelprof run`: runs a program under the profiler, with a receiver of our own beside it.

The program has the terminal: its standard streams, its place in the process group and its signals are what they would
be without this command, which ends as the program ends.
"""

import argparse
import ctypes
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

from . import places
from .about import About
from .absence import reason
from .aggregate import aggregate
from .arguments import positive, types
from .capture_file import BadFile, append_message
from .choice import add_language
from .flamegraph import write_page
from .foreign import say
from .kinds import ALL, TYPES
from .labels import NothingChosen
from .languages import only
from .names import print_table
from .receiver import Receiver
from .repeats import each_once
from .report import report
from .waits import with_wall, without_idle
from .waking import wait_for
from .whole_file import Output, check_outputs, refuse_one_file

# children may outlive the program a little; then a last export may still be on its way
QUIET_SECONDS = 0.3
GRACE_SECONDS = 5
PR_SET_DUMPABLE = 4
LOADER = re.compile(r"ld(?:-linux[\w-]*|-musl[\w-]*)\.so(?:\.\d+)*")
# glibc's options whose value is the next argument
LOADERS_VALUES = ("--library-path", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask", "--inhibit-rpath", "--audit", "--preload", "--argv0")


# --- the program ---


def glob_of(command):
    """Returns a glob that fits the program's base name, without characters that need escapes."""
    return re.sub(r"[][*?\\,\s]", "?", os.path.basename(command))


def program_of(command):
    """Returns the program that a command runs: for the dynamic loader, its first argument that is no option."""
    if not LOADER.fullmatch(os.path.basename(command[0])):
        return command[0]
    arguments = iter(command[1:])
    for argument in arguments:
        if argument in LOADERS_VALUES:
            next(arguments, None)
        elif not argument.startswith("--"):
            return argument
    return command[0]


def environment(endpoint, options):
    env = dict(os.environ)
    preload = [places.library()]
    if env.get("LD_PRELOAD"):
        preload.append(env["LD_PRELOAD"])
    env["LD_PRELOAD"] = ":".join(preload)
    # the endpoint of our receiver is not the user's choice; the interval of exports is
    env["OTEL_PROFILES_EXPORTER"] = "otlp"
    env["OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"] = endpoint
    env["OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL"] = "http/protobuf"
    env["OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION"] = "gzip"
    # a user who runs a program this way wants to see all that it does, its shells and `sort`s too; and whatever else
    # is excluded, the program itself is not
    env["OTEL_PROFILER_EXCLUDE"] = env.get("OTEL_PROFILER_EXCLUDE") or "none"
    env["OTEL_PROFILER_INCLUDE"] = ",".join(
        filter(None, (env.get("OTEL_PROFILER_INCLUDE"), glob_of(program_of(options.command))))
    )
    env.setdefault("OTEL_PROFILER_MIN_LIFETIME", "0")
    env.setdefault("OTEL_PROFILE_EXPORT_INTERVAL", "1000")
    # the requested rates hold: a run is short, and not production
    env.setdefault("OTEL_PROFILER_MAX_OVERHEAD", "none")
    # the receiver is on this machine: a last export may take the time that symbols take
    env.setdefault("OTEL_PROFILER_SHUTDOWN_TIMEOUT", "10000")
    for name, value in (
        ("OTEL_PROFILER_CPU_FREQUENCY", options.frequency),
        ("OTEL_PROFILER_ALLOC_INTERVAL", options.alloc_interval),
        ("OTEL_PROFILER_TYPES", options.types),
    ):
        if value:
            env[name] = str(value)
    return env


def leave_interrupts_to_the_program():
    """Leaves Ctrl-C to the program: this command stays until the program has ended.

    The handler does nothing; SIG_IGN would not do: exec resets handlers but would pass SIG_IGN on. A signal that was
    ignored when this command started stays so, for the program too.
    """
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def take_interrupts_again():
    """Takes Ctrl-C again."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def start(command, env):
    """Returns the program, or the status that a shell gives to one that cannot be run."""
    try:
        # open descriptors beyond the standard ones are the program's as well
        return subprocess.Popen(command, env=env, close_fds=False), 0
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
        return None, 127 if isinstance(error, FileNotFoundError) else 126
    except ValueError as error:
        say(f"{command[0]}: {error}")
        return None, 126


class Termination:
    """Passes SIGTERM and SIGHUP to the program; a signal that comes before the program runs waits for it.

    It begins before the program's start: a program that ends this command as its first act would be left behind.
    """

    def __init__(self):
        self._child = None
        self._early = []
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._pass_on)

    def _pass_on(self, number, _):
        if self._child:
            self._child.send_signal(number)
        else:
            self._early.append(number)

    def goes_to(self, child):
        self._child = child
        for number in self._early:
            child.send_signal(number)


def _wait(child, receiver, quiet):
    progress = sys.stderr.isatty() and not quiet
    if not progress:
        return wait_for(child)
    started = time.monotonic()
    while True:
        try:
            status = child.wait(timeout=0.5)
            break
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - started
            line = f"\rotelprof: {seconds:.0f} s, {receiver.count} exports"
            print(line, end="", file=sys.stderr, flush=True)
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    return status


def end_like(status):
    """Ends as the program did: a death by signal is passed on as one, without a core file of ours."""
    if status >= 0:
        return status
    number = -status
    # a limit of 0 would not do: it does not bind a core_pattern that is a pipe
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):  # SIGKILL, or a signal that libc keeps for itself
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    return 128 + number


# --- the results ---


def program_name(command):
    """Returns what a page is called: arguments may be secret, and a page is made to be given to others."""
    return os.path.basename(program_of(command)) or program_of(command)


def default_output(command, pid):
    return f"otelprof-{os.path.basename(command)}-{pid}.otlp"


class _Exports:
    """Is the file of the exports. The first export replaces the file that was there; a program that sends none costs no file."""

    def __init__(self, path):
        self._output = Output(path)
        self._lock = threading.Lock()  # held until it is known whether there is a program
        self._has_program = False
        self.is_written = False

    def __enter__(self):
        self._lock.acquire()
        return self

    def begin(self):
        self._has_program = True
        self._lock.release()

    def append(self, data):
        with self._lock:
            if not self._has_program:
                return
            if not self.is_written:
                self._output.begin()
                self.is_written = True
            append_message(self._output.file, data)

    def __exit__(self, *_):
        self._output.close()
        if not self._has_program:
            self._lock.release()


def _only(profiles, language):
    """Returns the profiles of one language, or all where there is none: the program has run, and is not run again for
    a wrong word."""
    try:
        return only(profiles, language)[0]
    except NothingChosen as error:
        say(error)
        return profiles


def _explain_absence(output, options):
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    why = reason(program_of(options.command), used.ru_utime + used.ru_stime, os.environ, os.getuid(), os.getgid())
    files = " and ".join(filter(None, (output, options.flamegraph)))
    say(f"no profile arrived: {why}; {files} {'are' if options.flamegraph else 'is'} not written")


def _show(output, options):
    if not os.path.isfile(output):
        say(f"the exports went to {output}, which cannot be read again: no tables")
        return
    about = About()
    profiles = aggregate(about.watched(each_once(output)))
    if options.hide_idle:
        profiles = without_idle(profiles)
    if options.language is not None:
        profiles = _only(profiles, options.language)
    if not options.quiet:
        print_table(f"\n{report(profiles, options.rows)}\n", sys.stderr)
    say(f"profile in {output}")
    if options.flamegraph:
        write_page(options.flamegraph, options.title or program_name(options.command), with_wall(profiles), about.lines(profiles))
        say(f"flame graph in {options.flamegraph}")


def run(options):
    if options.command[:1] == ["--"]:
        options.command = options.command[1:]
    if not options.command:
        say("no program to run")
        return 2
    output = options.output or default_output(program_of(options.command), os.getpid())
    refuse_one_file(output, options.flamegraph)
    check_outputs(options.flamegraph)
    places.load_messages()  # reports a missing part before the program runs
    places.library()
    with _Exports(output) as file:
        receiver = Receiver("127.0.0.1", 0, file.append, is_secret=True).start()
        leave_interrupts_to_the_program()
        termination = Termination()
        child, status = start(options.command, environment(receiver.endpoint, options))
        if child:
            file.begin()
            termination.goes_to(child)
            status = _wait(child, receiver, options.quiet)
            receiver.wait_until_idle(QUIET_SECONDS, GRACE_SECONDS)
        receiver.stop()
    if not child:
        return status
    try:
        if file.is_written:
            _show(output, options)
        else:
            _explain_absence(output, options)
    except (BadFile, OSError, places.NotFound) as error:
        say(error)  # the status stays the program's
    sys.stderr.flush()
    return end_like(status)


def add_arguments(sub):
    sub.add_argument("-o", "--output", help="file for the profile (default otelprof-NAME-PID.otlp)")
    sub.add_argument("-n", "--rows", type=positive, default=15, help="rows of each table")
    sub.add_argument("--flamegraph", metavar="HTML", help="write a flame graph as well")
    sub.add_argument("--title", help="of the flame graph; the program's name if it is not said")
    sub.add_argument("--frequency", type=positive, help="CPU samples a second of each thread's CPU time")
    sub.add_argument("--alloc-interval", type=positive, help="mean bytes between two sampled allocations")
    sub.add_argument("--hide-idle", action="store_true", help="show no threads that only wait for work")
    add_language(sub)
    sub.add_argument("--types", type=types, help=f"{ALL}, or any of {','.join(TYPES)}")
    sub.add_argument("--quiet", action="store_true", help="no tables")
    sub.add_argument("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM [ARG ...]", help="the program to profile, with its arguments")
