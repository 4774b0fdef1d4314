"""A library that is built here and carried to a host with an older glibc must load there, and where functions that
the profiler needs are missing it does nothing.

Older programs lack some libraries (before glibc 2.34 libdl and libpthread were libraries of their own, which a
program may do without). The test removes their functions by renaming them in a copy of our library."""

import re
import shutil
import subprocess

import pytest
from profiled import ARCH, BUILD, LIBRARY

pytestmark = pytest.mark.system

BUNDLED = BUILD / "bundle" / LIBRARY.name
MUSL = f"/lib/ld-musl-{ARCH}.so.1"  # this loader is its C library
# The newest version that libc.so.6 must have: 2.17 is of 2012.
NEWEST = (2, 17)
FROM_OTHER_LIBRARIES = {
    "__pthread_register_cancel", "__pthread_unregister_cancel", "__pthread_unwind_next",
    "dlerror", "dlsym", "pthread_attr_getstacksize", "pthread_attr_setstacksize",
    "pthread_detach", "pthread_getcpuclockid", "pthread_join", "pthread_mutex_trylock",
}
PROGRAM = """
import ctypes, os, signal, subprocess, threading
seen = []
signal.signal(signal.SIGPROF, lambda *_: seen.append("signal"))
os.kill(os.getpid(), signal.SIGPROF)
thread = threading.Thread(target=lambda: seen.append("thread"))
thread.start()
thread.join()
plugin = ctypes.CDLL("libz.so.1")
seen.append(plugin.crc32(0, b"abc", 3))
plugin = ctypes.CDLL("libstdc++.so.6")
child = os.fork()
if child == 0:
    os._exit(7)
seen.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
seen.append(subprocess.run(["/bin/echo", "echoed"], capture_output=True).stdout)
print(seen)
raise SystemExit(3)
"""


@pytest.fixture(params=[LIBRARY, BUNDLED], ids=["built", "bundled"])
def library(request):
    if request.param == BUNDLED and not BUNDLED.exists():
        pytest.skip("there is no bundle: `make bundle` builds it")
    return request.param


def undefined(library):
    """Returns (name, kind, version) of all symbols that other objects must define."""
    lines = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    for line in lines:
        kind, name = line.split()
        name, _, version = name.partition("@GLIBC_")
        yield name, kind, tuple(int(n) for n in version.split(".")) if version else ()


def test_nothing_new_is_asked_of_libc(library):
    assert not [symbol for symbol in undefined(library) if symbol[2] > NEWEST]


def test_functions_that_libc_had_in_other_libraries_are_weak(library):
    kinds = {name: kind for name, kind, _ in undefined(library)}
    assert {name: kinds[name] for name in FROM_OTHER_LIBRARIES & set(kinds)} == dict.fromkeys(
        FROM_OTHER_LIBRARIES, "w")


def test_musl_has_all_that_must_be_there(library):
    """musl's loader ends each program that preloads an object with one name too many: `Error relocating`, status 127."""
    listed = subprocess.run(["nm", "-D", "--defined-only", MUSL], capture_output=True, text=True, check=True).stdout
    there = {line.split()[-1] for line in listed.splitlines()}
    assert {"malloc", "pthread_create"} <= there
    assert {name for name, kind, _ in undefined(library) if kind == "U"} <= there


def without(tmp_path, names):
    """Copies our library and its exporter, and replaces `names` in the copy by other names."""
    image = LIBRARY.read_bytes()
    for name in names:
        plain = b"\0" + name.encode() + b"\0"
        assert plain in image, name
        # in .dynstr (.strtab is behind it), where another name may be the end of this one
        image = image.replace(plain, b"\0?" + plain[2:], 1)
    copy = tmp_path / LIBRARY.name
    copy.write_bytes(image)
    shutil.copy(LIBRARY.with_name("libotelprof-flush.so"), tmp_path)
    return copy


@pytest.mark.parametrize("missing", ["libdl", "libpthread", "both"])
def test_where_libraries_are_missing_nothing_happens(run, tmp_path, missing):
    pattern = {"libdl": r"dl\w+", "libpthread": r"_*pthread_\w+", "both": r".*"}[missing]
    names = {name for name in FROM_OTHER_LIBRARIES if re.fullmatch(pattern, name)}
    assert names
    copy = without(tmp_path, names)
    for program in (["/usr/bin/python3", "-c", PROGRAM], ["/bin/sh", "-c", "ls / | wc -l; exit 4"]):
        plain = run(program, profiled=False)
        outcome = run(program, env={"LD_PRELOAD": str(copy), "OTEL_PROFILER_EXCLUDE": "none"},
                      log_to_stderr=True)
        assert (outcome.stdout, outcome.stderr, outcome.returncode) == (
            plain.stdout, plain.stderr, plain.returncode)
        assert outcome.instances() == []
    assert plain.returncode == 4
