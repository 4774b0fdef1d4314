"""Lists real programs: one entry per program, with the load that drives it.

All visible effects of a load are compared between a run without and a run with the preload: exit status, standard
output and error, the files left behind, and the descriptors of every process in the middle of the load. An entry
leaves out what differs from run to run by nature (a pid, a time, a port), and its `compared` describes that.
`profile` names the executable whose CPU profile must arrive; an entry without one explains in `compared` why none
can. Nine tenths of the CPU time in samples must have a whole stack where there is enough of it, or `not_whole` gives
the reason.
"""

import dataclasses
import shutil
from pathlib import Path
from typing import Callable

import loads_sandbox
import loads_servers
import loads_tools
import pypi
from harness import LIBRARY, Work  # noqa: F401

import allocators

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    group: str
    packages: tuple  # names of Debian 12
    load: str  # one line for the table
    drive: Callable[[Work], None]
    profile: str = ""
    compared: str = "all"
    commands: tuple = ()  # must be found in the PATH, or as a file
    reaps_all: bool = True  # the kernel's CPU time of the run is that of all its processes
    seconds: bool = False  # runs in seconds: part of `make test-all` if its packages are installed
    others: tuple = ()  # libraries to preload besides ours
    others_first: bool = False
    pypi: bool = False  # needs the packages of requirements.txt, which pypi.py installs
    share: float = 0.0  # the least share of the CPU time that must have been profiled
    sampled: float = 0.0  # the least share of the profiled time that must come from signals
    not_whole: str = ""  # why less than nine tenths of its CPU time may have a whole stack
    anonymous: float = 1.0  # the largest share of CPU time under an address of no known object
    known: str = ""  # why it is known to differ; docs/verification.md has the reason, too

    def missing(self):
        """Returns the missing commands, libraries and packages."""
        needed = (*self.commands, *map(str, self.others))
        from_pypi = ["requirements.txt"] if self.pypi and not pypi.is_there() else []
        return [c for c in needed if not shutil.which(c) and not Path(c).exists()] + from_pypi

    def ahead(self):
        return self.others if self.others_first else ()

    def behind(self):
        return () if self.others_first else self.others


PHP_EXTENSIONS = ("php-bcmath", "php-intl", "php-mbstring", "php-sqlite3", "php-xml")
SAMPLED = 0.5  # of threads that block signals; on a busy machine the kernel's tick misses much
GENERATED = "oneDNN's generated code keeps neither frame pointers nor unwind tables"
KERNELS = "MLAS's kernels keep neither frame pointers nor unwind tables"
T, S, X = loads_tools, loads_servers, loads_sandbox

