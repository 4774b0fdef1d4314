"""Measures user and system time of whole programs with all default profiles, over that without: 21 pairs in turns,
and an unmodified second run as the noise."""

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

TURNS = 21
ROWS = 1_000_000
SQL = f"""
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, value REAL);
CREATE INDEX by_name ON t(name);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
INSERT INTO t SELECT i, 'name ' || (i * 7919 % {ROWS}), i * 0.5 FROM n;
SELECT count(*), sum(value) FROM t;
"""
PYTHON = """
import json
for i in range(150):
    text = json.dumps([{"id": j, "name": "name %d" % j, "tags": ["a", "b", str(j)], "x": j / 7}
                       for j in range(4000)])
    assert len(json.loads(text)) == 4000
"""
CPP = """
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct deep { static int value(int x) { return x % (N + 1) + deep<N - 1>::value(x); } };
template <> struct deep<0> { static int value(int) { return 0; } };
int main(int argc, char **argv) {
    std::map<std::string, std::vector<int>> all;
    std::regex expression("[a-z]+([0-9]*)");
    for (int i = 0; i < argc; i++)
        if (std::regex_match(argv[i], expression))
            all[argv[i]].push_back(deep<300>::value(i));
    std::unordered_map<std::string, int> sizes;
    for (auto &[name, values] : all)
        sizes[name] = static_cast<int>(values.size());
    std::vector<std::pair<std::string, int>> sorted(sizes.begin(), sizes.end());
    std::sort(sorted.begin(), sorted.end());
    for (auto &[name, count] : sorted)
        std::cout << name << count;
}
"""


def used_by(child):
    """Returns user + system seconds of a child and of its own children; the child must have succeeded."""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{child.args} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def start(command, environment, stdin=None):
    return subprocess.Popen(
        command, env=environment, stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )


def run_command(command):
    return lambda environment, clean, scratch: used_by(start(command, environment))


def run_sqlite(environment, clean, scratch):
    script = Path(scratch) / "rows.sql"
    script.write_text(SQL)
    with open(script, "rb") as file:
        return used_by(start(["sqlite3", ":memory:"], environment, file))


def run_compiler(environment, clean, scratch):
    """Runs cc1plus alone, on preprocessed source: not the driver, not the assembler."""
    source = Path(scratch) / "source.cpp"
    preprocessed = Path(scratch) / "source.ii"
    if not preprocessed.exists():
        source.write_text(CPP)
        subprocess.run(["g++", "-E", "-o", preprocessed, source], env=clean, check=True)
    compiler = subprocess.run(
        ["g++", "-print-prog-name=cc1plus"], env=clean, check=True, stdout=subprocess.PIPE
    ).stdout.decode().strip()
    return used_by(start([compiler, "-O2", "-quiet", preprocessed, "-o", "/dev/null"], environment))


def run_redis(environment, clean, scratch):
    """Returns the server's time, under requests of redis-benchmark (not profiled); a socket in `scratch`."""
    path = Path(scratch) / "redis.sock"
    path.unlink(missing_ok=True)
    server = start(
        ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", scratch],
        environment,
    )
    ask = ["redis-cli", "-s", path]
    deadline = time.monotonic() + 10
    while subprocess.run([*ask, "ping"], env=clean, capture_output=True, check=False).returncode:
        if time.monotonic() > deadline:
            server.kill()
            server.wait()
            raise RuntimeError("redis-server does not answer")
        time.sleep(0.02)
    subprocess.run(
        ["redis-benchmark", "-s", path, "-q", "-n", "200000", "-P", "16", "-r", "100000", "-d", "100",
         "-t", "set,get,lpush,lrange_100"],
        env=clean, check=True, capture_output=True,
    )
    subprocess.run([*ask, "shutdown", "nosave"], env=clean, capture_output=True, check=False)
    return used_by(server)


PROGRAMS = {
    "redis-benchmark": ("redis-server", run_redis),
    "sqlite3, a million rows": ("sqlite3", run_sqlite),
    "python3, json": ("/usr/bin/python3", run_command(["/usr/bin/python3", "-c", PYTHON])),
    "cc1plus": ("g++", run_compiler),
}


def bench_programs(clean, ours, scratch, turns=TURNS):
    """Prints the table; returns {program: figures}."""
    variants = {"none": clean, "ours": {**clean, **ours}, "none again": clean}
    figures = {}
    print(f"\nwhole programs, user + system: over none, medians of {turns} turns")
    print(f"{'':26}{'none':>10}{'all profiles':>16}{'none again':>14}")
    for name, (needed, run) in PROGRAMS.items():
        if not shutil.which(needed):
            print(f"{name:26} {needed} is not installed")
            continue
        times = {variant: [] for variant in variants}
        for turn in range(turns):
            for variant in variants if turn % 2 == 0 else reversed(variants):
                times[variant].append(run(variants[variant], clean, scratch))
            print(f"  {name}: turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
        none = statistics.median(times["none"])
        ratio = {
            variant: statistics.median(a / b for a, b in zip(times[variant], times["none"]))
            for variant in ("ours", "none again")
        }
        figures[name] = {"none": none, "ratio": ratio, "times": times}
        print(
            f"{name:26}{none:>8.3f} s{'×':>10}{ratio['ours']:.3f}{'×':>9}{ratio['none again']:.3f}",
            flush=True,
        )
    return figures
