"""The shared objects and the sources keep the promises of the two worlds."""

import os
import re
import shutil
import subprocess

import pytest
from profiled import ARCH, BUILD, LIBRARY, ROOT
from test_hooks import CALLS, EXPORTED, UNEXPORTED

pytestmark = pytest.mark.fast

FLUSH = BUILD / "libotelprof-flush.so"
CPP = BUILD / "libotelprof-cpp.so"
# Lists what the capture side may call of libc. A call that may lock or allocate on an application's thread cannot be
# added unnoticed.
CALM_ONLY = {
    "dl_iterate_phdr", "dlsym", "dlerror", "atexit", "__cxa_at_quick_exit", "__cxa_atexit",
    "__register_atfork", "pthread_attr_init", "pthread_attr_destroy", "pthread_attr_getstacksize",
    "pthread_attr_setdetachstate", "pthread_attr_setinheritsched", "pthread_attr_setschedpolicy", "pthread_attr_setschedparam",
    "pthread_attr_setstacksize", "pthread_mutex_init", "pthread_mutex_lock", "pthread_mutex_trylock",
    "pthread_mutex_unlock", "readlink", "getrlimit", "__cxa_finalize",
    "environ", "__environ", "sigpending", "_r_debug", "mprotect", "dup2", "pthread_detach", "pthread_join",
    "pthread_setcancelstate", "pthread_getcpuclockid",
    "gnu_get_libc_version", "clock_getres",
    "abort",  # called by operator new without a C++ library
    "_setjmp", "longjmp", "__longjmp_chk",  # called by the helper's guard
}
ANYWHERE = {
    "clock_gettime", "mmap", "munmap", "madvise", "syscall", "memcpy", "memmove", "memset", "memcmp",
    "memmem", "memchr", "strlen", "strcmp", "strncmp", "strcspn", "strchr", "strrchr", "strstr", "strnlen", "strspn",
    "strpbrk", "stpcpy", "raise", "kill", "sigemptyset", "sigaddset", "sigdelset", "sigfillset", "sigismember",
    "__libc_current_sigrtmin", "__libc_current_sigrtmax",
    "pthread_self", "sched_yield", "nanosleep", "getauxval", "getpid", "prctl", "pause", "sysconf", "open",
    "read", "write", "writev", "close", "__errno_location", "__stack_chk_fail", "__memcpy_chk",
    "__read_chk", "__stpcpy_chk", "__readlink_chk", "__sigsetjmp",
    "__pthread_register_cancel", "__pthread_unregister_cancel", "__pthread_unwind_next",
}
FORBIDDEN = re.compile(r"printf|pthread_key|setspecific|getspecific|__tls_get_addr|backtrace|_Unwind|getenv")


