"""`make bundle` makes two objects that run wherever there is glibc, with a libcurl and a TLS library of their own."""

import ctypes
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from grpc_server import OK as GRPC_OK
from grpc_server import GrpcServer
from http_server import OK, HttpServer
from profiled import BUILD, Outcome, Receiver, attributes_of, decode
from test_fork import assert_no_lock_of_time_zones
from test_protocols import make_certificates

pytestmark = pytest.mark.system

BUNDLE = BUILD / "bundle"
LIBRARY = BUNDLE / "libotelprof.so"
OBJECTS = (LIBRARY, BUNDLE / "libotelprof-flush.so", BUNDLE / "libotelprof-cpp.so")
GLIBC = {"libc.so.6", "ld-linux-x86-64.so.2"}
OLDEST_GLIBC = (2, 34)
MOST_BYTES = 8 << 20
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000  # sched.h, sys/mount.h
LIBC = ctypes.CDLL(None)
NOBODY = 54321  # a user id that no file of users has
BURN = ("1500", "20")  # of 2 MiB one run in 55 has no sample: e^-4
USUAL_PLACES = ("etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt", "etc/ssl/ca-bundle.pem")
RESOURCE_FILES = ("/etc/machine-id", "/etc/os-release", "/etc/passwd")  # resource attributes are read from them
SETTINGS = {"OTEL_PROFILER_MIN_LIFETIME": "100", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000"}

if not OBJECTS[1].exists() and os.environ.get("CI") != "true":
    pytest.skip("there is no bundle: `make bundle` builds it", allow_module_level=True)

only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may chroot")


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


# --- the contents ---

@pytest.mark.parametrize("library", OBJECTS, ids=lambda path: path.name)
def test_the_bundle_needs_glibc_alone(library):
    assert set(re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", library))) <= GLIBC
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", output("nm", "-D", "--undefined-only", library))
    assert max((int(major), int(minor)) for major, minor in versions) <= OLDEST_GLIBC


def test_the_bundle_exports_no_symbol_of_its_libraries():
    exported = {line.split()[-1] for line in output("nm", "-D", "--defined-only", OBJECTS[1]).splitlines()}
    assert exported == {"otelprof_flush_main", "otelprof_flush_release"}


def test_the_bundle_takes_no_lock_of_time_zones():
    """Mbed TLS compares certificates with the time."""
    assert_no_lock_of_time_zones(*OBJECTS)


def test_the_bundle_is_small():
    assert sum(path.stat().st_size for path in OBJECTS) <= MOST_BYTES


def test_the_archive_holds_the_bundle_with_its_licences():
    (archive,) = BUNDLE.glob("libotelprof-*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {Path(*Path(member.name).parts[1:]).as_posix() for member in tar if member.isfile()}
        assert {(member.uid, member.mtime) for member in tar} == {(0, 0)}
    tree = BUILD / "bundle-build" / archive.name.removesuffix(".tar.gz")
    assert names == {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    assert all((BUNDLE / name).read_bytes() == (tree / name).read_bytes() for name in names)
    packages = {line.split()[1] for line in (BUNDLE / "licences/sources").read_text().splitlines() if line[0] != "#"}
    assert packages and {f"licences/{package}" for package in packages} <= names


def test_the_bundle_names_the_versions_that_it_was_built_from():
    """The versions need not be those of scripts/bundle/sources."""
    table = (BUNDLE / "licences/sources").read_text()
    assert table == (BUILD / "bundle-build/libraries/sources").read_text()
    rows = [line.split() for line in table.splitlines() if line[0] != "#"]
    assert [f"| {package} | {version} | {licence} |" for _, package, version, _, licence, _ in rows] == \
        (BUNDLE / "THIRD_PARTY.md").read_text().split("| --- | --- | --- |")[-1].strip().splitlines()


def test_the_bundle_reads_a_configuration_file(program, tmp_path):
    receiver = Receiver()
    (tmp_path / "otel.yaml").write_text(
        'file_format: "1.0"\nresource: {attributes: [{name: service.name, value: "${SHOP}"}]}\n')
    done = subprocess.run([program("burn"), "500"], check=False, capture_output=True, text=True, env={
        **SETTINGS, "LD_PRELOAD": str(LIBRARY), "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "SHOP": "corner",
        "OTEL_CONFIG_FILE": str(tmp_path / "otel.yaml")})
    receiver.close()
    assert (done.returncode, done.stdout, done.stderr) == (7, "burnt\n", "")
    names = {attributes_of(part.resource)["service.name"] for request in receiver.requests for part in request.resource_profiles}
    assert names == {"corner"}


# --- in a root that holds glibc and a program ---

@pytest.fixture
def root(tmp_path, program):
    folder = tmp_path / "root"
    for path in re.findall(r"(/\S+) \(0x", output("ldd", program("burn"))):
        (folder / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / path[1:])
    (folder / "proc").mkdir()
    (folder / "bundle").mkdir()
    for path in OBJECTS:
        shutil.copy(path, folder / "bundle")
    shutil.copy(program("burn"), folder / "app")
    return folder


@pytest.fixture
def certificates(tmp_path):
    folder = tmp_path / "certificates"
    folder.mkdir()
    make_certificates(folder)
    return folder


@pytest.fixture
def tls_receiver(certificates):
    server = HttpServer(*[OK] * 40, tls=(certificates / "server.pem", certificates / "server.key"))
    yield server
    server.stop()


def enter(root):
    """Enters the root as a container's runtime does: with the root's /proc, and as a user without a name."""
    LIBC.unshare(CLONE_NEWNS)
    LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
    LIBC.mount(b"/proc", os.fsencode(root / "proc"), None, MS_REC | MS_BIND, None)
    os.chroot(root)
    os.chdir("/")
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def run_in(root, url, **settings):
    environment = {"LD_PRELOAD": "/bundle/libotelprof.so", "OTEL_EXPORTER_OTLP_ENDPOINT": url, **SETTINGS, **settings}
    done = subprocess.run(["/app", *BURN], env=environment, preexec_fn=lambda: enter(root), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "burnt\n", "")


def assert_complete(requests):
    app = Outcome(7, "", "", requests).instance("app")
    assert app.cpu_of("burns_cpu") > 1e9
    assert app.value_of("allocates", "alloc_space") > 1 << 20


@only_root
@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_a_root_with_glibc_alone_is_profiled(root, protocol, compression):
    """The user is in no file, and names come from the program's own tables."""
    receiver = Receiver()
    run_in(root, receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL=protocol, OTEL_EXPORTER_OTLP_COMPRESSION=compression)
    receiver.close()
    assert_complete(receiver.requests)


@only_root
@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_a_root_with_glibc_alone_is_profiled_by_grpc(root, compression):
    server = GrpcServer(*[GRPC_OK] * 40)
    run_in(root, f"http://127.0.0.1:{server.port}", OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_EXPORTER_OTLP_COMPRESSION=compression)
    server.stop()
    assert_complete([call.message() for call in server.calls])


@only_root
@pytest.mark.parametrize("place", USUAL_PLACES)
def test_the_authorities_are_found_where_distributions_keep_them(root, certificates, tls_receiver, place):
    (root / place).parent.mkdir(parents=True)
    shutil.copy(certificates / "ca.pem", root / place)
    run_in(root, tls_receiver.url)
    assert_complete([decode(body, "application/x-protobuf") for body in tls_receiver.taken()])


@only_root
def test_tls_reads_no_configuration(root, certificates, tls_receiver, tmp_path):
    """A root that other users may write decides nothing about TLS, and no module is loaded from there."""
    shutil.copy(certificates / "ca.pem", root / "ca.pem")
    trace = tmp_path / "trace"
    values = {"LD_PRELOAD": "/bundle/libotelprof.so", "OTEL_EXPORTER_OTLP_ENDPOINT": tls_receiver.url,
              "OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem", "OTEL_PROFILER_EXCLUDE": "strace,chroot", **SETTINGS}
    subprocess.run(["strace", "-f", "-qq", "-e", "trace=open,openat,openat2,execve", "-o", trace,
                    *(f"-E{name}={value}" for name, value in values.items()), "chroot", root, "/app", *BURN],
                   check=False, capture_output=True)
    assert tls_receiver.taken()
    lines = trace.read_text().splitlines()
    (begin,) = [i for i, line in enumerate(lines) if 'execve("/app"' in line]
    opened = set(re.findall(r'open\w*\(.*?"([^"]+)"', "\n".join(lines[begin:])))
    configuration = {path for path in opened if path.startswith("/etc/")}
    assert configuration <= {"/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/opentelemetry/otelprof", *RESOURCE_FILES}
    assert {Path(path).name for path in opened if ".so" in path} - {"ld.so.cache", "ld.so.preload"} <= {path.name for path in OBJECTS} | GLIBC


def test_a_refusal_by_tls_is_one_sentence(burn, certificates, tls_receiver):
    (line,) = burn({"LD_PRELOAD": str(LIBRARY), "OTEL_EXPORTER_OTLP_ENDPOINT": tls_receiver.url,
                    "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificates / "client.pem")}, 200)
    assert re.search(r"cannot be sent to \S+ \(mbedTLS: [^\\]+\); trying again", line)


# --- beside the program's own libraries ---

@pytest.mark.parametrize("how", ["early", "late"])
def test_the_bundle_has_a_libcurl_that_no_program_can_claim(run, program, how):
    """The program gives its libcurl an allocator, and is still profiled."""
    page = Receiver()
    outcome = run([program("own_libcurl"), how, f"{page.url}/page", "500"], log_to_stderr=True,
                  env={"LD_PRELOAD": str(LIBRARY), "OTEL_PROFILER_MIN_LIFETIME": "0"})
    page.close()
    assert (outcome.stdout, outcome.returncode, outcome.stderr) == ("20 transfers, allocator used\n", 0, "")
    assert outcome.instance("own_libcurl").cpu_total() > 0


def test_the_command_of_the_bundle_profiles_and_shows(program, tmp_path):
    file = tmp_path / "profile.otlp"
    done = subprocess.run([BUNDLE / "otelprof", "run", "-o", file, "--", program("burn"), *BURN], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "burnt\n"), done.stderr
    assert "burns_cpu" in output(BUNDLE / "otelprof", "top", file)
