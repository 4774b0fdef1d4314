"""Runs commands on the sides of a comparison: in environments without the preload and with it.

All sides differ in nothing but the preload and its variables. With it, every program is profiled, shells and tools
included, by all profile types, and exports five times a second to a sink here.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

TEST = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TEST / "apps"))
sys.path.insert(0, str(TEST / "lib"))

from harness import EXPORTER, LIBRARY, family  # noqa: E402
from otlp_sink import OtlpSink  # noqa: E402

WITHOUT, WITH, AT_ONCE = "without", "with", "with, at once"
PROFILED = {
    "OTEL_PROFILER_TYPES": "cpu,alloc,heap,mmap",
    "OTEL_PROFILER_EXCLUDE": "none",
    "OTEL_PROFILE_EXPORT_INTERVAL": "200",
}
# The second round: every process loads the exporter at its start and sends, however short its life.
SIDES = {
    WITHOUT: {},
    WITH: PROFILED,
    AT_ONCE: {**PROFILED, "OTEL_PROFILER_MIN_LIFETIME": "0"},
}


class Sink(OtlpSink):
    """Keeps of an export only that it came."""

    def __init__(self):
        self.exports = 0
        super().__init__(self._count)

    def _count(self, body, headers):
        self.exports += 1


class Side:
    """Is one environment, and the folder that its commands may write into."""

    def __init__(self, name):
        self.name = name
        self.scratch = Path(tempfile.mkdtemp(prefix="otelprof-suites-"))
        self.scratch.chmod(0o755)  # some tests give up root
        self.log = self.scratch / "otelprof.log"
        self.sink = Sink() if name != WITHOUT else None
        self.environment = {
            **{k: v for k, v in os.environ.items() if k == "PATH"},
            "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb",
        }
        if self.sink:
            self._preload()

    def _preload(self):
        for name in (LIBRARY.name, EXPORTER):
            shutil.copy(LIBRARY.parent / name, self.scratch)
        self.log.touch()
        self.log.chmod(0o666)
        self.environment.update(
            SIDES[self.name], LD_PRELOAD=str(self.scratch / LIBRARY.name),
            OTEL_EXPORTER_OTLP_ENDPOINT=self.sink.url, OTEL_PROFILER_LOG_FILE=str(self.log),
        )

    def exports(self):
        return self.sink.exports if self.sink else 0

    def complaints(self):
        """Returns what the preload logged: line without its numbers -> how often."""
        found = {}
        for line in self.log.read_text(errors="replace").splitlines() if self.sink else ():
            line = re.sub(r"\d+", "N", line)
            found[line] = found.get(line, 0) + 1
        return found

    def run(self, command, cwd, limit_s, env=None):
        """Runs a command to its end, or for `limit_s`. Returns (how it ended, stdout and stderr together)."""
        home = self.scratch / "home"
        shutil.rmtree(home, ignore_errors=True)
        (home / "tmp").mkdir(parents=True)
        home.chmod(0o755)
        (home / "tmp").chmod(0o1777)
        environment = {**self.environment, "HOME": str(home), "TMPDIR": str(home / "tmp"), **(env or {})}
        output = self.scratch / "output"
        with open(output, "wb") as file:
            process = subprocess.Popen(
                [str(part) for part in command], cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            )
            try:
                ended = how_it_ended(process.wait(timeout=limit_s))
            except subprocess.TimeoutExpired:
                ended = f"did not end within {limit_s} s"
            finally:
                end_all(process)
        return ended, output.read_text(errors="replace")

    def close(self):
        if self.sink:
            self.sink.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


def how_it_ended(status):
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit {status}"


def end_all(process):
    """Ends what is left of a command's session."""
    for pid in family(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
