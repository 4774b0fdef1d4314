"""Before main the profiler runs nothing that could reach the program's own code, and little else."""

import collections
import glob
import re
import subprocess

import pytest
from profiled import BUILD, LIBRARY, ROOT

pytestmark = pytest.mark.system

SETTINGS = {
    "profiled": {"OTEL_PROFILER_EXCLUDE": "none", "OTEL_PROFILER_TYPES": "cpu,alloc,heap,mmap"},
    "default": {},
    "excluded": {"OTEL_PROFILER_EXCLUDE": "*"},
    "disabled": {"OTEL_SDK_DISABLED": "true"},
}
settings = pytest.mark.parametrize("setting", SETTINGS)


# --- the program's malloc ---


@settings
def test_no_malloc_of_the_program_is_called_before_its_main(run, program, setting):
    """Debian's maxima has a malloc of its own that its main makes ready."""
    outcome = run([program("malloc_for_main")], env=SETTINGS[setting])
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "ok\n", "")


# --- the look-up of functions behind ours ---

COMPARES = BUILD / "test/differential/symbols.so"
# Lists allocators and wrappers of libc, before and behind the profiler; missing ones are passed over.
OTHERS = [path for name in ("libjemalloc.so.2", "libtcmalloc.so.4", "libmimalloc.so.2*", "libfakeroot/libfakeroot-tcp.so",
                            "libeatmydata.so", "faketime/libfaketime.so.1", "heaptrack/libheaptrack_preload.so")
          for path in glob.glob(f"/usr/lib/x86_64-linux-gnu/{name}") + glob.glob(f"/usr/lib/{name}")]


def differences(tmp_path, command, before=(), behind=()):
    """Returns how our look-up differs from the loader's, for every name that any object of the program defines."""
    report = tmp_path / "symbols"
    report.unlink(missing_ok=True)
    preload = ":".join(map(str, (*before, COMPARES, *behind)))
    subprocess.run(command, env={"LD_PRELOAD": preload, "SYMBOLS": str(report), "PATH": "/usr/bin:/bin"},
                   cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=120)
    lines = report.read_text().splitlines()
    compared = [int(line.split()[1]) for line in lines if line.startswith("compared")]
    assert compared and min(compared) > 2000, "libc alone has more"
    return [line for line in lines if not line.startswith("compared")]


@pytest.mark.parametrize("command", [["/bin/true"], ["/usr/bin/python3", "-c", "0"], ["/usr/bin/git", "--version"],
                                     ["/usr/bin/perl", "-e", "0"], ["/usr/bin/g++", "--version"]], ids=lambda c: c[0])
def test_the_next_function_is_the_one_that_the_loader_finds(tmp_path, command):
    assert differences(tmp_path, command) == []


@pytest.mark.parametrize("other", OTHERS, ids=lambda path: path.rpartition("/")[2])
def test_the_next_functions_beside_other_preloads(tmp_path, other):
    assert differences(tmp_path, ["/bin/true"], before=[other]) == []
    assert differences(tmp_path, ["/bin/true"], behind=[other]) == []


# --- exports that are removed ---


@settings
def test_withdrawn_symbols_are_ignored_by_readers_of_the_tables(run, program, setting):
    """memray reads the tables by itself, and called address 0 of our library."""
    before = run([program("reads_symbols")], profiled=False).stdout
    outcome = run([program("reads_symbols")], env=SETTINGS[setting])
    assert outcome.stdout == f"{int(before.split()[0]) + 1} objects\n"


# --- how many calls there are ---

OF_THE_PROGRAM = {"malloc", "free", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc", "getenv",
                  "secure_getenv", "dlsym", "dlopen", "dlerror", "dladdr", "dlclose", "exit"}
DATA = {"environ", "__environ", "_r_debug"}
# These functions call no other, keep no state, and no preload is known that defines them.
LEAVES = {"__errno_location", "__libc_current_sigrtmax", "__libc_current_sigrtmin", "getauxval", "memchr", "memcmp",
          "memcpy", "__memcpy_chk", "memmem", "memmove", "memset", "stpcpy", "__stpcpy_chk", "strchr", "strcmp",
          "strcspn", "strlen", "strncmp", "strnlen", "strpbrk", "strrchr", "strspn", "strstr"}
