"""Has loads of programs that run to an end: compilers, shells, interpreters, tools. The scripts are the files of
loads/."""

import hashlib
import re
import shutil
from pathlib import Path

import pypi

LOADS = Path(__file__).resolve().parent / "loads"
PYTHON = "/usr/bin/python3"
OFF = {"OTEL_SDK_DISABLED": "true"}


def bring(work, *names):
    """Copies files of loads/ into the program's folder."""
    for name in names:
        shutil.copy(LOADS / name, work.folder / Path(name).name)


def script(work, command, *names, clean=lambda text: text, ignore=(), stdin=b"", **options):
    """Runs a command over files of loads/ that stop at the gate, and compares all."""
    bring(work, *names)
    work.gate()
    work.run(command, clean=clean, stdin=stdin, **options)
    work.saw_files(ignore)


# --- compilers ---


def gcc(work):
    script(work, ["g++", "-O2", "-g", "-pipe", "-c", "big.cpp", "-o", "big.o"], "big.cpp")


def clang(work):
    work.ignored = r"\.o\.tmp$"  # its name is random
    script(work, ["clang++", "-O2", "-g", "-c", "big.cpp", "-o", "big.o"], "big.cpp")


def make_ten(work):
    """Runs make, which lets one job at a time have its own input, by chance: no job has it here. The other job, which
    may be ending meanwhile, is not listed."""
    for i in range(10):
        gate = '#include "gate"\n' if i == 5 else ""
        work.write(f"part{i}.c", f"{gate}int part{i}(int x) {{ return x * {i} + 1; }}\n")
    objects = " ".join(f"part{i}.o" for i in range(10))
    work.write("Makefile", f"all: {objects}\n%.o: %.c\n\t@exec gcc -O2 -pipe -c $< </dev/null\n")
    work.only = rb"\Amake|part5"
    script(work, ["make", "-s", "-j2"])


def rustc(work):
    bring(work, "main.rs")
    with open(work.folder / "main.rs", "a") as file:
        file.write('\n#[allow(dead_code)]\nconst TEXT: &str = include_str!("gate");\n')
    script(work, ["rustc", "-O", "main.rs", "-o", "job"])


def without_times(text):
    return re.sub(r"\b(in )?\d+(\.\d+)?s\b", "TIME", text)


def cargo(work):
    work.write("Cargo.toml", '[package]\nname = "job"\nversion = "0.1.0"\nedition = "2021"\n')
    (work.folder / "src").mkdir()
    shutil.copy(LOADS / "main.rs", work.folder / "src" / "main.rs")
    with open(work.folder / "src" / "main.rs", "a") as file:
        file.write("\n#[test]\nfn sums() {\n    assert_eq!((1..5).sum::<i32>(), 10);\n}\n")
    for command in ("build", "test"):
        work.run(["cargo", command, "--offline", "-j2"], clean=without_times)
    work.gate()
    work.run(["target/debug/job"], clean=lambda text: re.sub(r"\(\d+\) panicked", "panicked", text))
    work.saw_files(ignore=("target/", ".cargo", ".rustup"))


def go(work, with_c):
    """Runs Go's toolchain of static programs, and the program that it builds."""
    shutil.copytree(LOADS / "go", work.folder, dirs_exist_ok=True)
    environment = [
        "env", f"GOCACHE={work.scratch}/go-cache", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local",
        f"CGO_ENABLED={int(with_c)}",
    ]
    work.prepare([*environment, "go", "build", "-o", "job", "."])
    work.gate()
    work.run(["./job"])
    work.saw_files(ignore=("go/", ".config/"))  # the toolchain's counters


def go_with_c(work):
    go(work, True)


def go_static(work):
    go(work, False)


def fibers(work):
    work.prepare(["g++", "-O2", "-g", LOADS / "fibers.cpp", "-o", "job", "-lboost_fiber", "-lboost_context",
                  "-pthread"])
    script(work, ["./job"])


