"""Makes a root whose /etc/ld.so.preload names a library that can end its programs on request, and reads its record.

TEST_ABORTS in the environment has the library end the process (test/crash/aborts.c): a process that ends so was
profiled, a process that lives was excluded.
"""

import shutil
import signal
import struct

from host_root import Root
from profiled import BUILD

FOLDER = "run/opentelemetry/otelprof/crash"
ABORTED = -signal.SIGABRT
BURNT = 7  # status with which burn ends
NOBODY = 65534
MASK = 2**64 - 1


def hash_words(words):
    """common/hash.h"""
    value = 1
    for word in words:
        value = ((value ^ (word & MASK)) * 0x9E3779B97F4A7C15) & MASK
        value ^= value >> 32
    return value


class Record:
    """Reads the record of one user, in the format of crash_record.h."""

    PAUSES, STARTS = 31, 120
    FORMAT = "<2Q" + "Qq" * PAUSES + "QQQqqqQQ" * STARTS

    def __init__(self, path):
        self.path = path

    def fields(self):
        values = struct.unpack(self.FORMAT, self.path.read_bytes().ljust(8192, b"\0"))  # the file may just be created
        pauses = [list(values[2 + 2 * i:4 + 2 * i]) for i in range(self.PAUSES)]
        first = 2 + 2 * self.PAUSES
        return pauses, [list(values[first + 8 * i:first + 8 * i + 8]) for i in range(self.STARTS)]

    def starts(self):
        """Returns {pid: whether the start has succeeded}."""
        return {start[6]: start[4:6] != [0, 0] for start in self.fields()[1] if start[0]}

    def make_older(self, seconds):
        pauses, starts = self.fields()
        for pause in pauses:
            pause[1] -= seconds * 10**9
        for start in starts:
            start[3] -= seconds * 10**9
            start[7] = hash_words([start[0], start[1], start[2], start[3], start[6]]) if start[0] else 0
        values = [0, 0, *sum(pauses, []), *sum(starts, [])]
        with open(self.path, "r+b") as file:
            file.write(struct.pack(self.FORMAT, *values))


class CrashRoot(Root):
    """Makes the root; /app and /other are the same program."""

    def build(self):
        super().build()
        shutil.copy(BUILD / "test/crash/libotelprof.so", self.folder / "prof")
        for name in ("app", "other"):
            shutil.copy(BUILD / "test/programs/burn", self.folder / name)
        self.configure("OTEL_PROFILER_INCLUDE=app,other,python3*", "OTEL_PROFILER_MIN_LIFETIME=3600000")
        self.crash = self.folder / FOLDER
        self.crash.mkdir(parents=True)
        self.crash.chmod(0o1777)

    def record(self, uid=0):
        return Record(self.crash / f"{uid}.starts")

    def start(self, *command, uid=0, aborts=False, **environment):
        if aborts:
            environment["TEST_ABORTS"] = "1"
        return self.run(uid, command, **environment)

    def app(self, name="app", milliseconds=1, **options):
        """Runs the program and returns its status. Without a crash it prints "burnt" and ends with 7; its stderr has
        the profiler's lines."""
        done = self.start(f"/{name}", str(milliseconds), "1", **options)
        assert (done.stdout, done.returncode) in (("burnt\n", BURNT), ("", ABORTED)), done
        self.said = done.stderr
        return done.returncode

    def crash_three_times(self, **options):
        for _ in range(3):
            assert self.app(aborts=True, **options) == ABORTED
            assert self.said == ""

    def python(self, code, **options):
        return self.start("/usr/bin/python3", "-S", "-c", code, **options)
