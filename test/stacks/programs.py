"""Lists programs whose code is in no file, or in one without unwind tables: each with the load that makes it work for
seconds.

Those of PyPI and npm are installed below the build folder, in the versions of pypi.txt and npm.txt.
"""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

from harness import Failure, Work
from ports import reserved_port
from profiled import ROOT

HERE = Path(__file__).resolve().parent
LOADS = HERE / "loads"
INSTALLED = ROOT / "build" / "stacks"
PYTHON = INSTALLED / "pypi" / "bin" / "python3"
MODULES = INSTALLED / "npm" / "node_modules"
DENO = MODULES / "@deno" / "linux-x64-glibc" / "deno"
BUN = MODULES / "bun" / "bin" / "bun.exe"
POSTGRES = Path("/usr/lib/postgresql/15/bin")


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    executable: str  # whose profile counts
    drive: Callable[[Work], None]
    needs: tuple  # commands or files


def run(*command):
    """Is a load of one command."""

    def drive(work):
        process = work.start(command)
        status, out, err = work.finish(process)
        if status or "done" not in out:
            raise Failure(f"{command[0]} ended with {status}: {(out + err)[-300:]}")

    return drive


def tool(times, parts, *command):
    """Returns a command that reads sources of so many parts, and runs none of them."""

    def drive(work):
        text = (LOADS / "work.js").read_text().partition("async function main")[0].partition('"use strict";')[2]
        part = "".join(f"export namespace N{i} {{\n{text}\n}}\n" for i in range(60))
        for number in range(parts):
            work.write(f"part{number}.ts", part)
        work.write("all.ts", "".join(f'export * as part{number} from "./part{number}.ts";\n' for number in range(parts)))
        for _ in range(times):
            status, out, err = work.finish(work.start(command))
            if status:
                raise Failure(f"{command[0]} ended with {status}: {(out + err)[-300:]}")

    return drive


def java(*options, argument=""):
    def drive(work):
        work.prepare(["javac", "-d", work.folder, LOADS / "Work.java"])
        run("java", "-XX:-UsePerfData", *options, "-cp", work.folder, "Work", *filter(None, [argument]))(work)

    return drive


def erlang(*options):
    def drive(work):
        work.prepare(["erlc", "-o", work.folder, LOADS / "work.erl"])
        run("erl", *options, "-noshell", "-pa", work.folder, "-run", "work", "main")(work)

    return drive


QUERY = ("SELECT sum(a * 3 + b % 7), avg(sqrt(a::float8) * ln(b + 1)), count(*) FILTER (WHERE (a * b) % 5 > 2) "
         "FROM numbers WHERE a % 11 <> 3 AND b % 13 <> 5")
TABLE = "CREATE TABLE numbers AS SELECT i AS a, i * 7 % 1000 AS b FROM generate_series(1, 2000000) AS i"


def postgres(work):
    for folder in (work.folder, work.folder / "tmp"):
        shutil.chown(folder, "postgres", "postgres")
    data, port = work.folder / "data", str(reserved_port())
    work.finish(work.start([POSTGRES / "initdb", "-D", data, "-A", "trust", "-N", "--no-locale", "-E", "UTF8"], user="postgres"))
    server = work.start([
        POSTGRES / "postgres", "-D", data, "-p", port, "-k", work.folder / "tmp", "-h", "127.0.0.1", "-c", "fsync=off",
        "-c", "autovacuum=off", "-c", "jit=on", "-c", "jit_above_cost=0", "-c", "jit_inline_above_cost=0",
        "-c", "jit_optimize_above_cost=0", "-c", "max_parallel_workers_per_gather=0",
    ], user="postgres")
    at = ["-h", "127.0.0.1", "-p", port, "-U", "postgres"]
    wait_for_server(port)
    ask = lambda *texts: work.prepare([POSTGRES / "psql", *at, "-At", *(f"-c{text}" for text in texts), "postgres"])  # noqa: E731
    ask(TABLE)
    ask(*[QUERY] * 12)
    work.stop(server, signal.SIGINT)


