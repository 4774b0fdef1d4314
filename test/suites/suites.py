"""Lists the suites: where each comes from, how it is prepared, and the commands that run it."""

import dataclasses
import fnmatch
import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Callable

import verdicts
from comparison import Part
from sides import SIDES
from sources import Unavailable, unpack

PYTHON = "/usr/bin/python3"


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    package: str  # whose version is reported
    what: str  # one line for the table
    parts: Callable[[Path], list]  # gets the folder where sources are kept
    commands: tuple = ()  # must be found in the PATH, or as a file
    sides: tuple = tuple(SIDES)

    def missing(self):
        return [c for c in self.commands if not shutil.which(c) and not Path(c).exists()]


def build(folder, made, *commands, env=None):
    """Runs `commands` in `folder`, without the preload, unless the file `made` is there."""
    if (folder / made).exists():
        return
    for command in commands:
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", check=False,
        )
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-300:]}")


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


# --- python: one module a part ---

MODULES = """test_signal test_threading test_subprocess test_fork1 test_thread test_posix test_select
    test_selectors test_ctypes test_gc test_os test_socket test_faulthandler test_io""".split()
SLOW_MODULES = ("test_asyncio", "test_concurrent_futures", "test_multiprocessing_fork")  # minutes each
# Modules that make, leave, copy or read frames and code; at 999 Hz.
FRAME_MODULES = """test_generators test_coroutines test_asyncgen test_sys_settrace test_sys_setprofile test_exceptions
    test_traceback test_frame test_code test_gc test_sys test_threading test__xxsubinterpreters""".split()
NOT_HERE = "*VSOCK*"  # waits for ever in some virtual machines


def python(folder, modules=(*MODULES, *SLOW_MODULES), env=None):
    return [
        Part(module, (PYTHON, "-m", "test", "--junit-xml={scratch}/junit.xml", "-i", NOT_HERE, module),
             Path("/"), verdicts.junit, env=env, limit_s=900, report="junit.xml", at_once=module not in SLOW_MODULES)
        for module in modules
    ]


# --- perl: tests of its source against the installed perl ---

PERL_FOLDERS = ("base", "cmd", "comp", "io", "op", "re", "uni", "mro", "lib")
PERL_SLOW = ("re/anyof.t", "re/fold_grind*", "re/uniprops*")  # thousands of programs, or minutes each
PERL_MODULES = """dist/threads dist/threads-shared dist/Thread-Queue dist/Thread-Semaphore dist/Time-HiRes
    dist/IO ext/POSIX ext/IPC-Open3 cpan/IPC-SysV cpan/Socket""".split()  # threads, timers, signals, processes
PERL_ENVIRONMENT = {"PERL_CORE": "1", "PERL_TEST_CHARNAMES_SEED": "1"}  # its tests are drawn at random
PERL = "/usr/bin/perl"


def perl_part(tree, folder, name):
    """Makes a part of Perl. A test that is to be run tainted has that in its first line, and is refused without."""
    with open(tree / folder / name, encoding="utf-8", errors="replace") as test:
        tainted = re.search(r"^#!.*\s-\w*([tT])", test.readline())
    perl_at, library = ("./perl", "../lib") if folder == "t" else ("../../t/perl", "../../lib")
    return Part(name if folder == "t" else f"{folder}/{Path(name).name}", (
        perl_at, *([f"-{tainted[1]}"] if tainted else []), f"-I{library}", name,
    ), tree / folder, verdicts.tap, env=PERL_ENVIRONMENT, limit_s=300)


def perl(folder):
    tree = unpack("perl", folder)
    library = tree / "lib-installed"
    if not library.exists():
        done = subprocess.run([PERL, "-e", "print join ':', grep {-d} @INC"], capture_output=True,
                              text=True, check=True)
        for path in reversed(done.stdout.split(":")):
            if "/local/" not in path:
                shutil.copytree(path, library, dirs_exist_ok=True, symlinks=False,
                                ignore_dangling_symlinks=True)
        shutil.copytree(library, tree / "lib", dirs_exist_ok=True)
    link(tree / "t" / "perl", PERL)
    tests = [("t", f"{name}/{path.name}") for name in PERL_FOLDERS for path in (tree / "t" / name).glob("*.t")]
    tests += [("t", f"../lib/{path.relative_to(tree / 'lib')}") for path in (tree / "lib").rglob("*.t")]
    tests += [(name, f"t/{path.name}") for name in PERL_MODULES for path in (tree / name / "t").glob("*.t")]
    return [perl_part(tree, folder, name) for folder, name in sorted(tests)
            if not any(fnmatch.fnmatch(name, slow) for slow in PERL_SLOW)]


# --- redis: its Tcl tests against the installed server ---

