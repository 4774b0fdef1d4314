"""`otelprof run`: a program under the profiler, with a receiver of our own beside it.

The program has the terminal: its standard streams, its place in the process group and its signals
are what they would be without us, and we end as it ends.
"""

import os
import resource
import signal
import subprocess
import sys
import time

from . import places
from .aggregate import aggregate
from .capture_file import append_message, read_messages
from .flamegraph import page
from .receiver import Receiver
from .report import report

# how long exports of children that outlive the program are waited for
GRACE_SECONDS = 0.3


def environment(endpoint, options):
    env = dict(os.environ)
    preload = [places.library()]
    if env.get("LD_PRELOAD"):
        preload.append(env["LD_PRELOAD"])
    env["LD_PRELOAD"] = ":".join(preload)
    env["OTEL_PROFILES_EXPORTER"] = "otlp"
    env["OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"] = endpoint
    env["OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL"] = "http/protobuf"
    env["OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION"] = "gzip"
    env.setdefault("OTEL_PROFILER_MIN_LIFETIME", "0")
    env.setdefault("OTEL_PROFILE_EXPORT_INTERVAL", "1000")
    # the receiver is next door: a last export may take the time that symbols take
    env.setdefault("OTEL_PROFILER_SHUTDOWN_TIMEOUT", "10000")
    for name, value in (
        ("OTEL_PROFILER_CPU_FREQUENCY", options.frequency),
        ("OTEL_PROFILER_ALLOC_INTERVAL", options.alloc_interval),
        ("OTEL_PROFILER_TYPES", options.types),
    ):
        if value:
            env[name] = value
    return env


def _default_output(command, pid):
    return f"otelprof-{os.path.basename(command)}-{pid}.otlp"


def _restore_signals():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def _start(command, env):
    """Ctrl-C is the program's; we stay until it has ended."""
    inherited = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGQUIT))
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    keep_ignored = signal.SIG_IGN in inherited
    try:
        return subprocess.Popen(
            command, env=env, preexec_fn=None if keep_ignored else _restore_signals
        )
    except OSError as error:
        print(f"otelprof: {command[0]}: {error.strerror}", file=sys.stderr)
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from error


def _forward_termination(child):
    def forward(number, _):
        child.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGHUP, forward)


def _wait(child, receiver, quiet):
    progress = sys.stderr.isatty() and not quiet
    started = time.monotonic()
    while True:
        try:
            status = child.wait(timeout=0.5 if progress else None)
            break
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - started
            print(
                f"\rotelprof: {seconds:.0f} s, {receiver.count} exports",
                end="",
                file=sys.stderr,
                flush=True,
            )
    if progress:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return status


def _end_like(status):
    """A death by signal is passed on as one, without a core file of ours."""
    if status >= 0:
        return status
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(-status, signal.SIG_DFL) if -status not in (9, 19) else None
    os.kill(os.getpid(), -status)
    return 128 - status


def _show(output, options):
    if os.path.getsize(output) == 0:
        print(f"otelprof: {output}: no profile arrived", file=sys.stderr)
        return
    profiles = aggregate(read_messages(output))
    if not options.quiet:
        print("\n" + report(profiles, options.rows), file=sys.stderr)
    print(f"\notelprof: profile in {output}", file=sys.stderr)
    if options.flamegraph:
        with open(options.flamegraph, "w", encoding="utf-8") as file:
            file.write(page(" ".join(options.command), profiles))
        print(f"otelprof: flame graph in {options.flamegraph}", file=sys.stderr)


def run(options):
    output = options.output or _default_output(options.command[0], os.getpid())
    with open(output, "wb") as file:
        receiver = Receiver("127.0.0.1", 0, lambda data: append_message(file, data)).start()
        child = _start(options.command, environment(receiver.endpoint, options))
        _forward_termination(child)
        status = _wait(child, receiver, options.quiet)
        time.sleep(GRACE_SECONDS)
        receiver.stop()
    _show(output, options)
    sys.stderr.flush()
    return _end_like(status)