def cmake(work):
    work.write("CMakeLists.txt", """\
        cmake_minimum_required(VERSION 3.13)
        project(job C CXX)
        include(CheckIncludeFile)
        check_include_file(unistd.h HAVE_UNISTD)
        find_package(Threads REQUIRED)
        execute_process(COMMAND cat gate OUTPUT_VARIABLE TEXT)
        add_library(part SHARED part.cpp)
        add_executable(job job.cpp)
        target_link_libraries(job part Threads::Threads)
        """)
    work.write("part.cpp", "#include <stdexcept>\nint part(int x) { if (x > 1) throw "
               'std::runtime_error("thrown"); return x; }\n')
    work.write("job.cpp", "#include <cstdio>\n#include <exception>\nint part(int);\nint main() { try { "
               "part(1); part(2); } catch (const std::exception &e) { puts(e.what()); } return 3; }\n")
    work.gate()
    clean = lambda text: re.sub(r"\(\d+\.\d+s\)", "", text)  # noqa: E731
    work.run(["cmake", "-S", ".", "-B", "made"], clean=clean)
    work.run(["cmake", "--build", "made"], clean=clean)
    work.run(["made/job"])
    work.saw_files(ignore=("made/CMakeFiles", "made/.cmake", "made/CMakeCache.txt"))


def configure(work):
    """Runs a configure script by autoconf: a shell that runs compilers, and compares what they made."""
    work.write("configure.ac", """\
        AC_INIT([job], [1])
        AC_CONFIG_HEADERS([config.h])
        AC_PROG_CC
        cat gate > through
        AC_CHECK_HEADERS([pthread.h sys/epoll.h nowhere.h])
        AC_CHECK_FUNCS([fork memfd_create nowhere])
        AC_CHECK_SIZEOF([long])
        AC_RUN_IFELSE([AC_LANG_PROGRAM([], [return 3])], [RAN=0], [RAN=$?])
        AC_SUBST([RAN])
        AC_CONFIG_FILES([result])
        AC_OUTPUT
        """)
    work.write("config.h.in", "#undef HAVE_PTHREAD_H\n#undef HAVE_FORK\n#undef HAVE_NOWHERE\n#undef SIZEOF_LONG\n")
    work.write("result.in", "@CC@ @CFLAGS@ @RAN@\n")
    work.prepare(["autoconf"])
    script(work, ["./configure", "-C"], ignore=("config.log", "config.status", "config.cache", "autom4te.cache"))


def free_pascal(work):
    bring(work, "job.pas")
    work.prepare(["fpc", "-v0", "job.pas"])
    for settings in ({}, OFF):
        work.gate("through the gate\n")
        work.run(["./job"], env=settings)
    work.saw_files()


# --- shells ---


def without_pids(text):
    """bash names the process that was killed: "job.bash: line 13: 4711 Killed"."""
    return re.sub(r"(line \d+:) +\d+ ", r"\1 PID ", text)


def bash(work):
    script(work, ["bash", "job.bash"], "job.bash", clean=without_pids)


def dash(work):
    script(work, ["dash", "job.dash"], "job.dash")


def mksh(work):
    script(work, ["mksh", "job.dash"], "job.dash")


def zsh(work):
    script(work, ["zsh", "-f", "job.zsh"], "job.zsh")


# --- interpreters ---


def python_threads(work):
    script(work, [PYTHON, "threads.py"], "threads.py")


def python_processes(work):
    # Python 3.12 counts the process's threads at os.fork, the profiler's too, and warns of them
    script(work, [PYTHON, "-W", "ignore:This process", "processes.py"], "processes.py")


def python_itimer(work):
    script(work, [PYTHON, "-u", "itimer.py"], "itimer.py")


def perl(work):
    script(work, ["/usr/bin/perl", "job.pl"], "job.pl")


def node(work):
    work.numbered = False  # its workers open their files at the same time
    script(work, ["node", "job.js"], "job.js")


def lua(work):
    script(work, ["lua5.4", "job.lua"], "job.lua")


def luajit(work):
    script(work, ["luajit", "job.lua"], "job.lua")


def pypy(work):
    script(work, ["pypy3", "threads.py"], "threads.py", ignore=("__pycache__",))


def sbcl(work):
    script(work, ["sbcl", "--noinform", "--no-sysinit", "--no-userinit", "--disable-debugger", "--load", "job.lisp"],
           "job.lisp")


def erlang(work):
    work.numbered = False  # its schedulers open their files at the same time
    script(work, ["escript", "job.escript"], "job.escript", ignore=(".erlang.cookie", ".cache"))


