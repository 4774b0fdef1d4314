"""Runs churn.c under the preload, and beside it without."""

import json
import subprocess
import tempfile
import time
from pathlib import Path

from watching import BUILD, LIBRARY, MIB, Sink, Verdict, clean_environment, figures, look, warnings_in
from waiting import eventually  # watching finds its folder

FOLDER = BUILD / "test/soak"
PLUGIN = BUILD / "test/programs/plugin.so"
POLL_S = 5
MIN_POLLS = 60  # a short run polls more often
# Bytes of malloc that the program does not hold: the helper's, the loader's, libc's. The helper reads up to 80 KiB of
# each library's file; it frees this memory for more than 64 files at once, every few minutes.
OTHERS = "malloc's bytes of others"
BOUND = (2 * MIB, "KiB")


class Churn:
    """Holds one process and what was seen of it."""

    def __init__(self, scratch, environment):
        self.copies = Path(scratch)
        self.copies.mkdir()
        self.errors = open(self.copies / "stderr", "w+")
        self.seen = figures(**{OTHERS: BOUND})
        self.process = subprocess.Popen(
            [FOLDER / "churn", PLUGIN, self.copies],
            env={**clean_environment(), "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0", **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )

    def say(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def look(self):
        """Reads the figures while the program pauses. False: it has ended."""
        try:
            self.say()
            books = json.loads(self.process.stdout.readline())
            facts = look(self.process.pid)
            self.say()
        except (OSError, ValueError):
            return False
        if not facts:
            return False
        facts["anonymous memory"] -= books["held"]
        facts[OTHERS] = books["allocated"] - books["held"]
        for name, figure in self.seen.items():
            figure.add(facts[name])
        return True

    def end(self):
        try:
            self.process.stdin.close()
            status = self.process.wait(60)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            status = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read()
        self.errors.close()
        return status, said


def soak_churn(seconds, tell=print):
    """Returns a Verdict after that many seconds."""
    verdict = Verdict()
    with tempfile.TemporaryDirectory(prefix="otelprof-soak-") as scratch:
        sink = Sink()
        log = Path(scratch) / "otelprof.log"
        profiled = Churn(Path(scratch) / "profiled", {
            "LD_PRELOAD": str(LIBRARY), "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url,
            "OTEL_PROFILER_LOG_FILE": str(log), "OTEL_PROFILE_EXPORT_INTERVAL": "1000",
            "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000",
        })
        plain = Churn(Path(scratch) / "plain", {})
        begin = time.monotonic()
        told = begin
        eventually(lambda: profiled.process.poll() is not None or sink.exports.get(profiled.process.pid), "the first export")
        while time.monotonic() < begin + seconds and profiled.look() and plain.look():
            if time.monotonic() >= told + 60:
                told = time.monotonic()
                now = {name: figure.show(figure.values[-1]) for name, figure in profiled.seen.items() if figure.values}
                tell(f"{told - begin:6.0f} s  {sum(sink.exports.values())} exports  {now}")
            time.sleep(min(POLL_S, seconds / MIN_POLLS))
        for name, churn in (("churn", profiled), ("churn without us", plain)):
            status, said = churn.end()
            verdict.expect(status == 0 and not said, f"{name} ended with {status}, {said[-300:]!r}")
        sink.close()
        verdict.judge(profiled.seen, "churn")
        verdict.show(plain.seen, "churn without us")
        judge_exports(verdict, sink, profiled.process.pid, seconds)
        verdict.problems += warnings_in(log)
    return verdict


def judge_exports(verdict, sink, pid, seconds):
    exports = sink.exports.get(pid, 0)
    children = len(sink.exports) - 1
    verdict.lines.append(
        f"{exports} exports of churn, {sum(sink.exports.values()) - exports} of {children} of its children, "
        f"{sink.bytes / MIB:.1f} MiB; dropped: {sink.dropped_sums() or 'nothing'}"
    )
    verdict.expect(exports >= seconds / 4, f"{exports} exports in {seconds} s, at one a second")
    verdict.problems += sink.lost() + sink.problems[:5]
