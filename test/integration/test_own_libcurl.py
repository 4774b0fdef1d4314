"""A program's libcurl behaves as without the profiler: its first initialisation, its allocator, its transfers.

A process has one libcurl. What a program sets before the first initialisation (curl_global_init_mem) has no effect
after it. A program that then frees by its allocator the memory of another one aborts.
"""

import pytest
from otelprof_lib.capture_file import decode_json
from otlp_sink import OtlpSink
from profiled import BUILD, check_conformance

pytestmark = pytest.mark.system

AT_ONCE = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_LOG_LEVEL": "warn"}
OFTEN = {**AT_ONCE, "OTEL_PROFILE_EXPORT_INTERVAL": "100"}
AT_THE_END = {**AT_ONCE, "OTEL_PROFILE_EXPORT_INTERVAL": "86400000"}
USED = "20 transfers, allocator used\n"
NOT_USED = "20 transfers, allocator not used\n"
LATE = """import ctypes, sys, time
while time.process_time() < 0.5: sum(range(1000))
library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)
arguments = (ctypes.c_char_p * 5)(b"x", b"late", sys.argv[2].encode(), b"200", None)
status = library.use_libcurl(4, arguments)
ctypes.CDLL(None).fflush(None)
sys.exit(status)
"""


@pytest.fixture
def page():
    """Serves what the programs transfer: any response will do."""
    server = OtlpSink()
    yield f"{server.url}/page"
    server.close()


@pytest.fixture
def use(run, page):
    def use_libcurl(name, how, env, profiled=True):
        command = [BUILD / "test/programs" / name, how, page, "500"]
        return run(command, env=env, profiled=profiled, log_to_stderr=True)

    return use_libcurl


def assert_undisturbed(outcome, stdout):
    assert (outcome.stdout, outcome.returncode) == (stdout, 0), outcome.stderr


def assert_told_once(outcome, function="curl_global_init_mem"):
    (line,) = outcome.stderr.splitlines()
    assert "warn: " in line and function in line and "OTEL_PROFILES_EXPORTER=otlp_file" in line


@pytest.mark.parametrize("how", ["early", "late"])
def test_libcurl_is_left_to_a_program_that_gives_it_an_allocator(use, how):
    assert_undisturbed(use("own_libcurl", how, {}, profiled=False), USED)
    outcome = use("own_libcurl", how, OFTEN)
    assert_undisturbed(outcome, USED)
    assert_told_once(outcome)
    assert outcome.requests == []


@pytest.mark.parametrize("how", ["early", "late"])
def test_a_program_that_gives_libcurl_an_allocator_is_profiled_into_a_file(use, how, tmp_path):
    file = tmp_path / "profile.jsonl"
    outcome = use("own_libcurl", how, {**OFTEN, "OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_FILE": str(file)})
    assert_undisturbed(outcome, USED)
    assert outcome.stderr == "" and outcome.requests == []
    messages = [decode_json(line) for line in file.read_bytes().splitlines()]
    assert messages
    for message in messages:
        check_conformance(message)


def test_what_is_not_sent_for_the_programs_allocator_is_counted(use, tmp_path):
    file = tmp_path / "profile.jsonl"
    both = {**OFTEN, "OTEL_PROFILES_EXPORTER": "otlp,otlp_file", "OTEL_PROFILER_FILE": str(file)}
    outcome = use("own_libcurl", "late", both)
    assert_undisturbed(outcome, USED)
    assert_told_once(outcome)
    assert outcome.requests == [] and b"otelprof.dropped.claimed" in file.read_bytes()


def test_a_library_that_is_loaded_late_and_gives_libcurl_an_allocator_is_left_alone(run, page):
    """Its transfers work, although the profiler has initialised libcurl before; then the profiler sends nothing any
    more."""
    command = ["/usr/bin/python3", "-S", "-c", LATE, BUILD / "test/programs/own_libcurl.so", page]
    assert_undisturbed(run(command, profiled=False), USED)
    outcome = run(command, env=AT_THE_END, log_to_stderr=True)
    assert_undisturbed(outcome, USED)
    assert_told_once(outcome)
    assert outcome.requests == []


def test_between_two_transfers_of_ours_libcurl_is_not_initialised(use):
    """So a program's initialisation has its effect, even one that no table shows."""
    assert_undisturbed(use("looks_up_libcurl", "late", {}, profiled=False), USED)
    outcome = use("looks_up_libcurl", "late", AT_THE_END)
    assert_undisturbed(outcome, USED)
    assert outcome.stderr == "" and outcome.requests


@pytest.mark.parametrize("how", ["counted", "lazy"])
def test_a_program_that_uses_libcurl_without_an_allocator_is_profiled_as_any(use, how):
    assert_undisturbed(use("looks_up_libcurl", how, {}, profiled=False), NOT_USED)
    outcome = use("looks_up_libcurl", how, OFTEN)
    assert_undisturbed(outcome, NOT_USED)
    assert outcome.stderr == ""
    assert outcome.instance("looks_up_libcurl").cpu_total() > 0
