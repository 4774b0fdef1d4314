"""Work on foreign data has bounds of CPU time and memory: shim/capture/helper_heap/memory_guard.h."""

import re
from pathlib import Path

import pytest
from profiled import BUILD

pytestmark = pytest.mark.system

LIBRARY_OF_NAMES = BUILD / "test/programs/costly_names.so"
OFTEN = {"OTEL_PROFILE_EXPORT_INTERVAL": "300", "OTEL_PROFILER_MIN_LIFETIME": "0"}


def functions(outcome):
    return {name for request in outcome.requests for name in request.dictionary.string_table}


@pytest.mark.parametrize("types", ["cpu", "cpu,alloc,heap"])
def test_a_name_without_end_keeps_no_export_from_going(run, program, types):
    """The demangler would take a second for the first name, and for ever for the second."""
    program("costly_names.so")
    outcome = run([program("uses_library"), str(LIBRARY_OF_NAMES), "900"],
                  env={**OFTEN, "OTEL_PROFILER_TYPES": types, "OTEL_LOG_LEVEL": "debug"},
                  log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("loaded\n", 0), outcome.stderr
    names = functions(outcome)
    assert "shop::Cart::add" in names, "what is beside it has its name"
    assert {name.count("cvT_I") for name in names if name.startswith("_ZcvT_I")} == {25, 60}
    assert len(outcome.requests) > 3
    said = [line for line in outcome.stderr.splitlines() if "more CPU time or memory than they may" in line]
    assert len(said) == 1, "once"
    # each name is tried once, however many addresses it has
    assert [line for line in outcome.stderr.splitlines() if "name: " in line][-1].endswith("name: 2 so far")


def test_names_are_bounded_where_cpu_time_is_not_sampled(run, program):
    """No profiling signal exists in the process until the helper needs one."""
    outcome = run([program("uses_library"), str(LIBRARY_OF_NAMES), "900"],
                  env={**OFTEN, "OTEL_PROFILER_TYPES": "alloc", "OTEL_PROFILER_ALLOC_INTERVAL": "1"})
    assert outcome.returncode == 0, outcome.stderr
    names = functions(outcome)
    assert "shop::Cart::add" in names
    assert {name.count("cvT_I") for name in names if name.startswith("_ZcvT_I")} == {25, 60}


LIMITED = """
mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup && echo $((64 << 20)) > memory.max &&
echo $(($1 << 20)) > memory.current && shift && exec env LD_PRELOAD="$PRELOAD" "$@"
"""


def run_in_group(run, program, library, used):
    """Runs a command in a mount namespace where the control group reports that many used bytes of 64 MiB."""
    command = ["unshare", "-m", "sh", "-c", LIMITED, "sh", str(used), program("burn"), "1200", "10"]
    outcome = run(command, env={**OFTEN, "LD_PRELOAD": "", "PRELOAD": str(library), "OTEL_LOG_LEVEL": "debug"},
                  log_to_stderr=True)
    assert outcome.returncode == 7, outcome.stderr
    return outcome


@pytest.mark.parametrize("used, named, put_off", [(40, True, False), (58, False, False), (62, False, True)])
def test_an_export_that_would_not_fit_is_made_without_names_or_put_off(run, program, library, used, named, put_off):
    """Otherwise the kernel would end the program. Samples recorded meanwhile are in the last export."""
    outcome = run_in_group(run, program, library, used)
    assert ("burns_cpu" in functions(outcome)) == named
    assert (len(outcome.requests) == 1) == put_off
    burn = outcome.instance("burn")
    assert burn.total("samples") * burn.period > 1e9
    assert ("memory: " in outcome.stderr) != named


WITHOUT_DEBUG_INFORMATION = 'mount -t tmpfs none /usr/lib/debug && exec "$@"'
PROGRAM = """
import time
end = time.process_time() + 1.5
while time.process_time() < end: [bytes(1000) for _ in range(100)]
"""


def highest_anonymous_kib(running):
    """Polls the memory that the kernel cannot take back by itself; returns the most."""
    highest = 0
    while running.process.poll() is None:
        text = Path(f"/proc/{running.process.pid}/status").read_text()
        found = re.search(r"RssAnon:\s+(\d+)", text)
        highest = max(highest, int(found[1]) if found else 0)
    return highest


def test_an_export_with_names_of_functions_takes_less_than_6_mib(start):
    Path("/usr/lib/debug").mkdir(parents=True, exist_ok=True)
    command = ["unshare", "-m", "sh", "-c", WITHOUT_DEBUG_INFORMATION, "sh", "/usr/bin/python3", "-S", "-c", PROGRAM]
    without = highest_anonymous_kib(start(command, profiled=False))
    profiled = start(command, env=OFTEN)
    beside = highest_anonymous_kib(profiled)
    assert len(profiled.finish(300).requests) > 1
    assert 0 < without < beside < without + 6 * 1024
