"""Calls that may block are redirected at their call sites (bound_calls.h), where a profile type measures waits: no
program may notice."""

import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from attributed_samples import attributed_samples
from profiled import LIBRARY, ROOT
from waiting import eventually

pytestmark = pytest.mark.fast

ALL = {"OTEL_PROFILER_TYPES": "all", "OTEL_PROFILER_CPU_FREQUENCY": "999", "OTEL_PROFILER_WAIT_FREQUENCY": "199"}
CALLS = re.findall(r"^BLOCKING(?:_IF)?\(.*?, (?:int|ssize_t|unsigned|pid_t), (\w+), \(",
                   (ROOT / "shim/hooks/blocking_calls.def").read_text(), re.M)
BINDINGS = {"lazy": ["-Wl,-z,lazy"], "now": ["-Wl,-z,now"], "no plt": ["-fno-plt"], "fixed": ["-no-pie"],
            "whole relro": ["-Wl,-z,now,-z,relro"], "no relro": ["-Wl,-z,norelro"]}


def compiled(folder, name, source, *flags):
    text = folder / f"{name}.c"
    text.write_text(source)
    subprocess.run(["cc", "-O1", "-w", "-D_GNU_SOURCE", "-o", folder / name, text, *flags], check=True)
    return str(folder / name)


def whose(outcome):
    """Returns {(object, function): [(the object that the entry leads to, how its memory is mapped), ...]}."""
    assert outcome.returncode == 0, outcome.stderr
    calls = {}
    for place, name, owner, rights in re.findall(r"^(\S+) (\S+) (\S+) (\S{4})$", outcome.stdout, re.M):
        calls.setdefault((place, name), []).append((owner, rights))
    return calls


def owners(outcome, place):
    return {name: {owner for owner, _ in found} for (where, name), found in whose(outcome).items() if where == place}


def test_the_table_is_read_whole():
    rows = re.findall(r"^BLOCKING(?:_IF)?\(", (ROOT / "shim/hooks/blocking_calls.def").read_text(), re.M)
    assert len(CALLS) == len(set(CALLS)) == len(rows) > 100


@pytest.mark.parametrize("binding", BINDINGS)
def test_calls_lead_to_us_however_the_program_is_bound(run, tmp_path, binding):
    """Memory that was read-only is read-only again."""
    source = (ROOT / "test/programs/whose_calls.c").read_text()
    program = compiled(tmp_path, "whose", source, "-rdynamic", *BINDINGS[binding])
    plain = run([program, "0"], profiled=False)
    outcome = run([program, "0"], env=ALL)
    for name in ("poll", "read", "pthread_cond_wait", "pthread_join", "cnd_wait"):
        assert owners(outcome, "program")[name] == {"libotelprof.so"}, name
    assert owners(outcome, "program")["dladdr"] == owners(plain, "program")["dladdr"]
    assert outcome.stdout.splitlines()[-1] == "1", "a function has one address in code and data"
    rights = {call: [rights for _, rights in found] for call, found in whose(plain).items()}
    assert rights == {call: [rights for _, rights in found] for call, found in whose(outcome).items()}