def prolog(work):
    script(work, ["swipl", "-q", "-g", "main", "job.pro"], "job.pro")


def r(work):
    script(work, ["Rscript", "--vanilla", "job.R"], "job.R")


def ruby(work):
    script(work, ["ruby", "job.rb"], "job.rb")


def php(work):
    script(work, ["php", "job.php"], "job.php")


def php_extensions(work):
    script(work, ["php", "extensions.php"], "extensions.php")


def php_extension(name):
    return [str(path) for path in Path("/usr/lib/php").glob(f"*/{name}.so")]


def php_imagick(work):
    script(work, ["php", "imagick.php"], "imagick.php")


def guile(work):
    work.numbered = False  # its threads open their files at the same time
    script(work, ["guile", "--no-auto-compile", "job.scm"], "job.scm")


def tcl(work):
    script(work, ["tclsh", "job.tcl"], "job.tcl")


def gawk(work):
    script(work, ["gawk", "-f", "job.awk"], "job.awk")


MAXIMA_RUNS = 4  # half of them crashed while the exporter was loaded


def maxima(work):
    """Runs maxima, whose own malloc is for one thread, and comes before all others."""
    batch = ["maxima", "--very-quiet", "--no-init", "--batch=job.mac"]
    bring(work, "job.mac")
    for settings in [{}] * MAXIMA_RUNS + [OFF]:
        work.gate("through the gate\n")
        work.run(batch, env=settings)
    work.saw_files()


# --- JVM ---


def javac(work):
    """Runs javac, with one source through the gate: javac reads its arguments' files from a list."""
    for i in range(12):
        other = (i + 1) % 12
        methods = "".join(
            f"  public static <T extends Comparable<T>> java.util.List<T> m{k}(java.util.List<T> a) {{"
            f" return a.stream().filter(x -> x.compareTo(a.get({k})) > 0).sorted().toList(); }}\n"
            for k in range(60)
        )
        work.write(f"part/Class{i}.java", f"package part;\npublic class Class{i} extends Base{{\n{methods}"
                   f"  Class{other} other;\n}}\n")
    work.write("part/Base.java", "package part;\npublic class Base { record Pair(int a, String b) {} }\n")
    names = "\n".join([f"part/Class{i}.java" for i in range(12)] + ["part/Base.java"])
    work.gate(names + "\n")
    work.run(["javac", "-J-XX:-UsePerfData", "-J-Xshare:off", "-d", "classes", "@gate"])
    work.saw_files()


def java(work):
    bring(work, "Main.java")
    work.prepare(["javac", "Main.java"])
    work.gate()
    work.run(["java", "-XX:-UsePerfData", "-XX:ParallelGCThreads=2", "-Xss512k", "Main"])
    work.saw_files()


# --- databases and tools ---


def sqlite(work):
    bring(work, "job.sql")
    work.gate("SELECT 'through the gate';\n")
    work.run(["sqlite3", "new.db"], stdin=(LOADS / "job.sql").read_bytes())
    work.saw_files()


def chdb(work):
    # each of its threads reads its own times, when it happens to run
    work.ignored, work.numbered = "^/proc/N/task/", False
    script(work, [pypi.PYTHON, "chdb_job.py"], "chdb_job.py", ignore=("database/",))


def without_log(text):
    """Removes log lines of the library, which have the time, and the id of a thread."""
    return "".join(line for line in text.splitlines(True) if not re.match(r"[IWE]\d{4} |WARNING: All log", line))


# Names files in which the libraries keep facts of this machine and run.
IDENTITIES = ("intel/", ".cache/Microsoft/", "tmp/.ses")


