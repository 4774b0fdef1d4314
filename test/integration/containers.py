"""Runs containers as Docker and Kubernetes make them, without either: a root with an image's files, and an OCI
runtime (runc, crun) with Docker's own default capabilities and filter of system calls. Containers share the host's
network, so that a test's receiver is at loopback.
"""

import dataclasses
import functools
import io
import itertools
import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from profiled import BUILD, ROOT

DEPLOY = ROOT / "scripts" / "deploy"
BUNDLE = BUILD / "bundle"
RULES = BUILD / "deploy" / "rules"
LIMIT_S = 600
# crun refuses machines that have control groups of both versions, even where it uses none: it sees version 2 alone.
RUNTIMES = {"runc": ["runc"], "crun": ["unshare", "--mount", "sh", "-c", 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"',
                                       "sh", "crun", "--cgroup-manager=disabled"]}


def needs(*wanted):
    """Skips a module that needs a program which is missing; in CI that is a failure."""
    missing = [str(it) for it in wanted if not (Path(it).exists() or shutil.which(it))]
    if os.getuid() != 0:
        missing.append("root")
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"missing: {missing}", pytrace=False)
    if missing:
        pytest.skip(f"missing here: {', '.join(missing)}", allow_module_level=True)


def rules(*arguments):
    """Returns the output of test/deploy."""
    done = subprocess.run([RULES, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def docker():
    return rules("docker")


@dataclasses.dataclass
class Container:
    """Lists what a test requests for a container: all else is as Docker has it."""

    root: Path  # the folder with the image's files
    arguments: list
    environment: dict = dataclasses.field(default_factory=dict)
    mounts: list = dataclasses.field(default_factory=list)  # (folder of the host, path in the container, whether it is writable)
    user: int = 0
    read_only: bool = False
    memory: int = 0  # bytes; 0: without a limit
    hardened: bool = False  # no capabilities, no new privileges
    identity: str = dataclasses.field(default_factory=lambda: secrets.token_hex(32))


def configuration(runtime, container, folder):
    """Returns the runtime's own example (`runc spec`), with the container's changes."""
    subprocess.run([runtime, "spec"], cwd=folder, check=True)
    config = json.loads((folder / "config.json").read_text())
    bounding = [] if container.hardened else docker()["capabilities"]
    effective = bounding if container.user == 0 else []
    config["process"].update(
        terminal=False, args=[str(part) for part in container.arguments], noNewPrivileges=container.hardened,
        env=[f"{name}={value}" for name, value in {"PATH": "/bin", **container.environment}.items()],
        user={"uid": container.user, "gid": container.user},
        capabilities={"bounding": bounding, "effective": effective, "permitted": effective})
    config["root"] = {"path": str(container.root), "readonly": container.read_only}
    config["mounts"] += [
        {"destination": place, "source": str(source), "type": "bind", "options": ["rbind", "rw" if may_write else "ro"]}
        for source, place, may_write in container.mounts]
    linux = config["linux"]
    linux["namespaces"] = [it for it in linux["namespaces"] if it["type"] in ("pid", "ipc", "uts", "mount")]
    linux["cgroupsPath"] = f"/otelprof-test-{container.identity}"
    linux["seccomp"] = docker()["seccomp"]
    linux["resources"] = {"memory": {"limit": container.memory, "swap": container.memory}} if container.memory else {}
    (folder / "config.json").write_text(json.dumps(config))
    make_mount_points(container.root, config["mounts"])


def make_mount_points(root, mounts):
    """Makes the mount points in the image: runtimes that make them for two containers of one root at once disturb
    each other."""
    for mount in mounts:
        place = Path(mount["destination"])
        if len(place.parts) == 2:
            (root / place.name).mkdir(exist_ok=True)


class Started:
    def __init__(self, runtime, container, folder):
        folder.mkdir()
        configuration(runtime, container, folder)
        self.command = [*RUNTIMES[runtime], "--root", folder / "state"]
        self.identity = container.identity
        self.process = subprocess.Popen([*self.command, "run", "--bundle", folder, self.identity], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self):
        try:
            out, err = self.process.communicate(timeout=LIMIT_S)
        finally:
            subprocess.run([*self.command, "delete", "--force", self.identity], capture_output=True, check=False)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)


class Starter:
    """start(container) -> Started, in a new folder below `folder`."""

    def __init__(self, folder, runtime):
        self.folder, self.runtime = folder, runtime
        self.numbers = itertools.count()

    def __call__(self, container):
        return Started(self.runtime, container, self.folder / f"{self.runtime}-{next(self.numbers)}")


def image_of_app(folder, program):
    """Makes the files of an image that holds only glibc and the program, as /app."""
    folder.mkdir(parents=True)
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for path in re.findall(r"(/\S+) \(0x", needed):
        (folder / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / path[1:])
    shutil.copy(program, folder / "app")
    return folder


def blob(layout, descriptor):
    return (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()


def image_of_bundle(folder):
    """Returns the files and the entrypoint of the init image that `make bundle` makes."""
    (layout,) = BUNDLE.glob("*-oci")
    (descriptor,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(layout, descriptor))
    for layer in manifest["layers"]:
        with tarfile.open(fileobj=io.BytesIO(blob(layout, layer))) as tar:
            tar.extractall(folder)
    return folder, json.loads(blob(layout, manifest["config"]))["config"]["Entrypoint"]


def image_of_dockerfile(folder):
    """Returns the files and the entrypoint of the image that scripts/deploy/Dockerfile makes."""
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    entrypoint = None
    for line in lines:
        instruction, _, rest = line.partition(" ")
        if instruction == "COPY":
            *sources, target = shlex.split(rest)
            copy_into_image(folder, sources, target)
        elif instruction == "ENTRYPOINT":
            entrypoint = json.loads(rest)
        else:
            assert instruction in ("#", "FROM", "", "LABEL", "USER"), line
    return folder, entrypoint


def copy_into_image(folder, sources, target):
    context = BUNDLE
    if sources[0].startswith("--from=busybox:"):
        context = Path("/")  # Debian's busybox-static
        sources = sources[1:]
    to = folder / target[1:]
    (to if target.endswith("/") else to.parent).mkdir(parents=True, exist_ok=True)
    for source in sources:
        path = context / source.lstrip("/")
        if path.is_dir():
            shutil.copytree(path, to, dirs_exist_ok=True)
        else:
            shutil.copy(path, to)
