"""The bundle needs an old glibc alone, wherever it is built."""

import subprocess

import pytest
from captured import ROOT

NEEDED = ROOT / "scripts/bundle/needed-glibc"
OLDER = ROOT / "scripts/bundle/older-names"


def ran(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def compiled(tmp_path, source, *options):
    built = tmp_path / "built"
    assert ran("gcc", "-x", "c", "-o", built, *options, write(tmp_path / "source.c", source)).returncode == 0
    return built


def write(path, text):
    path.write_text(text)
    return path


@pytest.fixture
def new_object(tmp_path):
    """An object that needs glibc 2.34: functions of threads moved into libc.so.6 then."""
    return compiled(tmp_path, "#include <pthread.h>\nint f(pthread_t t) { return pthread_join(t, 0); }", "-shared", "-fPIC", "-pthread")


def test_the_glibc_that_objects_need_is_printed(new_object):
    done = ran(NEEDED, "2.34", new_object)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.34\n", "")


def test_an_object_that_needs_a_newer_glibc_is_refused(new_object):
    done = ran(NEEDED, "2.33", new_object)
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs glibc 2.34" in done.stderr and "pthread_join" in done.stderr


def test_versions_are_compared_by_their_numbers(new_object):
    assert ran(NEEDED, "2.9", new_object).returncode == 1
    assert ran(NEEDED, "2.100", new_object).returncode == 0


def test_libraries_refer_to_names_that_every_glibc_has(tmp_path):
    """Headers of glibc 2.38 and newer make such references."""
    source = """
    extern long new_strtol(const char *, char **, int) __asm__("__isoc23_strtol");
    extern int new_sscanf(const char *, const char *, ...) __asm__("__isoc23_sscanf");
    long f(const char *text) { int n; return new_strtol(text, 0, 10) + new_sscanf(text, "%d", &n); }
    """
    made = compiled(tmp_path, source, "-c", "-fPIC")
    library = tmp_path / "libmade.a"
    assert ran("ar", "rcsD", library, made).returncode == 0
    assert ran(OLDER, library).returncode == 0
    named = ran("nm", "--undefined-only", library).stdout.split()
    assert {"strtol", "__isoc99_sscanf"} <= set(named) and not [name for name in named if "isoc23" in name]


def test_a_library_without_such_names_stays_as_it_is(tmp_path):
    library = tmp_path / "libmade.a"
    assert ran("ar", "rcsD", library, compiled(tmp_path, "int f(void) { return 0; }", "-c")).returncode == 0
    before = library.read_bytes()
    assert ran(OLDER, library).returncode == 0
    assert library.read_bytes() == before


def test_each_object_of_the_bundle_is_verified():
    planned = ran("make", "-C", ROOT, "-n", "bundle").stdout
    (line,) = {line.strip() for line in planned.splitlines() if line.strip().startswith("scripts/bundle/needed-glibc")}
    assert [part.rpartition("/")[2] for part in line.split()[2:]] == ["libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so"]