def tool(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def symbols(path, option):
    lines = tool("nm", "-D", option, str(path)).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def test_the_preloaded_object_needs_libc_alone():
    needed = re.findall(r"NEEDED.*\[(.*)\]", tool("readelf", "-dW", str(LIBRARY)))
    assert needed == ["libc.so.6"]


def test_the_exporter_exports_the_functions_that_the_helper_calls():
    """test_hooks.py lists the exports of libotelprof.so."""
    assert symbols(FLUSH, "--defined-only") == {"otelprof_flush_main", "otelprof_flush_release"}


def test_the_adaptor_for_cpp_needs_libc_alone():
    """The adaptor is loaded into programs whose C++ library may be linked into them."""
    assert re.findall(r"NEEDED.*\[(.*)\]", tool("readelf", "-dW", str(CPP))) == ["libc.so.6"]
    assert symbols(CPP, "--defined-only") == {"otelprof_cpp_scan", "otelprof_cpp_release", "otel_thread_ctx_v1"}


def test_the_adaptor_for_cpp_stays():
    """The program's tables point to functions of the adaptor: dlclose() must leave it in place."""
    assert "NODELETE" in tool("readelf", "-dW", str(CPP))


def test_the_adaptors_variables_need_no_static_room():
    """Programs may have no static room left when the adaptor is loaded; its variable is found by its name (OTEP
    4947)."""
    relocations = tool("readelf", "-rW", str(CPP))
    assert "TPOFF64" not in relocations
    assert re.search(r"(TLSDESC|DTPMOD64).* otel_thread_ctx_v1 ", relocations)
    size = int(re.search(r"^ *TLS .*?(0x\w+) (0x\w+) R ", tool("readelf", "-lW", str(CPP)), re.M)[2], 16)
    assert 0 < size <= 320


def test_nothing_is_exported_that_libc_lacks():
    """`if (&symbol)` on a weak symbol must stay false where it was. (The other exports are removed:
    test_memory_truth.py; a registration of unwind tables without a runtime does nothing: test_generated_code.py.)"""
    libc = symbols("/lib/x86_64-linux-gnu/libc.so.6", "--defined-only")
    tables = {name for name in EXPORTED if re.fullmatch(r"__(de)?register_frame\w*", name)}
    assert EXPORTED - UNEXPORTED - libc == CALLS | tables and len(tables) == 9


def test_imports_of_capture_are_known():
    imports = symbols(LIBRARY, "--undefined-only")
    imports = {name for name in imports if not name.startswith(("_ITM_", "__gmon_start__"))}
    assert imports <= CALM_ONLY | ANYWHERE, sorted(imports - CALM_ONLY - ANYWHERE)
    assert not [name for name in imports if FORBIDDEN.search(name)]


def test_only_initial_exec_tls():
    relocations = tool("readelf", "-rW", str(LIBRARY))
    assert "R_X86_64_TPOFF64" in relocations
    assert "DTPMOD64" not in relocations and "TLSDESC" not in relocations
    size = int(re.search(r"^ *TLS .*?(0x\w+) (0x\w+) R ", tool("readelf", "-lW", str(LIBRARY)), re.M)[2], 16)
    assert 0 < size <= 64


def test_code_at_the_very_beginning_of_a_segment(run, program):
    """The walker searches for a call before an address only where memory is mapped."""
    outcome = run([program("first_in_segment")])
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr
    assert outcome.instance("first_in_segment").cpu_of("runs_first") > 1e8


@pytest.mark.parametrize("path", [LIBRARY, FLUSH, CPP])
def test_hardening(path):
    dynamic = tool("readelf", "-dW", str(path))
    assert "BIND_NOW" in dynamic or "NOW" in dynamic
    headers = tool("readelf", "-lW", str(path))
    assert "GNU_RELRO" in headers
    assert re.search(r"GNU_STACK.* RW ", headers)


@pytest.mark.parametrize("path", [LIBRARY, FLUSH, CPP])
def test_the_soname_has_a_version(path):
    """The soname has the major version: a program that is linked to another does not start with this library."""
    version = re.search(r"^VERSION := (\d+)\.", (ROOT / "Makefile").read_text(), re.M)[1]
    (soname,) = re.findall(r"SONAME.*\[(.*)\]", tool("readelf", "-dW", str(path)))
    assert soname == f"{path.name}.{version}"


@pytest.mark.parametrize("path", [LIBRARY, FLUSH, CPP])
def test_control_flow_protection_is_not_claimed(path):
    """Neither the property nor marks in the code claim it: no test of ours has run under such protection."""
    assert not re.search(r"IBT|SHSTK", tool("readelf", "-nW", str(path)))
    for name in ("otelprof_version", "otelprof_flush_main", "otelprof_cpp_scan"):
        if name in symbols(path, "--defined-only"):
            assert "endbr64" not in tool("objdump", "-d", f"--disassemble={name}", str(path))


@pytest.mark.system
def test_two_folders_make_the_same_objects(tmp_path):
    """Both are equal byte by byte, debug information too, with flags as distributions give them: nothing records where they
    were built.

    The commands for all objects are the same except for the folder, which they name in prefix maps alone. One library is
    built by them, and so are the sources that protoc-c generates: the same command makes the same of the same source."""
    planned, made = [], []
    for name in ("one", "a-folder-further-down/two"):
        folder = tmp_path / name
        for part in ("common", "shim", "proto"):
            shutil.copytree(ROOT / part, folder / part)
        for part in ("Makefile", "test/Makefile", "scripts/bundle/bundle.mk"):
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / part, folder / part)

        def make(*arguments, folder=folder):
            return tool(
                "nice", "env", "-i", f"PATH={os.environ['PATH']}", "make", "-C", str(folder), "--no-print-directory", "-j2", "BUILD=build", "V=1",
                f"CFLAGS=-O1 -g -flto=auto -fcf-protection -ffile-prefix-map={folder}=/usr/src/otelprof",
                "CPPFLAGS=-Wdate-time -D_FORTIFY_SOURCE=3", "LDFLAGS=-Wl,-z,relro", *arguments)

        planned.append(make("-n", *(f"build/{path.name}" for path in (LIBRARY, FLUSH, CPP))).replace(str(folder), "FOLDER"))
        objects = [f"build/proto/{path.stem}.pb-c.o" for path in (ROOT / "proto").glob("*.proto") if path.stem != "pprof"]
        make("build/libotelprof-cpp.so", "build/libcommon.a", *objects)
        made.append({path: (folder / path).read_bytes() for path in ("build/libotelprof-cpp.so", "build/libcommon.a", *objects)})
    commands = planned[0].replace("\\\n", " ").splitlines()
    assert sum(" -c -o build/" in line for line in commands) > 250 and planned[0] == planned[1]
    assert not re.search(r"(?<!-ffile-prefix-map=)FOLDER", planned[0])
    assert made[0] == made[1]
    assert [path for path, content in made[0].items() if str(tmp_path).encode() in content] == []
    timed = re.compile(r"\b__(DATE|TIME|TIMESTAMP)__\b")
    assert [path for part in ("common", "shim") for path in (ROOT / part).rglob("*.[ch]") if timed.search(path.read_text())] == []


