"""Measures the profiles of waits: a lock, a read, the helper's polls, and the CPU time of servers under load with
every profile, over that with the default profiles."""

import os
import re
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import shares  # noqa: E402
from ports import reserved_port  # noqa: E402
from programs import start, used_by  # noqa: E402

DEFAULT, EVERY = "cpu,alloc,heap", "all"
POSTGRES = "/usr/lib/postgresql/15/bin"
START_S = 30


def variants_of(clean, ours):
    return {
        "none": clean,
        "default": {**clean, **ours, "OTEL_PROFILER_TYPES": DEFAULT},
        "all": {**clean, **ours, "OTEL_PROFILER_TYPES": EVERY},
        "default again": {**clean, **ours, "OTEL_PROFILER_TYPES": DEFAULT},
    }


def in_turns(variants, turns, measure):
    """Returns variant -> what `measure(environment)` returned, one a turn."""
    results = {name: [] for name in variants}
    for turn in range(turns):
        for name in variants if turn % 2 == 0 else reversed(variants):
            results[name].append(measure(variants[name]))
    return results


# --- one call ---


def bench_calls(program, variants, turns):
    figures = {}
    print(f"\none call, ns: medians of {turns} turns")
    print(f"{'':34}{'none':>8}{'default':>10}{'all':>10}{'all - default':>16}")
    for name, mode in (("a mutex that nobody else wants", "mutex"), ("read of a byte from a file", "read")):
        measured = in_turns(variants, turns, lambda environment, mode=mode: float(
            subprocess.run([program, mode], env=environment, check=True, stdout=subprocess.PIPE).stdout))
        more = statistics.median(a - b for a, b in zip(measured["all"], measured["default"]))
        medians = {variant: statistics.median(values) for variant, values in measured.items()}
        figures[name] = {"median": medians, "more": more}
        print(f"{name:34}{medians['none']:>8.1f}{medians['default']:>10.1f}{medians['all']:>10.1f}{more:>+16.1f}", flush=True)
    return figures


# --- the helper ---


def bench_helper(program, variants, turns, seconds):
    """Measures the thread's CPU time as a share of a processor."""
    figures = {}
    print(f"\nthe helper's CPU time, % of a processor: medians of {turns} turns of {seconds} s")
    print(f"{'':46}{'default':>10}{'all':>10}")
    for threads in (100, 1000):
        for pause, what in ((0, "that sleep for good"), (100_000, "that wake 10 times a second")):
            measured = in_turns({name: variants[name] for name in ("default", "all")}, turns,
                                lambda environment, n=threads, p=pause: 100 * float(subprocess.run(
                                    [program, "threads", str(n), str(seconds), str(p)], env=environment, check=True,
                                    stdout=subprocess.PIPE).stdout))
            medians = {variant: statistics.median(values) for variant, values in measured.items()}
            figures[f"{threads} threads {what}"] = medians
            print(f"{f'{threads} threads {what}':46}{medians['default']:>10.2f}{medians['all']:>10.2f}", flush=True)
    return figures


# --- whole servers ---


def wait_for_port(port):
    end = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=START_S).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def client(command, clean):
    return subprocess.run(list(map(str, command)), env=clean, check=True, capture_output=True, text=True).stdout


def run_redis(environment, clean, folder, start=start):
    """Returns microseconds of CPU time for each request."""
    port, requests = reserved_port(), 300000
    server = start(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder], environment)
    wait_for_port(port)
    client(["redis-benchmark", "-p", port, "-q", "-n", requests, "-c", 20, "-t", "set,get"], clean)
    server.terminate()
    return used_by(server) / (2 * requests) * 1e6


def run_nginx(environment, clean, folder, start=start):
    port = reserved_port()
    Path(folder, "page.html").write_text("page\n" * 300)
    Path(folder, "nginx.conf").write_text(f"""
        daemon off; user root; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
        events {{ worker_connections 200; }}
        http {{
            access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
            fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
            server {{ listen 127.0.0.1:{port}; root {folder}; }}
        }}""")
    server = start(["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"], environment)
    wait_for_port(port)
    told = client(["wrk", "-t", 1, "-c", 16, "-d", "6s", f"http://127.0.0.1:{port}/page.html"], clean)
    server.send_signal(3)  # SIGQUIT: it waits for its workers, so that their time counts as its own
    return used_by(server) / int(re.search(r"(\d+) requests in", told).group(1)) * 1e6