def mapping_at(pid, offset):
    """Returns (first address, past the last, rights) of the mapping that has this address of libotelprof.so, and the
    address."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    found = [(*(int(end, 16) for end in line.split()[0].split("-")), line.split()[1])
             for line in lines if line.endswith(f"/{LIBRARY.name}")]
    address = found[0][0] + offset
    return next(mapping for mapping in found if mapping[0] <= address < mapping[1]), address


def test_the_next_functions_are_read_only_once_they_are_known(start, tmp_path):
    """The pointers share one mapping with what the loader has made read-only."""
    text = subprocess.run(["nm", "-S", LIBRARY], capture_output=True, text=True, check=True).stdout
    tables = re.findall(r"^(\w+) (\w+) d (next_locks|next_blocking_calls|next_blocking_syscall)$", text, re.M)
    (relocated,) = re.findall(r"^(\w+) d _DYNAMIC$", text, re.M)
    assert len(tables) == 3
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    running = start(["sh", "-c", f"echo begun; read line < {gate}; true"], env=ALL)
    eventually(lambda: Path(running.out.name).read_text() == "begun\n", "the program's line", unless=running.process.poll)
    pid = running.process.pid
    for offset, size, name in tables:
        mapping, address = mapping_at(pid, int(offset, 16))
        assert (mapping, mapping[2]) == (mapping_at(pid, int(relocated, 16))[0], "r--p"), name
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(address)
            functions = struct.unpack(f"{int(size, 16) // 8}Q", memory.read(int(size, 16)))
        assert len([function for function in functions if function]) > 0.9 * len(functions), name
    gate.write_text("\n")
    assert running.finish(60).returncode == 0


def test_nothing_is_bound_without_types_of_waits(run, program):
    outcome = run([program("whose_calls"), "0"])
    assert "libotelprof.so" not in owners(outcome, "program")["poll"] | owners(outcome, "program")["read"]


@pytest.mark.parametrize("types", ["off_cpu", "sched_delay", "lock", "threads"])
def test_each_type_of_waits_binds_the_hooks_of_waits(run, program, types):
    outcome = run([program("whose_calls"), "0"], env={"OTEL_PROFILER_TYPES": types})
    assert owners(outcome, "program")["poll"] == {"libotelprof.so"}


@pytest.mark.parametrize("how", ["", "lazy:", "deep:"])
def test_calls_of_a_library_that_is_loaded_later_lead_to_us(run, program, tmp_path, how):
    plugin = compiled(tmp_path, "libplug.so", "#include <poll.h>\nint plug(void) { return poll(0, 0, 1); }\n",
                      "-shared", "-fPIC", "-Wl,-z,lazy")
    outcome = run([program("whose_calls"), "60", how + plugin], env=ALL)
    assert owners(outcome, "libplug.so")["poll"] == {"libotelprof.so"}


@pytest.mark.parametrize("preload, names", [("libfaketime", ["poll", "nanosleep"]), ("libeatmydata", ["fsync"])])
@pytest.mark.parametrize("first", [True, False])
def test_another_preload_keeps_its_functions(run, library, tmp_path, preload, names, first):
    """The other preload may come before or behind the profiler."""
    found = sorted(str(path) for path in Path("/usr/lib").rglob(f"{preload}*.so*"))
    if not found and shutil.which("faketime") is None:
        pytest.skip(f"{preload} is not installed")
    pointers = f"#include <time.h>\nvoid *const pointers[] = {{{', '.join(names)}}};\n"
    source = (ROOT / "test/programs/whose_calls.c").read_text() + pointers
    program = compiled(tmp_path, "whose", source, "-rdynamic", "-Wl,-z,now")
    preloads = [found[0], library] if first else [library, found[0]]
    outcome = run([program, "0"], env={**ALL, "LD_PRELOAD": ":".join(preloads)})
    for name in names:
        assert owners(outcome, "program")[name] == {Path(found[0]).name}
    assert owners(outcome, "program")["pthread_join"] == {"libotelprof.so"}


# Defines a table of functions on pages that a constructor protects itself: closed where the loader left them open, or
# open where the loader closed them.
PROTECTED = """
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
enum { PAGE = 65536 };
%s struct {
    int (*call)(struct pollfd *, nfds_t, int);
    char rest[PAGE - sizeof(void *)];
} pages __attribute__((aligned(PAGE))) = {poll, {0}};
__attribute__((constructor)) static void protect(void) { mprotect((void *)&pages, sizeof pages, %s); }
int plug(void) { return %s; }
"""
OWN_PAGES = {"closed": ("", "PROT_READ", "pages.call(0, 0, 1)"),
             "open": ("const", "PROT_READ | PROT_WRITE", "((volatile char *)pages.rest)[0] = 1")}
CALLS_IT_LATER = """
#include <dlfcn.h>
#include <time.h>
int plug(void) __attribute__((weak));
int main(int argc, char **argv) {
    int (*const call)(void) = argc > 1 ? (int (*)(void))dlsym(dlopen(argv[1], RTLD_NOW), "plug") : plug;
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    return call() > 1;
}
"""


@pytest.mark.parametrize("how", ["linked", "loaded"])
@pytest.mark.parametrize("pages", OWN_PAGES)
def test_pages_stay_as_the_program_protects_them(run, tmp_path, pages, how):
    """The profiler writes only where a write is allowed; pages that the program has opened stay open."""
    plugin = compiled(tmp_path, "libplug.so", PROTECTED % OWN_PAGES[pages], "-shared", "-fPIC", "-Wl,-z,relro")
    flags = ["-Wl,--no-as-needed", plugin, "-Wl,-rpath," + str(tmp_path)] if how == "linked" else []
    program = compiled(tmp_path, "calls_it_later", CALLS_IT_LATER, *flags)
    outcome = run([program, *([plugin] if how == "loaded" else [])], env=ALL)
    assert outcome.returncode == 0, outcome.stderr


def test_every_call_answers_as_without_us(run, program):
    """The result, errno, and arguments on the stack are as without the profiler."""
    text = (ROOT / "test/programs/refused_calls.c").read_text()
    assert [name for name in CALLS if f"{name}(" not in text] == []
    plain = run([program("refused_calls")], profiled=False)
    profiled = run([program("refused_calls")], env=ALL, timeout=60)
    assert plain.stdout.count("\n") > len(CALLS)
    assert (profiled.stdout, profiled.stderr, profiled.returncode) == (plain.stdout, "", 0)


def test_every_cancellation_point_is_one_still(run, program):
    profiled = run([program("cancels_waits")], env=ALL)
    lines = profiled.stdout.splitlines()
    assert len(lines) > 40 and [line for line in lines if not line.endswith(" cancelled, 1 cleaned")] == []
    assert profiled.returncode == 0


@pytest.mark.parametrize("where", ["handler", "jump", "vfork", "fork"])
def test_calls_in_odd_places_answer_as_they_may(run, program, where):
    outcome = run([program("odd_waits"), where], env=ALL)
    assert (outcome.stdout, outcome.returncode) == ("0 wrong\n", 0), outcome.stderr


def test_a_call_that_was_left_by_a_jump_is_over(run, program):
    """The thread's later work is recorded under other stacks."""
    outcome = run([program("odd_waits"), "jump"], env={**ALL, "OTEL_PROFILER_TYPES": "cpu,off_cpu"})
    told = [(sample.stack, sample.value) for sample in attributed_samples(outcome, "off_cpu")]
    assert sum(value for stack, value in told if "sleep_after_jump" in stack) > 0
    assert outcome.instance("odd_waits").cpu_of("burn_after_jump") > 0.4e9


