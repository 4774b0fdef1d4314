"""The commands that the README has under "Turn it on" and "Turn it off" are run unchanged, except for names of images
and paths."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

from containers import BUNDLE, DEPLOY, RULES, Container, Starter, image_of_app, image_of_bundle, needs, rules
from own_machine import BUNDLE as HOST_BUNDLE
from own_machine import CONFIGURATION, Machine
from profiled import BUILD, ROOT, Outcome, Receiver, check_conformance

pytestmark = pytest.mark.system

MOST_LINES = 5
TEXT = (ROOT / "README.md").read_text()
SETTINGS = {"OTEL_PROFILER_MIN_LIFETIME": "100", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000"}
BURN = ["1000", "20"]
NO_SERVER = "http://127.0.0.1:9"  # the port of `discard`, where no process listens

needs("runc", "kubectl", "unshare", "nsenter", RULES, BUNDLE / "libotelprof-flush.so")


def section(title):
    return re.search(rf"^## {title}\n(.*?)^## ", TEXT, re.M | re.S)[1]


def blocks(title):
    """Returns for each block of a section its commands; lines that end in a backslash are joined."""
    return [[line.split("  #")[0].strip() for line in block.replace("\\\n", "").splitlines()]
            for block in re.findall(r"```sh\n(.*?)```", section(title), re.S)]


def command_of(title, begin):
    """Returns the one command of a section with these words in it."""
    (command,) = [line for block in blocks(title) for line in block if begin in line]
    return command


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


def outcome(done, receiver):
    for request in receiver.requests:
        check_conformance(request)
    assert (done.returncode, done.stdout, done.stderr) == (7, "burnt\n", "")
    return Outcome(7, "", "", receiver.requests)


@pytest.mark.parametrize("title", ["Turn it on", "Turn it off"])
def test_it_takes_five_lines_at_most(title):
    found = re.findall(r"```sh\n(.*?)```", section(title), re.S)
    assert found and max(block.count("\n") for block in found) <= MOST_LINES


# --- one program ---

def run_program(command, program, receiver, **environment):
    command = command.replace("$PWD/build", str(BUILD)).replace("./app", shlex.join([program("burn"), *BURN]))
    command = command.replace("http://localhost:4318", receiver.url)
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, env={**SETTINGS, **environment}, capture_output=True, text=True, check=False)
    return outcome(done, receiver)


def test_one_program_is_turned_on(program, receiver):
    profiled = run_program(command_of("Turn it on", "./app"), program, receiver)
    assert profiled.instance("burn").cpu_of("burns_cpu") > 0.6e9


def test_one_program_is_turned_off(program, receiver, library):
    run_program(command_of("Turn it off", "./app"), program, receiver, LD_PRELOAD=library, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert receiver.requests == []


# --- one container ---

def parsed(command):
    """Parses `docker run`: those of its options that the README has."""
    options = argparse.ArgumentParser()
    options.add_argument("--rm", action="store_true")
    options.add_argument("--user", type=int, default=0)
    options.add_argument("--volume", action="append", default=[])
    options.add_argument("--env", action="append", default=[])
    options.add_argument("image")
    words = shlex.split(command)
    assert words[:2] == ["docker", "run"]
    return options.parse_args(words[2:])


@pytest.fixture
def docker_run(tmp_path, program, receiver):
    """docker_run(command): its end, by runc. A volume is a folder."""
    runc = Starter(tmp_path, "runc")
    images = {"registry.example.com/otelprof:VERSION": image_of_bundle(tmp_path / "otelprof-image"),
              "registry.example.com/app:VERSION": (image_of_app(tmp_path / "app-image", program("burn")), ["/app", *BURN])}

    def run(command):
        asked = parsed(command)
        mounts = []
        for volume in asked.volume:
            name, place, *mode = volume.split(":")
            (tmp_path / name).mkdir(exist_ok=True)
            mounts.append((tmp_path / name, place, mode != ["ro"]))
        root, entrypoint = images[asked.image]
        environment = dict(variable.split("=", 1) for variable in asked.env)
        if environment:
            assert environment["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
            environment.update(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **SETTINGS)
        return runc(Container(root, entrypoint, environment, mounts, asked.user)).finish()

    return run


def test_one_container_is_turned_on(docker_run, receiver):
    done = docker_run(command_of("Turn it on", ":/target"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = docker_run(command_of("Turn it on", "LD_PRELOAD=/otelprof"))
    assert outcome(done, receiver).instance("app").cpu_of("burns_cpu") > 0.6e9


def test_one_container_is_turned_off(docker_run, receiver):
    outcome(docker_run(command_of("Turn it off", "docker run")), receiver)
    assert receiver.requests == []


# --- one host ---

@pytest.fixture
def host(program):
    """Makes a machine of the test's own, with two programs of one shop."""
    made = Machine()
    for name in ("shop-server", "other"):
        shutil.copy(program("burn"), made.path(f"/srv/{name}"))
    yield made
    made.end()


