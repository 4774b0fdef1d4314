"""The commands that the README has under "Turn it on" and "Turn it off", and those of kubernetes.md, are run unchanged,
except for names of images and paths."""

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
CLUSTER = (ROOT / "docs/kubernetes.md").read_text()
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

def commands_in(text):
    return [line.split("  #")[0].strip() for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]


def policy_of_the_command(**addresses):
    """Returns the policy that kubectl would apply, with the user's addresses in place of the page's."""
    (command,) = {line for line in commands_in(TEXT) if "kubernetes/policy.yaml" in line}
    sed, apply = command.split(" | ")
    assert apply == "kubectl apply --filename -"
    for name, address in addresses.items():
        sed = re.sub(rf",{name},[^,]*,", f",{name},{address},", sed)
    return subprocess.run(shlex.split(sed), cwd=ROOT, capture_output=True, text=True, check=True).stdout


def kubectl_lines():
    inline = re.findall(r"`(kubectl [^`]*)`", CLUSTER)
    commands = [part for line in commands_in(TEXT) + commands_in(CLUSTER) for part in line.split(" | ")]
    return [line for line in commands + inline if line.startswith("kubectl ")]


def test_kubectl_knows_the_commands():
    assert len(kubectl_lines()) >= 10
    for line in kubectl_lines():
        done = subprocess.run([*shlex.split(line), "--server", NO_SERVER], cwd=ROOT, input=policy_of_the_command(),
                              capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "refused" in done.stderr, (line, done.stderr)


def test_the_readme_and_the_page_of_kubernetes_have_the_same_commands():
    cluster = [line for line in commands_in(TEXT) if "kubernetes/policy.yaml" in line or line.startswith("kubectl ")]
    assert len(cluster) >= 5 and set(cluster) <= set(commands_in(CLUSTER))


@pytest.fixture
def cluster(tmp_path):
    """A cluster's two objects, which kubectl changes locally, and its policy."""

    class Cluster:
        namespace = tmp_path / "namespace.json"
        deployment = tmp_path / "deployment.json"
        policy = tmp_path / "policy.yaml"

        def __init__(self):
            self.policy.write_text(policy_of_the_command())
            self.namespace.write_text(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
            self.deployment.write_text(json.dumps({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
                    "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}}}))

        def set_addresses(self):
            self.policy.write_text(policy_of_the_command(IMAGE="shop.test/otelprof:1", ENDPOINT="http://mine:4318"))

        def kubectl(self, begin, changed, name):
            (command,) = {line for line in commands_in(TEXT) if line.startswith(begin)}
            done = subprocess.run([*shlex.split(command.replace(name, f"--filename {changed}").replace("--namespace shop", "")),
                                   "--local", "--output", "json"], capture_output=True, text=True, check=True)
            changed.write_text(done.stdout)

        def init_containers(self):
            template = json.loads(self.deployment.read_text())["spec"]["template"]
            pod = tmp_path / "pod.json"
            pod.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
                                       "metadata": {"name": "web-1", "namespace": "shop", "labels": template["metadata"]["labels"]}}))
            spec = rules("policy", self.policy, pod, self.namespace)["spec"]
            return [it["image"] for it in spec.get("initContainers", [])]

    return Cluster()


def test_one_deployment_is_turned_on(cluster):
    cluster.kubectl("kubectl patch", cluster.deployment, "deployment web")
    assert cluster.init_containers() == []
    cluster.set_addresses()
    assert cluster.init_containers() == ["shop.test/otelprof:1"]
    assert "http://mine:4318" in cluster.policy.read_text()


def test_one_namespace_is_turned_on_and_off(cluster):
    """The labels that the commands set on a namespace are those that the policy selects."""
    cluster.set_addresses()
    assert cluster.init_containers() == []
    cluster.kubectl("kubectl label namespace shop otelprof=true", cluster.namespace, "namespace shop")
    assert cluster.init_containers() == ["shop.test/otelprof:1"]
    cluster.kubectl("kubectl label namespace shop otelprof-", cluster.namespace, "namespace shop")
    assert cluster.init_containers() == []


def test_a_config_map_of_the_command_is_the_one_that_pods_read(cluster):
    (command,) = [line for line in commands_in(CLUSTER) if "configmap" in line]
    done = subprocess.run([*shlex.split(command), "--dry-run=client", "--output", "json"], capture_output=True, text=True, check=True)
    made = json.loads(done.stdout)
    cluster.set_addresses()
    cluster.kubectl("kubectl patch", cluster.deployment, "deployment web")
    policy = cluster.policy.read_text()
    assert f"configMap{{name: '{made['metadata']['name']}', optional: true}}" in policy
    (key,) = made["data"]
    assert f"value: '/otelprof-control/{key}'" in policy and made["data"][key] == "OTEL_PROFILER_START=off"
