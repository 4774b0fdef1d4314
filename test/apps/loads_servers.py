"""Has loads of servers: each is started in the foreground on a port of its own on loopback, loaded by a client that
is not under test, listed while clients are connected and idle, reloaded where that is possible, and stopped as its
manual says."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from harness import Failure, family
from loads_tools import LOADS
from ports import reserved_port
from waiting import eventually

# --- clients ---


def wait_until(holds, what, seconds=30):
    try:
        eventually(holds, what, timeout_s=seconds)
    except AssertionError as error:
        raise Failure(str(error)) from error


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def wait_for_port(port):
    def answers():
        try:
            connect(port).close()
        except OSError:
            return False
        return True

    wait_until(answers, f"nobody listens on port {port}")


def get(port, path="/"):
    """Makes one HTTP request: returns status line and body."""
    with connect(port) as s:
        s.sendall(f"GET {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
        answer = b""
        while part := s.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), body.decode()


def wrk(work, port, connections, path="/", seconds=3):
    """Loads an HTTP server; returns whether every response was good (their number depends on the day)."""
    out = work.prepare(["wrk", "-t", "1", "-c", connections, "-d", f"{seconds}s", f"http://127.0.0.1:{port}{path}"])
    done = int(re.search(r"(\d+) requests in", out).group(1))
    bad = re.findall(r"Socket errors: .*|Non-2xx.*", out)
    return "answered" if done > 100 and not bad else f"{done} answered, {bad}"


def wait_for_processes(process, count, without=()):
    """Waits until there are `count` processes, none of them of `without`."""
    def settled():
        now = set(family(process.pid))
        return len(now) == count and not now & (set(without) - {process.pid})

    wait_until(settled, f"{count} processes of {process.args[0]}")


def lines_of_log(path, kept, cleaned):
    """Returns the sorted set of a log's lines that match `kept`, without what `cleaned` matches."""
    lines = path.read_text(errors="replace").splitlines()
    return sorted({re.sub(cleaned, "", line) for line in lines if re.search(kept, line)})


def end_of(work, process, number):
    status, out, err = work.stop(process, number)
    work.saw("status", status)
    return out, err


def has_open(server, name):
    """Returns whether a process of the server has a file of that name open."""
    for pid in family(server.pid):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if os.path.basename(os.readlink(descriptor)) == name:
                    return True
    return False


# --- redis ---