REDIS_COMMANDS = ("redis-server", "redis-cli", "tclsh8.6")
REDIS_UNITS = """unit/printver unit/dump unit/auth unit/protocol unit/keyspace unit/scan unit/info
    unit/type/string unit/type/incr unit/type/list unit/type/set unit/type/zset unit/type/hash
    unit/type/stream unit/sort unit/expire unit/other unit/multi unit/quit unit/aofrw unit/acl
    unit/latency-monitor unit/bitops unit/bitfield unit/geo unit/memefficiency unit/hyperloglog
    unit/lazyfree unit/maxmemory unit/introspection unit/introspection-2 unit/limits unit/obuf-limits
    unit/pubsub unit/scripting unit/slowlog unit/shutdown unit/tracking unit/querybuf unit/pendingquerybuf""".split()
# Left out: replication-psync, minutes of waiting; psync2, which draws the names of its tests, and their number.
REDIS_INTEGRATION = """integration/replication integration/replication-3 integration/aof
    integration/rdb integration/convert-zipmap-hash-on-load integration/shutdown
    integration/redis-cli integration/redis-benchmark integration/logging""".split()


def redis(units, folder):
    tree = unpack("redis", folder)
    for name in ("redis-server", "redis-cli", "redis-benchmark", "redis-check-aof", "redis-check-rdb",
                 "redis-sentinel"):
        found = shutil.which(name)
        if found:
            link(tree / "src" / name, found)
    return [
        Part(unit, ("tclsh8.6", "tests/test_helper.tcl", "--clients", "1", "--single", unit,
                    "--skiptest", "/SIGTERM|CONFIG SET oom-score-adj"),
             tree, verdicts.redis, limit_s=600)
        for unit in units
    ]


# --- git: t/ against the build of its source ---

GIT_TESTS = ("t0*.sh", "t1*.sh", "t3*.sh", "t5*.sh")
GIT_STEP = 2  # every second of them is run: all take hours
GIT_OPTIONS = ("NO_CURL=1", "NO_EXPAT=1", "NO_GETTEXT=1", "NO_TCLTK=1", "NO_OPENSSL=1", "NO_PERL=1",
               "NO_PYTHON=1", "CFLAGS=-O1")


def git(folder):
    tree = unpack("git", folder)
    build(tree, "t/helper/test-tool", ["make", "-s", *GIT_OPTIONS])
    tests = [name for pattern in GIT_TESTS
             for name in sorted(path.name for path in (tree / "t").glob(pattern))[::GIT_STEP]]
    return [Part(name, ("sh", f"./{name}", "--root={scratch}/trash"), tree / "t", verdicts.tap, limit_s=300,
                 at_once=name.startswith("t0")) for name in tests]  # each has hundreds of processes


# --- sqlite: its Tcl tests, by the test program of its source ---

SQLITE_TESTS = """select1 insert trigger1 index join where func date alter attach vacuum trans savepoint
    pager1 wal wal2 journal1 lock thread001 thread004 thread005
    mmap1 mmap2 memsubsys1 fts3aa fts3expr rtree json101 window1 with1 in cse collate1
    shared shared2 cache pcache backup blob tclsqlite sort sort2 multiplex stmt tkt1435
    corrupt exclusive io capi2 incrblob notify1 fallocate""".split()


def sqlite(folder):
    tree = unpack("sqlite3", folder)
    build(tree, "testfixture", ["./configure", "--quiet", "CFLAGS=-O1"], ["make", "-s", "testfixture"])
    tests = [name for name in SQLITE_TESTS if (tree / "test" / f"{name}.test").exists()]
    return [Part(name, ("./testfixture", f"test/{name}.test", "--verbose=1"), tree, verdicts.sqlite,
                 limit_s=300) for name in tests]


# --- tcl: tests/ against the installed tclsh ---


def tcl(folder):
    tree = unpack("tcl8.6", folder)
    tests = sorted((tree / "tests").glob("*.test"))
    return [Part(path.stem, ("tclsh8.6", path, "-verbose", "pst", "-tmpdir", "{scratch}/home/tmp"), tree / "tests",
                 verdicts.tcl, limit_s=180)
            for path in tests if path.stem not in ("http", "httpold", "http11", "httpcookie", "socket")]


# --- coreutils: its tests, against the build of its source ---

COREUTILS_AT_ONCE = 20  # tests to a part: one `make check` takes seconds to find out what to do


