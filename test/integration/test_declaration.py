"""OTEL_CONFIG_FILE: the profiler follows OpenTelemetry's declarative configuration, as far as it is about profiles."""

import os
import re

import pytest
from profiled import FORKS, ROOT, Receiver, attributes_of

pytestmark = pytest.mark.fast

HEAD = 'file_format: "1.0"\n'
OFF = HEAD + "disabled: true\n"
BURN = """
import time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: sum(range(1000))
"""


@pytest.fixture
def declare(tmp_path):
    """declare(text) -> the variable that names a file of that text."""

    def write(text):
        path = tmp_path / "otel.yaml"
        path.write_text(text)
        return {"OTEL_CONFIG_FILE": str(path)}

    return write


def resources(requests):
    return [attributes_of(part.resource) for request in requests for part in request.resource_profiles]


def python(code):
    return ["/usr/bin/python3", "-S", "-c", BURN + code]


# --- its contents ---


def documented():
    page = (ROOT / "docs/configuration.md").read_text()
    return re.search(r"## Declarative configuration\n.*?```yaml\n(.*?)```", page, re.S).group(1)


def test_the_example_of_the_documentation_is_followed(run, program, declare):
    """The file's settings win over the environment, which holds for the rest."""
    declared = Receiver()
    try:
        outcome = run([program("burn"), "600", "20"], log_to_stderr=True, env={
            **declare(documented()), "SERVICE": "till", "PROFILES_URL": f"{declared.url}/v1development/profiles",
            "OTEL_RESOURCE_ATTRIBUTES": "team=blue,shard=listed", "OTEL_SERVICE_NAME": "not this",
            "OTEL_PROFILER_CPU_FREQUENCY": "999", "OTEL_PROFILER_SYMBOLS": "none",
            "OTEL_PROFILER_ALLOC_INTERVAL": "1"})
    finally:
        declared.close()
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (7, "burnt\n", "")
    assert outcome.requests == [], "sent to the environment's endpoint"
    outcome.requests = declared.requests
    for attributes in resources(outcome.requests):
        assert (attributes["service.name"], attributes["shard"], attributes["team"]) == ("till", 7, "blue")
    (instance,) = outcome.instances()
    assert set(instance.periods) == {"samples", "inuse_objects", "inuse_space"}
    assert instance.period == 10**9 // 49
    assert "burns_cpu" not in instance.names(), "OTEL_PROFILER_SYMBOLS is the environment's"


def test_a_process_that_the_file_disables_sends_nothing(run, program, declare):
    """Samples from before that are not sent either, and no timer is left behind."""
    code = "burn(0.5); print(open('/proc/self/timers').read().count('ID:'))"
    outcome = run(python(code), log_to_stderr=True, env=declare(OFF))
    assert (outcome.returncode, outcome.stdout, outcome.stderr, outcome.requests) == (0, "0\n", "", [])
    outcome = run([program("burn"), "300"], log_to_stderr=True, env={**declare(OFF), "OTEL_LOG_LEVEL": "debug"})
    assert (outcome.returncode, outcome.stdout, outcome.requests) == (7, "burnt\n", [])
    discarded = re.search(r"disabled by .*otel.yaml; nothing is profiled, and (\d+) stacks that were sampled", outcome.stderr)
    assert discarded and int(discarded.group(1)) > 0, outcome.stderr


def test_a_child_of_a_disabled_process_sends_nothing(run, declare):
    code = "import os; burn(0.5); pid = os.fork(); burn(0.3); pid and os.waitpid(pid, 0); print('done')"
    outcome = run(python(code), log_to_stderr=True, env=declare(OFF))
    assert (outcome.stdout, outcome.stderr, outcome.requests) == ("done\ndone\n", "", [])


def test_the_level_of_the_log_is_the_files(run, program, declare):
    wrong = "log_level: {}\ndistribution: {{otelprof: {{max_samples: 0}}}}\n"
    for level, lines in (("warn", 1), ("error", 0)):
        outcome = run([program("burn"), "300"], log_to_stderr=True, env=declare(HEAD + wrong.format(level)))
        assert (outcome.returncode, outcome.stderr.count("libotelprof[")) == (7, lines), outcome.stderr
        assert outcome.requests


@pytest.mark.parametrize("first", ["the helper begins", "the program forks"])
def test_a_wrong_setting_is_said_once_in_a_tree_and_the_rest_holds(run, program, library, declare, first):
    """This holds also where a process forks before it has read the file, or before its helper has begun."""
    code = FORKS + "pid = os.fork(); burn(0.3); pid and os.waitpid(pid, 0); print('done')"
    env = declare(HEAD + "distribution:\n  otelprof:\n    max_samples: many\n    types: cpu\n    colour: red\n")
    if first == "the program forks":
        env["LD_PRELOAD"] = f"{library}:{program('late_threads.so')}"
    outcome = run(python(code), log_to_stderr=True, env=env)
    path = env["OTEL_CONFIG_FILE"]
    assert sorted(line.split(": ", 1)[1] for line in outcome.stderr.splitlines()) == [
        f'OTEL_CONFIG_FILE: {path}:4: OTEL_PROFILER_MAX_SAMPLES="many" is not a number from 1 on; using 10000',
        f"OTEL_CONFIG_FILE: {path}:6: distribution.otelprof.colour is not known; it is ignored",
    ]
    assert len(outcome.instances()) == 2
    assert all(set(instance.periods) == {"samples"} for instance in outcome.instances())


# --- its environment ---

