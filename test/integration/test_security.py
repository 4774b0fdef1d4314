"""The claims of SECURITY.md hold: what leaves the process, and what is written, opened, mapped and listened on."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from profiled import BUILD, LIBRARY, ROOT, attributes_of
from waiting import eventually

pytestmark = pytest.mark.system

FLUSH = BUILD / "libotelprof-flush.so"
EXPORTS = {"OTEL_PROFILE_EXPORT_INTERVAL": "100"}


def wait_for_export(program):
    eventually(lambda: program.receiver.requests, "an export", unless=program.process.poll)


# --- what leaves the process ---

PERL_WITH_A_TITLE = """
    $0 = "worker number one for client top-secret";
    my ($x, $memory) = (0, "memory " . join("-", "top", "secret"));
    for my $i (1 .. 9000000) { $x += $i }
"""


def test_arguments_environment_and_memory_are_not_sent(run):
    outcome = run(
        ["/usr/bin/perl", "-e", PERL_WITH_A_TITLE, "argument-top-secret"],
        env={"OTEL_PROFILER_MIN_LIFETIME": "0", "TOKEN": "environment-top-secret",
             "OTEL_EXPORTER_OTLP_HEADERS": "authorization=top-secret", "OTEL_PROFILER_RESOURCE": "full"},
    )
    assert outcome.instance("perl").cpu_total() > 0
    for request in outcome.requests:
        assert b"top-secret" not in request.SerializeToString()
        for resource_profiles in request.resource_profiles:
            attributes = attributes_of(resource_profiles.resource)
            assert attributes["process.command"] == "/usr/bin/perl", "not the title"
            assert not {"process.command_args", "process.command_line"} & set(attributes)
            assert not [key for key in attributes if "environment_variable" in key]


def test_the_resource_is_as_documented(run, program):
    """Each attribute that may be sent is named in SECURITY.md."""
    outcome = run([program("burn"), "300", "4"], env={"OTEL_PROFILER_RESOURCE": "full"})
    text = (ROOT / "SECURITY.md").read_text()
    sent = {key for r in outcome.requests for p in r.resource_profiles for key in attributes_of(p.resource)}
    assert len(sent) > 10
    assert not [key for key in sent if f"`{key}`" not in text]


# --- sockets ---


def sockets_of(pid):
    """Returns the inodes of the sockets that a process has open; the helper has a table of its own."""
    found = set()
    for descriptor in Path(f"/proc/{pid}/task").glob("*/fd/*"):
        try:
            match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(descriptor))
        except OSError:
            continue
        if match:
            found.add(match[1])
    return found


def listening(pid):
    """Returns those of these sockets that other processes can connect or send to."""
    found = []
    sockets = sockets_of(pid)
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in sockets and (fields[3] == "0A" or table.startswith("udp")):
                found.append((table, fields[1]))
    for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[6] in sockets and int(fields[3], 16) & 0x10000:  # __SO_ACCEPTCON
            found.append(("unix", fields[-1]))
    return found


def test_no_socket_listens(start, program):
    running = start([program("burn"), "1500", "4"], env=EXPORTS)
    looks = 0
    while running.process.poll() is None:
        try:
            assert listening(running.process.pid) == []
        except FileNotFoundError:
            break
        looks += 1
    outcome = running.finish(300)
    assert looks > 20 and len(outcome.requests) > 3


@pytest.mark.parametrize("kind, address", [("AF_INET", '("127.0.0.1", 0)'), ("AF_UNIX", '"\\0otelprof-test"')])
def test_a_socket_that_listens_would_be_seen(start, kind, address):
    code = f"import socket, time; s = socket.socket(socket.{kind}); s.bind({address}); s.listen(); time.sleep(60)"
    running = start(["/usr/bin/python3", "-c", code], profiled=False)
    eventually(lambda: listening(running.process.pid), "a socket that listens", unless=running.process.poll)


def calls_of(command, env, *names):
    """Returns the system calls of a program and its threads, one a line."""
    with tempfile.NamedTemporaryFile("r") as log:
        subprocess.run(
            ["strace", "-f", "-qq", "-y", "-o", log.name, "-e", f"trace={','.join(names)}", *command],
            env={"PATH": os.environ["PATH"], **env}, check=False, capture_output=True, timeout=120,
        )
        return [line for line in log.read().splitlines() if "(" in line]


@pytest.fixture
def profiled_calls(start, program):
    """calls(*names): calls of a program that exports to a receiver, without and with the profiler."""

    def calls(*names):
        receiver = start(["sleep", "100"]).receiver
        command = [program("burn"), "600", "4"]
        env = {"LD_PRELOAD": str(LIBRARY), "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
               "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000", **EXPORTS}
        # strace itself is left out: it execs the program under its own environment
        found = calls_of(command, {}, *names), calls_of(command, env, *names)
        assert receiver.requests, "it exported"
        return found

    return calls


def test_no_call_makes_a_socket_listen(profiled_calls):
    _, profiled = profiled_calls("socket", "bind", "listen", "accept", "accept4", "connect")
    assert [line for line in profiled if "connect(" in line], "the trace sees sockets"
    assert not [line for line in profiled if re.search(r"\b(bind|listen|accept4?)\(", line)]


# --- files ---


def test_no_file_is_opened_for_writing_by_default(profiled_calls):
    plain, profiled = profiled_calls("open", "openat", "creat", "mknod", "mknodat", "mkdir", "mkdirat",
                                     "rename", "renameat2", "unlink", "unlinkat")
    writes = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|\b(creat|mk\w+|rename\w*|unlink\w*)\(")
    assert len(profiled) > len(plain), "the trace sees files"
    # the profiler's own memory, which its parent shares, is no file of the machine
    files = [line for line in profiled if "</memfd:libotelprof" not in line.rpartition(" = ")[2]]
    assert not [line for line in files if writes.search(line)]


@pytest.fixture
def open_folder(tmp_path):
    """Makes a folder where all users may make files, as /tmp is."""
    folder = tmp_path / "everybodys"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def log_a_line(run, file):
    """Logs with a umask that forbids nothing. An excluded program logs one line at debug level."""
    return run(
        ["sh", "-c", "umask 0; exec /usr/bin/python3 -c 'print(1)'"],
        env={"OTEL_PROFILER_LOG_FILE": str(file), "OTEL_LOG_LEVEL": "debug",
             "OTEL_PROFILER_EXCLUDE": "python3"},
    )


def test_the_log_file_is_the_owners_alone(run, open_folder):
    file = open_folder / "log"
    assert log_a_line(run, file).stdout == "1\n"
    assert "is excluded" in file.read_text()
    assert file.stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize("target_exists", [True, False])
def test_the_log_file_is_no_way_to_another_file(run, open_folder, tmp_path, target_exists):
    victim = tmp_path / "victim"
    if target_exists:
        victim.write_text("precious\n")
    (open_folder / "log").symlink_to(victim)
    outcome = log_a_line(run, open_folder / "log")
    assert outcome.stdout == "1\n"
    (said,) = outcome.stderr.splitlines()
    assert "log is a symbolic link, which is not followed" in said
    assert (victim.read_text() if victim.exists() else None) == ("precious\n" if target_exists else None)


# --- memory ---


def executable_mappings(pid):
    """Returns (permissions, path) of each mapping that can be executed."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    fields = [line.split(None, 5) for line in lines]
    return [(f[1], f[5] if len(f) > 5 else "") for f in fields if "x" in f[1]]


