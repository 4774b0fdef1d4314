"""For each error in the environment, one warning is logged and the program runs on."""

import os
import json
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from ports import closed_port

pytestmark = pytest.mark.fast

WRONG = [  # test_config.c has the others: wrong_values
    ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "ftp://localhost", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ("OTEL_PROFILER_CPU_FREQUENCY", "100000", "99"),
]
PARSED = [
    "OTEL_SDK_DISABLED", "OTEL_LOG_LEVEL", "OTEL_PROFILES_EXPORTER", "OTEL_PROFILER_FILE_FORMAT",
    "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", "OTEL_EXPORTER_OTLP_INSECURE",
    "OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_PROFILE_EXPORT_INTERVAL",
    "OTEL_PROFILE_MAX_QUEUE_SIZE", "OTEL_PROFILER_TYPES", "OTEL_PROFILER_CPU_FREQUENCY",
    "OTEL_PROFILER_ALLOC_INTERVAL", "OTEL_PROFILER_MAX_OVERHEAD", "OTEL_PROFILER_MAX_STACK_DEPTH",
    "OTEL_PROFILER_MAX_SAMPLES", "OTEL_PROFILER_SYMBOLS", "OTEL_PROFILER_MIN_LIFETIME",
    "OTEL_PROFILER_SHUTDOWN_TIMEOUT",
]


def warnings_of(outcome):
    return [line for line in outcome.stderr.splitlines() if line.startswith("libotelprof[")]


DEBUG = {"OTEL_LOG_LEVEL": "debug"}


