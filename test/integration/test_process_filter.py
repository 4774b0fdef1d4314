"""OTEL_PROFILER_EXCLUDE and INCLUDE: in an excluded process the profiler does nothing at all."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from profiled import BUILD, LIBRARY

pytestmark = pytest.mark.fast

BASH_LOOP = "for ((i = 0; i < 150000; i++)); do :; done; echo done"
# Lists what the profiler would leave in a process: threads, timers, its signal's handler, blocked signals.
PYTHON_CENSUS = """
import os, time
end = time.process_time() + 0.3
while time.process_time() < end: sum(range(1000))
status = open('/proc/self/status').read()
print(len(os.listdir('/proc/self/task')), open('/proc/self/timers').read().count('ID:'))
print([line for line in status.splitlines() if line.startswith(('SigBlk', 'SigIgn', 'SigCgt', 'SigPnd'))])
"""


def default(**env):
    """Returns an environment with the product's default list of exclusions: an empty value counts as unset, and the
    tests' harness would exclude nothing."""
    return {"OTEL_PROFILER_EXCLUDE": "", "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_LOG_LEVEL": "debug", **env}


def said(outcome):
    return [line for line in outcome.stderr.splitlines() if "OTEL_PROFILER_EXCLUDE" in line]


def test_a_program_under_heaptrack_is_not_profiled(run, program, tmp_path):
    """heaptrack is recognised by the name of its preload, which is any library here: its file would lack what our
    helper writes to it."""
    preload = tmp_path / "libheaptrack_preload.so.1.4.0"
    shutil.copy(BUILD / "test/programs/counts_connects.so", preload)
    outcome = run([program("burn"), "200"], log_to_stderr=True, env={
        "LD_PRELOAD": f"{preload}:{LIBRARY}", "OTEL_LOG_LEVEL": "debug", "OTEL_PROFILER_EXCLUDE": "none"})
    assert outcome.returncode == 7
    assert "heaptrack records" in outcome.stderr
    assert not outcome.requests


def test_children_of_chromium_keep_their_one_thread(run):
    code = "import os; print(len(os.listdir('/proc/self/task')))"
    command = ["/usr/bin/python3", "-c", code]
    env = {"OTEL_PROFILER_MIN_LIFETIME": "0"}
    assert run([*command, "--type=zygote"], env=env).stdout == "1\n"
    assert run([*command, "--type=json"], env=env).stdout == "2\n"


def test_a_shell_is_excluded_by_default(run):
    outcome = run(["bash", "-c", BASH_LOOP], env=default(), log_to_stderr=True)
    assert (outcome.stdout, outcome.requests) == ("done\n", [])
    assert len(said(outcome)) == 1 and "debug" in said(outcome)[0] and "bash" in said(outcome)[0]
    assert outcome.stderr.count("libotelprof[") == 1, outcome.stderr


def test_nothing_is_said_unless_asked(run):
    outcome = run(["bash", "-c", BASH_LOOP], env={"OTEL_PROFILER_EXCLUDE": ""}, log_to_stderr=True)
    assert outcome.stderr == ""


@pytest.mark.parametrize(
    "env",
    [
        {"OTEL_PROFILER_INCLUDE": "bash"},
        {"OTEL_PROFILER_INCLUDE": "x, */b?sh"},
        {"OTEL_PROFILER_EXCLUDE": "none"},
        {"OTEL_PROFILER_EXCLUDE": "python*"},
        {"OTEL_PROFILER_EXCLUDE": "*", "OTEL_PROFILER_INCLUDE": "bash"},
    ],
)
def test_a_shell_that_the_user_includes(run, env):
    outcome = run(["bash", "-c", BASH_LOOP], env=default(**env))
    assert outcome.instance("bash").cpu_total() > 0


def test_other_programs_are_not_excluded(run, program):
    outcome = run([program("burn"), "300", "4"], env=default(), log_to_stderr=True)
    assert outcome.instance("burn").cpu_total() > 0
    assert said(outcome) == []


def test_a_programs_child_is_chosen_for_itself(run):
    """The shell is not profiled, its child is, and the child's own child is not."""
    script = "/usr/bin/perl -e 'my $x; $x += $_ for 1..9000000; system(\"true; echo over\")'; echo end"
    outcome = run(["bash", "-c", script], env=default())
    assert outcome.stdout == "over\nend\n"
    assert {instance.executable for instance in outcome.instances()} == {"perl"}