@pytest.mark.parametrize("now", ["", "1"])
def test_old_condition_variables_stay_libcs_own(run, program, now):
    """pthread_cond_wait of glibc 2.2.5 is another function, of another type, bound at once or lazily."""
    outcome = run([program("old_condition")], env={**ALL, "LD_BIND_NOW": now}, timeout=120)
    assert outcome.stdout == "timed out: 110\nwritten past it: 0\n"


NUMBERED = "\n".join(f"int {name}(void) {{ return {number}; }}" for number, name in enumerate(CALLS, 1000))
ASKED = "".join(f"int {name}(void);\n" for name in CALLS)
POINTERS = f"int (*const pointers[])(void) = {{ {', '.join(CALLS)} }};\n"
SUM = " + ".join(f"{name}()" for name in CALLS)
EXPECTED = sum(range(1000, 1000 + len(CALLS)))


@pytest.mark.parametrize("how", ["-Wl,-z,lazy", "-Wl,-z,now", "-fno-plt"])
def test_a_library_keeps_functions_of_these_names(run, tmp_path, how):
    """Another library calls these functions of the library's own, and has pointers to them."""
    theirs = compiled(tmp_path, "libtheirs.so", NUMBERED, "-shared", "-fPIC", "-fno-builtin", "-Wl,-soname,libtheirs.so")
    user = compiled(tmp_path, "libuser.so", ASKED + POINTERS + f"""
        int uses(void) {{ int sum = 0; for (unsigned i = 0; i < sizeof pointers / sizeof *pointers; i++)
            sum += pointers[i](); return sum == {SUM} ? sum : -1; }}
        """, "-shared", "-fPIC", "-fno-builtin", how, "-Wl,--no-as-needed", theirs, f"-Wl,-rpath,{tmp_path}")
    program = compiled(tmp_path, "loads", f"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        #include <time.h>
        int main(void) {{
            int (*uses)(void);
            void *library = dlopen("{user}", RTLD_LAZY | RTLD_DEEPBIND);
            if (!library) return puts(dlerror());
            *(void **)&uses = dlsym(library, "uses");
            for (int i = 0; i < 20; i++) {{
                if (uses() != {EXPECTED}) return puts("not its own");
                nanosleep(&(struct timespec){{0, 20000000}}, 0);
            }}
            return puts("its own") < 0;
        }}""")
    outcome = run([program], env=ALL)
    assert (outcome.stdout, outcome.returncode) == ("its own\n", 0), outcome.stderr


def test_a_program_keeps_variables_of_these_names(run, tmp_path):
    """Old programs, which know neither threads nor sockets, have such variables. A library reads them, too."""
    taken = {"read", "write", "writev", "pthread_join", "pthread_cond_wait", "pthread_cond_timedwait", "poll"}
    names = [name for name in CALLS if name not in taken]
    declared = "".join(f"extern int {name};\n" for name in names)
    reader = compiled(tmp_path, "libreader.so", f"{declared}int sum(void) {{ return {' + '.join(names)}; }}\n",
                      "-shared", "-fPIC", "-fno-builtin")
    variables = "\n".join(f"int {name} = {number};" for number, name in enumerate(names))
    changes = " ".join(f"{name} += 1;" for name in names)
    program = compiled(tmp_path, "old", f"int puts(const char *); int sum(void);\n{variables}\n"
                       f"int main(void) {{ {changes} return puts(sum() == {sum(range(1, len(names) + 1))} ? "
                       "\"its own\" : \"another's\") < 0; }\n", "-rdynamic", "-fno-builtin", reader)
    outcome = run([program], env={**ALL, "OTEL_PROFILES_EXPORTER": "console"})
    assert (outcome.stdout, outcome.returncode) == ("its own\n", 0), outcome.stderr


@pytest.mark.parametrize("command, calls", [
    (["no_eintr", "idle"], 18), (["no_eintr", "busy"], 18), (["no_eintr", "masked"], 24), (["waits_often", "1"], 18),
])
def test_no_call_is_interrupted_by_samples_of_waits(run, program, command, calls):
    """CPU samples come at 999 Hz and polls at 199 a second. (test_threads.py tests io_uring_enter.)"""
    outcome = run([program(command[0]), *command[1:]], env=ALL)
    lines = [line for line in outcome.stdout.splitlines() if not line.startswith("io_uring_enter")]
    assert len(lines) == calls - outcome.stdout.count("io_uring_enter")
    assert [line for line in lines if not line.endswith(": waited, 0 interrupted")] == []
