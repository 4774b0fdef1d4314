"""The profiler's system calls stay inside the usual seccomp filters that a program may have from its start.

test/filters/ has the system calls of systemd's @system-service and of the default profiles of Docker and Podman;
shim/process/allowed_calls.def has ours.
"""

import re
import subprocess
import sys

import pytest
from endpoint import Process
from grpc_server import OK as GRPC_OK
from grpc_server import GrpcServer
from http_server import OK, HttpServer
from profiled import ARCH, BUILD, LIBRARY, ROOT, Outcome, Receiver, attributes_of, check_conformance, decode
from test_process_context import payload
from test_protocols import make_certificates
from waiting import eventually

sys.path.insert(0, str(ROOT / "test" / "faults"))

import faults  # noqa: E402

pytestmark = pytest.mark.system

NUMBERS = dict(re.findall(r"#define __NR_(\w+) (\d+)",
                          subprocess.run(["gcc", "-dM", "-E", "-include", "asm/unistd.h", "-xc", "/dev/null"],
                                         capture_output=True, text=True, check=True).stdout))
LIST = dict(reversed(pair) for pair in
            re.findall(r"^(CALL|UNFILTERED|FORWARDED)\((\w+)\)", (ROOT / "shim/process/allowed_calls.def").read_text(), re.M))
CALLS = {name for name, kind in LIST.items() if kind == "CALL"}
SETTINGS = {
    **faults.SETTINGS, "OTEL_PROFILER_CPU_FREQUENCY": "999", "OTEL_PROFILER_EXCLUDE": "none",
    "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000",
}


def calls_of_profile(name):
    """Returns {name: errno with which it fails, or "0"}."""
    lines = (ROOT / "test/filters" / f"{name}.txt").read_text().splitlines()
    entries = [line.partition(":") for line in lines if not line.startswith("#")]
    return {call: errno or "0" for call, _, errno in entries}


# systemd 252, @privileged and @resources: a common line of units removes these from @system-service
TAKEN_OUT = """acct bpf capset chown chroot clock_settime fanotify_init fanotify_mark fchown fchownat lchown
    open_by_handle_at pivot_root quotactl quotactl_fd setdomainname setfsuid setgroups sethostname setresuid setreuid
    setuid vhangup ioprio_set mbind migrate_pages move_pages nice sched_setaffinity sched_setattr sched_setparam
    sched_setscheduler set_mempolicy set_mempolicy_home_node setpriority setrlimit""".split()
PROFILES = {name: calls_of_profile(name) for name in ("system-service", "docker", "podman")}
COMMON = {call: max(profile.get(call, "0") for profile in PROFILES.values())
          for call in set.intersection(*(set(profile) for profile in PROFILES.values()))}


def filter_of(calls):
    """Formats the filter for in_filter.c."""
    return ",".join(NUMBERS[call] + (f":{errno}" if errno != "0" else "")
                    for call, errno in calls.items() if call in NUMBERS)


# --- the list ---


def test_every_call_of_ours_is_in_every_usual_filter():
    assert len(COMMON) > 200 and len(CALLS) > 60
    assert not CALLS - set(COMMON)
    outside = {name for name, kind in LIST.items() if kind != "CALL"}
    assert not outside & CALLS


def test_every_call_in_the_sources_is_on_the_list():
    """This holds also for calls that are made only where there is no filter, which only these files make."""
    asks_first = {"common/descriptors.c", "common/safe_read.c", "shim/process/helper_rights.c",
                  "shim/capture/record/profiler_signal_stacks.c", "common/arch/x86_64/arch_thread_base.h"}
    for folder in ("shim", "common"):
        for path in (ROOT / folder).rglob("*.[ch]"):
            text = path.read_text()
            name = str(path.relative_to(ROOT))
            if "/arch/" in name and f"/arch/{ARCH}/" not in name:
                continue
            for call in set(re.findall(r"\bSYS_(\w+)", text)):
                assert call in LIST, f"{name} makes {call}"
                forwards = name.startswith("shim/hooks/") or name.endswith("/seccomp_filter.c")
                assert LIST[call] != "UNFILTERED" or name in asks_first or forwards, f"{name} makes {call}"
    for name in asks_first:
        assert re.search(r"seccomp_is_filtered\(\)|PR_GET_SECCOMP", (ROOT / name).read_text())