PROGRAMS = [
    Program("g++", "compilers", ("g++",), "one C++ file, -O2 -g -pipe", T.gcc, "cc1plus",
            commands=("g++",), seconds=True),
    Program("clang++", "compilers", ("clang", "g++"), "one C++ file, -O2 -g", T.clang, "clang",
            commands=("clang++",)),
    Program("make -j2", "compilers", ("gcc", "make"), "ten C files", T.make_ten, "",
            "all; each compiler uses too little CPU time", commands=("make", "gcc"), seconds=True),
    Program("rustc", "compilers", ("rustc",), "one file, -O", T.rustc, "rustc", commands=("rustc",)),
    Program("cargo", "compilers", ("cargo",), "a crate and its tests", T.cargo, "",
            "all but times and files under target/ that hold them", commands=("cargo",)),
    Program("go, cgo", "compilers", ("golang-go",), "a built program calls C from goroutines", T.go_with_c,
            "job", commands=("go",)),
    Program("go, static", "compilers", ("golang-go",), "the same without C", T.go_static, "",
            "all; static programs are not profiled", commands=("go",)),
    Program("Boost, fibers", "compilers", ("libboost-fiber-dev", "libboost-context-dev", "g++"),
            "a built program: 8 fibers by turns, a coroutine", T.fibers, "job",
            commands=("g++", "/usr/include/boost/fiber/all.hpp")),
    Program("cmake", "compilers", ("cmake", "g++"), "configures and builds a project", T.cmake, "",
            "all but paths with time stamps inside the build folder", commands=("cmake",)),
    Program("configure", "compilers", ("autoconf", "gcc"), "a script by autoconf, with 20 tests", T.configure, "",
            "all but its log and cache; each process uses too little CPU time", commands=("autoconf", "gcc")),
    Program("Free Pascal", "compilers", ("fp-compiler", "fp-units-rtl"), "a built program: threads, libc's qsort; "
            "also switched off", T.free_pascal, "job", commands=("fpc",)),

    Program("bash", "shells", ("bash",), "500 forks, pipes, traps", T.bash, "bash",
            "all but the pids it names", commands=("bash",), seconds=True),
    Program("dash", "shells", ("dash",), "200 forks, pipes", T.dash, "", "all; it uses too little CPU time",
            commands=("dash",), seconds=True),
    Program("mksh", "shells", ("mksh",), "200 forks, pipes", T.mksh, "", "all; it uses too little CPU time",
            commands=("mksh",)),
    Program("zsh", "shells", ("zsh",), "100 forks, pipes, coprocess", T.zsh, "",
            "all; it uses too little CPU time", commands=("zsh",)),

    Program("python3, threads", "interpreters", ("python3",), "json in 4 threads", T.python_threads,
            "python3", commands=("/usr/bin/python3",), seconds=True),
    Program("python3, processes", "interpreters", ("python3",),
            "multiprocessing by fork and spawn, subprocess", T.python_processes, "python3",
            commands=("/usr/bin/python3",)),
    Program("python3, ITIMER_PROF", "interpreters", ("python3",), "its own SIGPROF handler",
            T.python_itimer, "python3", commands=("/usr/bin/python3",)),
    Program("perl", "interpreters", ("perl",), "hashes, sort, fork, alarm", T.perl, "perl",
            commands=("/usr/bin/perl",), seconds=True),
    Program("node", "interpreters", ("nodejs",), "3 workers, a child", T.node, "node", commands=("node",)),
    Program("lua5.4", "interpreters", ("lua5.4",), "strings, sort, coroutines", T.lua, "lua5.4",
            commands=("lua5.4",), seconds=True),
    Program("luajit", "interpreters", ("luajit",), "strings, sort, coroutines", T.luajit, "luajit",
            commands=("luajit",),
            not_whole="its JIT keeps neither frame pointers nor unwind tables"),
    Program("pypy3", "interpreters", ("pypy3",), "json in 4 threads", T.pypy, "pypy3", commands=("pypy3",),
            not_whole="its JIT keeps neither frame pointers nor unwind tables"),
    Program("sbcl", "interpreters", ("sbcl",), "4 threads, GC by signals, an exhausted stack", T.sbcl, "sbcl",
            commands=("sbcl",)),
    Program("erlang", "interpreters", ("erlang-base",), "8 processes on its schedulers, ports", T.erlang, "beam.smp",
            commands=("escript",),
            not_whole="its JIT keeps neither frame pointers nor unwind tables"),
    Program("swipl", "interpreters", ("swi-prolog-nox",), "4 threads, exceptions", T.prolog, "swipl",
            commands=("swipl",)),
    Program("R", "interpreters", ("r-base-core",), "strings, matrices, forked workers", T.r, "R",
            commands=("Rscript",)),
    Program("ruby", "interpreters", ("ruby",), "threads, fork, GC", T.ruby, "ruby", commands=("ruby",)),
    Program("php", "interpreters", ("php-cli",), "arrays, regular expressions, proc_open", T.php, "php",
            commands=("php",)),
    Program("php, extensions", "interpreters", ("php-cli", *PHP_EXTENSIONS),
            "pdo_sqlite, mbstring, bcmath, dom, intl, sodium, pcntl: bound by RTLD_DEEPBIND", T.php_extensions, "php",
            commands=("php",)),
    Program("php, imagick", "interpreters", ("php-imagick", "php-cli"),
            "images through four formats, whose libraries are all unloaded before the end", T.php_imagick, "php",
            commands=("php", *(T.php_extension("imagick") or ["imagick.so"])), anonymous=0.02),
    Program("maxima", "interpreters", ("maxima",), "a batch of algebra on GCL, 4 runs; also switched off", T.maxima,
            "", "all; its malloc is for one thread, and nothing is profiled", commands=("maxima",)),
    Program("guile", "interpreters", ("guile-3.0",), "threads under a collector that stops them by signals",
            T.guile, "guile", commands=("guile",),
            not_whole="its JIT keeps neither frame pointers nor unwind tables"),
    Program("tclsh", "interpreters", ("tcl",), "lists, pipes, events", T.tcl, "tclsh", commands=("tclsh",)),
    Program("gawk", "interpreters", ("gawk",), "associative arrays, coprocess", T.gawk, "gawk",
            commands=("gawk",)),

    Program("javac", "JVM", ("openjdk-17-jdk-headless",), "a tree of 12 classes", T.javac, "javac",
            commands=("javac",),
            not_whole="HotSpot's code keeps frame pointers only with -XX:+PreserveFramePointer"),
    Program("java", "JVM", ("openjdk-17-jdk-headless",),
            "8 threads, deep recursion, null checks by SIGSEGV", T.java, "java", commands=("java",),
            not_whole="HotSpot's code keeps frame pointers only with -XX:+PreserveFramePointer"),

    Program("redis-server", "servers", ("redis-server", "redis-tools"),
            "redis-benchmark 200,000 requests, BGSAVE meanwhile", S.redis, "redis-",
            "status, answers, descriptors, data set; not the time stamps of its log",
            commands=("redis-server",)),
    Program("memcached", "servers", ("memcached",), "40,000 requests on 8 connections", S.memcached,
            "memcached", commands=("memcached",)),
    Program("nginx", "servers", ("nginx-light", "wrk"), "wrk -c 32 before and after a reload, graceful stop",
            S.nginx, "nginx", "status, answers, descriptors, the log's lines without times",
            commands=("nginx", "wrk")),
    Program("apache2, prefork", "servers", ("apache2-bin", "wrk"), "wrk -c 4, graceful restart", S.apache,
            "apache2", "status, answers, descriptors; not times and pids of its log",
            commands=("apache2", "wrk")),
    Program("apache2, event", "servers", ("apache2-bin", "wrk"), "8 threads that block every signal, wrk -c 4, "
            "graceful restart", S.apache_event, "apache2", "status, answers, descriptors; not times and pids of its log",
            commands=("apache2", "wrk"), sampled=SAMPLED),
    Program("haproxy", "servers", ("haproxy", "wrk"), "2 threads before a server, wrk -c 16, 2 reloads", S.haproxy,
            "haproxy", "status, answers, descriptors; not times and pids of its log",
            commands=("haproxy", "wrk"), sampled=0.8),  # without the threads that a reload leaves: 0.66
    Program("php-fpm", "servers", ("php-fpm", "php-mbstring", "libfcgi-bin"),
            "3 workers, 120 requests, each worker renewed after 20; reload", S.php_fpm, "php-fpm",
            "status, answers, descriptors; not times and pids of its log",
            commands=("cgi-fcgi", *(S.fpm_binary() or ["php-fpm"]))),
    Program("php-fpm, at work", "servers", ("php-fpm", "php-mbstring", "libfcgi-bin"),
            "3 workers, 12 requests that burn; each process has its CPU time in its profile", S.php_fpm_at_work,
            "php-fpm", "status, answers", commands=("cgi-fcgi", *(S.fpm_binary() or ["php-fpm"])), share=0.7),
    Program("sshd", "servers", ("openssh-server",), "10 connections, 50 MB through one", S.sshd, "sshd",
            "status, answers, descriptors; not ports of its log", commands=("/usr/sbin/sshd", "ssh")),
    Program("postgresql", "servers", ("postgresql-15",), "initdb, pgbench -c 8, a parallel query", S.postgres,
            "postgres", "status, results, descriptors; not times and pids of its log",
            commands=("/usr/lib/postgresql/15/bin/postgres",)),

    Program("qemu", "servers", ("qemu-system-x86", "gcc"), "TCG; a boot sector works for seconds, then sleeps",
            S.qemu, "qemu-system-x86", not_whole="TCG's code keeps neither frame pointers nor unwind tables",
            commands=("qemu-system-x86_64", "gcc", "objcopy")),

    Program("sqlite3", "databases", ("sqlite3",), "200,000 rows, indexes, VACUUM", T.sqlite, "sqlite3",
            commands=("sqlite3",), seconds=True),
    Program("chdb", "databases", ("python3-venv",), "aggregation, sort, a MergeTree table, an error", T.chdb,
            "python3", "all but its database's files", pypi=True, share=0.9),

    Program("tensorflow", "arithmetic", ("python3-venv",), "matmul, conv2d, training", T.generated_arithmetic("tensorflow"),
            "python3", pypi=True, not_whole=GENERATED),
    Program("jax", "arithmetic", ("python3-venv",), "matmul, training", T.generated_arithmetic("jax"), "python3", pypi=True,
            not_whole=GENERATED),
    Program("openvino", "arithmetic", ("python3-venv",), "matmul", T.generated_arithmetic("openvino"), "python3", pypi=True),
    Program("onnxruntime", "arithmetic", ("python3-venv",), "matmul, conv", T.generated_arithmetic("onnxruntime"), "python3",
            pypi=True, not_whole=KERNELS),

    Program("git", "tools", ("git",), "40 commits, clone, gc, fsck", T.git, "git", commands=("git",)),
    Program("tar, xz -T2", "tools", ("tar", "xz-utils"), "packs and unpacks 25 MB", T.tar_xz, "xz",
            commands=("tar", "xz")),
    Program("sort", "tools", ("coreutils",), "100 MB, --parallel=2, temporary files", T.sort, "sort",
            commands=("sort",)),
    Program("zstd -T2, pigz", "tools", ("zstd", "pigz"), "25 MB each way", T.zstd_pigz, "zstd",
            commands=("zstd", "pigz")),
    Program("openssl", "tools", ("openssl",), "digests, ciphers, a signature", T.openssl, "openssl",
            commands=("openssl",)),
    Program("rsync", "tools", ("rsync",), "300 files, twice", T.rsync, "", "all; it uses too little CPU time",
            commands=("rsync",)),

    Program("gdb", "debuggers", ("gdb",), "runs a program to a breakpoint and on", X.gdb, "",
            "all but pids and addresses; what gdb starts is mostly stopped", commands=("gdb", "gcc")),
    Program("strace -f", "debuggers", ("strace", "perl"), "perl, its output and status", X.strace, "perl",
            "the program's; not the trace, in which our calls are", commands=("strace",)),
    Program("valgrind", "debuggers", ("valgrind", "perl"), "memcheck of a program with errors", X.valgrind, "",
            "the program's, and the errors found; memcheck replaces malloc itself",
            commands=("valgrind", "gcc"), reaps_all=False),
    Program("ltrace", "debuggers", ("ltrace", "gcc"), "a program that calls libc between loops", X.ltrace, "job",
            "the program's; not the trace's times", commands=("ltrace", "gcc"), reaps_all=False),

    Program("memray", "other profilers", ("python3-venv",), "3 threads of python3; also switched off", X.memray,
            "python3", "all but its file, and what it saw of the program", pypi=True),
    Program("heaptrack", "other profilers", ("heaptrack", "g++"), "4 threads, MIN_LIFETIME=0, 20 runs", X.heaptrack,
            "", "all but its file; it is not profiled", commands=("heaptrack", "g++")),

    Program("-fsanitize=address", "sanitizers", ("gcc",), "a program with threads", X.asan, "",
            "all; we stay off", commands=("gcc",)),
    Program("-fsanitize=thread", "sanitizers", ("gcc",), "a program with threads", X.tsan, "",
            "all; we stay off", commands=("gcc",)),
    Program("-fsanitize=undefined", "sanitizers", ("gcc",), "a program with threads", X.ubsan, "job",
            commands=("gcc",)),

    Program("seccomp, strict", "sandboxes", ("gcc",), "read, write and exit alone allowed", X.seccomp_strict,
            "", commands=("gcc",)),
    Program("seccomp, filter", "sandboxes", ("gcc",), "kills on timer_create, socket, clone",
            X.seccomp_filter, "", "all; it is not profiled: the exporter could not connect", commands=("gcc",),
            seconds=True),
    Program("chroot", "sandboxes", ("python3",), "an empty root after the start", X.chroot, "python3",
            commands=("/usr/bin/python3",)),
    Program("setpriv", "sandboxes", ("util-linux", "perl"), "perl as nobody", X.setpriv, "perl",
            commands=("setpriv",)),
    Program("unshare", "sandboxes", ("util-linux", "perl"), "perl in namespaces of its own", X.unshare, "perl",
            commands=("unshare",)),
    Program("unshare --user", "sandboxes", ("util-linux", "perl"), "and in a user namespace", X.unshare_user, "perl",
            commands=("unshare",)),
    Program("bubblewrap", "sandboxes", ("bubblewrap", "perl"), "perl in namespaces of its own", X.bubblewrap, "perl",
            commands=("bwrap",), reaps_all=False),

    Program("busybox-static", "other libc", ("busybox-static",), "pipes and awk", X.busybox, "",
            "all; static programs are not profiled", commands=("busybox",)),
    Program("musl, static", "other libc", ("musl-tools",), "a program with threads", X.musl_static, "",
            "all; static programs are not profiled", commands=("musl-gcc",)),
    Program("musl", "other libc", ("musl-tools",), "the same, linked to musl", X.musl, commands=("musl-gcc",)),

    Program("stress-ng", "stressors", ("stress-ng",), "20 stressors with --verify, 1 s each", X.stress_ng, "",
            "verdicts; not pids and counts", commands=("stress-ng",), reaps_all=False),
]


