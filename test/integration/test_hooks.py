"""Each function that the profiler replaces has one row in shim/hooks/hooked.def, and agrees with it."""

import re
import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest
from profiled import BUILD, LIBRARY, ROOT

pytestmark = pytest.mark.fast

HOOKS = ROOT / "shim/hooks"
# Lists what signal-safety(7) lets a handler call, of the functions that the profiler replaces.
ASYNC_SIGNAL_SAFE = {
    "_Exit", "_exit", "fork", "pthread_sigmask", "recvfrom", "recvmsg", "setgid", "setuid", "sigaction", "signal",
    "sigprocmask", "sigset", "waitpid",
}
# Matches what test_objects.py lets capture call of libc, and no handler may call.
NOT_FOR_A_HANDLER = re.compile(
    r"dl_iterate_phdr|dlsym|dlerror|atexit|__cxa_.*atexit|__register_atfork|pthread_(attr|mutex|detach|join)\w*|readlink|"
    r"getrlimit|mprotect|_?setjmp|longjmp"
)
# libc declares these with variable arguments, which our functions take as they come.
VARIADIC = {"clone", "prctl", "syscall"}
UNDECLARED = {"__libc_start_main", "__longjmp_chk", "__ppoll_chk", "__sigaction", "__xpg_sigpause", "bsd_signal", "capset"}
# Names the functions of libgcc, which has no header for them.
UNDECLARED_FAMILY = "generated_code"


def rows():
    loader = SourceFileLoader("doc_tables", str(ROOT / "scripts/doc-tables"))
    module = module_from_spec(spec_from_loader("doc_tables", loader))
    loader.exec_module(module)
    return list(module.hooked())


ROWS = rows()
FUNCTIONS = [row for row in ROWS if row.name]
# Lists files of hooks that export nothing (bound_calls.h).
BOUND_AT_CALL_SITES = {"blocking", "locks"}
# Lists the exports that are removed at start where they are not needed (profiler_exports.h).
UNEXPORTED = {row.name for row in FUNCTIONS if row.family in ("operator_new", "mmap")}
# Lists functions that programs may call.
CALLS = {f"otelprof_{name}" for name in
         re.findall(r"^OTELPROF_(?:DOES\(|GIVES\([^,]+, [^,]+, )(\w+),", (ROOT / "shim/otelprof.h").read_text(), re.M)}
EXPORTED = {row.name for row in FUNCTIONS} | CALLS


def nm(path, *options):
    lines = subprocess.run(["nm", *options, path], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[-1] for line in lines]


def object_of(family):
    return BUILD / f"obj/shim/hooks/{family}.o"


def test_each_function_is_in_the_table_once():
    names = [row.name for row in FUNCTIONS]
    assert sorted(names) == sorted(set(names))
    calls = [row.call for row in ROWS if row.number != "NO_NUMBER"]
    assert sorted(calls) == sorted(set(calls))


def test_exports_are_those_of_the_table():
    assert {name.split("@")[0] for name in nm(LIBRARY, "-D", "--defined-only")} == EXPORTED


def test_functions_bound_at_call_sites_are_not_exported():
    """Programs and libraries have functions and variables of these names."""
    text = (HOOKS / "blocking_calls.def").read_text()
    bound = set(re.findall(r"^BLOCKING(?:_IF)?\((?:.*?), [\w ]+?, (\w+), \(", text, re.M))
    assert {"read", "poll", "sleep", "wait"} <= bound and len(bound) > 100
    others = {"accept4", "epoll_wait", "recvfrom", "recvmsg", "sigtimedwait", "sigwait", "sigwaitinfo", "waitpid",
              "epoll_pwait", "epoll_pwait2", "ppoll", "__ppoll_chk", "pselect", "sigsuspend"}  # hooked for other reasons, in every process
    assert bound & EXPORTED == others


def test_one_family_is_one_file():
    assert {path.stem for path in HOOKS.glob("*.c")} - BOUND_AT_CALL_SITES == {row.family for row in FUNCTIONS}
    for family in sorted({row.family for row in FUNCTIONS}):
        defined = set(nm(object_of(family), "--defined-only", "--extern-only")) & EXPORTED
        assert defined == {row.name for row in FUNCTIONS if row.family == family}, family


@pytest.mark.parametrize("name", sorted(ASYNC_SIGNAL_SAFE))
def test_functions_for_handlers_have_a_hook_for_handlers(name):
    assert [row.context for row in FUNCTIONS if row.name == name] == ["ANY"]


def test_hooks_for_handlers_call_only_async_signal_safe_functions_of_libc():
    calm = {row.family for row in ROWS if row.context == "CALM"}
    for family in sorted({row.family for row in FUNCTIONS} - calm):
        asked = nm(object_of(family), "--undefined-only")
        assert [name for name in asked if NOT_FOR_A_HANDLER.fullmatch(name)] == [], family


def number(version):
    return tuple(map(int, version.split(".")))


def test_the_versions_of_each_symbol_are_those_of_glibc():
    """This is tested for versions that the installed libc knows; the default version is the last."""
    found = {}
    for name in nm("/lib/x86_64-linux-gnu/libc.so.6", "-D", "--defined-only"):
        plain, sign, version = name.partition("@")
        if sign and version.lstrip("@").startswith("GLIBC_2"):
            found.setdefault(plain, {})[version.lstrip("@")[len("GLIBC_"):]] = version.startswith("@")
    here = max((number(version) for versions in found.values() for version in versions))
    for row in FUNCTIONS:
        versions = [version for version in row.versions.split() if number(version) <= here]
        assert sorted(found.get(row.name, ())) == sorted(versions), row.name
        assert sorted(versions, key=number) == versions, row.name
        assert not versions or found[row.name][versions[-1]], f"{row.name}: another version is the default"


def test_the_signatures_are_those_that_libc_declares(tmp_path):
    """The system calls exist, too."""
    headers = ("dlfcn grp malloc poll pthread sched signal stdlib sys/capability threads unistd sys/epoll sys/mman sys/prctl "
               "sys/select sys/signalfd sys/socket sys/syscall sys/time sys/wait")
    source = tmp_path / "signatures.c"
    lines = [f"#if __has_include(<{header}.h>)\n#include <{header}.h>\n#endif" for header in headers.split()]
    lines += ["#ifndef SYS_landlock_restrict_self", "#define SYS_landlock_restrict_self 446", "#endif"]
    for row in ROWS:
        if row.number != "NO_NUMBER":
            lines.append(f'_Static_assert(SYS_{row.call} >= 0, "{row.call}");')
        if row.name and row.family not in ("operator_new", UNDECLARED_FAMILY) and row.name not in VARIADIC | UNDECLARED:
            function = row.name
            lines.append(f"static {row.result} (*const of_{function}){row.parameters} "
                         f"__attribute__((unused)) = {function};")
    source.write_text("\n".join(lines))
    done = subprocess.run(
        ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations",
         "-fsyntax-only", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("row", [row for row in FUNCTIONS if row.next == "FAMILY"], ids=lambda row: row.name)
def test_a_family_resolves_its_own_next_functions(row):
    """A next function is found by its name, which is in the family's own object."""
    assert row.name.encode() + b"\0" in object_of(row.family).read_bytes()
