"""A program that prints nothing prints nothing with the profiler; faults that an operator must know of are logged,
once in a process tree.

common/log.h has the rule for the level of a line.
"""

import ctypes
import os
import resource
import struct
import subprocess

import pytest
from profiled import BUILD, LIBRARY, Receiver
from ports import closed_port

pytestmark = pytest.mark.fast

CLONE_NEWNET = 0x40000000
PR_SET_NO_NEW_PRIVS = 38
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_READ_FILE, LANDLOCK_READ_DIR = 1 << 2, 1 << 3
BURN = "import sys, time\nend = time.process_time() + {}\nwhile time.process_time() < end: sum(range(1000))\n"
IN_TIME = 300


def on_no_network():
    """Runs where no process listens at the default endpoint. Users other than root use the machine's network."""
    ctypes.CDLL(None).unshare(CLONE_NEWNET)


def in_a_sandbox_that_hides_the_exporter(command):
    """Lets the process read the system's files, the program and the preloaded library, and no other file."""
    libc = ctypes.CDLL(None, use_errno=True)
    handled = ctypes.c_uint64(LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
    rules = libc.syscall(LANDLOCK_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    assert rules >= 0
    folders = [f for f in ("/usr", "/etc", "/lib", "/lib64", "/proc", "/sys", "/dev") if os.path.isdir(f)]
    for path in [*folders, LIBRARY, command]:
        rights = handled.value if path in folders else LANDLOCK_READ_FILE
        rule = struct.pack("=Qi", rights, os.open(path, os.O_PATH))
        assert libc.syscall(LANDLOCK_ADD_RULE, rules, 1, rule, 0) == 0
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0) == 0
    try:
        open(LIBRARY.with_name("libotelprof-flush.so"), "rb")
    except PermissionError:
        return
    raise AssertionError("the exporter is not hidden")


def run(command, profiled=True, limits=(), network=True, hidden=False, **environment):
    """Runs at default settings, with `environment` added; returns standard error, and the program's status."""

    def prepare():
        if hidden:
            in_a_sandbox_that_hides_the_exporter(command[0])
        if not network:
            on_no_network()
        for what, values in limits:
            resource.setrlimit(what, values)

    given = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_PRELOAD"))}
    if profiled:
        given.update({"LD_PRELOAD": str(LIBRARY), **environment})
    done = subprocess.run([str(part) for part in command], env=given, capture_output=True, text=True, check=False,
                          timeout=IN_TIME, preexec_fn=prepare if limits or hidden or not network else None)
    return done.stderr, done.returncode


def of(text, said):
    """Returns the lines with that text which are logged at default settings."""
    return [line for line in said.splitlines() if text in line and "debug: " not in line]


# --- nothing is logged ---

LONG, SHORT = "1300", "1"  # ms of CPU time: longer than a process that is not profiled; and enough without us


def shortened(command):
    return [SHORT if word == LONG else word for word in command]


PROGRAMS = {
    "works for longer than a second": (["burn", LONG, "4"], []),
    "sets a handler for the profiling signal": (["signal_owner", "sigaction"], []),
    "sets handlers for every signal": (["signal_owner", "every"], []),
    "has no timers": (["burn", LONG, "4"], [(resource.RLIMIT_SIGPENDING, (0, 0))]),
    "is allowed no real-time": (["burn", LONG, "4"], [(resource.RLIMIT_RTTIME, (0, 0))]),
    "is allowed little address space": (["burn", LONG, "4"], [(resource.RLIMIT_AS, (256 << 20, 256 << 20))]),
    "defines its own malloc": (["own_malloc"], []),
    "brings a malloc that knows no threads": (["unthreaded_malloc"], []),
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_at_default_settings_stderr_is_as_without_us(program, kind):
    """This holds whatever the program does, although no receiver takes its profiles."""
    (name, *arguments), limits = PROGRAMS[kind]
    command = [program(name), *arguments]
    plain = run(shortened(command), profiled=False, limits=limits, network=False)
    assert run(command, limits=limits, network=False) == plain


@pytest.mark.parametrize("command", [
    ["/usr/bin/python3", "-c", BURN.format("float(sys.argv[1]) / 1000") + "sys.stderr.write('mine\\n')\nsys.exit(3)", LONG],
    ["/usr/bin/perl", "-e", "while ((times)[0] * 1000 < $ARGV[0]) { $x++ } print STDERR qq(mine\\n); fork; exit 4", LONG],
    ["sh", "-c", "for i in 1 2 3; do echo mine >&2; done; exit 5"],
    ["g++", "-fsyntax-only", "-x", "c++", "-include", "regex", "/nonexistent"],
], ids=lambda command: command[0])
def test_at_default_settings_real_programs_stderr_is_as_without_us(command):
    plain = run(shortened(command), profiled=False, network=False)
    assert "mine" in plain[0] or "nonexistent" in plain[0]
    assert run(command, network=False) == plain


def test_an_absent_receiver_at_the_default_endpoint_is_logged_at_debug(program):
    said, _ = run([program("burn"), "300", "4"], network=False, OTEL_LOG_LEVEL="debug", OTEL_PROFILER_MIN_LIFETIME="0")
    assert "debug: profiles cannot be sent to localhost:4318/" in said


def test_files_that_a_sandbox_hides_are_no_fault_of_the_installation(program):
    """The exporter is there, and its mode would let us read it; landlock hides it from the start on."""
    settings = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    command = [program("burn"), "300", "4"]
    assert run(command, hidden=True, **settings) == ("", 7)
    said, _ = run(command, hidden=True, OTEL_LOG_LEVEL="debug", **settings)
    assert "debug: " in said and "cannot be loaded" in said


# --- faults are logged ---


def test_an_endpoint_that_is_set_and_takes_nothing_is_reported(program):
    port = closed_port()
    said, status = run([program("burn"), "300", "4"], OTEL_PROFILER_MIN_LIFETIME="0",
                       OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=f"http://127.0.0.1:{port}")
    assert status == 7
    assert len(of("warn: profiles cannot be sent to", said)) == 1 and f":{port}" in said, said


def test_workers_of_one_program_report_a_missing_receiver_once():
    """Whichever worker is first: its line counts for all."""
    workers = "import os\nfor _ in range(6):\n    if os.fork() == 0: break\nelse:\n    for _ in range(6): os.wait()\n"
    said, _ = run(["/usr/bin/python3", "-c", f"import time\ntime.sleep(0.3)\n{workers}" + BURN.format(0.5)],
                  OTEL_PROFILER_MIN_LIFETIME="100", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{closed_port()}")
    assert len(of("cannot be sent", said)) == 1, said


def test_programs_that_a_program_starts_do_not_repeat_its_report():
    code = (
        "import glob, subprocess, sys, time\n"
        "def names():\n"
        "    return {open(f).read() for f in glob.glob('/proc/self/task/*/comm')}\n"
        "while 'otelprof unsent\\n' not in names(): sum(range(100000))\n"
        "sys.stderr.write('told\\n')\n"
        f"done = subprocess.run(['sh', '-c', '{BUILD}/test/programs/burn 300 4; exit $?'])\n"
        "sys.exit(done.returncode)\n"
    )
    said, status = run(["/usr/bin/python3", "-c", code], OTEL_PROFILER_MIN_LIFETIME="0", OTEL_LOG_LEVEL="debug",
                       OTEL_PROFILE_EXPORT_INTERVAL="100",
                       OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{closed_port()}")
    before, _, after = said.partition("told\n")
    assert status == 7
    assert len(of("cannot be sent", before)) == 1 and of("cannot be sent", after) == [], said
    assert "debug: profiles cannot be sent" in after


def test_a_wrong_setting_is_reported_once_for_a_tree(program):
    """The process that starts the tree logs the fault, even if it is an excluded program."""
    burn = f"{program('burn')} 20 1"
    said, _ = run(["sh", "-c", f"{burn}; {burn}; sh -c '{burn}; :'; ls >&2; :"], OTEL_PROFILER_CPU_FREQUENCY="often")
    assert len(of("OTEL_PROFILER_CPU_FREQUENCY", said)) == 1, said


def test_a_wrong_setting_of_a_child_alone_is_reported(program):
    """The shell's own setting was right, and the one that it sets for the program is wrong."""
    burn = f"{program('burn')} 20 1"
    said, _ = run(["sh", "-c", f"OTEL_PROFILER_CPU_FREQUENCY=often {burn}; :"], OTEL_PROFILER_CPU_FREQUENCY="99")
    assert len(of("OTEL_PROFILER_CPU_FREQUENCY", said)) == 1, said


def test_a_wrong_setting_is_reported_by_a_child_where_the_root_cannot(program, tmp_path):
    """A static program (docker-init is one) loads nothing that could log."""
    source = tmp_path / "starts.c"
    source.write_text("#include <sys/wait.h>\n#include <unistd.h>\nint main(int c, char **v) {\n"
                      "    int status = c;\n    if (vfork() == 0) { execv(v[1], v + 1); _exit(1); }\n"
                      "    wait(&status);\n    return WEXITSTATUS(status);\n}\n")
    subprocess.run(["gcc", "-static", "-w", source, "-o", tmp_path / "starts"], check=True)
    said, status = run([tmp_path / "starts", program("burn"), "20", "1"], OTEL_PROFILER_CPU_FREQUENCY="often")
    assert status == 7
    assert len(of("OTEL_PROFILER_CPU_FREQUENCY", said)) == 1, said


WRONG_LATER = {
    "OTEL_RESOURCE_ATTRIBUTES": "novalue",
    "OTEL_EXPORTER_OTLP_HEADERS": "novalue",
    "OTEL_PROFILER_LOG_FILE": "/nonexistent/log",
}


@pytest.mark.parametrize("name", WRONG_LATER)
def test_a_setting_that_is_used_late_is_reported_once_for_a_tree(program, name):
    """The program that starts the others logs it, and they do not."""
    receiver = Receiver()
    code = f"{BURN.format(0.5)}import subprocess, sys\nsys.exit(subprocess.run(['{program('burn')}', '300', '4']).returncode)"
    try:
        said, status = run(["/usr/bin/python3", "-c", code], OTEL_PROFILER_MIN_LIFETIME="0",
                           OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **{name: WRONG_LATER[name]})
    finally:
        receiver.close()
    assert status == 7
    assert len(of(name, said)) == 1, said
    assert len(receiver.requests) >= 2


# --- the log file ---


def test_a_log_file_gets_all_lines_and_stderr_none(program, tmp_path):
    log = tmp_path / "log"
    limits = [(resource.RLIMIT_AS, (256 << 20, 256 << 20))]
    assert run([program("burn"), "20", "1"], limits=limits, OTEL_PROFILER_LOG_FILE=str(log)) == ("", 7)
    assert "debug: RLIMIT_AS is 256 MiB" in log.read_text()


def test_a_log_file_gets_the_wrong_settings_too(program, tmp_path):
    log = tmp_path / "log"
    settings = {"OTEL_PROFILER_LOG_FILE": str(log), "OTEL_PROFILER_CPU_FREQUENCY": "often"}
    assert run([program("burn"), "20", "1"], **settings) == ("", 7)
    assert "warn: OTEL_PROFILER_CPU_FREQUENCY" in log.read_text()
    assert run([program("burn"), "20", "1"], OTEL_LOG_LEVEL="error", **settings) == ("", 7)
    assert log.read_text().count("OTEL_PROFILER_CPU_FREQUENCY") == 1


def test_a_log_file_hears_nothing_of_excluded_programs(tmp_path):
    """Each excluded program would open the file, and such programs start by the thousand."""
    log = tmp_path / "log"
    assert run(["ls", "/"], OTEL_PROFILER_LOG_FILE=str(log)) == ("", 0)
    assert not log.exists()
