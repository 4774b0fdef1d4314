"""Each file of scripts/deploy is read by its consumer, or by the consumer's own code, and what can run is run."""

import json
import os
import re
import shutil
import subprocess

import pytest

from collector import OTELCOL, Collector, skip_without_collector
from containers import BUNDLE, DEPLOY, RULES, Container, image_of_app, image_of_bundle, needs, rules, Starter
from pods import COLLECTOR, DOWNWARD, containers_of, policy_with_image
from ports import reserved_port
from profiled import Outcome, Receiver, attributes_of, check_conformance

pytestmark = pytest.mark.system

needs("runc", RULES, BUNDLE / "libotelprof-flush.so")

KUBERNETES = DEPLOY / "kubernetes"
PRELOAD = "/otelprof/libotelprof.so"
SETTINGS = {"OTEL_PROFILER_MIN_LIFETIME": "100", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000"}
BURN = ["1000", "20"]
USER_OF_INIT = int(re.search(r"^USER (\d+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[1])


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def runc(tmp_path):
    return Starter(tmp_path, "runc")


@pytest.fixture
def images(tmp_path, program):
    """{name: (root, entrypoint, user)}"""
    root, entrypoint = image_of_bundle(tmp_path / "init")
    return {"otelprof": (root, entrypoint, USER_OF_INIT), "app": (image_of_app(tmp_path / "app", program("burn")), ["/app", *BURN], 4711)}


def assert_profiled(done, receiver):
    assert (done.returncode, done.stdout, done.stderr) == (7, "burnt\n", "")
    for request in receiver.requests:
        check_conformance(request)
    app = Outcome(7, "", "", receiver.requests).instance("app")
    assert app.cpu_of("burns_cpu") > 0.6e9
    return attributes_of(receiver.requests[0].resource_profiles[0].resource)


def started_pod(pod, images, runc, receiver, folder):
    """Runs a pod's init containers to their end; returns its app, which sends to the receiver."""
    init, containers = containers_of(pod, images, folder)
    for container in init.values():
        done = runc(container).finish()
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    app = containers["app"]
    assert [may_write for _, place, may_write in app.mounts if place in ("/otelprof", "/otelprof-control")] == [False, False]
    app.environment.update({name: value.replace(COLLECTOR, receiver.url) for name, value in app.environment.items()}, **SETTINGS)
    return app


def run_pod(pod, images, runc, receiver, folder):
    """Runs a pod; returns the attributes of the profile's resource."""
    return assert_profiled(runc(started_pod(pod, images, runc, receiver, folder)).finish(), receiver)


def assert_named(attributes):
    """Asserts the names of OpenTelemetry's conventions for Kubernetes."""
    assert {key: value for key, value in attributes.items() if key.startswith("k8s.")} == {
        "k8s.pod.name": DOWNWARD["metadata.name"], "k8s.pod.uid": DOWNWARD["metadata.uid"],
        "k8s.namespace.name": DOWNWARD["metadata.namespace"], "k8s.node.name": DOWNWARD["spec.nodeName"],
        "k8s.container.name": "app", **({"k8s.deployment.name": "app"} if "k8s.deployment.name" in attributes else {})}


def by_name(items):
    return {item["name"]: item for item in items}


# --- Kubernetes: a Deployment ---

def test_the_deployment_is_one_of_kubernetes_and_runs_restricted():
    (deployment,) = rules("manifests", KUBERNETES / "deployment.yaml")
    assert deployment["kind"] == "Deployment"
    assert rules("restricted", KUBERNETES / "deployment.yaml") == []


def test_the_deployments_pod_is_profiled(images, runc, receiver, tmp_path):
    (deployment,) = rules("manifests", KUBERNETES / "deployment.yaml")
    attributes = run_pod(deployment["spec"]["template"]["spec"], images, runc, receiver, tmp_path)
    assert_named(attributes)
    assert attributes["service.name"] == "app"


# --- Kubernetes: kustomize ---

def deployment(name, labels, **container):
    """Returns the Deployment of a user who knows nothing of the profiler, and runs restricted."""
    app = {"app": name}
    security = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": {
        "selector": {"matchLabels": app}, "template": {"metadata": {"labels": app}, "spec": {
            "securityContext": {"runAsNonRoot": True, "runAsUser": 4711, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "app", "image": "registry.example.com/app:1", "resources": {}, "securityContext": security, **container}]}}}}


