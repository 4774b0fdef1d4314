"""Is the command line."""

import argparse
import io
import itertools
import os
import signal
import sys
from typing import Callable, NamedTuple

from . import completion, control, diff, export, live, merge, pprof, receive, run, view, views
from .capture_file import BadFile, BadSum
from .foreign import say
from .labels import NothingChosen
from .places import NotFound, release
from .whole_file import OneFile, drop_output


class Command(NamedTuple):
    name: str
    help: str
    add_arguments: Callable  # adds arguments to a parser
    action: Callable  # options -> exit status
    has_help: bool = True  # prints a help of its own: --help


def _host(_):
    """Stands for the command that the launcher, scripts/otelprof, runs without Python: here it is for the list of
    commands."""
    say("`host` is to be the first argument")
    return 2


COMMANDS = (
    Command("run", "profile a program, then show its hottest functions", run.add_arguments, run.run),
    Command("receive", "receive profiles over OTLP/HTTP into a file", receive.add_arguments, receive.receive),
    Command("top", "show the hottest functions of a file", views.add_top, views.top),
    Command("locks", "show the locks that threads waited for, and their holders", views.add_locks, views.locks),
    Command("threads", "show what each thread does, with its stack", views.add_threads, views.threads),
    Command("flamegraph", "write a flame graph of a file, as one page", views.add_flamegraph, views.flamegraph),
    Command("view", "show a file in the browser: flame graph, callers, source lines", view.add_arguments, view.view),
    Command("diff", "compare two files, without differences that are chance", diff.add_arguments, diff.diff),
    Command("merge", "combine several files into one", merge.add_arguments, merge.merge),
    Command("pprof", "convert a file for `go tool pprof`", pprof.add_arguments, pprof.pprof),
    Command("export", "convert a file for speedscope, the Firefox Profiler and others", export.add_arguments, export.export),
    Command("ps", "list the processes that are profiled now, and their endpoints", control.add_ps, control.ps),
    Command("ctl", "show the state of a running process, or change its settings", control.add_ctl, control.ctl),
    Command("record", "record a running process for some seconds, into a file", control.add_record, control.record),
    Command("live", "show a running program in the browser, with updates", live.add_arguments, live.live),
    Command("host", "profile a whole machine: enable, disable, verify, status", lambda sub: None, _host, has_help=False),
    Command("completion", "print a script that completes these commands in a shell", completion.add_arguments,
            lambda options: completion.completion(options, parser())),
)


def parser():
    top_level = argparse.ArgumentParser(prog="otelprof", description="Profile native programs with libotelprof.")
    top_level.add_argument("--version", action="version", version=f"otelprof {release() or '(not built)'}")
    commands = top_level.add_subparsers(dest="name", required=True, metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.help, add_help=command.has_help)
        command.add_arguments(sub)
        sub.set_defaults(action=command.action)
    return top_level


def _parsed(arguments):
    """Parses arguments: `live` has its options on both sides of the process; after `--` comes a program with options
    of its own."""
    if arguments[:1] != ["live"]:
        return parser().parse_args(arguments)
    own = list(itertools.takewhile(lambda word: word != "--", arguments))
    options = parser().parse_args(own)
    options.command = arguments[len(own) + 1 :] if len(own) < len(arguments) else None
    return options


def _said(error):
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


class OutputError(OSError):
    """Is raised when standard output cannot be written."""


class _StandardOutput(io.FileIO):
    """Writes to the descriptor of standard output. A failed write is an OutputError, except into a pipe whose reader
    has gone."""

    def write(self, data):
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror, "standard output") from error


class _StandardError(io.FileIO):
    """Writes to the descriptor of standard error. Text that it does not take is lost: `otelprof run ... 2>&1 | head` writes
    the profile and the page all the same, and ends as the program did."""

    def write(self, data):
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _complete_streams():
    """Makes both streams usable. A parent may have closed one; a program that we run finds it closed, too.

    Text for a closed standard error is lost. A closed standard output is an error once something is written there: a
    descriptor that can only be read stands for it.
    """
    if sys.stdout is sys.__stdout__:
        descriptor = os.open(os.devnull, os.O_RDONLY) if sys.stdout is None else sys.stdout.fileno()
        file = io.BufferedWriter(_StandardOutput(descriptor, "wb", closefd=False))
        sys.stdout = io.TextIOWrapper(file, getattr(sys.stdout, "encoding", "utf-8"), line_buffering=os.isatty(descriptor))
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
    elif sys.stderr is sys.__stderr__:
        file = io.BufferedWriter(_StandardError(sys.stderr.fileno(), "wb", closefd=False))
        sys.stderr = io.TextIOWrapper(file, sys.stderr.encoding, errors="backslashreplace", line_buffering=True)
    # a name that the locale cannot show must not end a report
    sys.stdout.reconfigure(errors="backslashreplace")


def _status_of(action):
    """Calls action() and returns the command's status; an error is one line on standard error."""
    try:
        return action()
    except SystemExit as ended:  # argparse has printed its help or an error
        return ended.code
    except BrokenPipeError:  # `otelprof top FILE | head`
        drop_output()
        return 0
    except (NothingChosen, OneFile, control.NoSetting) as error:
        say(error)
        return 2
    except KeyboardInterrupt:
        return run.end_like(-signal.SIGINT)
    except MemoryError:
        say("there is not enough memory for this")
        return 2
    except (NotFound, BadFile, OSError) as error:
        say(_said(error))
        if isinstance(error, OutputError):
            drop_output()
        return 2


def _files(options):
    """The names that the command was given of files to read."""
    alone = (getattr(options, name, None) for name in ("file", "before", "after"))
    return list(dict.fromkeys(filter(None, [*alone, *getattr(options, "files", [])])))


def _act(arguments):
    if not arguments:
        parser().print_help()
        return 0
    options = _parsed(arguments)
    try:
        return options.action(options)
    except BadSum as error:
        raise BadFile(": ".join(filter(None, (", ".join(_files(options)), str(error))))) from error


def main(arguments):
    _complete_streams()
    status = _status_of(lambda: _act(arguments))
    return _status_of(sys.stdout.flush) or status
