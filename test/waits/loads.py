"""Has the programs whose waits are compared: how each is started, its work for some seconds, and how it is ended."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from ports import reserved_port  # noqa: E402
from waiting import eventually  # noqa: E402

HERE = Path(__file__).resolve().parent
POSTGRES = "/usr/lib/postgresql/15/bin"
START_S = 30


class Unavailable(Exception):
    """Is raised if the program is not available here."""


def client_run(command):
    """Runs a client that is not under test."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def wait_for(answers, what):
    eventually(answers, f"an answer of {what}", timeout_s=START_S)


def accepts(kind, address):
    try:
        with socket.socket(kind) as s:
            s.connect(address)
    except OSError:
        return False
    return True


def paced(kind, address, message, seconds, each, again=False):
    """Makes requests on one connection, or each on a new one, and rests `each` seconds after a response."""
    end = time.monotonic() + seconds
    s = None
    while time.monotonic() < end:
        if s is None:
            s = socket.socket(kind)
            s.connect(address)
        s.sendall(message)
        s.recv(65536)
        if again:
            s.close()
            s = None
        time.sleep(each)
    if s:
        s.close()


def in_threads(*works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Load:
    """Is a program. `work()` loads it for some seconds: at rest between requests, or as fast as it can."""

    name = ""
    needs = ()  # commands
    user = None
    can_be_busy = True
    interval_ms = 1000  # between two exports
    unknown = "$^"  # names of threads whose begin no hook sees

    def __init__(self, folder):
        self.folder = folder
        self.port = reserved_port()

    def prepare(self, build):
        """Builds what the program needs, before it is started."""

    def command(self, seconds):
        raise NotImplementedError

    def ready(self):
        """Returns whether the program can be given work."""
        return True

    def work(self, seconds, busy):
        """Gives it work. A program that works by itself needs none."""

    def stop(self, pid):
        """Lets it end."""
        os.kill(pid, signal.SIGTERM)


class Redis(Load):
    name = "redis-server"
    unknown = "jemalloc_bg_thd"  # its allocator calls libc's pthread_create by the address
    needs = ("redis-server", "redis-cli", "redis-benchmark")

    def command(self, seconds):
        return ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                "--dir", self.folder]

    def ready(self):
        return accepts(socket.AF_INET, ("127.0.0.1", self.port))

    def work(self, seconds, busy):
        at = ("127.0.0.1", self.port)
        if busy:
            self._benchmark(seconds)
            return
        in_threads(
            lambda: paced(socket.AF_INET, at, b"SET a 1\r\n", seconds, 0.004),
            lambda: paced(socket.AF_INET, at, b"LPUSH list 1\r\n", seconds, 0.011),
        )

    def _benchmark(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            client_run(["redis-benchmark", "-p", self.port, "-q", "-n", "20000", "-c", "8", "-t", "set,lpush"])


class Nginx(Load):
    name = "nginx"
    needs = ("nginx", "wrk")

    def command(self, seconds):
        folder = self.folder
        (folder / "page.html").write_text("page\n" * 3000)
        (folder / "nginx.conf").write_text(f"""
            daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log; user root;
            events {{ worker_connections 200; }}
            http {{
                access_log {folder}/access.log;
                client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
                uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e; gzip on; gzip_types *;
                server {{ listen 127.0.0.1:{self.port}; root {folder}; }}
            }}""")
        return ["nginx", "-p", folder, "-c", folder / "nginx.conf"]

    def ready(self):
        return accepts(socket.AF_INET, ("127.0.0.1", self.port))

    def work(self, seconds, busy):
        if busy:
            client_run(["wrk", "-t", "1", "-c", "16", "-d", f"{seconds}s", f"http://127.0.0.1:{self.port}/page.html"])
            return
        ask = b"GET /page.html HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"
        at = ("127.0.0.1", self.port)
        in_threads(
            lambda: paced(socket.AF_INET, at, ask, seconds, 0.004, again=True),
            lambda: paced(socket.AF_INET, at, ask, seconds, 0.007, again=True),
        )

    def stop(self, pid):
        os.kill(pid, signal.SIGQUIT)


class Postgres(Load):
    name = "postgresql"
    needs = (f"{POSTGRES}/postgres", "pgbench")
    user = "postgres"

    def prepare(self, build):
        shutil.chown(self.folder, self.user, self.user)
        self._as_user(f"{POSTGRES}/initdb", "-D", self.folder / "data", "-A", "trust", "--no-locale", "-E", "UTF8")

    def _as_user(self, *command):
        client_run(["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", *command])

    def _bench(self, *arguments):
        client_run(["pgbench", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", *arguments, "postgres"])

    def command(self, seconds):
        return [f"{POSTGRES}/postgres", "-D", self.folder / "data", "-p", self.port, "-k", self.folder, "-h", "127.0.0.1"]

    def ready(self):
        done = subprocess.run([f"{POSTGRES}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False)
        return done.returncode == 0

    def work(self, seconds, busy):
        self._bench("-i", "-q", "-s", "1")
        rate = [] if busy else ["-R", "60"]
        self._bench("-n", "-c", "4", "-j", "1", "-T", seconds, *rate)

    def stop(self, pid):
        os.kill(pid, signal.SIGINT)


class OwnProgram(Load):
    """Is a program that works by itself, and ends by itself."""

    can_be_busy = False

    def stop(self, pid):
        pass

    def work(self, seconds, busy):
        time.sleep(seconds)


class Python(OwnProgram):
    name = "python3"
    needs = ("/usr/bin/python3",)

    def command(self, seconds):
        return ["/usr/bin/python3", HERE / "programs" / "threads.py", seconds]


class Tokio(OwnProgram):
    name = "Rust, tokio"
    needs = ("cargo",)

    def prepare(self, build):
        source = build / "tokio"  # cargo writes beside what it builds
        shutil.copytree(HERE / "programs" / "tokio", source, dirs_exist_ok=True)
        done = subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=source, check=False, capture_output=True)
        if done.returncode:
            raise Unavailable(f"cargo: {done.stderr.decode()[-200:]}")
        self.program = source / "target" / "release" / "waits_tokio"

    def command(self, seconds):
        return [self.program, seconds]


class Cgo(OwnProgram):
    name = "Go, cgo"
    interval_ms = 200  # it ends by exit_group: what came after the last export is lost
    needs = ("go", "gcc")

    def prepare(self, build):
        self.program = build / "cgo"
        subprocess.run(["go", "build", "-o", self.program, "."], cwd=HERE / "programs" / "cgo", check=True,
                       env={**os.environ, "CGO_ENABLED": "1"})

    def command(self, seconds):
        return [self.program, seconds]


LOADS = (Redis, Nginx, Postgres, Python, Tokio, Cgo)
