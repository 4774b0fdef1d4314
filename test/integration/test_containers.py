"""The init image and an app's container run under real runtimes, as docs/deployment.md has them for Docker and
Kubernetes."""

import filecmp
import secrets
import shutil
from pathlib import Path

import pytest

from containers import BUNDLE, RULES, Container, image_of_app, image_of_bundle, image_of_dockerfile, needs, Starter
from profiled import Outcome, Receiver, attributes_of, check_conformance

pytestmark = pytest.mark.system

BUSYBOX = "/bin/busybox"
needs("runc", "crun", BUSYBOX, RULES, BUNDLE / "libotelprof-flush.so")

BURN = ["/app", "1000", "20"]
MIB = 1 << 20
EMPTY_DIR = 0o777  # the mode that Kubernetes gives it
PRELOAD = "/otelprof/libotelprof.so"


def anybody():
    """Returns a user id that no file knows, as OpenShift gives to each project."""
    return 1_000_000_000 + secrets.randbelow(1_000_000)


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(params=["runc", "crun"])
def start(request, tmp_path):
    return Starter(tmp_path, request.param)


@pytest.fixture
def runc(tmp_path):
    return Starter(tmp_path, "runc")


@pytest.fixture
def volume(tmp_path):
    folder = tmp_path / "volume"
    folder.mkdir()
    folder.chmod(EMPTY_DIR)
    return folder


@pytest.fixture
def init_image(tmp_path):
    return image_of_bundle(tmp_path / "init")


def bring_profiler(start, init_image, volume, user):
    root, entrypoint = init_image
    init = Container(root, entrypoint, mounts=[(volume, "/target", True)], user=user, read_only=True, hardened=True)
    done = start(init).finish()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def app(root, arguments, volume, receiver, **options):
    environment = {"LD_PRELOAD": PRELOAD, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
                   "OTEL_PROFILER_MIN_LIFETIME": "100", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000"}
    return Container(root, arguments, environment, [(volume, "/otelprof", False)], anybody(), True, **options)


def outcome(done, receiver):
    for request in receiver.requests:
        check_conformance(request)
    return Outcome(done.returncode, done.stdout, done.stderr, receiver.requests)


@pytest.mark.parametrize("hardened", [False, True], ids=["docker", "hardened"])
def test_an_image_with_glibc_and_the_app_is_profiled(start, program, init_image, volume, receiver, tmp_path, hardened):
    """The image's root is read-only, its user unknown, and Docker's filter is active."""
    bring_profiler(start, init_image, volume, anybody())
    image = image_of_app(tmp_path / "image", program("burn"))
    done = start(app(image, BURN, volume, receiver, hardened=hardened)).finish()
    assert (done.returncode, done.stdout, done.stderr) == (7, "burnt\n", "")
    burn = outcome(done, receiver).instance("app")
    assert burn.cpu_of("burns_cpu") > 0.6e9
    assert burn.value_of("allocates", "alloc_space") > MIB


def test_the_dockerfile_makes_the_bundles_image(init_image, runc, program, volume, receiver, tmp_path):
    """The image has the same objects, started in the same way: a cluster need not run an image that Docker built."""
    root, entrypoint = init_image
    dockers = image_of_dockerfile(tmp_path / "dockers")
    assert dockers[1] == entrypoint
    for name in ("libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so"):
        assert filecmp.cmp(dockers[0] / "otelprof" / name, root / "otelprof" / name, shallow=False)
    bring_profiler(runc, dockers, volume, anybody())
    done = runc(app(image_of_app(tmp_path / "image", program("burn")), BURN, volume, receiver)).finish()
    assert outcome(done, receiver).instance("app").cpu_total() > 0.6e9


def test_two_containers_at_once_are_told_apart(start, program, init_image, volume, receiver, tmp_path):
    bring_profiler(start, init_image, volume, anybody())
    image = image_of_app(tmp_path / "image", program("burn"))
    containers = [app(image, BURN, volume, receiver) for _ in range(2)]
    running = [start(container) for container in containers]
    for container in running:
        done = container.finish()
        assert (done.returncode, done.stdout, done.stderr) == (7, "burnt\n", "")
    profiled = outcome(done, receiver).instances()
    assert [it.executable for it in profiled] == ["app", "app"]
    assert len({it.instance_id for it in profiled}) == 2
    if start.runtime == "runc":  # crun is run without control groups, whose path has the container's id
        resources = [it.resource for request in receiver.requests for it in request.resource_profiles]
        assert {attributes_of(it)["container.id"] for it in resources} == {it.identity for it in containers}
    assert all(it.cpu_of("burns_cpu") > 0.6e9 for it in profiled)


def test_a_static_app_runs_as_without_us(start, init_image, volume, receiver, tmp_path):
    bring_profiler(start, init_image, volume, anybody())
    image = tmp_path / "image"
    image.mkdir()
    shutil.copy(BUSYBOX, image)
    done = start(app(image, [f"/{Path(BUSYBOX).name}", "echo", "static"], volume, receiver)).finish()
    assert (done.returncode, done.stdout, done.stderr) == (0, "static\n", "")
    assert receiver.requests == []


def test_an_app_that_needs_54_of_64_mib_is_profiled(runc, program, init_image, volume, receiver, tmp_path):
    """The app is profiled at each of its exports, and at its end; the kernel ends no process of it."""
    bring_profiler(runc, init_image, volume, anybody())
    image = image_of_app(tmp_path / "image", program("holds_memory"))
    container = app(image, ["/app", "54", "1200"], volume, receiver, memory=64 * MIB)
    container.environment["OTEL_PROFILE_EXPORT_INTERVAL"] = "300"
    done = runc(container).finish()
    assert (done.returncode, done.stdout, done.stderr) == (0, "held\n", "")
    assert len(receiver.requests) > 1
    assert outcome(done, receiver).instance("app").cpu_total() > 0.8e9


def test_the_limit_of_memory_is_one(runc, program, receiver, volume, tmp_path):
    """Without the profiler, a program that needs more is killed, so the test above shows something."""
    image = image_of_app(tmp_path / "image", program("holds_memory"))
    container = app(image, ["/app", "70", "0"], volume, receiver, memory=64 * MIB)
    container.environment = {}
    done = runc(container).finish()
    assert (done.returncode, done.stdout) == (137, "")