# Functions of libc, which another preload may replace.
OF_LIBC_IF_PROFILED = {
    "__cxa_at_quick_exit", "__cxa_atexit", "atexit", "__pthread_register_cancel", "__register_atfork", "__sigsetjmp",
    "dl_iterate_phdr", "getpid", "getrlimit", "gnu_get_libc_version", "madvise", "mmap", "pthread_attr_destroy",
    "pthread_attr_init", "pthread_attr_setdetachstate", "pthread_attr_setstacksize", "pthread_mutex_init",
    "pthread_create", "pthread_self", "pthread_sigmask", "readlink", "sigaction", "sigfillset", "syscall", "sysconf"}


def named(option):
    lines = subprocess.run(["nm", "-D", option, LIBRARY], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in lines.splitlines()}


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """Builds a preload that counts our calls of all functions that our library imports, or replaces."""
    libc = subprocess.run(["nm", "-D", "--defined-only", "/lib/x86_64-linux-gnu/libc.so.6"], capture_output=True,
                          text=True, check=True).stdout
    of_libc = {line.split()[-1].split("@")[0] for line in libc.splitlines()} - {"__libc_start_main"}
    names = named("--undefined-only") | OF_THE_PROGRAM | (named("--defined-only") & of_libc)
    stubs = [f"STUB({name})" for name in sorted(names - DATA) if not name.startswith(("_ITM_", "__gmon"))]
    built = tmp_path_factory.mktemp("counts") / "counts.so"
    subprocess.run(["gcc", "-fPIC", "-shared", "-w", f"-DFUNCTIONS={' '.join(stubs)}", "-o", built,
                    ROOT / "test/lib/counts_calls.c"], check=True)
    return built


def system_calls(trace, end):
    """Lists system calls on the main thread, from the first moment of our constructor to the line that begins with
    `end`."""
    lines = [line for line in trace.read_text().splitlines() if "resumed>" not in line]
    of_main = [line.split(maxsplit=1)[1] for line in lines if line.split()[0] == lines[0].split()[0]]
    first = next(i for i, line in enumerate(of_main) if line.startswith("getpgid(1111111"))
    last = next(i for i, line in enumerate(of_main) if line.startswith(end))
    return collections.Counter(line.split("(")[0] for line in of_main[first + 1:last] if "(" in line)


@pytest.fixture
def before_main(run, program, counts, tmp_path):
    """before_main(setting) -> (our calls of foreign functions, our system calls), counted by name."""

    def count(setting, command=None, end="getpgid(2222222"):
        trace = tmp_path / "trace"
        env = {**SETTINGS[setting], "LD_PRELOAD": f"{LIBRARY}:{counts}"}
        strace = ["strace", "-f", "-o", trace, *(f"-E{name}={value}" for name, value in env.items())]
        outcome = run([*strace, *(command or [program("marks_main")])], profiled=False)
        assert outcome.returncode == 0, outcome.stderr
        calls = {name: int(count) for count, name in (line.split() for line in outcome.stdout.splitlines())}
        return calls, system_calls(trace, end)

    return count


def told(what):
    """Returns the figures of docs/overhead.md: excluded by default, excluded, disabled, profiled."""
    line, = (line for line in (ROOT / "docs/overhead.md").read_text().splitlines() if line.startswith(f"| before main: {what}"))
    return [int(figure) for figure in re.findall(r"\| (\d+) ", line)]


# openat: the folder of the configuration files, which does not exist, and the kill switch until the next boot
@pytest.mark.parametrize("setting, expected", [("excluded", {"openat": 2, "readlinkat": 1, "mprotect": 2}),
                                               ("disabled", {"mprotect": 2})])
def test_before_main_an_excluded_process_does_next_to_nothing(before_main, setting, expected):
    calls, system = before_main(setting)
    assert set(calls) <= LEAVES, "none that anybody may have in its place"
    assert system == expected
    column = list(SETTINGS).index(setting) - 1
    assert (told("system calls")[column], told("functions")[column]) == (sum(expected.values()), 0)


def test_before_main_a_command_of_the_system_opens_the_files_of_the_host(before_main):
    _, system = before_main("default", ["/bin/true"], "exit_group")
    assert system == {"openat": 2}
    assert (told("system calls")[0], told("functions")[0]) == (2, 0)


def test_before_main_a_profiled_process_makes_the_listed_calls_alone(before_main):
    """None of these calls is the program's: its malloc, its getenv, the loader."""
    calls, system = before_main("profiled")
    others = set(calls) - LEAVES
    assert others <= OF_LIBC_IF_PROFILED
    assert not others & OF_THE_PROGRAM
    assert len(others) <= told("functions")[3]
    assert sum(system.values()) <= told("system calls")[3]
