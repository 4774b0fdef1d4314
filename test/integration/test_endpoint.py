"""A process serves requests while it runs, and its responses agree with its exports."""

import os
import re
import resource
import shutil
import stat
import subprocess
import time

import pytest
from endpoint import ROUTES, Process, Squatter, asked, at_port  # noqa: F401 # fixtures
from otelprof_lib.kinds import KINDS
from ports import closed_port, reserved_port
from profiled import FORKS, LIBRARY, ROOT, Outcome, check_conformance
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

PROFILES = re.findall(r'^PPROF_KIND\(\w+, "(\w+)", "(\w+)", .*?, (AT_\w+|NOW),', (ROOT / "shim/flush/encode/pprof_kinds.def").read_text(), re.M)
KEPT_BYTES = 1000 * 1024  # bytes that test/programs/works_and_waits.c keeps
NOBODY = 65534
LABEL = r'\w+="(?:[^"\\]|\\["\\n])*"'


# --- profiles ---


@pytest.mark.parametrize(("name", "default_type", "begins"), PROFILES, ids=[name for name, *_ in PROFILES])
def test_each_profile_is_one_of_pprof(asked, name, default_type, begins):
    running = asked(OTEL_PROFILER_ALLOC_INTERVAL="1")
    path = name + ("?seconds=1" if begins == "AT_REQUEST" else "")
    profile = eventually(lambda: running.process.profile(path), "a sample: nobody has waited yet", holds=lambda found: found.message.sample)
    assert profile.default_type == default_type
    assert default_type in [kind for kind, _ in profile.types]
    assert any(profile.text(mapping.build_id) for mapping in profile.message.mapping)
    assert running.over().returncode == 7


def test_the_live_heap_is_exact_where_each_object_is_sampled(asked):
    running = asked(OTEL_PROFILER_ALLOC_INTERVAL="1")
    for name in ("heap", "allocs"):
        profile = running.process.profile(name)
        assert profile.value_of("keeps_memory", "inuse_space") == KEPT_BYTES
        assert profile.value_of("keeps_memory", "alloc_space") == KEPT_BYTES
        assert profile.value_of("keeps_memory", "inuse_objects") == 1000
        assert profile.value_of("churns", "inuse_space") in (0, 1000)
    running.over()


def test_sums_since_the_start_are_those_of_all_exports(asked):
    """A scraper computes differences: the responses never fall, and have what was exported so far."""
    running = asked(OTEL_PROFILER_ALLOC_INTERVAL="1")
    first = running.process.profile("allocs")
    second = running.process.profile("allocs")
    assert 0 < first.value_of("churns", "alloc_space") < second.value_of("churns", "alloc_space")
    assert second.value_of("churns", "alloc_space") % 1000 == 0
    outcome = running.over()
    exported = outcome.instance("works_and_waits")
    assert second.total("alloc_space") <= exported.total("alloc_space")
    assert first.total("alloc_space") < second.total("alloc_space")


def test_a_profile_of_a_time_holds_that_time_alone(asked):
    running = asked()
    began = time.clock_gettime_ns(time.CLOCK_REALTIME)
    profile = running.process.profile("profile?seconds=2")
    ended = time.clock_gettime_ns(time.CLOCK_REALTIME)
    message = profile.message
    assert began <= message.time_nanos and message.time_nanos + message.duration_nanos <= ended
    assert message.duration_nanos >= 2e9
    assert 0 < profile.total("cpu") <= message.duration_nanos * (os.cpu_count() + 1)
    assert profile.value_of("burns_cpu", "cpu") > 0.5 * profile.total("cpu")
    assert "burner" in profile.labels("thread.name")
    running.over()


def test_responses_agree_with_exports(asked):
    """/otlp serves the export itself: the receiver has the same bytes."""
    running = asked()
    exports = running.process.ask("/otlp").exports()
    for request in exports:
        check_conformance(request)
    received = [request.SerializeToString() for request in running.over().requests]
    assert exports and all(request.SerializeToString() in received for request in exports)


def test_exports_of_a_time_are_handed_out_together(asked):
    running = asked(OTEL_PROFILE_EXPORT_INTERVAL="500")
    requests = running.process.ask("/otlp?seconds=2").exports()
    assert len(requests) > 2
    instance = Outcome(0, "", "", requests).instance("works_and_waits")
    assert instance.value_of("burns_cpu", "samples") > 0
    running.over()


