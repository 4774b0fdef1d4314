"""Runs one program once, with or without the preload, and records all that is visible from outside: the exit status,
its output, the files it left, and the descriptors that it and its children had open in the middle of their load.

The middle is a gate: a FIFO in the program's folder that its load reads from. The program stops there until the
harness writes; meanwhile the harness lists every descriptor of every process of the program. For a program that
cannot be made to read a gate, the entry calls Work.look() when the program is known to be at rest. A profiled program
is held there until the helper thread has loaded the exporter, so that the descriptors are those of a process in which
all parts of the profiler are at work.

A third run has the preload and none of the profiler's variables: there, too, the program's output must be equal byte
for byte, although (or because) no receiver is where its profiles would go.
"""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from profiled import LIBRARY, Instance, Receiver, attributes_of, check_conformance  # noqa: E402
from waiting import eventually  # noqa: E402

GATE = "gate"
TYPES = os.environ.get("TYPES")  # of profiles, in place of the default ones: `TYPES=all test/apps/run`
LIMIT_S = 180  # for one run: all loads are bounded to a fraction of this
STABLE_POLLS = 4  # equal lists in a row, PAUSE_S apart, of a process at rest
PAUSE_S = 0.05
HELPER_WAIT_S = 5.0
EXPORTER = "libotelprof-flush.so"


class Failure(Exception):
    """Is raised if the load itself could not be run: there is no verdict about the preload."""


# --- what is visible of processes ---


def read_bytes(path):
    try:
        return Path(path).read_bytes()
    except OSError:  # the process has ended meanwhile
        return b""


def processes():
    """Returns pid -> (parent, session, state) of every process."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = read_bytes(f"/proc/{entry}/stat").rpartition(b")")[2].split()
            if fields:
                found[int(entry)] = (int(fields[1]), int(fields[3]), fields[0])
    return found


def family(root):
    """Returns the living processes that descend from `root` or are of its session."""
    everything = processes()
    members = {root}
    grew = True
    while grew:
        more = {
            pid for pid, (parent, session, _) in everything.items()
            if parent in members or session == root
        } - members
        members |= more
        grew = bool(more)
    return sorted(pid for pid in members if pid in everything and everything[pid][2] != b"Z")


def describe(target, folder):
    """Returns what a descriptor refers to, without what differs from run to run by nature."""
    target = re.sub(r"^(socket|pipe|anon_inode):(\[\d+\])?", r"\1 ", target)
    target = target.replace(str(folder), "FOLDER")
    target = re.sub(r"FOLDER/tmp/[^ ]*", "FOLDER/tmp/*", target)
    target = re.sub(r"/dev/shm/[^ ]*", "/dev/shm/*", target)
    return re.sub(r"\b\d{3,}\b", "N", target)


def descriptors_of(pid, folder):
    """Returns number -> what it refers to; None if the process has ended."""
    found = {}
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            found[int(number)] = describe(os.readlink(f"/proc/{pid}/fd/{number}"), folder)
    except OSError:
        return None
    return found


def has_helper(pid):
    return EXPORTER.encode() in read_bytes(f"/proc/{pid}/maps")


def files_of(folder):
    """Returns relative path -> hash of every regular file, target of every link."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            relative = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[relative] = os.readlink(path)
            elif os.path.isfile(path):
                found[relative] = hashlib.sha256(read_bytes(path)).hexdigest()
    return found


# --- one run ---


