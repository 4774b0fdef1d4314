"""The file of an unloaded library belongs to its owner: it may be written again, shorter, or unmounted."""

import subprocess

import pytest

pytestmark = pytest.mark.system

WORK = """
#include <time.h>
static volatile long sink;
void works(double seconds) {
    struct timespec t;
    do {
        for (int i = 0; i < 10000; i++)
            sink += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_sec + t.tv_nsec / 1e9 < seconds);
}
"""

# Copies a file over an existing one, as `cp` does: it stays the same file.
PROGRAM = """
import _ctypes, ctypes, shutil, sys, time
for build in sys.argv[2:]:
    shutil.copyfile(build, sys.argv[1])
    library = ctypes.CDLL(sys.argv[1])
    library.works(ctypes.c_double(time.thread_time() + 0.3))
    _ctypes.dlclose(library._handle)
    deadline = time.monotonic() + 120
    while sys.argv[1] in open("/proc/self/maps").read() and time.monotonic() < deadline:
        time.sleep(0.05)
    print(sys.argv[1] in open("/proc/self/maps").read(), flush=True)
"""


def built(folder, name, functions):
    source = folder / f"{name}.c"
    fill = "".join(f"int a_function_of_long_name_{i}(int a) {{ return a * {i}; }}\n" for i in range(functions))
    source.write_text(fill + WORK)
    library = folder / f"{name}.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-Wl,--build-id=none", "-o", library, source], check=True)
    return library


def test_an_unloaded_library_is_let_go(run, tmp_path):
    large, small = built(tmp_path, "large", 3000), built(tmp_path, "small", 0)
    plugin = tmp_path / "plugin.so"
    outcome = run(["/usr/bin/python3", "-c", PROGRAM, plugin, large, small, large, small],
                  env={"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "100"})
    assert (outcome.returncode, outcome.stdout) == (0, "False\n" * 4), outcome.stderr
    assert outcome.instance("python3").cpu_of("works") > 0.8e9