@pytest.fixture
def kustomized(tmp_path):
    """kustomized(deployments) -> the Deployments, as kustomize builds them with our component."""

    def build(*deployments):
        folder = tmp_path / "kustomize"
        folder.mkdir()
        shutil.copytree(KUBERNETES / "component", folder / "component")
        (folder / "deployments.yaml").write_text("\n---\n".join(map(json.dumps, deployments)))
        (folder / "kustomization.yaml").write_text(json.dumps({
            "resources": ["deployments.yaml"], "components": ["component"],
            "images": [{"name": "otelprof", "newName": "registry.example.com/otelprof", "newTag": "1"}]}))
        return {it["metadata"]["name"]: it for it in rules("kustomize", folder)}

    return build


def test_the_component_adds_to_labelled_deployments_alone(kustomized):
    other = deployment("other", {})
    env, mount = [{"name": "GREETING", "value": "hello"}], [{"name": "data", "mountPath": "/data"}]
    ours = deployment("ours", {"otelprof": "true"}, env=env, volumeMounts=mount)
    ours["spec"]["template"]["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    built = kustomized(ours, other)
    assert built["other"]["spec"]["template"]["spec"]["containers"] == other["spec"]["template"]["spec"]["containers"]
    pod = built["ours"]["spec"]["template"]["spec"]
    (app,) = pod["containers"]
    assert env[0] in app["env"] and mount[0] in app["volumeMounts"]
    assert by_name(app["env"])["LD_PRELOAD"]["value"] == PRELOAD
    assert set(by_name(pod["volumes"])) == {"data", "otelprof", "otelprof-control"}
    assert [it["image"] for it in pod["initContainers"]] == ["registry.example.com/otelprof:1"]


def test_the_components_pod_is_profiled_and_runs_restricted(kustomized, images, runc, receiver, tmp_path):
    built = kustomized(deployment("ours", {"otelprof": "true"}))["ours"]
    (tmp_path / "built.json").write_text(json.dumps(built))
    assert rules("restricted", tmp_path / "built.json") == []
    assert_named(run_pod(built["spec"]["template"]["spec"], images, runc, receiver, tmp_path))


# --- Kubernetes: the mutating admission policy, by the API server's own code ---

@pytest.fixture
def admitted(tmp_path):
    """admitted(pod) -> the pod, as the API server would keep it."""

    filled = policy_with_image(tmp_path)

    def admit(spec, labels=None, annotations=None, namespace="true", policy=filled):
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {
            "name": "app", "namespace": "shop", "annotations": annotations or {}, "labels": labels or {}}}
        around = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"otelprof": namespace} if namespace else {}}}
        (tmp_path / "pod.json").write_text(json.dumps(pod))
        (tmp_path / "namespace.json").write_text(json.dumps(around))
        after = rules("policy", policy, tmp_path / "pod.json", tmp_path / "namespace.json")
        (tmp_path / "after.json").write_text(json.dumps(after))
        assert rules("manifests", tmp_path / "after.json")
        return after["spec"]

    return admit


def pod_spec(**container):
    return deployment("app", {}, **container)["spec"]["template"]["spec"]


def preload_of(pod, name="app"):
    return by_name(by_name(pod["containers"])[name].get("env", [])).get("LD_PRELOAD", {}).get("value")


def test_the_policy_is_one_of_kubernetes_and_is_bound():
    policy, *bindings = rules("manifests", KUBERNETES / "policy.yaml")
    assert (policy["kind"], {it["kind"] for it in bindings}) == ("MutatingAdmissionPolicy", {"MutatingAdmissionPolicyBinding"})
    assert {it["spec"]["policyName"] for it in bindings} == {policy["metadata"]["name"]}
    assert policy["spec"]["failurePolicy"] == "Ignore"


def test_the_policys_pod_is_profiled_and_runs_restricted(admitted, images, runc, receiver, tmp_path):
    pod = admitted(pod_spec(), labels={"app.kubernetes.io/name": "shop"})
    assert rules("restricted", tmp_path / "after.json") == []
    attributes = run_pod(pod, images, runc, receiver, tmp_path)
    assert_named(attributes)
    assert attributes["service.name"] == "shop"


def test_the_policy_changes_no_pod_before_it_has_an_image(admitted):
    """An init container whose image cannot be fetched keeps its pod from starting."""
    assert admitted(pod_spec(), policy=KUBERNETES / "policy.yaml") == admitted(pod_spec(), namespace="false")


@pytest.mark.parametrize("namespace", [None, "true", "false"])
@pytest.mark.parametrize("label", [None, "true", "false"])
def test_the_policy_reads_labels_of_namespace_and_pod(admitted, namespace, label):
    """A pod's own label goes before its namespace's."""
    pod = admitted(pod_spec(), labels={"otelprof": label} if label else {}, namespace=namespace)
    assert len(pod.get("initContainers", [])) == ((label or namespace) == "true")