class Work:
    """Is one run of one program, which a catalogue entry's drive() uses: write() and gate() prepare the folder, run()
    runs a command to its end, start(), look() and stop() drive a server, saw() adds other results to compare."""

    def __init__(self, scratch, profiled, ahead=(), behind=(), configured=True):
        """`ahead` and `behind`: other libraries to preload, before and after ours. `configured`: with a receiver, and
        settings that export short processes, too; or at default settings."""
        self.profiled = profiled
        self.configured = profiled and configured
        self.folder = Path(scratch) / "work"
        self.scratch = Path(scratch)
        self.log = self.scratch / "otelprof.log"
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        self.receiver = Receiver() if self.configured else None
        self.library = self._copy_of_ours()
        self.environment = self._environment(ahead, behind)
        self.seen = {}  # results to compare: name -> value
        self.helpers = 0  # processes with the exporter loaded, the most of all looks
        self.looks = 0
        self.cpu_s = 0.0  # of all processes that ended, by the kernel
        self.used_s = {}  # pid -> CPU time used until the look at rest
        self.started = []
        self.gates = 0
        self.trouble = ""
        self.only = b""  # the look takes processes whose command line this matches
        self.numbered = True  # compares the numbers of descriptors, not only what they are
        self.ignored = "$^"  # descriptors that are not compared

    def _copy_of_ours(self):
        """Copies our library to where a process of any user can read it, wherever the build is."""
        for name in (LIBRARY.name, EXPORTER):
            shutil.copy(LIBRARY.parent / name, self.scratch)
        self.log.touch()
        self.log.chmod(0o666)
        return self.scratch / LIBRARY.name

    def _environment(self, ahead, behind):
        kept = {
            k: v for k, v in os.environ.items()
            if k in ("PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_AUTO_INSTALL", "GOROOT")
        }
        kept.setdefault("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
        kept.update(HOME=str(self.folder), TMPDIR=str(self.folder / "tmp"), LC_ALL="C.UTF-8", TZ="UTC")
        ours = []
        if self.profiled:
            ours = [str(self.library)]
        if self.configured:
            kept["OTEL_EXPORTER_OTLP_ENDPOINT"] = self.receiver.url
            kept["OTEL_PROFILER_SHUTDOWN_TIMEOUT"] = "20000"
            kept["OTEL_PROFILER_LOG_FILE"] = str(self.log)
            kept["OTEL_PROFILER_MIN_LIFETIME"] = "100"
            kept["OTEL_PROFILER_INCLUDE"] = "bash,dash,mksh,zsh,sort,gawk"  # excluded by default
            if TYPES:
                kept["OTEL_PROFILER_TYPES"] = TYPES
            kept["OTEL_PROFILE_EXPORT_INTERVAL"] = "500"  # exports processes that end by _exit, too
        preload = [*map(str, ahead), *ours, *map(str, behind)]
        if preload:
            kept["LD_PRELOAD"] = ":".join(preload)
        return kept

    # preparation

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def gate(self, text="\n"):
        """Makes the FIFO `gate`. Its reader gets `text`, after the look."""
        os.mkfifo(self.folder / GATE)
        self.gate_text = textwrap.dedent(text).encode()
        self.gates += 1

    def prepare(self, command, **options):
        """Runs a command that is not under test: without the preload."""
        environment = {k: v for k, v in self.environment.items() if not k.startswith("LD_PRELOAD")}
        done = subprocess.run(
            [str(part) for part in command], cwd=self.folder, env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False, **options
        )
        if done.returncode != 0:
            raise Failure(f"{command[0]} ended with {done.returncode}: {done.stderr.decode()[-300:]}")
        return done.stdout.decode()

    # running

    def start(self, command, stdin=b"", env=None, user=None):
        """Starts a command in a session of its own."""
        number = len(self.started)
        out = open(self.scratch / f"stdout{number}", "w+b")
        err = open(self.scratch / f"stderr{number}", "w+b")
        given = open(self.scratch / f"stdin{number}", "w+b")
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            [str(part) for part in command], cwd=self.folder,
            env={**self.environment, **self._log_of(user), **(env or {})}, stdin=given, stdout=out, stderr=err,
            start_new_session=True, user=user, group=user, extra_groups=[] if user else None,
        )
        process.files = (given, out, err)
        self.started.append(process)
        return process

    def _log_of(self, user):
        """Returns the log file: no process writes log lines to another user's file."""
        if not (self.profiled and user):
            return {}
        log = self.scratch / f"otelprof-{user}.log"
        log.touch()
        shutil.chown(log, user, user)
        return {"OTEL_PROFILER_LOG_FILE": str(log)}

    def finish(self, process, timeout=LIMIT_S):
        """Waits for the command's end. Returns (status, stdout, stderr)."""
        end = time.monotonic() + timeout
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                self.kill(process)
                raise Failure(f"{process.args[0]} did not end within {timeout} s")
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s += usage.ru_utime + usage.ru_stime
        texts = []
        for file in process.files[1:]:
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        for file in process.files:
            file.close()
        return process.returncode, *texts

    def stop(self, process, number=signal.SIGTERM):
        """Signals a server and waits for its end; returns its status."""
        os.kill(process.pid, number)
        return self.finish(process, timeout=60)

    def run(self, command, name="", stdin=b"", clean=lambda text: text, timeout=LIMIT_S, **options):
        """Runs a command to its end, opens the gate if there is one, and keeps the results. `clean` removes from its
        output what differs by nature."""
        process = self.start(command, stdin, **options)
        if self.gates:
            attendant = threading.Thread(target=self._attend_gate, args=(process,))
            attendant.start()
        status, out, err = self.finish(process, timeout)
        if self.gates:
            attendant.join()
            self.gates = 0
            if not self.looks or self.trouble:
                raise Failure(self.trouble or f"{command[0]} never came to its gate; it said {err[-500:]}")
            os.unlink(self.folder / GATE)
        self.saw(f"{name} status", status)
        self.saw(f"{name} stdout", clean(out))
        self.saw(f"{name} stderr", clean(err))
        return status, out, err

    def _attend_gate(self, process):
        def opened():
            try:
                return os.open(self.folder / GATE, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # no reader yet
                    raise

        try:
            writer = eventually(opened, "a reader of the gate", unless=lambda: process.returncode, holds=lambda file: file is not None)
        except AssertionError:  # the process has ended
            return
        try:
            self._wait_for_reader(process)
            self.look(process)
            os.write(writer, self.gate_text)
        except OSError as error:
            self.trouble = f"the gate: {error}"
        finally:
            os.close(writer)

    def _wait_for_reader(self, process):
        """Waits until the reader's open returns, which ours lets go: on a busy machine that is later."""
        with contextlib.suppress(AssertionError):  # it is looked at all the same
            eventually(lambda: any(f"FOLDER/{GATE}" in (descriptors_of(pid, self.folder) or {}).values() for pid in family(process.pid)),
                       "the gate's reader", timeout_s=20, unless=lambda: process.returncode)

    def look(self, process, label=""):
        """Lists the descriptors of the process and its descendants, which are at rest."""
        self._wait_for_helper(process)
        equal, last = 0, None
        end = time.monotonic() + 20
        while equal < STABLE_POLLS and time.monotonic() < end:
            time.sleep(PAUSE_S)
            lists = self._lists(process)
            equal = equal + 1 if lists == last else 1
            last = lists
        self.looks += 1
        self.saw(f"descriptors{label or ' in the middle'}", "\n".join(last or ["none: it has ended"]))

    def note_cpu(self, process):
        """Notes CPU time that the profiles of the process and its descendants must have, each its own."""
        for pid in family(process.pid):
            fields = read_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            self.used_s[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _lists(self, process):
        """Returns one line a process, sorted: its name and descriptors."""
        lines = []
        for pid in family(process.pid):
            found = descriptors_of(pid, self.folder)
            if found is None or not re.search(self.only, read_bytes(f"/proc/{pid}/cmdline")):
                continue
            name = read_bytes(f"/proc/{pid}/comm").decode().strip()
            each = [f"{n if self.numbered else ''}={found[n]}" for n in sorted(found)
                    if not re.search(self.ignored, found[n])]
            lines.append(f"{name}: " + ", ".join(each if self.numbered else sorted(each)))
        return sorted(lines)

    def _wait_for_helper(self, process):
        if not self.profiled:
            return
        with contextlib.suppress(AssertionError):  # the verdict names a process without a helper
            count = eventually(lambda: sum(map(has_helper, family(process.pid))), "a helper", timeout_s=HELPER_WAIT_S)
            self.helpers = max(self.helpers, count)

    def saw(self, name, value):
        name = name.strip()
        while name in self.seen:
            name += "+"
        self.seen[name] = value

    def saw_files(self, ignore=()):
        """Compares what the program left in its folder, besides `ignore` (prefixes)."""
        left = {k: v for k, v in files_of(self.folder).items() if not k.startswith(tuple(ignore))}
        self.saw("files", left)

    def kill(self, process):
        for pid in family(process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def close(self):
        for process in self.started:
            if process.returncode is None:
                self.kill(process)
                process.wait()
        if self.receiver:
            self.receiver.close()

    # the profile

    def instances(self):
        """Returns one instance per process that sent a profile; every export has passed the validator."""
        found = {}
        for request in self.receiver.requests:
            check_conformance(request)
            for resource_profiles in request.resource_profiles:
                attributes = attributes_of(resource_profiles.resource)
                instance = found.setdefault(attributes["service.instance.id"], Instance(attributes))
                for scope in resource_profiles.scope_profiles:
                    for profile in scope.profiles:
                        instance.add(request.dictionary, profile)
        return list(found.values())