def test_threads_are_reported_as_text(asked):
    running = asked()
    text = running.process.ask("/debug/pprof/goroutine?debug=2").text
    assert re.search(r'^thread \d+ "burner" \[', text, re.M)
    assert re.search(r'^thread \d+ "wanter" \[blocked, lock, .*lock lock, held by "holder"', text, re.M) or '"wanter"' in text
    grouped = running.process.ask("/debug/pprof/goroutine?debug=1").text
    assert grouped.startswith("threads: total 4\n") and "burns_cpu" in grouped
    running.over()


def test_a_type_that_is_off_is_reported(asked):
    running = asked(OTEL_PROFILER_TYPES="cpu")
    for name in ("heap", "allocs", "block", "mutex", "goroutine"):
        answer = running.process.ask(f"/debug/pprof/{name}")
        assert answer.status == 404 and "OTEL_PROFILER_TYPES" in answer.text
    running.over()


def test_a_wrong_time_is_refused(asked):
    running = asked()
    for query in ("profile?seconds=0", "profile?seconds=x", "profile?seconds=99999", "profile?seconds=-1", "heap?seconds=0",
                  "goroutine?seconds=3601", "heap?seconds=1&debug=1", "goroutine?seconds=1&debug=2"):
        assert running.process.ask(f"/debug/pprof/{query}").status == 400, query
    running.over()


# --- the other pages ---


def test_names_are_asked_for_by_any_number_of_addresses(asked):
    """`go tool pprof` requests names by a large body for each file that lacks some; any other body has its bound."""
    running = asked()
    addresses = "+".join(hex(number) for number in range(0x400000, 0x410000))
    answer = running.process.ask("/debug/pprof/symbol", "POST", addresses)
    assert (answer.status, answer.text) == (200, "num_symbols: 0\n")
    answer = running.process.ask("/control", "POST", addresses)
    assert answer.status == 413 and "4 KiB" in answer.text
    running.over()


def test_the_page_lists_all_that_can_be_read(asked):
    running = asked()
    page = running.process.ask("/").text
    links = re.findall(r'href="(.*?)"', page)
    assert set(links) == {f"/debug/pprof/{name}" for name, *_ in PROFILES} | {path for method, path, _ in ROUTES if method == "GET"}
    running.over()


def test_the_status_has_the_process_and_its_settings(asked):
    running = asked(OTEL_SERVICE_NAME='a "name" \\ of <any> kind')
    status = running.process.status()
    assert status["pid"] == running.program.process.pid
    assert status["service.name"] == 'a "name" \\ of <any> kind'
    assert status["settings"]["OTEL_PROFILER_CPU_FREQUENCY"] == "99"
    assert set(status["settings"]["OTEL_PROFILER_TYPES"].split(",")) == set(KINDS) | {"mmap"} or status["settings"]["OTEL_PROFILER_TYPES"]
    assert status["threads"] >= 4 and float(status["own_cpu_seconds"]) > 0
    assert "queue_full" in status["dropped"] and float(status["foreign_stack_cpu_seconds"]) >= 0
    assert "short_child" in status["dropped"] and float(status["short_child_cpu_seconds"]) >= 0
    assert running.process.ask("/flush", "POST").status == 200
    eventually(lambda: running.process.status()["exports"]["delivered"], "an export")
    running.over()


