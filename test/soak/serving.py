"""Runs redis-server under load, with the preload and without, in turns."""

import contextlib
import csv
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from watching import BUILD, LIBRARY, MIB, Sink, Verdict, clean_environment, figures, helper_of, look, warnings_in
from ports import reserved_port  # watching finds its folder
from waiting import eventually

MODULE = BUILD / "test/soak/redis_module.so"
KEYS = 5000
SAVE_DELAY_US = 500  # for each key: so a save lasts longer than a process that sends nothing
REQUESTS = 15000  # requests of each command, a turn
COMMANDS = "set,get,incr,sadd,hset,zadd"
RECONNECTIONS = 300  # a turn, each with its own connection
MODULES = 3  # modules loaded and unloaded, a turn
KEPT_MODULES = 12  # files of those unloaded
PAUSE_S = 1.0
# Bytes that jemalloc gave out beyond redis's own requests: the helper's and other libraries'. libdw keeps what it has
# read: with libc's debug information installed 13 MiB at its first name, 22 MiB when 400 of its addresses are known,
# and an idle server meets new ones for an hour.
OTHERS = "malloc's bytes of others"
BOUND = (4 * MIB, "KiB")


class Client:
    """Is one connection, kept; it implements just enough of redis' protocol."""

    def __init__(self, port):
        def connected():
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", port), timeout=60)

        self.socket = eventually(connected, f"redis at port {port}")
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        parts = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        line = self.file.readline()
        if line[:1] == b"-" or not line:
            raise OSError(f"{' '.join(map(str, words))}: {line.decode().strip() or 'no answer'}")
        if line[:1] == b"$":
            return self.file.read(int(line[1:]) + 2)[:-2].decode()
        return line[1:].decode().strip()

    def info(self, section):
        return dict(line.split(":", 1) for line in self.ask("INFO", section).splitlines() if ":" in line)

    def close(self):
        self.file.close()
        self.socket.close()


class Children(threading.Thread):
    """Reads once each child that lived long enough to have a helper."""

    def __init__(self, pid, seen):
        super().__init__(daemon=True)
        self.pid = pid
        self.seen = seen
        self.done = set()
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.1):
            try:
                children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
                for child in set(children) - self.done:
                    if "libotelprof-flush" in Path(f"/proc/{child}/maps").read_text() and helper_of(child):
                        self.add(child)
            except OSError:
                continue

    def add(self, child):
        time.sleep(0.5)  # its helper has loaded what it needs
        facts = look(child)
        if facts and facts["the helper's descriptors"] is not None:
            self.done.add(child)
            for name, figure in self.seen.items():
                figure.add(facts[name])


class Server:
    """Is one redis-server, and what was seen of it."""

    def __init__(self, folder, environment):
        self.folder = Path(folder)
        self.folder.mkdir()
        self.port = reserved_port()
        self.output = open(self.folder / "output", "w+")
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
             "--enable-module-command", "yes", "--rdb-key-save-delay", str(SAVE_DELAY_US)],
            env={**clean_environment(), **environment}, stdin=subprocess.DEVNULL, stdout=self.output,
            stderr=subprocess.STDOUT,
        )
        self.client = Client(self.port)
        self.seen = figures(**{OTHERS: BOUND})
        self.children = Children(self.process.pid, figures())
        self.children.start()
        self.rates = []  # requests a second
        self.saves = self.loads = 0

    def benchmark(self, *options):
        done = subprocess.run(
            ["redis-benchmark", "-p", str(self.port), "-c", "20", "-P", "1", "--csv", *map(str, options)],
            env=clean_environment(), capture_output=True, text=True, timeout=300, check=True,
        )
        return [float(row["rps"]) for row in csv.DictReader(done.stdout.splitlines())]

    def load_modules(self):
        """Loads modules, each under a name that never was. The last stays until the next turn: long enough for its
        allocations to be named. Its file goes when its export has been made."""
        for _ in range(MODULES):
            if self.loads:
                self.client.ask("SOAK.WORK")
                self.client.ask("MODULE", "UNLOAD", "soak")
            self.loads += 1
            path = self.folder / f"module_{self.loads}.so"
            shutil.copy(MODULE, path)
            path.chmod(0o755)
            self.client.ask("MODULE", "LOAD", path)
            (self.folder / f"module_{self.loads - KEPT_MODULES}.so").unlink(missing_ok=True)
        self.client.ask("SOAK.WORK")

    def turn(self):
        """Makes some seconds of load under a save, then reads the figures at rest."""
        self.client.ask("BGSAVE")
        rates = self.benchmark("-n", REQUESTS, "-r", KEYS, "-d", "100", "-t", COMMANDS)
        self.rates.append(len(rates) / sum(1 / rate for rate in rates))
        self.load_modules()
        time.sleep(PAUSE_S)
        self.benchmark("-n", RECONNECTIONS, "-k", "0", "-t", "ping_mbulk")
        eventually(lambda: self.client.info("persistence")["rdb_bgsave_in_progress"] == "0", "the end of the save")
        self.saves += 1
        eventually(lambda: self.client.info("clients")["connected_clients"] == "1", "the benchmark's last connection to be closed")
        self.look()
        time.sleep(PAUSE_S)

    def look(self):
        memory = self.client.info("memory")
        facts = look(self.process.pid)
        used = int(memory["used_memory"])
        facts["anonymous memory"] -= used
        facts[OTHERS] = int(memory["allocator_allocated"]) - used
        for name, figure in self.seen.items():
            figure.add(facts[name])

    def end(self):
        saved = self.client.info("persistence")["rdb_last_bgsave_status"]
        self.children.ended.set()
        self.children.join()
        self.client.close()
        self.process.terminate()
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.output.close()
        return status, saved