@pytest.mark.parametrize("name, value, instead", WRONG)
def test_wrong_value(run, program, name, value, instead):
    outcome = run([program("burn"), "20", "1"], env={name: value}, log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    # a wrong value may be the receiver's endpoint: then nothing listens there, and a warning of that is allowed, too
    said = [line for line in warnings_of(outcome) if name in line]
    assert len(said) == 1, outcome.stderr
    assert value in said[0] and f"using {instead}" in said[0]


@pytest.mark.parametrize("name, value", [("OTEL_RESOURCE_ATTRIBUTES", "a=%zz,b"), ("OTEL_RESOURCE_ATTRIBUTES", "novalue")])
def test_wrong_resource_attributes(run, program, name, value):
    outcome = run([program("burn"), "400", "4"], env={name: value}, log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert len([line for line in warnings_of(outcome) if name in line]) == 1, outcome.stderr
    assert outcome.instance("burn").cpu_total() > 0, "and the profile comes without them"


def test_empty_is_unset(run, program):
    outcome = run([program("burn"), "1300", "4"], env=dict.fromkeys(PARSED, ""), log_to_stderr=True)
    assert warnings_of(outcome) == []
    assert outcome.instance("burn").cpu_total() > 0


def test_unreachable_endpoint(run, program):
    outcome = run(
        [program("burn"), "900", "8"],
        env={
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{closed_port()}",
            "OTEL_PROFILE_EXPORT_INTERVAL": "100",
        },
        log_to_stderr=True,
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert len(warnings_of(outcome)) == 1, outcome.stderr


def test_missing_flush_library(run, program, library, tmp_path):
    alone = tmp_path / "libotelprof.so"
    shutil.copy(library, alone)
    outcome = run(
        [program("burn"), "300", "4"], env={"LD_PRELOAD": str(alone)}, log_to_stderr=True
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    said = warnings_of(outcome)
    assert len(said) == 1 and "libotelprof-flush.so" in said[0], outcome.stderr
    assert outcome.instances() == []


def test_nothing_of_the_signal_is_left_when_profiling_ends(run, library, tmp_path):
    """Without the exporter sampling stops: the program finds the signal as in a process without the profiler."""
    alone = tmp_path / "libotelprof.so"
    shutil.copy(library, alone)
    code = (
        "import time\n"
        "end = time.process_time() + 0.5\n"
        "while time.process_time() < end: pass\n"
        "caught = int(open('/proc/self/status').read().split('SigCgt:\\t')[1].split()[0], 16)\n"
        "print(bool(caught >> 26 & 1), open('/proc/self/timers').read() == '')\n"
    )
    outcome = run(["/usr/bin/python3", "-c", code], env={"LD_PRELOAD": str(alone)})
    assert (outcome.stdout, outcome.returncode) == ("False True\n", 0)


@pytest.mark.parametrize("sets_after_ms", [None, 100, 250, 400])
def test_the_signal_is_never_seen_while_profiling_ends(run, program, library, tmp_path, sets_after_ms):
    """The thread that ends profiling takes half a second. At no moment in between does the program see our action: a
    query of the action returns the default, and an action that the program sets stays."""
    alone = tmp_path / "libotelprof.so"
    shutil.copy(library, alone)
    outcome = run([program("asks_action"), "1500", *([str(sets_after_ms)] if sets_after_ms else [])],
                  env={"LD_PRELOAD": f"{alone}:{program('slow_sigaction.so')}"})
    assert (outcome.stdout, outcome.returncode) == ("asked often, wrong 0\n", 7)


def test_timers_refused(run, program):
    """Without pending signals the kernel refuses every POSIX timer: the interval timer samples the process, unless
    the program uses it itself."""
    outcome = run(
        [program("burn"), "600", "64"],
        env=DEBUG,
        limits={resource.RLIMIT_SIGPENDING: (0, 0)},
        log_to_stderr=True,
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert outcome.stderr.count("one timer of the whole process") == 1, outcome.stderr
    measured = outcome.instance("burn")
    assert measured.value_of("allocates", "alloc_space") > 32 << 20
    assert measured.cpu_of("burns_cpu") > 0.75 * 0.6e9


def test_timers_refused_and_the_interval_timer_in_use(run, program):
    outcome = run(
        [program("signal_owner"), "sigaction"],
        env={**DEBUG, "OTEL_PROFILER_MIN_LIFETIME": "0"},
        limits={resource.RLIMIT_SIGPENDING: (0, 0)},
        log_to_stderr=True,
    )
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr
    assert [line for line in warnings_of(outcome) if "without stacks" in line], outcome.stderr
    # no timer is left to sample with, but the time is not lost
    assert outcome.instance("signal_owner").cpu_total() > 59e6


def test_a_limit_that_makes_timers_deadly(run, program):
    """Linux ends a process that has a CPU timer and a limit of zero on real-time CPU."""
    outcome = run(
        [program("burn"), "300", "64"],
        env=DEBUG,
        limits={resource.RLIMIT_RTTIME: (0, 0)},
        log_to_stderr=True,
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert outcome.stderr.count("RLIMIT_RTTIME") == 1, outcome.stderr
    measured = outcome.instance("burn")
    assert measured.value_of("allocates", "alloc_space") > 32 << 20
    assert measured.cpu_total() > 0.9 * 0.3e9


TIMER_CREATE, SETITIMER = 222, 38


@pytest.mark.parametrize(
    "calls, left",
    [
        (f"{TIMER_CREATE}", "one timer of the whole process"),
        (f"{TIMER_CREATE},{SETITIMER}", "without stacks"),
    ],
)
def test_a_sandbox_without_timers(run, program, calls, left):
    outcome = run(
        [program("without_call"), calls, program("cpu_shares"), "4", "2"], env=DEBUG, log_to_stderr=True
    )
    assert outcome.returncode == 0
    assert [line for line in warnings_of(outcome) if left in line], outcome.stderr
    truth = json.loads(outcome.stdout)
    expected = truth["rusage"] - truth["helper"]
    assert outcome.instance("cpu_shares").cpu_total() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("mebibytes", [8, 16, 32, 64, 128])
def test_little_address_space(run, program, mebibytes):
    """The program has as much as it needs and less than the profiler wants: it is not profiled, and debug lines
    report it."""
    limits = {resource.RLIMIT_AS: (mebibytes << 20, mebibytes << 20)}
    plain = run([program("burn"), "200", "1"], limits=limits, profiled=False)
    if plain.returncode != 7:
        pytest.skip("the program itself does not fit")
    outcome = run([program("burn"), "200", "1"], env=DEBUG, limits=limits, log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7), outcome.stderr
    assert outcome.stderr.count(f"RLIMIT_AS is {mebibytes} MiB") == 1, outcome.stderr
    assert outcome.instances() == []


def test_enough_address_space(run, program):
    limits = {resource.RLIMIT_AS: (640 << 20, 640 << 20)}
    outcome = run([program("burn"), "300", "4"], limits=limits, log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7), outcome.stderr
    assert warnings_of(outcome) == []
    assert outcome.instance("burn").cpu_of("burns_cpu") > 0.2e9


@pytest.mark.parametrize("closed", ["0", "1", "2", "012"])
def test_closed_standard_descriptors(run, program, tmp_path, closed):
    """The application's file gets the free number, and no profiler code writes to it."""
    written = tmp_path / "written"
    redirect = " ".join(f"{number}>&-" for number in closed)
    outcome = run(
        ["sh", "-c", f'exec "$0" "$1" {redirect}', program("closed_stdio"), str(written)],
        env={
            "OTEL_LOG_LEVEL": "debug",
            "OTEL_PROFILER_CPU_FREQUENCY": "0",  # so that there is a line to log
            "OTEL_PROFILE_EXPORT_INTERVAL": "100",
        },
        log_to_stderr=True,
    )
    assert outcome.returncode == 0
    left = sorted(set("012") - set(closed) | {closed[0]})
    assert written.read_text() == f"descriptor {closed[0]}\n" + "".join(f"has {number}\n" for number in left)
    assert outcome.instance("closed_stdio").cpu_total() > 0.5e9


@pytest.mark.parametrize(
    "name, value",
    [
        ("OTEL_SDK_DISABLED", "TRUE"),
        ("OTEL_PROFILES_EXPORTER", "none"),
        ("OTEL_PROFILER_MIN_LIFETIME", "600000"),
    ],
)
def test_nothing_is_sent_or_said(run, program, name, value):
    outcome = run([program("burn"), "300", "4"], env={name: value}, log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode, outcome.stderr) == ("burnt\n", 7, "")
    assert outcome.instances() == []


def test_exporter_console(run, program):
    outcome = run(
        [program("burn"), "300", "64"], env={"OTEL_PROFILES_EXPORTER": "console"}, log_to_stderr=True
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert "burns_cpu" in outcome.stderr and "allocates" in outcome.stderr
    assert outcome.instances() == []


COUNTS_IN_ITS_LOCALE = """
import locale
locale.setlocale(locale.LC_ALL, "")
assert locale.localeconv()["decimal_point"] == ","
sum(range(100_000_000))
"""


def test_console_where_the_program_has_decimal_commas(run, tmp_path):
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")]
    if subprocess.run(made, capture_output=True, check=False).returncode != 0:
        pytest.skip("no locale can be made here")
    german = {"OTEL_PROFILES_EXPORTER": "console", "LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}
    outcome = run([sys.executable, "-c", COUNTS_IN_ITS_LOCALE], env=german, log_to_stderr=True)
    assert outcome.returncode == 0, outcome.stderr
    rows = re.findall(r"^libotelprof.*: [0-9]+\.[0-9]+ \w+ in [0-9]+\.[0-9] s$", outcome.stderr, re.MULTILINE)
    rows += re.findall(r"^ +[0-9]+\.[0-9].*%  .+$", outcome.stderr, re.MULTILINE)
    numbers = re.findall(r"[0-9]+[.,][0-9]+(?: s| \w*B|%)", "\n".join(rows))
    assert len(numbers) > 20 and not re.findall("[0-9],[0-9]", "".join(numbers)), outcome.stderr


def test_console_counts_a_function_with_its_inlined_functions(run, program):
    """The console shows ten rows for each export: both functions are the hottest of all, and all exports count."""
    console = {"OTEL_PROFILES_EXPORTER": "console", "OTEL_PROFILER_TYPES": "cpu"}
    outcome = run([program("inlined_work"), "1500"], env=console, log_to_stderr=True)
    row = r"^ *([0-9.]+) s +[0-9.]+% +([0-9.]+) s +[0-9.]+%  (\S+)$"
    own, total = Counter(), Counter()
    for in_itself, with_callees, name in re.findall(row, outcome.stderr, re.MULTILINE):
        own[name] += float(in_itself)
        total[name] += float(with_callees)
    assert own["inlined_work"] > own["has_inlined_work"] > 0, outcome.stderr
    assert own["inlined_work"] == total["inlined_work"], outcome.stderr
    both = own["has_inlined_work"] + total["inlined_work"]
    assert total["has_inlined_work"] == pytest.approx(both, rel=0.1), outcome.stderr  # and the functions that it calls


def test_short_life_sends_when_asked(run, program):
    outcome = run([program("burn"), "30", "16"], env={"OTEL_PROFILER_MIN_LIFETIME": "0"})
    period = 1e9 / 99  # a remainder of less than a period is never sent
    instance = outcome.instance("burn")
    # the start and the program's own allocations are CPU time, too
    assert 30e6 - period <= instance.cpu_total()
    assert instance.cpu_of("burns_cpu") <= 30e6 + period


@pytest.mark.parametrize("profiled", [False, True])
def test_a_log_file_at_the_limit_of_file_sizes(run, program, tmp_path, profiled):
    """SIGXFSZ for one of our lines would end the program."""
    log = tmp_path / "full.log"
    log.write_bytes(b"x" * 5000)
    outcome = run(
        [program("burn"), "300", "4"], profiled=profiled, limits={resource.RLIMIT_FSIZE: (4096, 4096)},
        env={"OTEL_PROFILER_LOG_FILE": str(log), "OTEL_LOG_LEVEL": "debug",
             "OTEL_PROFILE_EXPORT_INTERVAL": "often"},
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert log.stat().st_size == 5000