def is_object(path):
    """Recognises files: shared anonymous memory has a path, too: /dev/zero (deleted), /memfd:..."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def generated(mappings):
    kernels = ("[vdso]", "[vsyscall]")
    return [m for m in mappings if "w" in m[0] or not (m[1] in kernels or is_object(m[1]))]


def test_only_text_of_objects_is_executable(start, program):
    running = start([program("burn"), "3000", "4"], env=EXPORTS)
    wait_for_export(running)
    mappings = executable_mappings(running.process.pid)
    running.process.kill()
    assert generated(mappings) == []
    for path in (LIBRARY, FLUSH):
        segments = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True)
        texts = re.findall(r"^ *LOAD .* R E ", segments.stdout, re.M)
        assert len([m for m in mappings if m[1] == str(path)]) == len(texts) == 1, path


@pytest.mark.parametrize("flags", ["MAP_SHARED", "MAP_PRIVATE"])
def test_executable_memory_would_be_seen(start, flags):
    code = (f"import mmap, time; m = mmap.mmap(-1, 4096, prot=5, flags=mmap.{flags} | mmap.MAP_ANONYMOUS)\n"
            "time.sleep(60)")
    running = start(["/usr/bin/python3", "-c", code], profiled=False)
    eventually(lambda: generated(executable_mappings(running.process.pid)), "executable memory", unless=running.process.poll)


# --- more rights than the caller's ---

CENSUS = r"""
#include <stdio.h>
#include <string.h>
#include <time.h>
int main(void) {
    char line[4096];
    for (const clock_t end = clock() + CLOCKS_PER_SEC / 5; clock() < end;)
        ;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "Threads:", 8) == 0 || strncmp(line, "SigCgt:", 7) == 0)
            fputs(line, stdout);
    file = fopen("/proc/self/maps", "r");
    for (int found = 0; file && fgets(line, sizeof line, file);)
        if (strstr(line, "/libotelprof.so") && !found++)
            puts("loaded");
    return 0;
}
"""


@pytest.fixture
def others_program():
    """build(*flags) -> a program that every user can reach, in a folder of its own with our objects."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a setuid program of another user")
    with tempfile.TemporaryDirectory(prefix="otelprof-setuid-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip(f"{folder} is on a file system without setuid")
        for path in (LIBRARY, FLUSH):
            shutil.copy(path, folder)
        (folder / "libotelprof.so.0").symlink_to("libotelprof.so")  # the link that an installation makes

        def build(*flags):
            source = folder / "census.c"
            source.write_text(CENSUS)
            subprocess.run(["gcc", "-o", folder / "census", source, *(f.format(folder) for f in flags)],
                           check=True)
            return folder / "census"

        yield build


def as_nobody(path, **env):
    done = subprocess.run(
        [path], user="nobody", group="nogroup", extra_groups=[], capture_output=True, text=True,
        check=True, env={"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_LOG_LEVEL": "none", **env}, cwd="/",
    )
    return done.stdout


def test_a_setuid_program_is_not_ours_to_load(others_program):
    path = others_program()
    preload = {"LD_PRELOAD": str(path.parent / "libotelprof.so")}
    assert "loaded" in as_nobody(path, **preload)
    path.chmod(0o4755)
    assert as_nobody(path, **preload) == as_nobody(path)


def test_in_a_setuid_program_we_stay_off(others_program):
    """A program that is linked with the library has it loaded, whatever the loader does with LD_PRELOAD."""
    alone = as_nobody(others_program())
    path = others_program("-Wl,--no-as-needed", "-L{}", "-lotelprof", "-Wl,-rpath,{}")
    assert "Threads:\t2" in as_nobody(path), "it is profiled"
    path.chmod(0o4755)
    assert as_nobody(path) == alone + "loaded\n"
