"""OTEL_PROFILER_REDACT hides a name that fits: no exporter lets it leave the process."""

import json
import shutil
import textwrap
from pathlib import Path

import pytest
from profiled import EXACT_CPU, TAKES_CPU_SAMPLE, attributes_of

pytestmark = pytest.mark.fast

# a burst's sample is rounded to EXACT_CPU's period, and so is the one before (test_cpu_truth.py)
BURST_ERROR_NS = 2e6
# a function, another's source file, the executable with its thread, and the service called after it
HIDDEN = ("burn_40", "burn_30", "cpu_shares")
GLOBS = "*burn_4*, burn_30 ,*cpu_sh*"


def everything(request):
    """Returns the message as it is sent; protobuf keeps strings as they are."""
    return request.SerializeToString()


@pytest.fixture
def shares(run, program):
    def go(**env):
        return run([program("cpu_shares"), "2", "1", "sampled"], env={**EXACT_CPU, **env}, log_to_stderr=True)

    return go


def test_nothing_of_it_is_sent(shares):
    clear, hidden = shares(), shares(OTEL_PROFILER_REDACT=GLOBS)
    assert clear.requests and hidden.requests
    for name in HIDDEN:
        assert any(name.encode() in everything(request) for request in clear.requests), name
        assert not [request for request in hidden.requests if name.encode() in everything(request)], name
    (instance,) = hidden.instances()
    assert instance.executable == "[REDACTED]"
    assert instance.threads() == {"[REDACTED]"}
    # the other functions are there, and so are the sums
    used = json.loads(hidden.stdout)["functions"]
    assert instance.cpu_of("burn_20") == pytest.approx(used["burn_20"], abs=2 * BURST_ERROR_NS)
    assert instance.cpu_of("[REDACTED]") == pytest.approx(used["burn_30"] + used["burn_40"], abs=4 * BURST_ERROR_NS)


def test_a_path_hides_the_command_too(run, program):
    """This holds however the program was called: a relative path does not fit a glob of its folder."""
    path = Path(program("cpu_shares"))
    outcome = run(
        [f"{path.parent.name}/{path.name}", "1", "1", "sampled"], cwd=path.parent.parent,
        env={"OTEL_PROFILER_REDACT": f"{path.parent}/*", "OTEL_PROFILER_RESOURCE": "full", **EXACT_CPU},
    )
    seen = attributes_of(outcome.requests[0].resource_profiles[0].resource)
    assert seen["process.executable.path"] == seen["process.command"] == "[REDACTED]"


def test_nothing_of_it_is_on_the_console(shares):
    clear = shares(OTEL_PROFILES_EXPORTER="console").stderr
    hidden = shares(OTEL_PROFILES_EXPORTER="console", OTEL_PROFILER_REDACT="sp*n,*helper").stderr
    assert "work" in hidden and "[REDACTED]" in hidden
    for name in ("spin", "inlined_helper"):
        assert name in clear and name not in hidden


@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_nothing_of_it_is_in_the_file(shares, tmp_path, form):
    file = tmp_path / "profile"
    shares(
        OTEL_PROFILES_EXPORTER="otlp_file", OTEL_PROFILER_FILE=str(file), OTEL_PROFILER_FILE_FORMAT=form,
        OTEL_PROFILER_REDACT=GLOBS,
    )
    written = file.read_bytes()
    assert b"burn_20" in written and b"[REDACTED]" in written
    for name in HIDDEN:
        assert name.encode() not in written


def test_both_names_of_a_cxx_function(run, program):
    """If the readable name alone fits, the mangled one is hidden, too."""
    def names(**env):
        outcome = run([program("throw_across"), "300"], env={"OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_MIN_LIFETIME": "0", **env})
        return b"".join(everything(request) for request in outcome.requests)

    clear = names()
    assert b"_ZNSt13runtime_errorC1EPKc" in clear and b"std::runtime_error::runtime_error" in clear
    hidden = names(OTEL_PROFILER_REDACT="std::runtime_error::*")
    assert b"std::runtime_error::" not in hidden and b"_ZNSt13runtime_error" not in hidden and b"[REDACTED]" in hidden


def test_a_list_too_long_to_keep_hides_everything(shares):
    outcome = shares(OTEL_PROFILER_REDACT="x" * 20000)
    assert "OTEL_PROFILER_REDACT is too long to keep; using *" in outcome.stderr
    (instance,) = outcome.instances()
    assert instance.names() <= {"[REDACTED]", "[anonymous]"}


PAYROLL_PY = f"""
    import ctypes, threading, time
    sample = ctypes.PyDLL({str(TAKES_CPU_SAMPLE)!r}).take_cpu_sample

    def salary_of(staff):
        end = time.thread_time() + 0.1
        kept = []
        while time.thread_time() < end:
            kept.append((lambda: str(staff) * 50)())
        sample()
        return len(kept)

    def salaries_under(lock):
        with lock:
            time.sleep(0.1)

    lock = threading.Lock()
    threads = [threading.Thread(target=salaries_under, args=(lock,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    salary_of(7)
"""
PAYROLL_JS = """
    function salaryOf(staff) {
        let sum = 0;
        for (let i = 0; i < 1e6; i++) sum += Math.sqrt(staff + i % 7);
        return sum;
    }
    const end = process.cpuUsage().user + 1e6;
    while (process.cpuUsage().user < end) salaryOf(7);
"""


def sent(run, folder, name, text, command, **env):
    (folder / name).write_text(textwrap.dedent(text))
    outcome = run([*command, name], cwd=folder, env={**EXACT_CPU, "OTEL_PROFILER_TYPES": "all", **env})
    assert outcome.returncode == 0
    return b"".join(everything(request) for request in outcome.requests)


@pytest.mark.parametrize("name, text, command", [
    ("payroll.py", PAYROLL_PY, ("/usr/bin/python3",)),
    pytest.param("payroll.js", PAYROLL_JS, ("node", "--perf-basic-prof", "--interpreted-frames-native-stack"), marks=pytest.mark.system),
])
def test_functions_of_interpreters_and_jit_compilers(run, tmp_path, name, text, command):
    """They are hidden by their names and by their file, which no executable has: in CPU time, allocations, waits and
    holders of locks."""
    if not shutil.which(command[0]):
        pytest.skip(f"no {command[0]}")
    clear = sent(run, tmp_path, name, text, command)
    assert b"salar" in clear and name.encode() in clear
    by_name = sent(run, tmp_path, name, text, command, OTEL_PROFILER_REDACT="salar*")
    assert b"salar" not in by_name and name.encode() in by_name
    by_file = sent(run, tmp_path, name, text, command, OTEL_PROFILER_REDACT=f"{tmp_path}/*,{name}")
    assert b"salar" in by_file and name.encode() not in by_file