def generated_arithmetic(name):
    """Runs a program of Python whose library generates code for products of matrices; its threads start by chance."""
    def drive(work):
        work.ignored, work.numbered = "^/proc/N/task/", False
        script(work, [pypi.PYTHON, "-W", "ignore", f"{name}_job.py"], f"{name}_job.py", ignore=IDENTITIES,
               env={"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}, clean=without_log)
    return drive


def git(work):
    bring(work, "git.sh")
    work.gate("through the gate\n")
    work.run(["sh", "git.sh"])
    # the index holds times and inode numbers of the files
    work.saw("files", {k: v for k, v in files(work).items() if not k.endswith(("index", "/logs/HEAD"))})


def files(work):
    from harness import files_of

    return files_of(work.folder)


def make_tree(work):
    """Makes 25 MB that compress to about a half."""
    (work.folder / "tree").mkdir()
    for i in range(20):
        blocks = (hashlib.sha256(b"%d" % (i * 9 + k % 9973)).hexdigest() for k in range(20000))
        (work.folder / "tree" / f"file{i}").write_bytes("".join(blocks).encode())


def tar_xz(work):
    make_tree(work)
    work.gate("tree\n")
    work.write("job.sh", """\
        tar --sort=name --mtime=@0 -T gate -cf - | xz -T2 -2 > tree.tar.xz
        xz -t -v tree.tar.xz 2>/dev/null && xz -dc tree.tar.xz | tar -tf - | wc -l
        xz -dc tree.tar.xz | tar -xf - -C tmp && diff -r tree tmp/tree && rm -r tmp/tree
        head -c 100000 tree.tar.xz | xz -dc > short.tar
        """)
    work.run(["sh", "job.sh"])
    work.saw_files()


def sort(work):
    """Runs sort; the last lines of the input come through the gate, when the temporary files are written."""
    with open(work.folder / "input", "w") as file:
        file.writelines(f"{i * 7919 % 10000019} {i * 31 % 65537} some text\n" for i in range(3800000))
    work.gate("12 34 through the gate\n5 6 and another\n")
    work.run(["sort", "--parallel=2", "-S", "30M", "-k2n", "-k1", "-o", "output", "input", "gate"])
    work.run(["sort", "-c", "output"])
    work.saw_files()


def zstd_pigz(work):
    make_tree(work)
    work.gate()
    work.write("job.sh", """\
        cat tree/* > all
        cat all gate | zstd -q -T2 -9 -o all.zst
        zstd -qdc all.zst | cmp - all
        pigz -p2 -n -k all && pigz -dc all.gz | cmp - all
        zstd -qt all.gz; echo $?
        rm all
        """)
    work.run(["sh", "job.sh"])
    work.saw_files()


def openssl(work):
    make_tree(work)
    work.gate("through the gate\n")
    work.write("job.sh", """\
        cat tree/* > all
        openssl dgst -sha3-512 all
        openssl enc -aes-256-cbc -pbkdf2 -iter 300000 -S 0011223344556677 -pass pass:x -in all -out all.enc
        openssl enc -d -aes-256-cbc -pbkdf2 -iter 300000 -S 0011223344556677 -pass pass:x -in all.enc | cmp - all
        openssl prime -generate -bits 64 > tmp/prime
        openssl genpkey -algorithm ed25519 -out tmp/key && openssl pkey -in tmp/key -pubout -out tmp/public
        openssl pkeyutl -sign -rawin -inkey tmp/key -in job.sh -out tmp/sum
        openssl pkeyutl -verify -rawin -pubin -inkey tmp/public -in job.sh -sigfile tmp/sum
        openssl dgst -sha256 gate
        openssl enc -d -aes-256-cbc -in job.sh -pass pass:x -pbkdf2; echo $?
        """)
    clean = lambda text: re.sub(r"^[0-9A-F]+:", "", text, flags=re.M)  # noqa: E731 of a thread
    work.run(["sh", "job.sh"], clean=clean)
    work.saw_files(ignore=("tmp/",))


def without_wire(text):
    """Removes the count of bytes on the wire, which depends on the files' times, which are compressed."""
    return re.sub(r"(bytes (sent|received)|speedup|time:|is).*", "", re.sub(r"\[\w+=.*|at \S+\(\d+\)", "", text))


def rsync(work):
    for i in range(300):
        work.write(f"from/{i % 7}/file{i}", "text\n" * i)
    work.gate("*.skipped\n")
    work.write("job.sh", """\
        rsync -r --exclude-from=gate from/ to && rm -r to/3 && echo more >> from/1/file1
        rsync -rvc --stats from/ to | grep -v sec
        diff -r from to; rsync missing to; echo $?
        """)
    work.run(["sh", "job.sh"], clean=without_wire)
    work.saw_files()