def coreutils(folder):
    """Takes the tests of tests/local.mk without those of factor: a script makes them, and they take minutes each."""
    tree = unpack("coreutils", folder)
    build(tree, "src/ls", ["./configure", "--quiet", "--disable-nls", "CFLAGS=-O1"], ["make", "-s"],
          env={"FORCE_UNSAFE_CONFIGURE": "1"})
    listed = re.findall(r"\btests/([^/\s]+)/(\S+\.x?(?:sh|pl))\b", (tree / "tests" / "local.mk").read_text())
    parts = []
    for name in dict.fromkeys(name for name, _ in listed if name != "factor"):
        tests = [f"tests/{name}/{test}" for where, test in listed if where == name]
        for i in range(0, len(tests), COREUTILS_AT_ONCE):
            parts.append(Part(f"{name} {i // COREUTILS_AT_ONCE + 1}", (
                "make", "-s", "check", f"TESTS={' '.join(tests[i:i + COREUTILS_AT_ONCE])}", "SUBDIRS=.", "VERBOSE=",
            ), tree, verdicts.automake, limit_s=900, at_once=i == 0))  # the first few of each folder
    return parts


# --- bash: its tests against the installed bash ---


def bash(folder):
    tree = unpack("bash", folder)
    tests = tree / "tests"
    for name in ("recho", "zecho", "xcase", "printenv"):
        build(tests, name, ["gcc", "-w", "-I..", "-I../include", "-o", name, f"../support/{name}.c"])
    names = sorted(path.name for path in tests.glob("run-*")
                   if path.name not in ("run-all", "run-minimal", "run-gprof") and not path.name.endswith("~"))
    result = f"/tmp/otelprof-bash-{os.getpid()}"
    return [Part(name, ("bash", "-c", f"PATH=$PWD:$PATH; sh ./{name}; rm -f {result}"), tests, verdicts.diff,
                 env={"THIS_SH": "/bin/bash", "BASH_TSTOUT": result}, limit_s=180)
            for name in names]


# --- libuv: its own tests, one a part ---

LIBUV_ABROAD = ("tcp_connect_timeout", "tcp_close_while_connecting", "getaddrinfo_fail", "getaddrinfo_fail_sync")


def libuv(folder):
    tree = unpack("libuv1", folder)
    build(tree, "build/uv_run_tests", ["cmake", "-S", ".", "-B", "build"],
          ["cmake", "--build", "build", "--target", "uv_run_tests"])
    listed = subprocess.run(["build/uv_run_tests", "--list"], cwd=tree, env={"UV_RUN_AS_ROOT": "1"},
                            capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^\w+", listed, re.MULTILINE)  # behind a name its helpers may follow
    return [Part(name, ("build/uv_run_tests", name), tree, verdicts.tap, env={"UV_RUN_AS_ROOT": "1"}, limit_s=100)
            for name in names if name not in LIBUV_ABROAD]


# --- memcached: t/ by perl ---


def memcached(folder):
    tree = unpack("memcached", folder)
    build(tree, "timedrun", ["./configure", "--quiet"], ["make", "-s", "memcached-debug", "timedrun"])
    return [Part(path.name, (PERL, "-Ilib", f"t/{path.name}"), tree, verdicts.tap, limit_s=200)
            for path in sorted((tree / "t").glob("*.t"))]


SUITES = [
    Suite("python", "libpython3.11-testsuite", "17 modules of its regression tests", python,
          ("/usr/lib/python3.11/test/test_signal.py",)),
    Suite("python-frames", "libpython3.11-testsuite", f"{len(FRAME_MODULES)} modules about its frames, at 999 Hz",
          functools.partial(python, modules=FRAME_MODULES, env={"OTEL_PROFILER_CPU_FREQUENCY": "999", "OTEL_PROFILER_MAX_OVERHEAD": "none"}),
          ("/usr/lib/python3.11/test/test_signal.py",)),
    Suite("perl", "perl", "t/, lib/ and 10 modules of its source", perl, (PERL,)),
    Suite("tcl", "tcl8.6", "tests/ of its source", tcl, ("tclsh8.6",)),
    Suite("bash", "bash", "tests/ of its source", bash, ("bash", "gcc")),
    Suite("redis", "redis-server", "unit tests of its source", functools.partial(redis, REDIS_UNITS), REDIS_COMMANDS),
    Suite("redis-integration", "redis-server", "integration tests but for psync",
          functools.partial(redis, REDIS_INTEGRATION), REDIS_COMMANDS),
    Suite("libuv", "libuv1", "uv_run_tests, built from source", libuv, ("cmake", "gcc")),
    Suite("git", "git", "each second of t0, t1, t3 and t5, built from source", git, ("make", "gcc")),
    Suite("sqlite", "sqlite3", "testfixture, built from source", sqlite, ("make", "gcc", "tclsh8.6")),
    Suite("memcached", "memcached", "t/ of its source", memcached, ("gcc", "make", PERL)),
    Suite("coreutils", "coreutils", "tests/ but for factor, built from source", coreutils, ("make", "gcc")),
]
