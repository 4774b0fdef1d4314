"""Has loads of what is between a program and the system: debuggers, sanitizers, sandboxes, other libcs, other
preloads, stressors."""

import os
import re
import shutil

import pypi
from loads_tools import LOADS, OFF, PYTHON, bring, script

HEAPTRACK_RUNS = 20  # one in ten hung

# --- debuggers ---


def compiled(work, source, *flags, compiler="gcc"):
    work.prepare([compiler, "-O1", "-g", *flags, LOADS / source, "-o", "job", "-pthread"])


def gdb(work):
    compiled(work, "threads.c")
    work.only = rb"\A[^\x00]*/job\x00\Z"  # gdb keeps some of the files open that have symbols, ours among them
    work.gate()
    work.write("commands", """\
        set confirm off
        set pagination off
        set startup-with-shell off
        handle SIGPROF SIGUSR1 nostop noprint pass
        break on_signal
        run
        bt 1
        print hits
        continue
        print $_exitcode
        """)
    lines = re.compile(r"^(#0|\$|\d+ [0-9]|\[Inferior 1 .* exited|Breakpoint|Program)")

    def clean(text):
        kept = "\n".join(line for line in text.splitlines() if lines.match(line) or "exited" in line)
        kept = re.sub(r"(process|Thread|LWP) \S+( \(LWP \d+\))?", r"\1 N", kept)
        kept = re.sub(r"^\[Thread N exited\]$\n?", "", kept, flags=re.M)  # our helper is one thread more
        return re.sub(r"0x[0-9a-f]+", "ADDRESS", kept)

    work.run(["gdb", "-nx", "-batch", "-x", "commands", "./job"], clean=clean)
    work.saw_files()


def strace(work):
    script(work, ["strace", "-f", "-qq", "-o", "trace", "/usr/bin/perl", "job.pl"], "job.pl",
           ignore=("trace",))


def valgrind(work):
    compiled(work, "errors.c")
    work.gate()

    def clean(text):
        text = re.sub(r"==\d+==", "==", text)
        kept = [line for line in text.splitlines() if re.search(r"Invalid|ERROR SUMMARY|definitely lost", line)]
        return re.sub(r"loss record.*", "", "\n".join(kept))

    work.run(["valgrind", "--leak-check=full", "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite",
              "./job"], clean=clean)
    work.saw_files()


def ltrace(work):
    """Runs ltrace, whose own status is 0 however the program ended: the trace's last line shows how."""
    compiled(work, "ltrace_job.c", "-O0", "-fno-builtin")
    work.only = rb"\A[^\x00]*/job\x00\Z"  # ltrace reads our symbols, too
    script(work, ["ltrace", "-o", "trace", "./job"], ignore=("trace",))
    lines = (work.folder / "trace").read_text().splitlines()
    calls = [line.partition("(")[0] for line in lines if "SIGPROF" not in line]
    work.saw("traced", {name: calls.count(name) for name in ("malloc", "strlen", "free", "fopen", "printf")})
    work.saw("end", lines[-1])


# --- other profilers ---


def memray(work):
    """Runs memray, which reads the ELF tables of all loaded objects, and puts its own functions into their slots."""
    bring(work, "memray_job.py")
    for settings in ({}, OFF):
        work.gate("through the gate\n")
        work.run([pypi.PYTHON, "-m", "memray", "run", "-q", "-f", "-o", "taken", "memray_job.py"],
                 clean=lambda text: re.sub(r"0x[0-9a-f]+", "ADDRESS", text), env=settings)
        table = work.prepare([pypi.PYTHON, "-m", "memray", "stats", "taken"])
        work.saw("what it saw", re.findall(r"kept_by_a_thread:memray_job.py:9 -> [\d.]+MB", table))
    work.saw_files(ignore=("taken",))


def heaptrack(work):
    """Runs heaptrack, whose malloc takes a lock of its own at the very start, where our helper starts, too."""
    work.prepare(["g++", "-O1", "-g", LOADS / "heaptrack_job.cpp", "-o", "job", "-pthread"])
    for i in range(HEAPTRACK_RUNS):
        work.run(["heaptrack", "-o", f"taken{i}", "./job"], name=f"{i}", clean=without_statistics,
                 env={"OTEL_PROFILER_MIN_LIFETIME": "0"}, timeout=30)
        work.prepare(["heaptrack_print", f"taken{i}.zst", "-F", "stacks"])
        work.saw(f"{i} what it saw", re.findall(r";work\b", (work.folder / "stacks").read_text())[:1])
    work.saw_files(ignore=("taken", "stacks"))


def without_statistics(text):
    """Removes counts that include our allocations."""
    return re.sub(r"^heaptrack stats:\n(\t.*\n)*", "", text, flags=re.M)


# --- sanitizers ---


def sanitized(work, *flags, environment=None):
    compiled(work, "threads.c", *flags)
    work.gate()
    work.run(["./job"], env=environment)
    work.saw_files()


def asan(work):
    # GCC's shared libasan refuses every preload unless ASAN_OPTIONS turns the check off
    sanitized(work, "-fsanitize=address", environment={"ASAN_OPTIONS": "verify_asan_link_order=0"})


def tsan(work):
    sanitized(work, "-fsanitize=thread")


def ubsan(work):
    sanitized(work, "-fsanitize=undefined")