def test_an_excluded_process_is_as_without_us(run):
    command = ["/usr/bin/python3", "-c", PYTHON_CENSUS]
    plain = run(command, profiled=False)
    excluded = run(command, env={"OTEL_PROFILER_EXCLUDE": "python3", "OTEL_PROFILER_MIN_LIFETIME": "0"})
    included = run(command, env={"OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert excluded.stdout == plain.stdout
    assert excluded.requests == []
    assert included.stdout != plain.stdout, "the census sees a profiler"


def test_an_excluded_process_has_no_table(run, library):
    """Anonymous memory grows only by the library's own uninitialised data, which no code touches."""
    def anonymous(**options):
        text = run(["/bin/cat", "/proc/self/maps"], **options).stdout
        ranges = re.findall(r"^(\w+)-(\w+) rw-p 0+ 00:00 0 *$", text, re.M)
        return sum(int(end, 16) - int(start, 16) for start, end in ranges)

    header = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True)
    data = re.search(r"LOAD +\S+ \S+ \S+ (\S+) (\S+) RW ", header.stdout)
    own = int(data[2], 16) - int(data[1], 16)
    added = anonymous(env=default()) - anonymous(profiled=False)
    assert own - 8192 <= added <= own + 8192
    assert anonymous() - anonymous(profiled=False) > own + 65536, "tables are seen"


def test_an_excluded_process_makes_few_system_calls(library, tmp_path):
    """Apart from the loader's calls, there is no timer, thread, signal or descriptor."""
    def calls(env):
        log = tmp_path / "calls"
        subprocess.run(
            ["strace", "-f", "-o", log, *(f"-E{k}={v}" for k, v in env.items()), "/bin/ls", "/"],
            check=True, capture_output=True,
        )
        return re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.M)

    preload = {"LD_PRELOAD": library}
    forbidden = ("timer_create", "clone", "clone3", "rt_sigaction", "rt_sigprocmask", "sigaltstack",
                 "setitimer", "socket", "prctl", "madvise")
    plain, excluded = calls({}), calls(preload)
    included = calls({**preload, "OTEL_PROFILER_EXCLUDE": "none"})
    for name in forbidden:
        assert excluded.count(name) == plain.count(name), name
    assert included.count("timer_create") > 0, "the count counts"
    # nine calls open and map the library; two files of the host; stderr's identity, and the removal of exports
    assert len(excluded) - len(plain) <= 18


@pytest.mark.parametrize("command", [["apt-config", "dump"], ["ls", "-l", "/usr/include"], ["find", "/etc", "-name", "*.d"]])
def test_excluded_programs_do_as_without_us(run, command):
    """apt is C++: its operators stay bound to ours, which only pass calls on."""
    plain = run(command, profiled=False)
    excluded = run(command, env=default(), log_to_stderr=True)
    assert said(excluded), "it is one of the default list"
    assert (excluded.stdout, excluded.returncode) == (plain.stdout, plain.returncode)


def test_of_two_copies_the_first_profiles(run, program, tmp_path):
    """A host's preload is one file, a service's own LD_PRELOAD another: no sample is sent twice."""
    for name in (LIBRARY.name, "libotelprof-flush.so"):
        shutil.copy(BUILD / name, tmp_path)
    outcome = run([program("burn"), "500"], log_to_stderr=True, env={
        "LD_PRELOAD": f"{LIBRARY}:{tmp_path / LIBRARY.name}", "OTEL_LOG_LEVEL": "debug"})
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert outcome.stderr.count("another libotelprof.so is loaded before this one") == 1
    (instance,) = outcome.instances()
    assert instance.cpu_of("burns_cpu") > 1e8


@pytest.mark.parametrize("make", [Path.symlink_to, lambda copy, of: shutil.copy(of, copy)], ids=["link", "copy"])
def test_a_preload_by_another_name_is_not_taken_for_the_hosts(run, program, tmp_path, make):
    """In a host-wide installation only programs that OTEL_PROFILER_INCLUDE names are profiled."""
    make(tmp_path / "prof.so", LIBRARY)
    make(tmp_path / "libotelprof-flush.so", LIBRARY.with_name("libotelprof-flush.so"))
    outcome = run([program("burn"), "500"], env={"LD_PRELOAD": str(tmp_path / "prof.so")})
    assert outcome.instance("burn").cpu_of("burns_cpu") > 1e8