@pytest.mark.parametrize("spec", [{"os": {"name": "windows"}}, {"nodeSelector": {"kubernetes.io/arch": "arm64"}}], ids=["windows", "arm64"])
def test_the_policy_leaves_pods_for_other_machines_alone(admitted, spec):
    assert "initContainers" not in admitted({**pod_spec(), **spec})
    assert "initContainers" in admitted({**pod_spec(), "os": {"name": "linux"}, "nodeSelector": {"kubernetes.io/arch": "amd64"}})


def test_the_policy_keeps_a_pods_own_settings(admitted):
    """Our library comes behind another preload, and the endpoint of the pod's own wins."""
    env = [{"name": "LD_PRELOAD", "value": "/lib/other.so"}, {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://mine:4318"},
           {"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "team=a"}]
    spec = pod_spec(env=env, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    spec.update(volumes=[{"name": "data", "emptyDir": {}}], initContainers=[{"name": "theirs", "image": "theirs"}])
    pod = admitted(spec)
    (app,) = pod["containers"]
    assert {it["name"]: it.get("value") for it in app["env"]} == {
        "LD_PRELOAD": f"/lib/other.so:{PRELOAD}", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://mine:4318", "OTEL_RESOURCE_ATTRIBUTES": "team=a",
        "OTEL_PROFILER_CONTROL_FILE": "/otelprof-control/control"}
    assert app["securityContext"] == spec["containers"][0]["securityContext"]
    assert set(by_name(app["volumeMounts"])) == set(by_name(pod["volumes"])) == {"data", "otelprof", "otelprof-control"}
    assert [it["name"] for it in pod["initContainers"]] == ["otelprof", "theirs"]


def variables_of(pod):
    return {it["name"]: it.get("value") for it in pod["containers"][0]["env"]}


def test_the_policy_names_the_service_by_the_pods_label_or_the_container(admitted):
    assert variables_of(admitted(pod_spec(), labels={"app.kubernetes.io/name": "shop"}))["OTEL_SERVICE_NAME"] == "shop"
    assert variables_of(admitted(pod_spec()))["OTEL_SERVICE_NAME"] == "app"
    own = pod_spec(env=[{"name": "OTEL_SERVICE_NAME", "value": "mine"}])
    assert variables_of(admitted(own, labels={"app.kubernetes.io/name": "shop"}))["OTEL_SERVICE_NAME"] == "mine"


def test_the_policy_sends_profiles_alone_to_its_collector(admitted):
    """The program's own traces and metrics have the general variables, which the policy leaves alone."""
    given = variables_of(admitted(pod_spec()))
    assert given["OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"] == f"{COLLECTOR}/v1development/profiles"
    assert given["OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL"] == "http/protobuf"
    assert not {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"} & set(given)


def test_the_policy_hides_no_variable_that_comes_from_elsewhere(admitted):
    """A variable of env goes before those of envFrom, whose names the policy cannot read."""
    given = variables_of(admitted(pod_spec(envFrom=[{"configMapRef": {"name": "settings"}}])))
    assert given["LD_PRELOAD"] == PRELOAD
    assert not {"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"} & set(given)


@pytest.mark.parametrize("user,own", [(0, 65534), (4711, None), (None, None)])
def test_the_policys_init_container_is_never_root(admitted, user, own):
    """The cluster chooses its user, as OpenShift requires, unless the pod asks for root."""
    spec = {**pod_spec(), "securityContext": {} if user is None else {"runAsUser": user}}
    (init,) = admitted(spec)["initContainers"]
    assert (init["securityContext"]["runAsNonRoot"], init["securityContext"].get("runAsUser")) == (True, own)


def test_the_policy_leaves_istio_proxy_alone(admitted):
    """The policy also leaves alone the containers that the pod's annotation names, and an LD_PRELOAD that comes from
    elsewhere."""
    spec = pod_spec()
    elsewhere = {"name": "LD_PRELOAD", "valueFrom": {"configMapKeyRef": {"name": "preload", "key": "value"}}}
    others = [{"name": "istio-proxy", "image": "proxy"}, {"name": "cache", "image": "cache"}, {"name": "odd", "image": "odd", "env": [elsewhere]}]
    spec["containers"] += others
    pod = admitted(spec, annotations={"otelprof/exclude": "web,cache"})
    assert preload_of(pod) == PRELOAD
    after = by_name(pod["containers"])
    for other in others:
        assert {key: after[other["name"]].get(key) for key in other} == other
        assert "volumeMounts" not in after[other["name"]]


def test_the_policy_profiles_a_pod_once(admitted):
    pod = admitted(pod_spec())
    assert admitted(pod) == pod


# --- Docker Compose ---

def test_compose_profiles_its_app(images, runc, receiver, tmp_path):
    """Our two services run; those of the Collector and of Pyroscope follow Compose's schema."""
    project = rules("compose", DEPLOY / "compose" / "compose.yaml")
    services = project["services"]
    assert set(services) == {"otelprof", "app", "collector", "pyroscope"}
    (configuration,) = services["collector"]["volumes"]
    assert os.path.samefile(configuration["source"], DEPLOY / "collector" / "config.yaml")
    assert f"--config={configuration['target']}" in services["collector"]["command"]
    volume = tmp_path / "volume"
    volume.mkdir()

    def container(name):
        service = services[name]
        root, entrypoint, _ = images[name]
        mounts = [(volume, it["target"], not it.get("read_only")) for it in service["volumes"]]
        return Container(root, entrypoint, dict(service.get("environment") or {}), mounts, int(service.get("user", 0)),
                         read_only=service.get("read_only", False), hardened=service.get("cap_drop") == ["ALL"])

    done = runc(container("otelprof")).finish()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    app = container("app")
    assert app.mounts == [(volume, "/otelprof", False)]
    assert app.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
    app.environment.update(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **SETTINGS)
    assert_profiled(runc(app).finish(), receiver)


# --- the Collector ---

def test_the_collector_passes_profiles_on(run, program, receiver, tmp_path):
    """A real Collector runs the configuration unchanged, except for ports of the test's own."""
    skip_without_collector()
    ports = {name: reserved_port() for name in ("http", "grpc", "metrics")}
    own = [f"receivers::otlp::protocols::{name}::endpoint: 127.0.0.1:{ports[name]}" for name in ("http", "grpc")]
    own += ["service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: "
            + str(ports["metrics"]) + "}}}}]"]
    collector = Collector(tmp_path, DEPLOY / "collector" / "config.yaml", {"OTELPROF_BACKEND": receiver.url}, ports["metrics"],
                          [("127.0.0.1", ports["http"])], more=[f"yaml:{it}" for it in own])
    profiled = run([program("burn"), *BURN], env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{ports['http']}"})
    assert profiled.returncode == 7
    collector.stop()
    assert Outcome(7, "", "", receiver.requests).instance("burn").cpu_of("burns_cpu") > 0.6e9
    log = collector.log_path.read_text()
    assert "Profiles" in log and not re.search(r"\t(error|warn)\t", log), log


def test_the_collectors_configuration_is_valid_as_it_is():
    skip_without_collector()
    done = subprocess.run([OTELCOL, "validate", "--config", DEPLOY / "collector" / "config.yaml", "--feature-gates=+service.profilesSupport"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- systemd ---

def test_the_drop_in_is_one_of_systemd(tmp_path):
    """systemd-analyze finds no fault; it finds a setting that systemd does not know."""
    unit = tmp_path / "shop.service"
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    folder = tmp_path / "shop.service.d"
    folder.mkdir()
    shutil.copy(DEPLOY / "systemd" / "otelprof.conf", folder)

    def verify():
        return subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False,
                              env=dict(os.environ, SYSTEMD_UNIT_PATH=f"{tmp_path}:", SYSTEMD_LOG_LEVEL="warning"))

    said = verify()
    assert (said.returncode, [line for line in said.stderr.splitlines() if "otelprof.conf" in line]) == (0, []), said.stderr
    with open(folder / "otelprof.conf", "a") as drop_in:
        drop_in.write("Enviroment=A=1\n")
    assert "Enviroment" in verify().stderr


def test_the_drop_ins_variables_profile_a_program(run, program):
    """The program gets the variables that systemd gives to a service, except for the library's path and the receiver."""
    lines = (DEPLOY / "systemd" / "otelprof.conf").read_text().splitlines()
    given = dict(line.removeprefix("Environment=").split("=", 1) for line in lines if line.startswith("Environment="))
    assert given.pop("LD_PRELOAD") == "/usr/lib/opentelemetry/otelprof/libotelprof.so"
    assert given.pop("OTEL_EXPORTER_OTLP_ENDPOINT") == "http://localhost:4318"
    outcome = run([program("burn"), *BURN], env={name: value.replace("%N", "shop") for name, value in given.items()})
    assert outcome.instance("burn").cpu_of("burns_cpu") > 0.6e9
    (name,) = {attributes_of(it.resource)["service.name"] for request in outcome.requests for it in request.resource_profiles}
    assert name == "shop"
