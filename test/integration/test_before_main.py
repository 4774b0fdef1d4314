"""What happens in a process before its main: nothing that could reach the program's own code, and little."""

import glob
import subprocess

import pytest
from profiled import BUILD

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
    """Debian's maxima brings one that its main makes ready."""
    outcome = run([program("malloc_for_main")], env=SETTINGS[setting])
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "ok\n", "")


# --- the look-up of what is behind us ---

COMPARES = BUILD / "test/differential/symbols.so"
# Allocators and wrappers of libc, before us and behind us; what is not installed says nothing.
OTHERS = [path for name in ("libjemalloc.so.2", "libtcmalloc.so.4", "libmimalloc.so.2*", "libfakeroot/libfakeroot-tcp.so",
                            "libeatmydata.so", "faketime/libfaketime.so.1", "heaptrack/libheaptrack_preload.so")
          for path in glob.glob(f"/usr/lib/x86_64-linux-gnu/{name}") + glob.glob(f"/usr/lib/{name}")]


def differences(tmp_path, command, before=(), behind=()):
    """Of our look-up from the loader's, for every name that any object of the program defines."""
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
def test_what_is_behind_us_is_what_the_loader_finds(tmp_path, command):
    assert differences(tmp_path, command) == []


@pytest.mark.parametrize("other", OTHERS, ids=lambda path: path.rpartition("/")[2])
def test_what_is_behind_us_beside_other_preloads(tmp_path, other):
    assert differences(tmp_path, ["/bin/true"], before=[other]) == []
    assert differences(tmp_path, ["/bin/true"], behind=[other]) == []


# --- exports that are withdrawn ---


@settings
def test_what_is_withdrawn_is_nothing_to_whoever_reads_the_tables(run, program, setting):
    """memray reads them by itself, and called address 0 of our library."""
    before = run([program("reads_symbols")], profiled=False).stdout
    outcome = run([program("reads_symbols")], env=SETTINGS[setting])
    assert outcome.stdout == f"{int(before.split()[0]) + 1} objects\n"