def test_the_status_has_the_reason_why_exports_do_not_arrive(asked):
    running = asked(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{closed_port()}")
    running.process.ask("/flush", "POST")
    eventually(lambda: running.process.status()["exports"]["problem"], "the problem")
    running.over()


def test_metrics_are_prometheus_text(asked):
    running = asked(OTEL_SERVICE_NAME='a "name"\t\\ of\ntwo lines')
    text = running.process.ask("/metrics").text
    assert 'service_name="a \\"name\\"\t\\\\ of\\ntwo lines"' in text
    declared = set(re.findall(r"^# TYPE (\w+) (?:counter|gauge)$", text, re.M))
    samples = [line for line in text.split("\n")[:-1] if not line.startswith("#")]
    assert samples and all(re.fullmatch(rf'\w+(\{{{LABEL}(,{LABEL})*\}})? \d+(\.\d+)?', line) for line in samples)
    assert {re.match(r"\w+", line).group() for line in samples} == declared
    assert "otelprof_foreign_stack_cpu_time_seconds_total" in declared
    assert "otelprof_short_child_cpu_time_seconds_total" in declared
    running.over()


# --- control ---


def test_settings_change_while_it_runs(asked):
    running = asked()
    answer = running.process.control("OTEL_PROFILER_CPU_FREQUENCY=500", "OTEL_PROFILER_TYPES=cpu")
    assert answer.status == 200 and "OTEL_PROFILER_CPU_FREQUENCY=500\n" in answer.text
    assert running.process.status()["settings"]["OTEL_PROFILER_TYPES"] == "cpu"
    assert running.process.profile("profile?seconds=1").message.period == 2_000_000
    running.process.control("OTEL_PROFILER_CPU_FREQUENCY=")
    assert running.process.status()["settings"]["OTEL_PROFILER_CPU_FREQUENCY"] == "99"
    running.over()


def test_a_wrong_line_changes_nothing(asked):
    running = asked()
    before = running.process.status()["settings"]
    answer = running.process.control("OTEL_PROFILER_CPU_FREQUENCY=500", "OTEL_PROFILER_ENDPOINT=http://evil")
    assert answer.status == 400 and answer.text.startswith("line 2: ") and "nothing changes" in answer.text
    assert running.process.status()["settings"] == before
    running.over()


def test_a_recording_raises_the_rate_and_puts_it_back(asked):
    running = asked()
    profile = running.process.profile("profile?seconds=1&OTEL_PROFILER_CPU_FREQUENCY=1000")
    assert profile.message.period == 1_000_000
    assert running.process.status()["settings"]["OTEL_PROFILER_CPU_FREQUENCY"] == "99"
    running.over()


@pytest.mark.parametrize("settings", ["OTEL_X=" + 1100 * "x", "&".join(40 * ["OTEL_PROFILER_CPU_FREQUENCY=1000"])],
                         ids=["a long one", "many"])
def test_settings_that_have_no_room_are_refused(asked, settings):
    """No setting is ignored without a message."""
    running = asked()
    answer = running.process.ask(f"/debug/pprof/profile?seconds=1&{settings}")
    assert answer.status == 414 and "1 KiB" in answer.text
    running.over()


@pytest.mark.parametrize("more", [b"", b"\r\n"], ids=["at-once", "after-more"])
def test_the_rate_is_put_back_when_the_recorder_goes_away(asked, more):
    """This holds also where the recorder has sent more bytes than its request."""
    running = asked()
    connection = running.process.connection()
    connection.request("GET", "/debug/pprof/profile?seconds=3600&OTEL_PROFILER_CPU_FREQUENCY=1000")
    connection.sock.sendall(more)
    running.until_its_rate_is("1000")
    connection.close()
    running.until_its_rate_is("99")
    running.over()


# --- where it listens ---


def test_a_port_of_its_own_choice_is_said(asked):
    running = asked(listen="127.0.0.1:0", OTEL_PROFILER_LOG_FILE="")
    found = running.until_it_says(rb"info: listening on http://127\.0\.0\.1:(\d+)\n")
    assert Process(int(found[1])).status()["pid"] == running.program.process.pid
    running.over()


def test_a_socket_is_its_users_alone_and_goes_with_the_process(asked, tmp_path):
    running = asked()
    path = tmp_path / "socket"
    status = path.stat()
    assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    running.over()
    assert not path.exists()


def test_a_folder_holds_a_socket_for_each_process(asked, tmp_path):
    running = asked(listen=f"unix:{tmp_path}/")
    process = Process(tmp_path / f"{running.program.process.pid}.sock")
    process.until_it_answers()
    running.over()


def test_the_socket_of_a_process_that_was_killed_is_replaced(asked, tmp_path):
    first = asked()
    first.program.process.kill()
    first.program.process.wait()
    assert (tmp_path / "socket").exists()
    second = asked()
    assert second.process.status()["pid"] == second.program.process.pid
    second.over()


def until_there(path):
    eventually(path.exists, path)


def test_a_socket_that_was_removed_is_made_anew(asked, tmp_path):
    """A cleaner may have removed the socket; or its folder was away for a while, which is logged once."""
    folder = tmp_path / "run"
    folder.mkdir()
    running = asked(listen=f"unix:{folder}/socket", OTEL_PROFILE_EXPORT_INTERVAL="200", OTEL_PROFILER_LOG_FILE="")
    until_there(folder / "socket")
    before = Process(folder / "socket").profile("allocs").total("alloc_space")
    (folder / "socket").unlink()
    until_there(folder / "socket")
    while folder.exists():  # the process may make the folder again meanwhile
        shutil.rmtree(folder, ignore_errors=True)
    running.until_it_says(rb"warn: OTEL_PROFILER_LISTEN: .*No such file or directory; the process serves no requests\n")
    requests = running.program.receiver.requests
    eventually(lambda count=len(requests): len(requests) >= count + 3, "three exports more", unless=running.program.process.poll)
    folder.mkdir()
    until_there(folder / "socket")
    assert Process(folder / "socket").profile("allocs").total("alloc_space") > before
    assert running.over().stderr.count("serves no requests") == 1


ALLOCATES_WHEN_TOLD = """
import os, sys, time
def until(name):
    while not os.path.exists(name): time.sleep(0.01)
def meanwhile():
    return [bytearray(1_000_000) for _ in range(100)]
until(sys.argv[1])
meanwhile()
open(sys.argv[2], "w").close()
until(sys.argv[3])
"""


@pytest.mark.parametrize("condition", ["none", "cpu>100000%"])
def test_sums_hold_samples_of_times_without_requests(start, tmp_path, condition):
    """This holds also if exporters did not get the samples."""
    process = Process(tmp_path / "socket")
    told, done, stop = (tmp_path / name for name in ("told", "done", "stop"))
    running = start(["/usr/bin/python3", "-c", ALLOCATES_WHEN_TOLD, told, done, stop], log_to_stderr=True, env={
        "OTEL_PROFILER_LISTEN": f"unix:{tmp_path}/socket", "OTEL_PROFILE_EXPORT_INTERVAL": "200", "OTEL_PROFILER_MIN_LIFETIME": "0",
        "OTEL_PROFILER_CONDITION": condition, "OTEL_PROFILER_MAX_OVERHEAD": "none"})
    process.until_it_answers()
    squatter = Squatter(tmp_path / "socket")
    eventually(lambda: os.pread(running.err.fileno(), 100_000, 0), "that it serves no requests", unless=running.process.poll,
               holds=lambda said: b"serves no requests" in said)
    told.touch()
    until_there(done)
    squatter.until_asked(2, running)  # the second export has begun after that
    squatter.goes()
    process.until_it_answers()
    found = process.profile("allocs").value_of("meanwhile", "alloc_space")
    stop.touch()
    assert running.finish(TIMEOUT_S).returncode == 0
    assert found > 50e6


@pytest.mark.parametrize("listen", ["0.0.0.0:4711", "unix:/nonexistent/folder/x"])
def test_an_address_where_no_listener_is_allowed_is_warned_of(asked, listen):
    """One address is refused as it is parsed (test_listen_address.c has all such), and one cannot be bound."""
    running = asked(listen=listen, OTEL_PROFILER_LOG_FILE="")
    running.until_it_says(rb"warn: OTEL_PROFILER_LISTEN: .*; the process serves no requests\n")
    assert running.over().returncode == 7


@pytest.mark.parametrize("most", range(6, 13))
def test_with_few_open_files_it_listens_or_reports_that_it_does_not(start, program, tmp_path, most):
    """No client waits at a socket that is never served. (With fewer than 6 descriptors not even the log can be
    opened.)"""
    stop, path = tmp_path / "stop", tmp_path / "socket"
    running = start([program("works_and_waits"), stop], limits={resource.RLIMIT_NOFILE: (most, most)},
                    env={"OTEL_PROFILER_LISTEN": f"unix:{path}", "OTEL_PROFILES_EXPORTER": "none", "OTEL_PROFILER_LOG_FILE": ""})

    def responded_and_logged():
        answered = path.exists() and Process(path).until_it_answers().status == 200
        return answered, os.pread(running.err.fileno(), 100_000, 0)

    answered, said = eventually(responded_and_logged, "either", unless=running.process.poll, holds=lambda found:
                                found[0] or b"Too many open files; the process serves no requests" in found[1])
    assert answered or not path.exists()
    assert answered == (said == b"")
    stop.touch()
    assert running.finish(TIMEOUT_S).returncode == 7


CHILDREN = FORKS + """
import os, subprocess, sys, time
work = "import time\\nwhile time.thread_time() < 0.3: sum(range(1000))"
pids = []
for _ in range(3):
    pid = os.fork()
    if not pid:
        exec(work)
        os._exit(0)
    pids.append(pid)
subprocess.run([sys.executable, "-c", work])
[os.waitpid(pid, 0) for pid in pids]
exec(work)
"""


@pytest.mark.parametrize("listen", ["unix", "port"])
def test_the_processes_that_a_program_starts_print_nothing(run, tmp_path, listen):
    """The children are profiled, and do not listen where their parent does."""
    where = f"unix:{tmp_path}/socket" if listen == "unix" else f"127.0.0.1:{reserved_port()}"
    outcome = run(["/usr/bin/python3", "-c", CHILDREN], log_to_stderr=True, env={"OTEL_PROFILER_LISTEN": where})
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert len(outcome.instances()) == 5


def test_a_program_with_the_same_library_does_not_answer(asked):
    """No client can connect to a socket that is not served."""
    port = reserved_port()
    running = asked(listen=f"127.0.0.1:{port}", OTEL_PROFILER_LOG_FILE="", LD_PRELOAD=f"{LIBRARY}:libmicrohttpd.so.12")
    running.until_it_says(rb"warn: OTEL_PROFILER_LISTEN: .* the program uses it itself; the process serves no requests\n")
    with pytest.raises(ConnectionRefusedError):
        Process(port).status()
    running.over()


def test_a_process_is_profiled_to_be_asked_alone(asked):
    running = asked(OTEL_PROFILES_EXPORTER="none")
    assert running.process.profile("profile?seconds=1").value_of("burns_cpu", "cpu") > 0
    outcome = running.over()
    assert outcome.returncode == 7 and not outcome.requests


def test_a_profile_lasts_as_long_as_sampling_was_on(asked):
    """Nothing is known of the time in which it was off. A duration of 0 would mean sums since the start."""
    process = asked(OTEL_PROFILER_START="off").process
    while_off = process.profile("profile?seconds=1").message
    while_on = process.profile("profile?seconds=1&OTEL_PROFILER_START=on").message
    assert (while_off.duration_nanos, len(while_off.sample)) == (1, 0)
    assert while_on.duration_nanos >= 1_000_000_000


# --- how long it waits ---


def raw(process, *parts, rest=0.0):
    """Returns the response to a request that is sent in these parts, with a rest after each."""
    connection = process.connection()
    connection.connect()
    try:
        for part in parts:
            connection.sock.sendall(part)
            time.sleep(rest)
        pieces = []
        while piece := connection.sock.recv(1 << 16):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        connection.close()


def test_a_request_may_take_its_time(asked):
    """The request takes some seconds, as over a slow tunnel."""
    answer = raw(asked().process, b"GET /status HTTP/1.1\r\n", b"Host: localhost\r\n\r\n", rest=3)
    assert answer.startswith(b"HTTP/1.1 200 ")


# --- which clients are served ---


def test_another_user_is_refused(asked, tmp_path):
    """The user is refused even where the socket's mode allows all users."""
    running = asked()
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_mode & 0o001 == 0:
            part.chmod(part.stat().st_mode | 0o011)
    (tmp_path / "socket").chmod(0o666)
    code = f"""
import os, sys
os.setgid({NOBODY}); os.setuid({NOBODY})
sys.path[:0] = {[str(ROOT / 'test/integration')]!r}
import socket
s = socket.socket(socket.AF_UNIX); s.connect({str(tmp_path / 'socket')!r})
s.sendall(b"GET /status HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
answer = b""
while chunk := s.recv(4096): answer += chunk
print(answer.decode())
"""
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    assert done.stdout.startswith("HTTP/1.1 403") and "Only root" in done.stdout
    running.over()


def test_a_port_changes_nothing_unless_it_may(at_port):
    running = at_port()
    assert running.process.control("OTEL_PROFILER_CPU_FREQUENCY=500").status == 403
    assert running.process.ask("/flush", "POST").status == 403
    assert running.process.ask("/debug/pprof/profile?seconds=1&OTEL_PROFILER_CPU_FREQUENCY=500").status == 403
    assert running.process.status()["settings"]["OTEL_PROFILER_CPU_FREQUENCY"] == "99"
    running.over()


def test_a_port_changes_settings_where_that_is_asked_for(at_port):
    running = at_port(OTEL_PROFILER_LISTEN_CONTROL="true")
    assert running.process.control("OTEL_PROFILER_CPU_FREQUENCY=500").status == 200
    running.over()


def test_a_page_of_another_host_is_no_way_in(at_port):
    running = at_port(OTEL_PROFILER_LISTEN_CONTROL="true")
    for headers in ({"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"}, {"Origin": "http://evil.example"},
                    {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        for method, path, _ in ROUTES:
            assert running.process.ask(path, method, headers=headers).status == 403, (headers, path)
    running.over()


def test_a_token_is_asked_for(at_port):
    running = at_port(OTEL_PROFILER_LISTEN_TOKEN="secret", OTEL_LOG_LEVEL="debug", OTEL_PROFILER_LOG_FILE="")
    for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Bearer secre"}, 401),
                            ({"Authorization": "Bearer secrets"}, 401), ({"Authorization": "secret"}, 401),
                            ({"Authorization": "Bearer secret"}, 200)):
        for method, path, right in ROUTES:
            if right == "READ":
                answer = running.process.ask(path, method, headers=headers)
                assert answer.status == status and b"secret" not in answer.body, (headers, path)
    assert "secret" not in running.over().stderr
