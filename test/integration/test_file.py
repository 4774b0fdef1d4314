"""otlp_file: whatever happens to the file, every line in it is a whole export, and the program runs on."""

import os
import resource
import subprocess
from pathlib import Path

import pytest
from otelprof_lib.aggregate import aggregate
from otelprof_lib.capture_file import decode_json, read_messages
from processes import FUTEX, call_of, stat_fields
from processes import cpu_seconds as cpu_seconds_of
from profiled import EXACT_CPU, LIBRARY, ROOT, START_NS, Instance, attributes_of, check_conformance
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.fast

FILE = {**EXACT_CPU, "OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILE_EXPORT_INTERVAL": "100"}
START_S = START_NS / 1e9


def checked(text):
    """Returns the exports in JSON lines, each of which must be whole."""
    lines = text.split(b"\n")
    assert lines.pop() == b"", "the last line is ended"
    messages = [decode_json(line) for line in lines]
    for message in messages:
        check_conformance(message)
    return messages


def cpu_seconds(messages):
    return aggregate(messages)["cpu"].total


def said(outcome):
    return [line for line in outcome.stderr.splitlines() if line.startswith("libotelprof[")]


# --- where it goes ---


def test_the_default_file(run, program, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    outcome = run([program("thread_kinds"), "names"], cwd=folder, env=FILE, log_to_stderr=True)
    assert (outcome.stdout, outcome.stderr, outcome.returncode) == ("done\n", "", 0)
    assert outcome.requests == [], "nothing is sent"
    (file,) = folder.iterdir()
    messages = checked(file.read_bytes())
    assert len(messages) >= 6, "it awaits so many"
    instance = Instance(attributes_of(messages[0].resource_profiles[0].resource))
    assert file.name == f"otelprof-thread_kinds-{instance.pid}.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    assert cpu_seconds(messages) > 0.029


def test_the_working_directory_is_that_of_the_start(run, tmp_path):
    code = (
        "import os, time\n"
        "os.chdir('/')\n"
        "while time.thread_time() < 0.1: pass\n"
        "print(time.thread_time_ns())\n"
    )
    outcome = run(
        ["/usr/bin/python3", "-c", code], cwd=tmp_path, env={**FILE, "OTEL_PROFILER_FILE": "mine.jsonl"}
    )
    assert outcome.returncode == 0
    written = cpu_seconds(checked((tmp_path / "mine.jsonl").read_bytes()))
    assert written == pytest.approx(int(outcome.stdout) / 1e9, abs=START_S)


def test_standard_output(run, program):
    outcome = run(
        [program("burn"), "60", "16"], env={**FILE, "OTEL_PROFILER_FILE": "-"}, log_to_stderr=True
    )
    assert (outcome.stderr, outcome.returncode) == ("", 7)
    lines = outcome.stdout.splitlines(keepends=True)
    lines.remove("burnt\n")
    assert cpu_seconds(checked("".join(lines).encode())) == pytest.approx(0.06, abs=START_S)


def test_otelprof_reads_the_protobuf(start, program, tmp_path):
    file = tmp_path / "a.otlp"
    running = start(
        [program("burn"), "600000", "16", "10"],
        env={**FILE, "OTEL_PROFILES_EXPORTER": "otlp,otlp_file", "OTEL_PROFILER_FILE": str(file), "OTEL_PROFILER_FILE_FORMAT": "protobuf"},
    )
    eventually(lambda: len(running.receiver.requests), "exports", unless=running.process.poll, holds=lambda count: count >= 2)
    running.process.terminate()
    outcome = running.finish(TIMEOUT_S)
    assert [message.SerializeToString() for message in read_messages(file)] == outcome.bodies


@pytest.mark.parametrize("file_format, name", [("json", "a.jsonl"), ("protobuf", "a.otlp")])
def test_otelprof_shows_the_file(run, program, tmp_path, file_format, name):
    run(
        [program("burn"), "60", "64"],
        cwd=tmp_path,
        env={**FILE, "OTEL_PROFILER_FILE": name, "OTEL_PROFILER_FILE_FORMAT": file_format},
    )
    command = ROOT / "scripts" / "otelprof"
    shown = subprocess.run([command, "top", tmp_path / name], capture_output=True, text=True, check=True)
    assert "burns_cpu" in shown.stdout and "allocates" in shown.stdout
    page = tmp_path / "a.html"
    subprocess.run([command, "flamegraph", tmp_path / name, "-o", page], capture_output=True, check=True)
    assert "burns_cpu" in page.read_text()


def test_several_exporters_at_once(run, program, tmp_path):
    file = tmp_path / "a.jsonl"
    outcome = run(
        [program("burn"), "60", "64"],
        env={**FILE, "OTEL_PROFILES_EXPORTER": "otlp,otlp_file,console", "OTEL_PROFILER_FILE": str(file)},
        log_to_stderr=True,
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    written = [message.SerializeToString() for message in checked(file.read_bytes())]
    assert written == outcome.bodies
    assert "burns_cpu" in outcome.stderr and "allocates" in outcome.stderr


def test_forked_children_have_files_of_their_own(run, program, tmp_path):
    outcome = run([program("fork_child"), "exit"], cwd=tmp_path, env=FILE)
    assert outcome.returncode == 0
    names = set()
    for file in tmp_path.glob("otelprof-*.jsonl"):
        messages = checked(file.read_bytes())
        pids = {attributes_of(m.resource_profiles[0].resource)["process.pid"] for m in messages}
        assert file.name == f"otelprof-fork_child-{pids.pop()}.jsonl"
        assert not pids
        names |= {s for m in messages for s in m.dictionary.string_table}
    assert {"parent_burns", "child_burns"} <= names


def test_processes_share_a_file(run, program, tmp_path):
    """Eight processes append every 20 ms: no line is torn, and none is there twice."""
    file = tmp_path / "all.jsonl"
    script = "for i in 1 2 3 4 5 6 7 8; do $0 100 16 & done; wait"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(["sh", "-c", script, program("burn")], env={**FILE, "OTEL_PROFILE_EXPORT_INTERVAL": "20", "OTEL_PROFILER_FILE": str(file)})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    messages = checked(file.read_bytes())
    pids = {attributes_of(m.resource_profiles[0].resource)["process.pid"] for m in messages}
    assert len(pids) >= 8
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert 8 * 0.1 - 8 * 0.001 <= cpu_seconds(messages) <= used, "to a period of 1 ms each, and what the kernel has counted"


# --- what goes wrong ---


def test_a_limit_on_the_size_of_files(start, program, tmp_path):
    """Lines that fit are whole; the others are logged once and counted; the program gets no SIGXFSZ."""
    file = tmp_path / "a.jsonl"
    running = start(
        [program("lowest_number"), tmp_path / "stop"],
        env={**FILE, "OTEL_PROFILES_EXPORTER": "otlp,otlp_file", "OTEL_PROFILER_FILE": str(file)},
        limits={resource.RLIMIT_FSIZE: (25000, 25000)},
        log_to_stderr=True,
    )
    eventually(lambda: "File too large" in Path(running.err.name).read_text(), "a full file", unless=running.process.poll)
    (tmp_path / "stop").touch()
    outcome = running.finish(TIMEOUT_S)
    assert (outcome.stdout, outcome.returncode) == ("0\n", 0)
    assert 0 < file.stat().st_size <= 25000
    messages = checked(file.read_bytes())
    assert 0 < len(messages) < len(outcome.requests)
    # a small line may still fit behind one that does not
    told = ["cannot be written" in line for line in said(outcome)]
    assert told == [True, False] * (len(told) // 2) + [True] * (len(told) % 2) and told, outcome.stderr
    assert "OTEL_PROFILER_FILE" in outcome.stderr and "File too large" in outcome.stderr
    assert dropped(outcome.requests[-1]) > 0


def dropped(request):
    """Returns otelprof.dropped.file of an export."""
    dictionary = request.dictionary
    for profile in request.resource_profiles[0].scope_profiles[0].profiles:
        for index in profile.attribute_indices:
            attribute = dictionary.attribute_table[index]
            if dictionary.string_table[attribute.key_strindex] == "otelprof.dropped.file":
                return attribute.value.int_value
    return 0


def in_namespace(run, folder, mount, then, env):
    """Runs a command with something mounted on `folder`, which no other process sees."""
    probe = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("mount namespaces are not allowed here")
    script = f'{mount} && export LD_PRELOAD="$0" && {then}'
    return run(
        ["unshare", "-rm", "sh", "-c", script, str(LIBRARY)], cwd=folder.parent,
        env={"LD_PRELOAD": "", **env}, log_to_stderr=True,
    )


@pytest.mark.system
def test_a_full_disk(run, program, tmp_path):
    """A disk of 32 KiB fills up: the file has whole lines only, and one log line reports the fault."""
    disk = tmp_path / "disk"
    disk.mkdir()
    copy = tmp_path / "copy.jsonl"
    outcome = in_namespace(
        run, disk, f"mount -t tmpfs -o size=32k none {disk}",
        f"{program('burn')} 1500 64; unset LD_PRELOAD; cp {disk}/a.jsonl {copy}",
        {**FILE, "OTEL_PROFILER_FILE": str(disk / "a.jsonl")},
    )
    assert "burnt" in outcome.stdout
    messages = checked(copy.read_bytes())
    assert len(messages) >= 1
    assert len([line for line in said(outcome) if "No space left" in line]) == 1, outcome.stderr


@pytest.mark.system
def test_room_is_made_again(run, program, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    copy = tmp_path / "copy.jsonl"
    outcome = in_namespace(
        run, disk,
        f"mount -t tmpfs -o size=48k none {disk} && head -c 45056 /dev/zero > {disk}/ballast",
        f"({program('burn')} 2500 64 & sleep 1; rm {disk}/ballast; wait); unset LD_PRELOAD; "
        f"cp {disk}/a.jsonl {copy}",
        {**FILE, "OTEL_PROFILE_EXPORT_INTERVAL": "300", "OTEL_PROFILER_FILE": str(disk / "a.jsonl"),
         "OTEL_PROFILER_MIN_LIFETIME": "10"},
    )
    burns = [line for line in said(outcome) if "OTEL_PROFILER_FILE" in line]
    assert any("No space left" in line for line in burns), outcome.stderr
    assert any("being written again" in line for line in burns), outcome.stderr
    assert checked(copy.read_bytes())[-1].resource_profiles


@pytest.mark.system
def test_a_folder_that_is_read_only(run, program, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    outcome = in_namespace(
        run, disk, f"mount -t tmpfs -o ro none {disk}", f"exec {program('burn')} 500 16",
        {**FILE, "OTEL_PROFILER_FILE": str(disk / "a.jsonl")},
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert len(said(outcome)) == 1, outcome.stderr
    assert "Read-only file system" in said(outcome)[0] and str(disk) in said(outcome)[0]


@pytest.mark.parametrize("kind", ["symlink", "dangling", "fifo", "folder", "device"])
def test_a_file_that_is_not_regular(run, program, tmp_path, kind):
    file = tmp_path / "a.jsonl"
    target = tmp_path / "target"
    if kind == "symlink":
        target.write_text("mine")
        file.symlink_to(target)
    elif kind == "dangling":
        file.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file = "/dev/null"
    outcome = run(
        [program("burn"), "40", "16"], env={**FILE, "OTEL_PROFILER_FILE": str(file)}, log_to_stderr=True
    )
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7)
    assert len(said(outcome)) == 1 and str(file) in said(outcome)[0], outcome.stderr
    if kind == "symlink":
        assert target.read_text() == "mine"
    else:
        assert not target.exists()


def test_a_reader_that_does_not_read(program, tmp_path):
    """Standard output is a pipe that no process reads: the program ends in its own time, and the samples recorded
    meanwhile come when there is a reader."""
    environment = dict(
        os.environ, LD_PRELOAD=str(LIBRARY), **FILE, OTEL_PROFILER_FILE="stdout",
        OTEL_PROFILER_LOG_FILE=str(tmp_path / "log"),
    )
    process = subprocess.Popen(
        ["sh", "-c", f"cat /dev/zero | head -c 65536; exec {program('burn')} 600 64"],
        env=environment, stdout=subprocess.PIPE,
    )
    eventually(lambda: stat_fields(process.pid)[0] == "burn" and cpu_seconds_of(process.pid) > 0.4, "0.4 s of work", unless=process.poll)
    text = process.communicate(timeout=TIMEOUT_S)[0]
    assert process.returncode == 7
    assert text.startswith(b"\0" * 65536)
    lines = [line for line in text[65536:].split(b"\n") if line not in (b"", b"burnt")]
    assert cpu_seconds(checked(b"".join(line + b"\n" for line in lines))) == pytest.approx(0.6, abs=START_S)


def test_no_descriptor_is_open_between_two_writes(run, tmp_path):
    """Otherwise a program that waits until it sees no descriptor would wait in vain."""
    code = (
        "import os\n"
        "before = set(os.listdir('/proc/self/fd'))\n"
        "def exports(): return open('a.jsonl', 'rb').read().count(b'\\n') if os.path.exists('a.jsonl') else 0\n"
        "for count in (1, 2, 3):\n"
        "    while exports() < count: sum(range(1000))\n"
        "    while set(os.listdir('/proc/self/fd')) - before: sum(range(1000))\n"
        "print('none')\n"
    )
    outcome = run(
        ["/usr/bin/python3", "-c", code], cwd=tmp_path, env={**FILE, "OTEL_PROFILER_FILE": "a.jsonl"}
    )
    assert outcome.stdout == "none\n"


def end_during_a_cycle(log):
    """Returns CPU seconds in the file of a process whose end fell, as a rule, into an export."""
    code = (
        "import os, sys, time\n"
        "os.write(1, bytes(65536))\n"  # fills the pipe
        "def burn(seconds):\n"
        "    end = time.thread_time() + seconds\n"
        "    while time.thread_time() < end: pass\n"
        "start = time.time()\n"
        "burn(0.2)\n"
        "while time.time() < start + 2: time.sleep(0.01)\n"
        "burn(0.2)\n"
        "os.write(2, b'end')\n"
    )
    environment = dict(
        os.environ, LD_PRELOAD=str(LIBRARY), **FILE, OTEL_PROFILER_FILE="stdout",
        OTEL_PROFILER_LOG_FILE=str(log), OTEL_PROFILER_SHUTDOWN_TIMEOUT="700",
    )
    environment["OTEL_PROFILE_EXPORT_INTERVAL"] = "2000"
    process = subprocess.Popen(
        ["/usr/bin/python3", "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr.read(3) == b"end"
    eventually(lambda: process.poll() is not None or call_of(process.pid) == FUTEX, "an exit that waits for the helper")
    text = process.communicate(timeout=TIMEOUT_S)[0]
    return cpu_seconds(checked(text[65536:]))


@pytest.mark.timing
def test_an_end_during_a_cycle_is_noticed(tmp_path):
    """The process ends while the helper is in the middle of an export, which a full pipe delays: the last export
    still follows at once, not at the next interval. Each process has an export moment of its own: where it comes so
    early that the export is given up before the end, and the log reports that, the test does not apply."""
    for number in range(10):
        log = tmp_path / f"log{number}"
        seconds = end_during_a_cycle(log)
        given_up = log.exists() and "warn" in log.read_text()
        if seconds > 0.36 or not given_up:
            break
    assert seconds > 0.36, "both halves are there"


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 9)"])
def test_sudden_ends_leave_whole_lines(run, tmp_path, end):
    """Each process ends once an export has been written."""
    file = tmp_path / "a.jsonl"
    code = (
        "import os, time\n"
        f"while not os.path.exists({str(file)!r}): pass\n"
        "while time.thread_time() < 0.1: pass\n"
        "print(time.thread_time_ns(), flush=True)\n"
        f"{end}\n"
    )
    outcome = run(
        ["/usr/bin/python3", "-c", code], env={**FILE, "OTEL_PROFILER_FILE": str(file)}, log_to_stderr=True
    )
    assert outcome.returncode in (3, -15, -9)
    written = cpu_seconds(checked(file.read_bytes()))
    if outcome.returncode == -9:  # after such an end nothing can be written
        assert written > 0
    else:
        assert written == pytest.approx(int(outcome.stdout) / 1e9, abs=START_S)