def wait_for_server(port):
    from loads_servers import wait_until

    wait_until(lambda: subprocess.run([POSTGRES / "pg_isready", "-q", "-h", "127.0.0.1", "-p", port], check=False).returncode == 0,
               "postgres")


JIT_OF_PHP = ("-dopcache.enable_cli=1", "-dopcache.jit=tracing", "-dopcache.jit_buffer_size=32M")
SCRIPT = LOADS / "work.js"
NUMBA = (PYTHON, LOADS / "work_numba.py")
WASMTIME = (PYTHON, LOADS / "work_wasmtime.py")

PROGRAMS = [
    Program("bun", "bun", run(BUN, SCRIPT), (BUN,)),
    Program("deno", "deno", run(DENO, "run", SCRIPT), (DENO,)),
    Program("bun, its own code", "bun", run(BUN, SCRIPT, "own"), (BUN,)),
    Program("bun build", "bun", tool(8, 100, BUN, "build", "--minify", "--outfile=all.js", "all.ts"), (BUN,)),
    Program("deno, its own code", "deno", run(DENO, "run", SCRIPT, "own"), (DENO,)),
    Program("deno fmt", "deno", tool(1, 20, DENO, "fmt", "--quiet", "."), (DENO,)),
    Program("node", "node", run("node", SCRIPT), ("node",)),
    Program("node --perf-basic-prof", "node", run("node", "--perf-basic-prof", "--interpreted-frames-native-stack", SCRIPT), ("node",)),
    Program("java", "java", java(), ("java", "javac")),
    Program("java, perf map", "java", java(argument="map"), ("java", "javac", "jcmd")),
    Program("java, perf map, -XX:+PreserveFramePointer", "java", java("-XX:+PreserveFramePointer", argument="map"), ("java", "javac", "jcmd")),
    Program("luajit", "luajit", run("luajit", LOADS / "work.lua"), ("luajit",)),
    Program("numba", "python", run(*NUMBA), (PYTHON,)),
    Program("postgresql, jit=on", "postgres", postgres, (POSTGRES / "postgres", POSTGRES.parent / "lib" / "llvmjit.so")),
    Program("wasmtime", "python", run(*WASMTIME), (PYTHON,)),
    Program("wasmtime, perf map", "python", run(*WASMTIME, "perfmap"), (PYTHON,)),
    Program("wasmtime, jitdump", "python", run(*WASMTIME, "jitdump"), (PYTHON,)),
    Program("erlang", "beam.smp", erlang(), ("erl", "erlc")),
    Program("erlang +JPperf true", "beam.smp", erlang("+JPperf", "true"), ("erl", "erlc")),
    Program("php, JIT", "php", run("php", *JIT_OF_PHP, LOADS / "work.php"), ("php",)),
    Program("php, JIT, perf map", "php", run("php", *JIT_OF_PHP, "-dopcache.jit_debug=16", LOADS / "work.php"), ("php",)),
    Program("python3", "python", run("/usr/bin/python3", LOADS / "work.py"), ("/usr/bin/python3",)),
]


def missing(program):
    return [str(it) for it in program.needs if not shutil.which(str(it)) and not Path(it).exists()]


def wanted(name):
    return [line for line in (HERE / name).read_text().splitlines() if line]


def install():
    """Installs packages of PyPI and npm; none of their code runs at the installation."""
    mark = INSTALLED / "versions"
    versions = "\n".join([*wanted("pypi.txt"), *wanted("npm.txt")])
    if mark.exists() and mark.read_text() == versions:
        return
    shutil.rmtree(INSTALLED, ignore_errors=True)
    (INSTALLED / "npm").mkdir(parents=True)
    quiet = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run([sys.executable, "-m", "venv", INSTALLED / "pypi"], check=True, env=quiet)
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:",
                    "-r", HERE / "pypi.txt"], check=True, env=quiet)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", INSTALLED / "npm", *wanted("npm.txt")],
                   check=True, env=quiet)
    mark.write_text(versions)