def redis(work):
    port = reserved_port()
    server = work.start([
        "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", work.folder,
        "--enable-debug-command", "yes", "--logfile", work.folder / "redis.log",
    ])
    ask = lambda *words: work.prepare(["redis-cli", "-p", port, *words]).strip()  # noqa: E731
    wait_for_port(port)
    loads = [("set,get,lpush", "200000"), ("lrange", "5000")]
    for tests, count in loads:
        load = subprocess.Popen(
            ["redis-benchmark", "-p", str(port), "-t", tests, "-n", count, "-q"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        saves = 0
        while load.poll() is None:
            saves += "started" in ask("bgsave")
            time.sleep(0.3)
        work.saw(f"{tests}: load", load.returncode)
        work.saw(f"{tests}: saves", saves > 0)
    wait_until(lambda: "rdb_bgsave_in_progress:0" in ask("info", "persistence"), "the last BGSAVE")
    work.saw("dataset", (ask("debug", "digest"), ask("llen", "mylist"), ask("dbsize")))
    with connect(port), connect(port):
        work.look(server)
    ask("bgsave")
    wait_until(lambda: "rdb_bgsave_in_progress:0" in ask("info", "persistence"), "the last BGSAVE")
    work.saw("verdict", re.findall(r"rdb_last_bgsave_status:\w+", ask("info", "persistence")))
    work.saw("allocator", re.findall(r"mem_allocator:\S+", ask("info", "memory")))
    work.prepare(["redis-cli", "-p", port, "shutdown", "nosave"])
    status, out, err = work.finish(server, 30)
    work.saw("end", (status, out, err))
    work.saw("log", lines_of_log(work.folder / "redis.log", r"# |error|signal", r"^\d+:\w .*? (?=[*#])|pid=\d+"))


# --- memcached ---


def memcached(work):
    port = reserved_port()
    server = work.start(["memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-u", "nobody", "-t", "4"])
    wait_for_port(port)
    clients = [connect(port) for _ in range(8)]
    answers = {}
    for i in range(2500):
        for n, client in enumerate(clients):
            value = str(i) * (1 + i % 40)
            client.sendall(
                f"set {n}k{i % 500} 0 0 {len(value)}\r\n{value}\r\nget {n}k{i * 7 % 500}\r\n".encode()
            )
        for client in clients:
            answer = b""
            while not answer.endswith(b"END\r\n"):
                answer += client.recv(65536)
            kind = answer.split()[0].decode() + (" with value" if b"VALUE" in answer else "")
            answers[kind] = answers.get(kind, 0) + 1
    work.saw("answers", answers)
    work.look(server)
    for client in clients:
        client.close()
    work.saw("output", end_of(work, server, signal.SIGTERM))


# --- HTTP servers ---


def nginx(work):
    port = reserved_port()
    work.numbered = False  # a worker is sent the channels of the others while it opens its own
    (work.folder / "site").mkdir()
    (work.folder / "site" / "page.html").write_text("page\n" * 300)
    shutil.chown(work.folder / "tmp", "nobody", "nogroup")
    work.write("nginx.conf", f"""\
        daemon off; user nobody nogroup; worker_processes 2; pid {work.folder}/pid;
        worker_shutdown_timeout 5s;
        error_log {work.folder}/error.log notice;
        events {{ worker_connections 200; }}
        http {{
            access_log {work.folder}/access.log;
            client_body_temp_path tmp/a; proxy_temp_path tmp/b; fastcgi_temp_path tmp/c;
            uwsgi_temp_path tmp/d; scgi_temp_path tmp/e; gzip on; gzip_min_length 100; gzip_types *;
            server {{ listen 127.0.0.1:{port}; root {work.folder}/site; location /gone {{ return 410 gone; }} }}
        }}
        """)
    server = work.start(["nginx", "-p", work.folder, "-c", work.folder / "nginx.conf"])
    wait_for_port(port)
    work.saw("before", (wrk(work, port, 32, "/page.html"), get(port, "/page.html"), get(port, "/gone")))
    wait_for_processes(server, 3)
    old = family(server.pid)
    work.look(server, " before the reload")
    os.kill(server.pid, signal.SIGHUP)
    wait_for_processes(server, 3, without=old)
    work.saw("after", (wrk(work, port, 32, "/page.html"), get(port, "/missing")[0]))
    work.look(server)
    os.rename(work.folder / "access.log", work.folder / "access.old")
    os.kill(server.pid, signal.SIGUSR1)  # reopens the logs
    wait_until((work.folder / "access.log").exists, "the new access.log")
    wait_until(lambda: not has_open(server, "access.old"), "the workers' opening of the new access.log")
    work.saw("last", get(port, "/page.html"))
    wait_until(lambda: (work.folder / "access.log").read_text(), "a line in the new access.log")
    work.saw("new log", lines_of_log(work.folder / "access.log", "", r"\[.*?\]"))
    work.saw("output", end_of(work, server, signal.SIGQUIT))
    work.saw("log", lines_of_log(work.folder / "error.log", r"exited|alert|emerg|error|warn|crit",
                                 r"^\S+ \S+ |\d+#\d+: |\*\d+ |process \d+|\d+(?= exited)|port: .*"))


def apache(work):
    run_apache(work, "prefork", """\
StartServers 4
MinSpareServers 4
MaxSpareServers 5
ServerLimit 4
MaxRequestWorkers 4
""", 5)


def apache_event(work):
    """Runs Apache, whose workers block every signal."""
    work.numbered = False  # its threads open theirs at the same time
    run_apache(work, "event", """\
StartServers 1
ServerLimit 1
ThreadLimit 8
ThreadsPerChild 8
MaxRequestWorkers 8
MinSpareThreads 1
MaxSpareThreads 8
""", 2)


def run_apache(work, mpm, settings, processes):
    port = reserved_port()
    (work.folder / "page.html").write_text("page\n" * 300)
    modules = "\n".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"
        for name in (f"mpm_{mpm}", "authz_core", "dir", "mime", "deflate", "filter")
    )
    (work.folder / "apache.conf").write_text(f"""{modules}
ServerRoot {work.folder}
ServerName localhost
PidFile {work.folder}/pid
DefaultRuntimeDir {work.folder}/tmp
Mutex file:{work.folder}/tmp
Listen 127.0.0.1:{port}
User nobody
Group nogroup
{settings}
GracefulShutdownTimeout 5
TypesConfig /dev/null
DocumentRoot {work.folder}
AddOutputFilter DEFLATE html
ErrorLog {work.folder}/error.log
<Directory {work.folder}>
    Require all granted
</Directory>
""")
    server = work.start(["apache2", "-DFOREGROUND", "-f", work.folder / "apache.conf"])
    wait_for_port(port)
    work.saw("before", (wrk(work, port, 4, "/page.html"), get(port, "/page.html")))
    wait_for_processes(server, processes)
    work.look(server, " before the restart")
    old = family(server.pid)
    os.kill(server.pid, signal.SIGUSR1)
    wait_for_processes(server, processes, without=old)
    work.saw("after", (wrk(work, port, 4, "/page.html"), get(port, "/missing")[0]))
    wait_for_processes(server, processes)
    work.look(server)
    work.saw("output", end_of(work, server, signal.SIGWINCH))
    work.saw("log", lines_of_log(work.folder / "error.log", r"exit|AH000|error|warn|crit",
                                 r"^\[.*?\] |\[pid \d+.*?\] |child \d+|pid \d+"))


def haproxy(work):
    """Reloads twice: the master ignores SIGPROF when it executes itself, and its workers inherit that."""
    front, back = reserved_port(), reserved_port()
    work.numbered = False  # two threads open theirs at the same time
    work.write("haproxy.cfg", f"""\
        global
            nbthread 2
            maxconn 500
            stats socket {work.folder}/control level admin
        defaults
            mode http
            timeout connect 5s
            timeout client 5s
            timeout server 5s
        frontend front
            bind 127.0.0.1:{front}
            default_backend back
        backend back
            http-reuse never
            server one 127.0.0.1:{back} check inter 60s
        frontend answers
            bind 127.0.0.1:{back}
            http-request return status 200 content-type text/plain string "an answer"
        """)
    server = work.start(["haproxy", "-W", "-db", "-f", work.folder / "haproxy.cfg"])
    wait_for_port(front)
    work.saw("before", (wrk(work, front, 16), get(front)[1]))
    for _ in range(2):
        old = family(server.pid)
        os.kill(server.pid, signal.SIGUSR2)  # the master executes itself again
        wait_for_processes(server, 2, without=old)
        wait_for_port(front)
        time.sleep(0.5)  # until the master has taken note of its worker
    work.saw("after", (wrk(work, front, 16), get(front)[1]))
    work.look(server)
    out, err = end_of(work, server, signal.SIGTERM)
    clean = lambda text: re.sub(r"\(\d+\)|\[\d+\]|\d+/\d+|conns: .*", "", text)  # noqa: E731
    work.saw("output", (sorted(clean(out).splitlines()), sorted(clean(err).splitlines())))


# --- php-fpm ---


def fpm_pool(work, page, max_requests=0, timeout_s=0):
    """Returns (server, ask): a pool of three workers, which the master kills after that time, and a client."""
    socket_path = work.folder / "tmp" / "fpm"
    work.ignored = r"/\.ZendSem\."  # its name is random
    work.numbered = False  # which worker was renewed last, and took the lowest numbers, is chance
    shutil.copy(LOADS / page, work.folder)
    work.write("fpm.conf", f"""\
        [global]
        error_log = {work.folder}/error.log
        log_level = notice
        daemonize = no
        process_control_timeout = {timeout_s}
        [pool]
        listen = {socket_path}
        user = nobody
        group = nogroup
        pm = static
        pm.max_children = 3
        pm.max_requests = {max_requests}
        catch_workers_output = yes
        access.log = {work.folder}/access.log
        access.format = "%m %r %s"
        php_admin_value[memory_limit] = 64M
        """)
    server = work.start([*fpm_binary(), "-F", "-R", "-y", "fpm.conf", "-p", work.folder])

    def ask(seed):
        given = {"SCRIPT_FILENAME": work.folder / page, "SCRIPT_NAME": f"/{page}", "REQUEST_METHOD": "GET",
                 "QUERY_STRING": f"seed={seed}"}
        return work.prepare(["env", *(f"{k}={v}" for k, v in given.items()), "cgi-fcgi", "-bind", "-connect",
                             socket_path])

    wait_until(socket_path.exists, "php-fpm's socket")
    return server, ask


def php_fpm(work):
    """Runs a pool whose workers give up root, and which is reloaded while one of them responds."""
    server, ask = fpm_pool(work, "page.php", max_requests=20)
    work.saw("before", [ask(i) for i in range(80)])
    wait_for_processes(server, 4)
    old = family(server.pid)
    work.look(server, " before the reload")
    os.kill(server.pid, signal.SIGUSR2)  # the master executes itself again
    wait_for_processes(server, 4, without=old)
    work.saw("after", [ask(i) for i in range(80, 120)])
    wait_for_processes(server, 4)
    work.look(server)
    out, err = end_of(work, server, signal.SIGQUIT)
    work.saw("output", (out, re.sub(r"^\[.*?\] ", "", err, flags=re.M)))
    work.saw("access", (work.folder / "access.log").read_text())
    work.saw("log", lines_of_log(work.folder / "error.log", r"ERROR|WARNING|ALERT|exiting|signal|bye",
                                 r"^\[.*?\] |pid \d+|child \d+|after \S+ seconds"))


def php_fpm_at_work(work):
    """Runs code that allocates nothing of libc's: each process has its CPU time in a profile of its own."""
    server, ask = fpm_pool(work, "page_burns.php", timeout_s=60)
    work.saw("answers", [ask(i) for i in range(12)])
    wait_for_processes(server, 4)
    work.note_cpu(server)
    end_of(work, server, signal.SIGQUIT)


def fpm_binary():
    return sorted(str(path) for path in Path("/usr/sbin").glob("php-fpm*"))[:1]


# --- sshd ---


def sshd(work):
    """Runs sshd: each connection is a process of its own, and its first half a child in a sandbox."""
    port = reserved_port()
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    for name in ("host", "key"):
        work.prepare(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name])
    given = {"ListenAddress": f"127.0.0.1:{port}", "HostKey": work.folder / "host", "PidFile": "none",
             "AuthorizedKeysFile": work.folder / "key.pub", "StrictModes": "no", "UsePAM": "no"}
    options = [part for name, value in given.items() for part in ("-o", f"{name}={value}")]
    server = work.start(["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *options])
    wait_for_port(port)
    ask = lambda *words: work.prepare([  # noqa: E731
        "ssh", "-F", "none", "-p", port, "-i", work.folder / "key", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
        "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "127.0.0.1", *words])
    work.saw("answers", [ask("echo", "answer", str(i)) for i in range(10)])
    work.saw("much", len(ask("head -c 50000000 /dev/zero")))
    with connect(port) as s:
        s.sendall(b"SSH-2.0-idle\r\n")
        wait_for_processes(server, 3)
        work.look(server)
    wait_for_processes(server, 1)
    out, err = end_of(work, server, signal.SIGTERM)
    work.saw("output", (out, sorted(re.sub(r"port \d+|SHA256:\S+", "", err).splitlines())))


# --- postgresql ---

POSTGRES = "/usr/lib/postgresql/15/bin"


def idle_session(port):
    """Returns a connection that has logged in and waits: (the socket)."""
    s = connect(port)
    body = b"\x00\x03\x00\x00user\0postgres\0database\0postgres\0\0"
    s.sendall((len(body) + 4).to_bytes(4, "big") + body)
    answer = b""
    while not answer.endswith(b"Z\0\0\0\5I"):
        answer += s.recv(4096)
    return s


def postgres(work):
    shutil.chown(work.folder, "postgres", "postgres")
    shutil.chown(work.folder / "tmp", "postgres", "postgres")
    data, port = work.folder / "data", reserved_port()
    work.run([f"{POSTGRES}/initdb", "-D", data, "-A", "trust", "-N", "--no-locale", "-E", "UTF8"], name="initdb",
             user="postgres")
    server = work.start([
        f"{POSTGRES}/postgres", "-D", data, "-p", port, "-k", work.folder / "tmp", "-h", "127.0.0.1",
        "-c", "fsync=off", "-c", "autovacuum=off", "-c", "max_parallel_workers_per_gather=2",
        "-c", "min_parallel_table_scan_size=0", "-c", "parallel_setup_cost=0", "-c", "shared_buffers=64MB",
    ], user="postgres")
    at = ["-h", "127.0.0.1", "-p", port, "-U", "postgres"]
    ready = lambda: subprocess.run(  # noqa: E731
        [f"{POSTGRES}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False).returncode == 0
    wait_until(ready, "postgres")
    work.prepare([f"{POSTGRES}/pgbench", *at, "-i", "-q", "-s", "2", "postgres"])
    out = work.prepare([f"{POSTGRES}/pgbench", *at, "-c", "8", "-j", "1", "-t", "300", "--random-seed=5", "postgres"])
    work.saw("pgbench", re.findall(r"transactions actually processed.*|failed transactions: \d+", out))
    ask = lambda text: work.prepare([f"{POSTGRES}/psql", *at, "-Atc", text, "postgres"]).strip()  # noqa: E731
    work.saw("history", ask("SELECT count(*), sum(delta) FROM pgbench_history"))
    work.saw("balance", ask("SELECT sum(abalance), sum(length(filler)) FROM pgbench_accounts"))
    work.saw("parallel", ask("SELECT sum(a.aid::bigint * b.aid % 7) FROM pgbench_accounts a JOIN pgbench_accounts b "
                             "ON a.aid % 1000 = b.aid % 1000 WHERE a.aid < 20000"))
    with idle_session(port), idle_session(port):
        # when the others open and close their files depends on the clock
        work.only = rb"idle|/bin/postgres"
        work.look(server)
    out, err = end_of(work, server, signal.SIGINT)
    clean = r"(?i)^\S+ \S+ \S+ \[\d+\] |\d+\.\d+ s|pid \d+|port \d+|\d+ (buffers|kB)|lsn.*|at .* UTC"
    work.saw("log", sorted({re.sub(clean, "", line) for line in err.splitlines()
                            if re.search("FATAL|ERROR|PANIC|WARNING|terminated|exited|shut down", line)
                            and not re.search("terminating connection|starting up", line)}))  # lines about our clients)


# --- a machine ---


def qemu(work):
    """Runs qemu, whose guest is a boot sector that works, then sleeps until qemu ends it."""
    work.prepare(["gcc", "-c", LOADS / "boot.S", "-o", "boot.o"])
    work.prepare(["objcopy", "-O", "binary", "boot.o", "boot"])
    path = work.folder / "tmp" / "serial"
    machine = work.start([
        "qemu-system-x86_64", "-nodefaults", "-display", "none", "-accel", "tcg", "-m", "16",
        "-drive", "file=boot,format=raw,snapshot=on", "-device", "isa-debug-exit,iobase=0x501,iosize=1",
        "-chardev", f"socket,id=serial,path={path},server=on,wait=off", "-serial", "chardev:serial",
    ])
    wait_until(path.exists, "the guest's serial port")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(120)
        s.connect(str(path))
        said = b""
        while not said.endswith(b"\n"):
            said += s.recv(64)
        work.saw("said", said)
        work.look(machine)
        s.sendall(b"x")
        work.saw("end", work.finish(machine, timeout=60))
    work.saw_files(ignore=("tmp/", "boot.o"))