def test_no_two_files_have_a_static_function_of_one_name():
    """A name in a stack trace or in a debugger then leads to one function."""
    homes = {}
    for path in sorted(path for folder in ("common", "shim") for path in (ROOT / folder).rglob("*.c")):
        if not is_built(path):
            continue
        text = re.sub(r"/\*.*?\*/|__attribute__\(\(.*?\)\)", "", path.read_text(), flags=re.S)
        for name in re.findall(r"^static\b[^;{}=#]*?\b(\w+)\s*\([^;{}]*\)\s*\{", text, re.M):
            homes.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert len(homes) > 1500
    assert {name: sorted(files) for name, files in homes.items() if len(files) > 1} == {}


def is_built(path):
    """Returns whether it is no file of another architecture."""
    return "arch" not in path.relative_to(ROOT).parts or ARCH in path.parts


def headers():
    return sorted(
        str(path.relative_to(ROOT))
        for folder in ("common", "shim")
        for path in (ROOT / folder).rglob("*.h") if is_built(path)
    )


def see(header):
    """Returns the include folders that the Makefile gives to the sources beside the header."""
    world = header.split("/")[1]
    if world == "flush":
        return ["shim/flush"]
    if world == "cpp_context":
        return ["shim/cpp_context"]
    capture = ["shim/capture", f"shim/capture/arch/{ARCH}"]
    return capture if world == "capture" else ["shim", *capture]


def test_each_header_compiles_alone(tmp_path):
    """One compiler run covers all headers that are compiled with the same folders; the message names each that fails."""
    together = {}
    for header in headers():
        source = tmp_path / (header.replace("/", "+") + ".c")
        source.write_text(f'#include "{ROOT / header}"\nint alone;\n')
        together.setdefault(tuple(see(header)), []).append(str(source))
    assert sum(map(len, together.values())) > 300
    complaints = ""
    for folders, sources in together.items():
        done = subprocess.run(
            ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
             *(f"-I{ROOT / folder}" for folder in ("common", f"common/arch/{ARCH}", "common/otlp", *folders)),
             f"-I{BUILD}/proto", *sources],
            capture_output=True, text=True, check=False,
        )
        complaints += done.stderr
        assert done.returncode == 0 or done.stderr, folders
    failed = [header for header in headers() if str(tmp_path / (header.replace("/", "+") + ".c")) in complaints]
    assert not complaints, "\n".join(["do not compile alone:", *failed, complaints])
