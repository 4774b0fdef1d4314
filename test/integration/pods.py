"""Builds the containers of a Kubernetes pod, as the kubelet would request them of a runtime (containers.py)."""

import re

from containers import DEPLOY, Container

COLLECTOR = "http://otel-collector.observability:4318"
UNITS = {"Mi": 1 << 20, "Gi": 1 << 30}
DOWNWARD = {"metadata.name": "app-7d4b9-x2x", "metadata.namespace": "shop", "spec.nodeName": "node-1",
            "metadata.uid": "6c1f0b5e-3c1d-4b8e-9d53-0a8c3f2e7d11"}


def policy_with_image(folder):
    """Returns a copy of the policy with an image and a Collector, as its user has it."""
    policy = folder / "policy.yaml"
    text = (DEPLOY / "kubernetes" / "policy.yaml").read_text()
    policy.write_text(text.replace("'IMAGE'", "'registry.test/otelprof:1'").replace("'ENDPOINT'", f"'{COLLECTOR}'"))
    return policy


def bytes_of(quantity):
    number, unit = re.fullmatch(r"(\d+)(\w+)", quantity).groups()
    return int(number) * UNITS[unit]


def environment_of(container):
    """Returns the variables in their order: $(NAME) stands for the value of an earlier variable."""
    values = {}
    for variable in container.get("env", []):
        if "valueFrom" in variable:
            value = DOWNWARD[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        else:
            value = variable.get("value", "")
        values[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda name: values.get(name[1], name[0]), value)
    return values


def container_of(pod, container, image, volumes):
    root, entrypoint, user_of_image = image
    security = {"runAsUser": user_of_image, **pod.get("securityContext", {}), **container.get("securityContext", {})}
    assert security["runAsNonRoot"] and security["runAsUser"] != 0
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    limit = container.get("resources", {}).get("limits", {}).get("memory")
    return Container(
        root, container.get("command", entrypoint) + container.get("args", []), environment_of(container),
        [(volumes[mount["name"]], mount["mountPath"], not mount.get("readOnly")) for mount in container["volumeMounts"]],
        security["runAsUser"], security.get("readOnlyRootFilesystem", False), bytes_of(limit) if limit else 0,
        hardened=security["capabilities"] == {"drop": ["ALL"]} and not security["allowPrivilegeEscalation"])


def containers_of(pod, images, folder):
    """Returns (init containers, containers), each {name: Container}. `images`: {image without a version: (root,
    entrypoint, user)}. A ConfigMap that is optional is an empty folder: none has been made."""
    volumes = {}
    for volume in pod["volumes"]:
        assert "emptyDir" in volume or volume["configMap"]["optional"]
        volumes[volume["name"]] = folder / f"volume-{volume['name']}"
        volumes[volume["name"]].mkdir()
        volumes[volume["name"]].chmod(0o777)
    return [{it["name"]: container_of(pod, it, images[it["image"].rpartition(":")[0].rpartition("/")[2] or it["image"]], volumes)
             for it in pod[kind]} for kind in ("initContainers", "containers")]
