"""Another user puts files where a process of root loaded a library from, and shortens them while they are read:
nothing of those files is used, and no process ends."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import profiled
import pytest
from validator import problems

pytestmark = pytest.mark.system

OTHER = 65534

SOURCE = """
#include <time.h>
static volatile long sink;
static __attribute__((noinline)) void {inner}(void) {{
    for (int i = 0; i < 10000; i++)
        sink += i;
}}
void {outer}(double seconds) {{
    struct timespec t;
    do {{
        {inner}();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    }} while (t.tv_sec + t.tv_nsec / 1e9 < seconds);
}}
"""

PROGRAM = """
import ctypes, os, sys, time
path, unlinks, go = sys.argv[1:]
library = ctypes.CDLL(path)
if unlinks == "True":
    os.unlink(path)
print("loaded", flush=True)
while not os.path.exists(go):
    time.sleep(0.01)
library.ours(ctypes.c_double(time.thread_time() + 1.5))
"""

# Is run by another user, until the test stops it.
ATTACK = """
import os, sys
path, source = sys.argv[1:]
content = open(source, "rb").read()
said = False
while True:
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    os.pwrite(file, content, 0)
    if not said:
        print("there", flush=True)
    said = True
    for _ in range(2000):
        os.fstat(file)
    os.ftruncate(file, 100)
    os.close(file)
"""


@pytest.fixture
def sticky():
    folder = Path(tempfile.mkdtemp(prefix="otelprof-sticky-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def built(folder, outer, inner, *flags):
    """Builds both libraries with functions at the same addresses, and without build ids."""
    (folder / f"{outer}.c").write_text(SOURCE.format(outer=outer, inner=inner))
    library = folder / f"{outer}.so"
    subprocess.run(["gcc", "-O1", "-g", "-shared", "-fPIC", "-Wl,--build-id=none", *flags, "-o", library,
                    folder / f"{outer}.c"], check=True)
    return library


class Attack:
    """Runs another user's process that writes `source` to `path`, and shortens it, without end."""

    def __init__(self, path, source):
        self.process = subprocess.Popen([sys.executable, "-c", ATTACK, path, source], stdout=subprocess.PIPE,
                                        user=OTHER, group=OTHER, extra_groups=[])

    def __enter__(self):
        assert self.process.stdout.readline() == b"there\n"

    def __exit__(self, *_):
        assert self.process.poll() is None
        self.process.kill()
        self.process.communicate()


ENVIRONMENT = {"OTEL_PROFILER_MIN_LIFETIME": "200", "OTEL_PROFILE_EXPORT_INTERVAL": "100"}


def profile(start, folder, library, unlinks, attacked, source):
    """Attacks the library's path, or that of its debug file, once the library is loaded."""
    go = folder / "go"
    run = start(["/usr/bin/python3", "-c", PROGRAM, library, unlinks, go], env=ENVIRONMENT)
    while not Path(run.out.name).read_bytes():
        assert run.process.poll() is None
    with tempfile.NamedTemporaryFile() as content:
        shutil.copyfile(source, content.name)
        os.chmod(content.name, 0o644)
        with Attack(attacked, content.name):
            go.touch()
            return run.finish(300)


@pytest.mark.skipif(os.geteuid() != 0, reason="two users are needed: run as root")
@pytest.mark.parametrize("build_id", [False, True])
def test_a_file_at_the_path_of_an_unlinked_library_is_not_read(start, sticky, tmp_path, monkeypatch, build_id):
    # a file that cannot be read, and had no build id, cannot be reported with one
    monkeypatch.setattr(profiled, "problems", lambda r: [p for p in problems(r) if not p.endswith("no build id")])
    ours = built(tmp_path, "ours", "our_inner", *["-Wl,--build-id"] * build_id)
    theirs = built(tmp_path, "their", "their_inner")
    library = sticky / "library.so"
    shutil.copy(ours, library)
    outcome = profile(start, tmp_path, library, True, library, theirs)
    assert outcome.returncode == 0, outcome.stderr
    instance = outcome.instance("python3")
    assert instance.cpu_total() > 1.0e9
    assert not {"their", "their_inner"} & instance.names()
    if build_id:  # what is in memory belongs to the library
        assert instance.cpu_of("ours") > 0.5e9


@pytest.mark.skipif(os.geteuid() != 0, reason="two users are needed: run as root")
def test_a_debug_file_of_another_user_is_not_read(start, sticky, tmp_path):
    ours = built(tmp_path, "ours", "our_inner")
    theirs = built(tmp_path, "their", "their_inner")
    debug = sticky / "library.debug"
    subprocess.run(["strip", ours], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", theirs, debug], check=True)
    library = sticky / "library.so"
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", ours, library], check=True)
    shutil.move(debug, tmp_path / "content")
    outcome = profile(start, tmp_path, library, False, debug, tmp_path / "content")
    assert outcome.returncode == 0, outcome.stderr
    instance = outcome.instance("python3")
    assert instance.cpu_of("ours") > 0.5e9, "the library is where it was loaded from"
    assert not {"their", "their_inner"} & instance.names()


@pytest.mark.skipif(os.geteuid() != 0, reason="two users are needed: run as root")
def test_a_library_of_another_user_has_its_names(run, sticky, tmp_path):
    """The library is the one that was loaded."""
    ours = built(tmp_path, "ours", "our_inner")
    library = sticky / "library.so"
    shutil.copy(ours, library)
    os.chown(library, OTHER, OTHER)
    outcome = run(["/usr/bin/python3", "-c", PROGRAM, library, False, tmp_path], env=ENVIRONMENT)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.instance("python3").cpu_of("our_inner") > 0.5e9
