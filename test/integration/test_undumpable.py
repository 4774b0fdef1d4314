"""A process that gave up root: the kernel keeps its files of /proc for root. They are not asked for again and again."""

import os
import re
import subprocess
import tempfile
from collections import Counter
from itertools import accumulate
from pathlib import Path

import pytest
from profiled import LIBRARY, decode_json, names_of
from waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.skipif(os.getuid() != 0, reason="only root can give up root")]

CALL_FILE = re.compile(r'openat\(AT_FDCWD, "/proc/self/task/\d+/syscall"')
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 60
NOBODY = 65534


@pytest.fixture
def folder():
    """Every user can write here."""
    with tempfile.TemporaryDirectory(prefix="otelprof-undumpable-", dir="/var/tmp") as name:
        Path(name).chmod(0o1777)
        yield Path(name)


@pytest.fixture
def traced(folder):
    """traced(program, ..., types) -> the command that runs it under strace, and the log."""
    def command(*words, types):
        log = folder / "trace"
        settings = {"LD_PRELOAD": LIBRARY, "OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_TYPES": types,
                    "OTEL_PROFILER_EXCLUDE": "none", "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_MAX_OVERHEAD": "none",
                    "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "300000", "OTEL_PROFILER_LOG_FILE": folder / "log"}
        return ["strace", "-f", "-qq", "-ttt", "-o", log, *(f"-E{name}={value}" for name, value in settings.items()), *words], log
    return command


def attempts(log):
    """[(line's number, time, whether refused)] of the opens of a thread's system call."""
    found, begun = [], {}
    for number, line in enumerate(log.read_text(errors="replace").splitlines()):
        thread, _, rest = line.partition(" ")
        if CALL_FILE.search(rest):
            begun[thread] = number, float(rest.split()[0])
        if thread in begun and (CALL_FILE.search(rest) or "openat resumed" in rest) and " = " in rest:
            found.append((*begun.pop(thread), "EACCES" in rest))
    return found


def refusals(log):
    return [time for _, time, refused in attempts(log) if refused]


def test_a_refused_file_is_asked_for_ever_more_rarely(traced, program, folder):
    """And at once where the process may be dumpable again, by prctl."""
    command, log = traced(program("undumpable"), types="all")
    with subprocess.Popen(list(map(str, command)), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout.readline() == "gave up\n"
        eventually(lambda: log.exists() and len(refusals(log)) >= 6, "six refusals", unless=process.poll)
        process.stdin.write("\n")
        process.stdin.flush()
        eventually(lambda: any(not refused for _, _, refused in attempts(log)), "a file that is opened", unless=process.poll)
        process.stdin.close()
        assert process.wait(300) == 0
    times = refusals(log)
    lines = log.read_text(errors="replace").splitlines()
    # a stamp may be late, so the first that counts is of a call before; the first refusal may come before that call ends
    gave_up = next(float(line.split()[1]) for line in lines if f"setresuid({NOBODY}" in line)
    pauses = [min(SHORTEST_PAUSE_S * 2**i, LONGEST_PAUSE_S) for i in range(len(times) - 2)]
    assert all(time - gave_up >= due for time, due in zip(times[2:], accumulate(pauses), strict=True)), times
    allowed = next(number for number, line in enumerate(lines) if "prctl(PR_SET_DUMPABLE, SUID_DUMP_USER" in line)
    asked = next(number for number, _, refused in attempts(log) if number > allowed)
    helper = lines[asked].split()[0]
    sleeps = sum(line.startswith(f"{helper} ") and " futex(" in line and "WAIT" in line for line in lines[allowed:asked])
    assert sleeps <= 5, "the helper polls on without the file"


def states_of(path, function):
    """Returns the states of the threads that have the function in their stacks, over all exports in the file."""
    found = set()
    text = path.read_text()
    for line in text[:text.rfind("\n") + 1].splitlines():  # the helper may be writing the last line
        request = decode_json(line)
        strings = request.dictionary.string_table
        for profile in (profile for resource in request.resource_profiles for scope in resource.scope_profiles
                        for profile in scope.profiles if strings[profile.sample_type.type_strindex] == "threads"):
            for sample in profile.samples:
                keys = {strings[attribute.key_strindex]: attribute.value.string_value for attribute in
                        (request.dictionary.attribute_table[index] for index in sample.attribute_indices)}
                if function in names_of(request.dictionary, sample.stack_index):
                    found.add(keys.get("otelprof.thread.state"))
    return found


def test_the_state_of_a_thread_is_known_where_its_call_is_not(program, folder):
    """It waits by a system call of its own, in a thread that began after the process had given up root."""
    environment = {"LD_PRELOAD": LIBRARY, "OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_TYPES": "threads",
                   "OTEL_PROFILER_EXCLUDE": "none", "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "100",
                   "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "300000", "OTEL_PROFILER_LOG_FILE": folder / "log"}
    with subprocess.Popen([program("undumpable")], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={name: str(value) for name, value in environment.items()}) as process:
        assert process.stdout.readline() == "gave up\n"
        name = f"otelprof-undumpable-{process.pid}.jsonl"
        eventually(lambda: (folder / name).exists() and "blocked" in states_of(folder / name, "waits_past_libc"),
                   "a thread that is blocked", unless=process.poll)
        process.stdin.close()
        assert process.wait(300) == 0


def test_unwind_tables_are_read_by_whole_pages_and_once_an_export(traced, program, folder):
    """By the helper's own unwinder, which a rule needs that the handler leaves to it."""
    command, log = traced(program("unusual_rule"), "700", NOBODY, types="cpu")
    assert subprocess.run(list(map(str, command)), cwd=folder, check=False, timeout=600).returncode == 7
    exported = next(folder.glob("otelprof-*.jsonl")).read_text()
    assert '"main"' in exported and '"calls_the_unusual"' in exported
    reads = re.findall(r"process_vm_readv\(.*iov_base=(0x\w+), iov_len=(\d+)\}\], 1, 0", log.read_text(errors="replace"))
    pages = Counter(address for address, size in reads if size == "4096")
    assert pages and max(pages.values()) <= len(exported.splitlines()) + 1
    assert not [size for _, size in reads if int(size) <= 8], "a word at a time"
