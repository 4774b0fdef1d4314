"""What a program that lives short sees of us: one small library."""

import re
import subprocess

import pytest


def mapped(text):
    return set(re.findall(r"(/\S+\.so[^\s]*)", text))


def test_true_maps_nothing_else(run, library):
    """The loader's own account of /bin/true: what it needs anyway, and libotelprof.so."""
    plain = run(["/bin/true"], profiled=False, env={"LD_DEBUG": "files"})
    profiled = run(["/bin/true"], env={"LD_DEBUG": "files"})
    init = lambda outcome: set(re.findall(r"calling init: (\S+)", outcome.stderr))
    assert len(init(plain)) >= 1
    assert init(profiled) - init(plain) == {str(library)}
    assert "otelprof-flush" not in profiled.stderr


def test_short_cat_of_its_own_maps(run, library):
    plain = run(["/bin/cat", "/proc/self/maps"], profiled=False)
    profiled = run(["/bin/cat", "/proc/self/maps"])
    assert mapped(profiled.stdout) - mapped(plain.stdout) == {str(library)}


def test_needs_libc_alone(library):
    text = subprocess.run(["readelf", "-dW", library], capture_output=True, check=True).stdout.decode()
    assert re.findall(r"NEEDED.*\[(.*)\]", text) == ["libc.so.6"]


def test_no_descriptor_stays_open(run):
    """Before, during and after exports the program has the descriptors it had without us."""
    code = (
        "import os, time\n"
        "def census(): return sorted(os.readlink(f'/proc/self/fd/{f}') for f in"
        " os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{f}'))\n"
        "before = census()\n"
        "end = time.monotonic() + 1\n"
        "while time.monotonic() < end: sum(range(1000))\n"
        "print([name for name in census() if name not in before and 'socket' not in name])\n"
    )
    profiled = run(["/usr/bin/python3", "-c", code], env={"OTEL_PROFILE_EXPORT_INTERVAL": "100"})
    assert profiled.stdout == "[]\n"


@pytest.mark.parametrize("milliseconds", range(110, 500, 30))
def test_exit_while_libraries_load(run, program, library, milliseconds):
    """main may end at any moment of the helper's start, and exit handlers of the libraries that it
    is just initialising run then. The helper is slowed down, so that the moments are met."""
    slow = program("slow_helper.so")
    outcome = run(
        [program("burn"), str(milliseconds), "1"],
        env={
            "LD_PRELOAD": f"{library} {slow}",
            # freed memory is unmapped or overwritten: its use is a crash
            "MALLOC_PERTURB_": "165",
            "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=64",
        },
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)


@pytest.mark.parametrize("lifetime, sent", [("", False), ("1000", False), ("0", True)])
def test_a_short_process_loads_and_sends_nothing(run, program, lifetime, sent):
    """The default is a second of wall time: a program that sleeps longer than it works shows it."""
    outcome = run(
        [program("burn"), "60", "1"], env={"OTEL_PROFILER_MIN_LIFETIME": lifetime, "LD_DEBUG": "files"}
    )
    assert ("libotelprof-flush.so" in outcome.stderr) == sent
    assert bool(outcome.requests) == sent


def test_a_process_of_more_than_a_second_is_sent(run, program):
    outcome = run([program("burn"), "1300", "1"], env={"OTEL_PROFILER_MIN_LIFETIME": ""})
    assert outcome.instance("burn").cpu_total() > 0