def test_the_drop_in_for_narrower_filters_is_the_list():
    text = (ROOT / "docs/deployment.md").read_text()
    (block,) = re.findall(r"```ini\n(\[Service\]\nSystemCallFilter=.*?)```", text, re.S)
    named = " ".join(re.findall(r"SystemCallFilter=(.*)", block)).split()
    assert sorted(named) == sorted(CALLS)


# --- programs ---

PYTHON = """
import hashlib, os, subprocess, threading, time
def work():
    while time.thread_time() < 0.2:
        hashlib.sha256(b'x' * 9999)
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
child = os.fork()
if not child:
    work()
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), subprocess.call(['/bin/sh', '-c', 'exit 6']))
raise SystemExit(7)
"""
PROGRAMS = {
    "victim": faults.victim(),
    "python3": ["/usr/bin/python3", "-S", "-c", PYTHON],
    "perl": ["/usr/bin/perl", "-e", "$x += sqrt $_ for 1 .. 2e6; exit(system('exit 3') >> 8)"],
    "sh": ["/bin/sh", "-c", "echo $(seq 5 | sort -r); exit 4"],
}
EXPORTERS = {
    "http": {},
    "grpc": {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_COMPRESSION": "none"},
    "https": {"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"},
    "file": {"OTEL_PROFILES_EXPORTER": "otlp_file"},
    "console": {"OTEL_PROFILES_EXPORTER": "console,otlp", "OTEL_LOG_LEVEL": "debug"},
    "no receiver": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://no.such.name.invalid:4318"},
    "every type": {"OTEL_PROFILER_TYPES": "all", "OTEL_PROFILER_WAIT_FREQUENCY": "999"},
    "excluded": {"OTEL_PROFILER_EXCLUDE": "*", "OTEL_LOG_LEVEL": "debug"},
    "disabled": {"OTEL_SDK_DISABLED": "true"},
}
SEND_NOTHING = ("no receiver", "excluded", "disabled")
LIVE_LONG = ("victim", "python3")
# Not every program runs with every exporter: the helper thread exports alike in each program, and
# test_the_list_is_all_that_is_needed_beside_the_programs_own runs every exporter in the program that does most.
BEHIND_USUAL_ONES = [
    ("victim", "http"), ("python3", "grpc"), ("victim", "https"), ("python3", "file"), ("victim", "console"),
    ("python3", "every type"), ("perl", "no receiver"), ("sh", "excluded"), ("python3", "disabled"),
    ("perl", "http"), ("sh", "file"),
]
BEHIND_SYSTEM_SERVICE = [("victim", "https"), ("python3", "console"), ("perl", "http"), ("sh", "file")]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture
def receivers():
    started = [Receiver()]
    yield started
    for receiver in started:
        receiver.close() if isinstance(receiver, Receiver) else receiver.stop()


class Behind:
    """Runs a program behind a filter; keeps its outcome, and its exports."""

    def __init__(self, receivers, certificates, folder):
        self.receivers = receivers
        self.certificates = certificates
        self.file = folder / "profiles.jsonl"
        self.log = folder / "log"

    def environment(self, exporter):
        given = {**SETTINGS, "OTEL_EXPORTER_OTLP_ENDPOINT": self.receivers[0].url,
                 "OTEL_PROFILER_FILE": str(self.file), "OTEL_PROFILER_LOG_FILE": str(self.log)}
        if exporter == "https":
            server = HttpServer(*[OK] * 200, tls=(self.certificates / "server.pem", self.certificates / "server.key"))
            self.receivers.append(server)
            given["OTEL_EXPORTER_OTLP_ENDPOINT"] = server.url.replace("127.0.0.1", "localhost")
            given["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(self.certificates / "ca.pem")
        if exporter == "grpc":
            self.receivers.append(GrpcServer(*[GRPC_OK] * 200))
            given["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{self.receivers[-1].port}"
        if exporter == "console":
            del given["OTEL_PROFILER_LOG_FILE"]
        return {**given, **EXPORTERS[exporter]}

    def run(self, calls, command, exporter=None):
        settings = {"LD_PRELOAD": LIBRARY, **self.environment(exporter)} if exporter else {}
        return faults.run([BUILD / "test/programs/in_filter", filter_of(calls),
                           *(f"{name}={value}" for name, value in settings.items()), *command], {})

    def exports(self, exporter):
        """Returns how many exports arrived, each of them valid."""
        if exporter in ("https", "grpc"):  # their own tests check the contents
            return len(self.receivers[-1].calls)
        if exporter == "file":
            requests = [decode(line.encode(), "application/json") for line in self.file.read_text().splitlines()]
        else:
            requests = list(self.receivers[0].requests)
        for request in requests:
            check_conformance(request)
        return len(requests)


@pytest.fixture
def behind(receivers, certificates, tmp_path):
    return Behind(receivers, certificates, tmp_path)


def without_lines(result, exporter):
    """Returns stderr without the lines that the test requested there."""
    if exporter != "console":
        return result
    lines = result.stderr.splitlines(keepends=True)
    return result._replace(stderr="".join(line for line in lines if not line.startswith("libotelprof[")))


def assert_as_without_us(behind, calls, command, exporter):
    plain = behind.run(calls, command)
    assert isinstance(plain.status, int) and plain.status >= 0, "the program itself lives behind the filter"
    seen = without_lines(behind.run(calls, command, exporter), exporter)
    assert seen.status == plain.status, seen
    assert seen.stdout == plain.stdout
    if exporter != "console":
        assert seen.stderr == plain.stderr


def test_every_exporter_and_every_program_is_behind_a_filter():
    for pairs, exporters in ((BEHIND_USUAL_ONES, set(EXPORTERS)),
                             (BEHIND_SYSTEM_SERVICE, {"http", "https", "file", "console"})):
        assert {name for name, _ in pairs} == set(PROGRAMS)
        assert {exporter for _, exporter in pairs} == exporters
    live_long = {exporter for name, exporter in BEHIND_USUAL_ONES if name in LIVE_LONG}
    assert live_long >= set(EXPORTERS) - set(SEND_NOTHING)


@pytest.mark.parametrize("name, exporter", BEHIND_USUAL_ONES)
def test_calls_outside_of_the_usual_filters_are_never_made(behind, name, exporter):
    """The filter kills, and an export is made each time."""
    assert_as_without_us(behind, COMMON, PROGRAMS[name], exporter)
    if name in LIVE_LONG and exporter not in SEND_NOTHING:
        assert behind.exports(exporter) > 0


@pytest.mark.parametrize("name, exporter", BEHIND_SYSTEM_SERVICE)
def test_a_unit_with_system_service_and_the_default_action_lives(behind, name, exporter):
    assert_as_without_us(behind, PROFILES["system-service"], PROGRAMS[name], exporter)
    if name in LIVE_LONG:
        assert behind.exports(exporter) > 0


@pytest.mark.parametrize("name", ["victim", "python3"])
def test_a_unit_without_privileged_and_resource_calls_lives(behind, name):
    """These two groups have the calls by which the helper becomes an ordinary thread, and gives up capabilities: the
    unit lives without them."""
    left = {call: errno for call, errno in PROFILES["system-service"].items() if call not in TAKEN_OUT}
    assert {"capset", "sched_setscheduler"} <= set(PROFILES["system-service"]) - set(left)
    assert_as_without_us(behind, left, PROGRAMS[name], "http")
    assert behind.exports("http") > 0


def calls_made(command, folder):
    """Returns the names of the system calls that a program makes without the profiler."""
    report = folder / "trace"
    subprocess.run(["strace", "-f", "-qq", "-o", report, *map(str, command)], env=faults.clean_environment(),
                   check=False, capture_output=True, timeout=120)
    return set(re.findall(r"^\d+ +(\w+)\(", report.read_text(), re.M))


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_the_list_is_all_that_is_needed_beside_the_programs_own(behind, tmp_path, exporter):
    command = PROGRAMS["victim"]
    own = calls_made(command, tmp_path) | {"execve", "exit_group"}
    assert_as_without_us(behind, dict.fromkeys(own | CALLS, "0"), command, exporter)
    if exporter not in SEND_NOTHING:
        assert behind.exports(exporter) > 0


@pytest.mark.parametrize("filtered", ["the usual ones", "the list alone"])
def test_a_process_responds_behind_a_filter(behind, tmp_path, filtered):
    command = [BUILD / "test/programs/works_and_waits", tmp_path / "stop"]
    (tmp_path / "stop").touch()
    own = calls_made(command, tmp_path) | {"execve", "exit_group"}
    (tmp_path / "stop").unlink()
    calls = COMMON if filtered == "the usual ones" else dict.fromkeys(own | CALLS, "0")
    settings = {"LD_PRELOAD": LIBRARY, **behind.environment("http"), "OTEL_PROFILER_LISTEN": f"unix:{tmp_path}/socket"}
    program = subprocess.Popen([BUILD / "test/programs/in_filter", filter_of(calls),
                                *(f"{name}={value}" for name, value in settings.items()), *command])
    process = Process(tmp_path / "socket")
    try:
        process.until_it_answers()
        assert process.profile("profile?seconds=1").value_of("burns_cpu", "cpu") > 0
        assert process.profile("heap").types
        (tmp_path / "stop").touch()
        assert program.wait(120) == 7 and not (tmp_path / "socket").exists()
    finally:
        program.kill()
        program.wait()


def test_memory_is_read_behind_a_filter_all_the_same(behind, tmp_path):
    """Without process_vm_readv the exports still have what the application publishes as its process context."""
    texts = {f"text__{letter}": letter * 2000 for letter in "abc"}  # more than a page
    (tmp_path / "do").write_text(f"publish memfd {payload(**texts)}\n")
    settings = {"LD_PRELOAD": LIBRARY, **behind.environment("http")}
    program = subprocess.Popen([
        BUILD / "test/programs/in_filter", filter_of(COMMON),
        *(f"{name}={value}" for name, value in settings.items()), BUILD / "test/programs/publishes_context", tmp_path,
    ])
    try:
        eventually(lambda: any(is_in_resource(request, texts) for request in list(behind.receivers[0].requests)), "the context",
                   unless=program.poll)
    finally:
        program.kill()
        program.wait()


def is_in_resource(request, texts):
    attributes = attributes_of(request.resource_profiles[0].resource)
    return all(attributes.get(key.replace("__", ".")) == text for key, text in texts.items())


def test_stacks_are_finished_behind_a_filter_all_the_same(behind):
    """libunwind would call mincore, once."""
    done = behind.run(COMMON, [BUILD / "test/programs/unusual_rule", "500"], "http")
    assert (done.stdout, done.stderr, done.status) == ("", "", 7)
    outcome = Outcome(7, "", "", list(behind.receivers[0].requests))
    unusual = outcome.instance("unusual_rule")
    spun, called = unusual.cpu_of("spins_unusually"), unusual.cpu_of("calls_the_unusual")
    cut = unusual.marked.get(("samples", "otelprof.stack.truncated"), 0) * unusual.period
    assert spun > 0.2e9
    assert spun - cut <= called and called > 0.9 * spun  # an unfinished stack is marked


JOURNAL = """
import os, socket, subprocess, sys
os.makedirs('/run/systemd/journal')
server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
client.connect(sys.argv[1])
connection, _ = server.accept()
done = subprocess.run(sys.argv[2:], stderr=client)
client.close()
sys.stdout.write(connection.makefile().read())
sys.exit(done.returncode)
"""


@pytest.mark.parametrize("what", ["file", "journal", "pipe", "socket"])
def test_lines_arrive_behind_a_filter(behind, tmp_path, what):
    """The helper thread, which cannot borrow stderr there, writes them; but to no socket of another process."""
    settings = {"LD_PRELOAD": LIBRARY, **behind.environment("console"), "OTEL_LOG_LEVEL": "none"}
    command = [str(word) for word in (
        BUILD / "test/programs/in_filter", filter_of(COMMON), *(f"{name}={value}" for name, value in settings.items()),
        BUILD / "test/programs/unusual_rule", "500")]
    if what in ("journal", "socket"):
        place = "/run/systemd/journal/stdout" if what == "journal" else "/run/other"
        command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh",
                   "/usr/bin/python3", "-c", JOURNAL, place, *command]
    with open(tmp_path / "stderr", "w+b") as file:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=file if what == "file" else subprocess.PIPE,
                              env=faults.clean_environment(), check=False, timeout=60)
        file.seek(0)
        said = file.read() + done.stdout + (done.stderr or b"")
    assert done.returncode == 7, said
    assert (b"] CPU time: " in said) == (what != "socket"), said


# --- the arguments ---

TRIED = """
#include "process/seccomp_filter.c"
#include <stdio.h>
#define PRINT(table) for (size_t i = 0; i < sizeof table / sizeof *table; i++) \\
    printf("%d %x %x %x %x\\\\n", table[i].number, (unsigned)table[i].arguments[0], (unsigned)table[i].arguments[1], \\
           (unsigned)table[i].arguments[2], (unsigned)table[i].arguments[3]);
int main(void) { PRINT(helper_calls) PRINT(spare_calls) PRINT(start_calls) }
""".replace("\\\\n", "\\n")
CHECKED = {"fcntl": 1, "madvise": 2, "setsockopt": 1, "getsockopt": 2, "sendto": 3, "socket": 1, "prlimit64": 1, "ioctl": 1,
           "epoll_create1": 0, "memfd_create": 1, "prctl": 0}  # the number of the argument that filters check


def calls_tried(folder):
    """Returns {(call, value of its checked argument)}."""
    (folder / "tried.c").write_text(TRIED)
    subprocess.run(["gcc", "-D_GNU_SOURCE", *(f"-I{ROOT / part}" for part in ("shim", "shim/process", "common", "common/arch/x86_64",
                    "shim/capture/arch/x86_64")), "-o", folder / "tried", folder / "tried.c"], check=True)
    lines = subprocess.run([folder / "tried"], capture_output=True, text=True, check=True).stdout.splitlines()
    names = {int(number): name for name, number in NUMBERS.items()}
    made = [(names[int(line.split()[0])], [int(word, 16) for word in line.split()[1:]]) for line in lines]
    return {(name, arguments[CHECKED[name]]) for name, arguments in made if name in CHECKED}


def value_of(text):
    return sum(int(part, 0) for part in text.split("|"))


def test_the_model_tries_each_argument_that_the_helper_passes(behind, tmp_path):
    """This holds also for libc's and libcurl's calls, by a trace of the whole process."""
    settings = {"LD_PRELOAD": LIBRARY, **behind.environment("every type")}
    report = tmp_path / "trace"
    subprocess.run(["strace", "-f", "-qq", "-X", "raw", "-o", report, *(f"-E{name}={value}" for name, value in settings.items()),
                    *map(str, PROGRAMS["victim"])], env=faults.clean_environment(), check=False, capture_output=True, timeout=300)
    lines = report.read_text().splitlines()
    helpers = {line.split()[0] for line in lines if re.search(r'prctl\(0xf, "otelprof', line)}
    seen = set()
    for line in lines:
        call = re.match(r"(\d+) +(\w+)\((.*)", line)
        if not call or call[1] not in helpers or call[2] not in CHECKED:
            continue
        arguments = re.sub(r'"[^"]*"\.*|\[[^]]*\]|\{[^}]*\}', "0", call[3]).split(")")[0].split(" <")[0].split(", ")
        if len(arguments) > CHECKED[call[2]]:
            seen.add((call[2], value_of(arguments[CHECKED[call[2]]])))
    assert behind.exports("every type") > 0 and len(seen) > 10
    assert seen <= calls_tried(tmp_path), seen - calls_tried(tmp_path)