def serve(seconds, servers, sink, tell):
    """Loads both in turns."""
    begin = told = time.monotonic()
    while time.monotonic() < begin + seconds:
        for server in servers:
            server.turn()
        if time.monotonic() >= told + 60:
            told = time.monotonic()
            now = {name: figure.show(figure.values[-1]) for name, figure in servers[0].seen.items()}
            tell(f"{told - begin:6.0f} s  {sum(sink.exports.values())} exports, {servers[0].saves} saves  {now}")


def soak_redis(seconds, tell=print):
    """Returns a Verdict after that many seconds."""
    verdict = Verdict()
    servers = []
    with tempfile.TemporaryDirectory(prefix="otelprof-soak-") as scratch:
        sink = Sink()
        log = Path(scratch) / "otelprof.log"
        ours = {"LD_PRELOAD": str(LIBRARY), "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url, "OTEL_PROFILER_LOG_FILE": str(log)}
        try:
            for name, environment in (("redis", ours), ("redis without us", {})):
                servers.append(Server(Path(scratch) / name.replace(" ", "_"), environment))
            serve(seconds, servers, sink, tell)
            for server in servers:
                status, saved = server.end()
                verdict.expect(
                    (status, saved) == (0, "ok"), f"{server.folder.name} ended with {status}, its last save was {saved}"
                )
        finally:
            for server in servers:
                server.process.kill()
        sink.close()
        judge(verdict, sink, *servers, seconds)
        verdict.problems += warnings_in(log)
    return verdict


def judge(verdict, sink, profiled, plain, seconds):
    verdict.judge(profiled.seen, "redis")
    verdict.judge(profiled.children.seen, "its children that saved")
    verdict.show(plain.seen, "redis without us")
    print_rates(verdict, profiled, plain)
    judge_exports(verdict, sink, profiled, seconds)


def print_rates(verdict, profiled, plain):
    """Prints rates for the reader: another's load on the machine is no fact about the profiler."""
    third = max(len(plain.rates) // 3, 1)
    for title, part in (("all", slice(None)), ("first third", slice(third)), ("last third", slice(-third, None))):
        ours, theirs = median(profiled.rates[part]), median(plain.rates[part])
        verdict.lines.append(f"requests a second, {title}: {ours:.0f} of {theirs:.0f} without us ({ours / theirs:.3f})")


def judge_exports(verdict, sink, server, seconds):
    pid = server.process.pid
    exports = sink.exports.get(pid, 0)
    verdict.lines.append(
        f"{server.saves} saves, {server.loads} modules, {len(server.rates) * RECONNECTIONS} reconnections; {exports} "
        f"exports of the server, {sum(sink.exports.values()) - exports} of {len(sink.exports) - 1} children, "
        f"{sink.bytes / MIB:.1f} MiB; dropped: {sink.dropped_sums() or 'nothing'}"
    )
    verdict.expect(exports >= seconds / 20, f"{exports} exports in {seconds} s, at one in ten")
    verdict.problems += sink.lost() + sink.problems[:5]