def beside(name, packages, library, drive, load, **options):
    """Makes entries for a program with another preload, before and after ours."""
    for first in (True, False):
        yield Program(
            f"{name} {'before' if first else 'after'} us", "other preloads", packages, load, drive,
            others=(library,), others_first=first, **options,
        )


for allocator, package in (
    ("jemalloc", "libjemalloc2"),
    ("tcmalloc", "libtcmalloc-minimal4"),
    ("mimalloc", "libmimalloc2.0"),
):
    PROGRAMS += beside(package, (package, "g++"), allocators.PATHS[allocator], T.gcc, "g++", profile="cc1plus")
PROGRAMS += beside("libfaketime", ("libfaketime", "perl"), LIBRARIES / "faketime/libfaketime.so.1", X.faketime,
                   "perl asks for the time", profile="perl")
PROGRAMS += beside("libeatmydata", ("libeatmydata1", "sqlite3"), LIBRARIES / "libeatmydata.so", T.sqlite,
                   "sqlite3", profile="sqlite3")
PROGRAMS += beside("fakeroot", ("fakeroot", "tar"), LIBRARIES / "libfakeroot/libfakeroot-sysv.so", X.fakeroot,
                   "chown and tar", commands=("faked-sysv",), compared="all; they live too short to be profiled")
PROGRAMS += beside("stdbuf", ("coreutils", "perl"), Path("/usr/libexec/coreutils/libstdbuf.so"), X.stdbuf,
                   "perl, line by line", profile="perl")
PROGRAMS += beside("electric-fence", ("electric-fence", "gcc"), Path("/usr/lib/libefence.so.0"), X.efence,
                   "a program that frees and reallocates", compared="all but its banner", profile="job")