SHOP = HEAD + "resource: {attributes: [{name: service.name, value: shop}]}\n"


def test_a_forked_child_keeps_the_configuration_of_its_parent(run, declare):
    """The child need not find the file again, nor see it."""
    env = declare(SHOP)
    code = f"""{FORKS}
burn(0.5)
os.unlink({env["OTEL_CONFIG_FILE"]!r})
pid = os.fork()
burn(0.5)
pid and os.waitpid(pid, 0)
"""
    outcome = run(python(code), log_to_stderr=True, env=env)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert len(outcome.instances()) == 2
    assert {attributes["service.name"] for attributes in resources(outcome.requests)} == {"shop"}


def test_a_program_that_is_started_reads_it_again(run, program, declare):
    env = declare(SHOP)
    code = f"import os; burn(0.5); os.execv({str(program('burn'))!r}, ['burn', '500'])"
    outcome = run(python(code), log_to_stderr=True, env=env)
    assert (outcome.returncode, outcome.stderr) == (7, "")
    assert {instance.executable for instance in outcome.instances()} >= {"burn"}
    assert {attributes["service.name"] for attributes in resources(outcome.requests)} == {"shop"}


def test_the_environment_is_that_of_the_start(run, declare):
    """A program that clears its environment changes neither references nor settings."""
    text = HEAD + "resource: {attributes: [{name: service.name, value: \"${SHOP}\"}]}\n"
    env = {**declare(text), "SHOP": "corner", "OTEL_RESOURCE_ATTRIBUTES": "team=blue"}
    outcome = run(python("import os; os.environ.clear(); os.chdir('/'); burn(0.5)"), log_to_stderr=True,
                  env={**env, "OTEL_CONFIG_FILE": os.path.relpath(env["OTEL_CONFIG_FILE"])})
    assert outcome.stderr == ""
    for attributes in resources(outcome.requests):
        assert (attributes["service.name"], attributes["team"]) == ("corner", "blue")
    assert outcome.requests


def test_a_process_that_ends_early_does_not_read_it(run, program):
    env = {"OTEL_CONFIG_FILE": "/nowhere/otel.yaml", "OTEL_PROFILER_MIN_LIFETIME": "3600000"}
    outcome = run([program("burn"), "200"], log_to_stderr=True, env=env)
    assert (outcome.returncode, outcome.stderr, outcome.requests) == (7, "", [])


def test_it_is_read_before_the_program_changes_its_root(run, program, declare, tmp_path):
    """After the change the file is not read from the new root."""
    env = declare(SHOP)
    jail = tmp_path / "jail"
    (jail / tmp_path.relative_to("/")).mkdir(parents=True)
    (jail / env["OTEL_CONFIG_FILE"][1:]).write_text(OFF)
    outcome = run([program("jailed"), str(jail), "name", "self", "0"], log_to_stderr=True, env=env)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "jailed\n", "")
    assert {attributes["service.name"] for attributes in resources(outcome.requests)} == {"shop"}


# --- its kind ---


def make(kind, path):
    if kind == "folder":
        path.mkdir()
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "10 MiB":
        path.write_text(HEAD + "#" * (10 << 20))
    elif kind == "not YAML":
        path.write_text(HEAD + "a: [")
    elif kind == "deeply nested":
        path.write_text(HEAD + "a: " + "[" * 500_000)
    elif kind == "full of anchors":
        path.write_text(HEAD + "a: [" + "".join(f"&a{i} 1," for i in range(80_000)) + "]\n")
    elif kind == "a bomb":
        lines = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
        path.write_text(OFF + "a0: &a0 lol\n" + "\n".join(lines) + "\n")
    elif kind == "a malformed reference":
        path.write_text(HEAD + "disabled: ${A:?b}\n")


REFUSED = {
    "missing": "does not exist",
    "folder": "is a folder",
    "FIFO": "is no regular file",
    "10 MiB": "is too large",
    "not YAML": "is not well-formed YAML",
    "deeply nested": r"is not well-formed YAML|takes too long to read, or too much memory",
    "full of anchors": r"takes too long to read, or too much memory",
    "a malformed reference": r":2: has a malformed reference to an environment variable",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_is_none_is_said_and_nothing_is_profiled(run, program, tmp_path, kind):
    path = tmp_path / "otel.yaml"
    make(kind, path)
    outcome = run([program("burn"), "300"], log_to_stderr=True, env={"OTEL_CONFIG_FILE": str(path)})
    assert (outcome.returncode, outcome.stdout, outcome.requests) == (7, "burnt\n", [])
    (line,) = outcome.stderr.splitlines()
    assert " error: OTEL_CONFIG_FILE: " in line and line.endswith("; nothing is profiled")
    assert re.search(REFUSED[kind], line), line


def test_aliases_are_not_multiplied(run, program, tmp_path):
    path = tmp_path / "otel.yaml"
    make("a bomb", path)
    outcome = run([program("burn"), "300"], log_to_stderr=True, env={"OTEL_CONFIG_FILE": str(path)})
    assert (outcome.returncode, outcome.stderr, outcome.requests) == (7, "", [])


def test_the_setting_of_another_distribution_is_not_read(run, program, declare):
    text = HEAD + "distribution: {other: {types: none, colour: red}}\ntracer_provider: {processors: [\"${1}\"]}\n"
    outcome = run([program("burn"), "300"], log_to_stderr=True, env=declare(text))
    assert (outcome.returncode, outcome.stderr) == (7, "")
    assert outcome.requests