# --- sandboxes ---


def seccomp_strict(work):
    compiled(work, "seccomp_strict.c")
    work.run(["./job"])


def seccomp_filter(work):
    compiled(work, "seccomp_filter.c")
    work.run(["./job"])


def chroot(work):
    (work.folder / "empty").mkdir()
    work.write("job.py", """\
        import os, threading, time
        gate = open("gate")
        os.chroot("empty")
        os.chdir("/")
        def burn():
            end = time.thread_time() + 0.3
            while time.thread_time() < end:
                sum(range(1000))
        threads = [threading.Thread(target=burn) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(gate.read(), os.listdir("/"))
        """)
    script(work, [PYTHON, "-S", "job.py"])


def unreachable(work):
    """Runs where the run's own files are root's, in folders that no other user may search."""
    path = work.folder
    while path != path.parent and path.owner() == "root" and not path.stat().st_mode & 0o001:
        path.chmod(path.stat().st_mode | 0o011)
        path = path.parent
    shutil.chown(work.folder, "nobody", "nogroup")


def setpriv(work):
    """Runs as nobody, whose log lines go to no file of root's."""
    unreachable(work)
    script(work, ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs",
                  "/usr/bin/perl", "job.pl"], "job.pl", env={"OTEL_PROFILER_LOG_FILE": "/dev/null"})


def unshare(work, *more):
    script(work, ["unshare", *more, "--mount", "--ipc", "--uts", "/usr/bin/perl", "job.pl"], "job.pl")


def unshare_user(work):
    unshare(work, "--user", "--map-root-user")


def bubblewrap(work):
    script(work, ["bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
                  "/usr/bin/perl", "job.pl"], "job.pl")


# --- other libcs ---


def busybox(work):
    work.write("job.sh", """\
        for i in $(seq 1 50); do (exit $i); x=$(echo $i | cat); done
        cat gate > through
        seq 1 20000 | awk '{ s += $1 } END { print s }'
        echo $x | md5sum; exit 4
        """)
    script(work, [shutil.which("busybox"), "sh", "job.sh"])


def musl_static(work):
    compiled(work, "threads.c", "-static", compiler="musl-gcc")
    script(work, ["./job"])


def musl(work):
    compiled(work, "threads.c", compiler="musl-gcc")
    # musl's loader writes one line about each symbol that it does not know
    script(work, ["./job"], clean=lambda text: re.sub(r"^Error relocating .*\n?", "", text, flags=re.M))


# --- other preloads ---


def faketime(work):
    # faketime opens its shared memory once more if the time is read before its constructor has run
    work.ignored, work.numbered = "^/dev/shm/", False
    work.write("job.pl", """\
        my $x = 0;
        for my $i (1 .. 5000000) { $x += $i % 7 }
        open(my $gate, '<', 'gate'); <$gate>;
        print substr(scalar(gmtime), 0, 10), " $x\\n";
        print `date -u +%Y-%m-%d`;
        """)
    script(work, ["/usr/bin/perl", "job.pl"], env={"FAKETIME": "@2020-01-02 03:04:05"})


def fakeroot(work):
    """The daemon runs without the profiler: the test is about fakeroot's own preload."""
    work.write("job.sh", """\
        mkdir tree && echo text > tree/file && mknod tree/device c 1 3
        chown -R 123:456 tree && chmod 640 tree/file
        stat -c '%n %u %g %a %F' tree tree/file tree/device
        read -r _ < gate
        tar --sort=name --mtime=@0 -cf tree.tar tree && tar -tvf tree.tar
        """)
    work.gate()
    line = work.prepare(["/usr/bin/faked-sysv"])
    key, pid = line.strip().split(":")
    try:
        work.run(["sh", "job.sh"], env={"FAKEROOTKEY": key, "FAKED_MODE": "unknown-is-root"})
    finally:
        os.kill(int(pid), 15)
    work.saw_files()


def stdbuf(work):
    work.write("job.pl", """\
        my $x = 0;
        for my $i (1 .. 5000000) { $x += $i % 7 }
        open(my $gate, '<', 'gate'); <$gate>;
        system("printf one; sleep 0.1; printf two");
        print "$x\\n";
        """)
    script(work, ["/usr/bin/perl", "job.pl"], env={"_STDBUF_O": "L", "_STDBUF_I": "0"})


def efence(work):
    compiled(work, "errors.c")
    script(work, ["./job", "without errors"],
           clean=lambda text: "\n".join(li for li in text.splitlines() if "Electric Fence" not in li))


# --- stressors ---

STRESSORS = (
    "fork vfork clone pthread malloc bigheap mmap signal sigfpe sigsegv itimer timer dynlib context stack "
    "mlock seccomp sigq sigsuspend exec"
).split()


def verdict_of(text):
    """Returns what stress-ng prints of one stressor, without pids, times and counts."""
    kept = [line for line in text.splitlines() if re.search(r"fail|error|successful|unsuccessful|skip", line)]
    return re.sub(r"\[\d+\]|\d+\.\d+s?( \(.*\))?", "", "\n".join(kept))


def stress_ng(work):
    for name in STRESSORS:
        work.run(["stress-ng", f"--{name}", "1", "--verify", "-t", "1", "--temp-path", "tmp"],
                 name=name, clean=verdict_of, timeout=60)
