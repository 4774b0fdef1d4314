"""Runs the otelprof command in a child of a process that has its modules: the start of an interpreter is most of a command.

The command's start, its streams, signals and what it inherits are tested with scripts/otelprof itself; so is what it costs.
"""

import contextlib
import functools
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import traceback
from multiprocessing import forkserver
from pathlib import Path

from otelprof_lib import cli, page_server, places, view as view_module
from waiting import TIMEOUT_S


def _asks_all(server, begin):
    """In place of a browser and of Ctrl-C: asks for what the page would."""
    begin()
    for name in ("data", "all", "lines"):
        with contextlib.suppress(page_server.BadQuestion):  # the file has no such kind
            server.answers[name]({"kind": "cpu", "function": "0"})
    server.shutdown()


def _run_command(arguments, stem):
    """Runs the command in this process, whose standard streams become the files STEM.out and STEM.err; then STEM.status is written."""
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(f"{stem}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False, encoding="utf-8")
    sys.stderr = sys.__stderr__ = open(2, "w", closefd=False, encoding="utf-8", errors="backslashreplace")
    try:
        status = cli.main(arguments)
    except BaseException:  # the interpreter would print it, and end with 1
        status = traceback.print_exc() or 1
    sys.stdout.flush()
    sys.stderr.flush()
    Path(f"{stem}.status").write_text(str(status))


def _run_commands(cwd, scratch, commands, limits, environment):
    """In a child: runs one command after the other."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    used = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])
    for what, most in limits.items():
        most += used if what == resource.RLIMIT_AS else 0
        resource.setrlimit(what, (most, most))
    view_module.until_ctrl_c = _asks_all
    cli.parser = functools.cache(cli.parser)
    for number, arguments in enumerate(commands):
        _run_command(arguments, f"{scratch}/{number}")


@functools.cache
def _forks():
    """Returns what forks a child from a process of one thread: the tests' own has several, which may hold locks as it forks."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = ":".join(sys.path)  # Python 3.11's server imports what it preloads by its own path
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        os.environ |= {"PYTHONPATH": before} if before is not None else {}
    return context


def run_commands(commands, cwd, limits=None):
    """Returns what came of each command as a subprocess.CompletedProcess, with bytes. A command that ends the child is the
    last: its status is -signal. Limits of the kernel, of the child: {resource.RLIMIT_...: most}; of memory, beyond what it has."""
    commands = [[os.fspath(word) for word in arguments] for arguments in commands]
    with tempfile.TemporaryDirectory() as scratch:
        child = _forks().Process(target=_run_commands, args=(os.fspath(cwd), scratch, commands, limits or {}, dict(os.environ)))
        child.start()
        child.join(TIMEOUT_S * len(commands))
        child.kill()
        child.join()
        found = []
        for number, arguments in enumerate(commands):
            status, out, err = (Path(f"{scratch}/{number}.{name}") for name in ("status", "out", "err"))
            if not out.exists():
                break
            code = int(status.read_text()) if status.exists() else child.exitcode
            found.append(subprocess.CompletedProcess(arguments, code, out.read_bytes(), err.read_bytes()))
        return found


def run_command(*arguments, cwd):
    """Returns what came of one command, with text."""
    (done,) = run_commands([arguments], cwd)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


places.load_messages()