def run_on(host, command):
    done = host.run("sh", "-c", command, env={"PATH": f"{HOST_BUNDLE}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr


def profiled_on(host):
    """Returns which of the two programs are profiled; the other runs as before."""
    names = []
    for name in ("shop-server", "other"):
        receiver = Receiver()
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **SETTINGS}
        host.write(f"{CONFIGURATION}/conf.d/test.conf", "".join(f"{name}={value}\n" for name, value in settings.items()))
        done = host.run(f"/srv/{name}", *BURN)
        receiver.close()
        names += [it.executable for it in outcome(done, receiver).instances()]
    return names


def turned_on(host):
    (commands,) = [block for block in blocks("Turn it on") if "host enable" in block[0]]
    for command in commands:
        run_on(host, command)


def test_one_host_is_turned_on(host):
    turned_on(host)
    assert profiled_on(host) == ["shop-server"]


def test_one_host_is_turned_off(host):
    """One file turns it off, and the command beside it does so without a trace."""
    turned_on(host)
    run_on(host, command_of("Turn it off", "touch "))
    assert profiled_on(host) == []
    assert "`otelprof host disable`" in section("Turn it off")
    run_on(host, "otelprof host disable")
    assert not host.preload() and not host.path("/run/opentelemetry").exists()
    assert profiled_on(host) == []


# --- one cluster: kubectl takes the commands, up to where it needs a server ---

def kubectl_lines():
    return [line for title in ("Turn it on", "Turn it off") for block in blocks(title) for line in block if line.startswith("kubectl ")]


def test_kubectl_knows_the_commands():
    assert len(kubectl_lines()) >= 4
    for line in kubectl_lines():
        done = subprocess.run([*shlex.split(line), "--server", NO_SERVER], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "refused" in done.stderr, (line, done.stderr)


def test_one_cluster_is_turned_on_and_off(tmp_path):
    """The labels that the commands set on a namespace are those that the policy selects."""
    namespace = tmp_path / "namespace.json"
    namespace.write_text(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
    pod = tmp_path / "pod.json"
    pod.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app", "namespace": "shop"},
                               "spec": {"containers": [{"name": "app", "image": "app"}]}}))
    applied = shlex.split(command_of("Turn it on", "kubectl apply"))[-1]
    assert (ROOT / applied).samefile(DEPLOY / "kubernetes" / "policy.yaml")

    def init_containers():
        spec = rules("policy", ROOT / applied, pod, namespace)["spec"]
        return [it["name"] for it in spec.get("initContainers", [])]

    def label(title):
        command = command_of(title, "kubectl label").replace("namespace shop", f"--local --output json --filename {namespace}")
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True)
        namespace.write_text(done.stdout)

    assert init_containers() == []
    label("Turn it on")
    assert init_containers() == ["otelprof"]
    label("Turn it off")
    assert init_containers() == []