def run_pgbench(environment, clean, folder, start=start):
    """Runs select-only transactions, which write nothing that another run would have to write again."""
    port, data, transactions = reserved_port(), Path(folder, "data"), 40000
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    if not data.exists():
        client(["chown", "postgres:postgres", folder], clean)
        client([*as_user, f"{POSTGRES}/initdb", "-D", data, "-A", "trust", "--no-locale"], clean)
    preload = [f"{name}={value}" for name, value in environment.items() if name.startswith(("OTEL_", "LD_PRELOAD"))]
    server = start([*as_user, "env", *preload, f"{POSTGRES}/postgres", "-D", str(data), "-p", str(port), "-k", folder,
                    "-h", "127.0.0.1", "-c", "fsync=off", "-c", "autovacuum=off"], clean)
    at = ["-h", "127.0.0.1", "-p", port, "-U", "postgres"]
    end = time.monotonic() + START_S
    while subprocess.run(["pg_isready", "-q", *map(str, at)], check=False).returncode and time.monotonic() < end:
        time.sleep(0.05)
    if not Path(folder, "filled").exists():
        client(["pgbench", *at, "-i", "-q", "postgres"], clean)
        Path(folder, "filled").touch()
    client(["pgbench", *at, "-n", "-S", "-c", 4, "-t", transactions, "postgres"], clean)
    server.send_signal(2)  # SIGINT: fast shutdown
    return used_by(server) / (4 * transactions) * 1e6


SERVERS = {
    "redis-server, redis-benchmark": (run_redis, ("redis-server", "redis-benchmark")),
    "nginx, wrk": (run_nginx, ("nginx", "wrk")),
    "postgresql, pgbench -S": (run_pgbench, ("pgbench",)),
}


def installed_servers(scratch):
    """Returns name -> run(environment, clean, start), each with a folder of its own."""
    found = {}
    for name, (run, needs) in SERVERS.items():
        if any(subprocess.run(["which", need], capture_output=True, check=False).returncode for need in needs):
            print(f"{name:34}not installed")
            continue
        folder = Path(scratch, name.split(",")[0])
        folder.mkdir(mode=0o755)
        found[name] = lambda environment, clean, start=start, run=run, folder=str(folder): run(
            environment, clean, folder, start)
    return found


def bench_servers(servers, variants, clean, turns):
    figures = {}
    print(f"\nservers, user + system for each request: over the default's, medians of {turns} turns")
    print(f"{'':34}{'default':>12}{'none':>10}{'all':>10}{'default again':>16}")
    for name, run in servers.items():
        measured = in_turns(variants, turns, lambda environment, run=run: run(environment, clean))
        ratio = {variant: statistics.median(a / b for a, b in zip(values, measured["default"]))
                 for variant, values in measured.items()}
        figures[name] = {"default_us": statistics.median(measured["default"]), "ratio": ratio, "times": measured}
        print(f"{name:34}{figures[name]['default_us']:>9.1f} us{'×':>5}{ratio['none']:.3f}{'×':>5}{ratio['all']:.3f}"
              f"{'×':>11}{ratio['default again']:.3f}", flush=True)
    return figures


def bench(programs, clean, ours, scratch, quick):
    variants = variants_of(clean, ours)
    program = os.path.join(programs, "bench_waits")
    os.chmod(scratch, 0o755)  # postgresql gives up root
    Path(scratch, "log").touch()
    os.chmod(Path(scratch, "log"), 0o666)
    turns = 3 if quick else 15
    figures = {"calls": bench_calls(program, variants, turns)}
    print("  measured calls", file=sys.stderr, flush=True)
    figures["helper"] = bench_helper(program, variants, 1 if quick else 3, 5 if quick else 10)
    servers = installed_servers(scratch)
    figures["servers"] = bench_servers(servers, variants, clean, turns)
    figures["shares"] = shares.bench(
        {name: lambda begin, environment, run=run: run(environment, clean, begin) for name, run in servers.items()},
        start, variants, 2 if quick else 5, scratch)
    return figures
