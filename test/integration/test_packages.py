"""The packages of the bundle have what they should, and installing, upgrading and removing them harms nothing."""

import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

import containers
import pytest
from profiled import BUILD, ROOT
from test_bundle import BUNDLE, GLIBC, MOST_BYTES, NOBODY, only_root, output
from waiting import eventually

pytestmark = pytest.mark.system

VERSION = re.search(r"^VERSION := (\S+)", (ROOT / "Makefile").read_text(), re.M)[1]
TREE = BUILD / f"bundle-build/libotelprof-{VERSION}-x86_64"
CP = BUILD / "bundle-build/libraries/bin/cp"
DEB, RPM = BUNDLE / f"otelprof_{VERSION}_amd64.deb", BUNDLE / f"otelprof-{VERSION}.x86_64.rpm"
IMAGE, MATERIALS = BUNDLE / f"otelprof-{VERSION}-x86_64-oci", BUNDLE / f"otelprof-{VERSION}.spdx.json"
ARCHIVES = (DEB, RPM, IMAGE.with_name(f"{IMAGE.name}.tar"), BUNDLE / f"{TREE.name}.tar.gz")
RELEASED = re.search(r"^RELEASED := (\S+)", (ROOT / "Makefile").read_text(), re.M)[1]
DATE = int(output("date", "-u", "-d", RELEASED, "+%s"))
FOLDER, SETTINGS = "usr/lib/opentelemetry/otelprof", "etc/opentelemetry/otelprof"
# the commands that `otelprof host` and the packages' scripts run
COMMANDS = "sh stat mkdir chmod ln mv rm rmdir cat id readlink mktemp sync cp ls env true".split()
OUR_LINE = "/run/opentelemetry/otelprof/$LIB/libotelprof.so\n"

needs_rpm = pytest.mark.skipif(not shutil.which("rpm") and os.environ.get("CI") != "true", reason="no rpm: `scripts/install-deps bundle`")


def needs(tool):
    reason = f"no {tool}: `scripts/install-deps packages`"
    return pytest.mark.skipif(not shutil.which(tool) and os.environ.get("CI") != "true", reason=reason)


def build(folder, version=VERSION, tree=TREE, **environment):
    subprocess.run([ROOT / "scripts/packages/build", "--version", version, "--arch", "x86_64", "--glibc", "2.34", "--date", str(DATE), "--maintainer",
                    "The otelprof maintainers <otelprof@example.com>", tree, CP, folder],
                   check=True, env={**os.environ, **environment}, cwd=folder.parent)
    return folder


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- the contents ---

@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    """Packages of a later version, whose exporter is of another build."""
    folder = tmp_path_factory.mktemp("newer")
    tree = folder / "tree"
    shutil.copytree(TREE, tree)
    release = (TREE / "host/release").read_bytes().strip()
    for name in ("libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so", "host/release"):
        text = (tree / name).read_bytes()
        assert release in text
        (tree / name).write_bytes(text.replace(release, release[:-1] + b"x"))
    return build(folder / "packages", f"{VERSION}.1", tree)


def test_packages_built_twice_are_the_same_bytes(newer, tmp_path):
    """The second build has another folder, file times, umask, time zone and language."""
    tree = tmp_path / "other"
    shutil.copytree(newer.with_name("tree"), tree, copy_function=shutil.copyfile)
    for path in [tree, *tree.rglob("*")]:
        path.chmod(0o700 if path.is_dir() or path.name in ("otelprof", "otelprof-host") or path.suffix == ".so" else 0o600)
        os.utime(path, (10**9, 10**9))
    mask = os.umask(0o077)
    made = contents(build(tmp_path / "again", f"{VERSION}.1", tree, TZ="Asia/Tokyo", LC_ALL="C", HOSTNAME="other"))
    os.umask(mask)
    expected = contents(newer)
    assert {Dpkg.newer, Rpm.newer, f"otelprof-{VERSION}.1.spdx.json", f"otelprof-{VERSION}.1-x86_64-oci.tar"} <= set(made)
    assert [name for name in expected if made.get(name) != expected[name]] == []
    assert set(made) == set(expected)


def test_the_bundle_and_each_package_take_8_mib_at_most():
    assert sum(len(text) for text in contents(TREE).values()) <= MOST_BYTES
    assert all(0 < path.stat().st_size <= MOST_BYTES for path in ARCHIVES)


def deb_entries():
    with tarfile.open(fileobj=io.BytesIO(subprocess.run(["dpkg-deb", "--fsys-tarfile", DEB], check=True, capture_output=True).stdout)) as tar:
        return {entry.name.removeprefix("./"): entry for entry in tar}


def deb_modes():
    return {name: (entry.mode, entry.uid, entry.gid) for name, entry in deb_entries().items() if name and not entry.issym()}


def rpm_modes():
    lines = output("rpm", "-qp", "--queryformat", "[%{FILENAMES} %{FILEMODES:octal} %{FILEUSERNAME} %{FILEGROUPNAME}\n]", RPM)
    rows = [line.split() for line in lines.splitlines()]
    return {name[1:]: (int(mode, 8) & 0o7777, int(user != "root"), int(group != "root"))
            for name, mode, user, group in rows if int(mode, 8) >> 12 != 0o12}


@pytest.mark.parametrize("modes", [deb_modes, pytest.param(rpm_modes, marks=needs_rpm)])
def test_only_root_may_write_the_files_of_a_package(modes):
    found = modes()
    assert {f"{FOLDER}/libotelprof.so", f"{FOLDER}/libotelprof-flush.so", f"{FOLDER}/libotelprof-cpp.so", f"{FOLDER}/otelprof", f"{FOLDER}/lib32/libotelprof.so",
            f"{FOLDER}/host/otelprof-host", f"{SETTINGS}/otelprof.conf", f"{SETTINGS}/conf.d",
            "usr/lib/systemd/system/otelprof-preload.service"} <= set(found)
    assert {name: mode for name, mode in found.items() if mode not in ((0o755, 0, 0), (0o644, 0, 0))} == {}
    assert found[f"{FOLDER}/otelprof"][0] == found[f"{FOLDER}/host/otelprof-host"][0] == 0o755


@pytest.mark.parametrize("modes", [deb_modes, pytest.param(rpm_modes, marks=needs_rpm)])
def test_a_package_has_the_header_that_programs_call_it_by(modes):
    assert [name for name in modes() if name.endswith("otelprof.h")] == ["usr/include/otelprof.h"]
    assert (BUNDLE / "otelprof.h").read_bytes() == (ROOT / "shim/otelprof.h").read_bytes()


@pytest.mark.parametrize("shell, path", [("bash", "bash-completion/completions/otelprof"), ("fish", "fish/vendor_completions.d/otelprof.fish"),
                                         ("zsh", "zsh/vendor-completions/_otelprof")])
def test_a_deb_has_the_completions_of_the_shells(tmp_path, shell, path):
    subprocess.run(["dpkg-deb", "--extract", DEB, tmp_path], check=True)
    printed = subprocess.run([tmp_path / FOLDER / "otelprof", "completion", shell], capture_output=True, text=True, check=True).stdout
    assert (tmp_path / "usr/share" / path).read_text() == printed != ""


@needs_rpm
def test_an_rpm_has_the_completions_of_the_shells():
    assert {f"usr/share/{path}" for path in ("bash-completion/completions/otelprof", "fish/vendor_completions.d/otelprof.fish",
                                             "zsh/site-functions/_otelprof")} < set(rpm_modes())


def test_a_deb_depends_on_glibc_alone_and_bears_one_date():
    fields = output("dpkg-deb", "-f", DEB, "Package", "Version", "Architecture", "Depends", "Recommends")
    assert fields == f"Package: otelprof\nVersion: {VERSION}\nArchitecture: amd64\nDepends: libc6 (>= 2.34)\nRecommends: python3, python3-protobuf\n"
    assert {entry.mtime for entry in deb_entries().values()} == {DATE}


@needs_rpm
def test_an_rpm_depends_on_glibc_and_a_shell_alone():
    required = {re.sub(r"\(.*", "", line.split()[0]) for line in output("rpm", "-qp", "--requires", RPM).splitlines()}
    assert required == GLIBC | {"/bin/sh", "config", "rpmlib", "rtld"}
    assert output("rpm", "-qp", "--provides", RPM).split("\n")[1:-1] == [f"otelprof = {VERSION}-1", f"otelprof(x86-64) = {VERSION}-1"]
    assert output("rpm", "-qp", "--recommends", RPM) == "python3\npython3-protobuf\n"


@needs("lintian")
def test_lintian_finds_no_error(tmp_path):
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", "--pedantic", DEB], env={**os.environ, "TMPDIR": str(tmp_path)},
                          capture_output=True, text=True, check=False)
    assert (done.returncode, re.findall(r"^E: .*", done.stdout, re.M)) == (0, []), done.stdout + done.stderr


@needs("rpmlint")
def test_rpmlint_finds_no_error():
    """Excluded are: a missing signature, a missing group, which distributions do not want any more, and the 32-bit
    object, which needs no library."""
    done = subprocess.run(["rpmlint", RPM], capture_output=True, text=True, check=False)
    assert set(re.findall(r": E: (\S+)", done.stdout)) <= {"no-signature", "no-group-tag", "shared-library-without-dependency-information"}, done.stdout
    assert "1 packages" in done.stdout


def test_the_packages_name_every_library_that_is_inside():
    text = subprocess.run(["tar", "-xO", "./usr/share/doc/otelprof/copyright"], capture_output=True, check=True,
                          input=subprocess.run(["dpkg-deb", "--fsys-tarfile", DEB], check=True, capture_output=True).stdout).stdout.decode()
    rows = [line.split() for line in (TREE / "licences/sources").read_text().splitlines() if line[0] != "#"]
    inside = [row for row in rows if row[5] == "libotelprof-flush.so"]
    assert len(inside) > 10
    for _, package, version, _, licence, _ in inside:
        assert f"\n  {package} {version}: {licence}\n" in text
        assert f"\nLicense: {licence}\n" in text
        assert f"usr/share/doc/otelprof/licences/{package}" in deb_entries()


# --- the list of materials ---

@pytest.fixture(scope="module")
def listed():
    return json.loads(MATERIALS.read_text())


def test_the_list_of_materials_names_every_file_with_its_hash(listed):
    hashes = {f"./{name}": hashlib.sha256(text).hexdigest() for name, text in contents(TREE).items()}
    hashes["./bin/cp"] = hashlib.sha256(CP.read_bytes()).hexdigest()
    assert {entry["fileName"]: entry["checksums"][1]["checksumValue"] for entry in listed["files"]} == hashes


def test_the_list_of_materials_names_every_library_with_its_source(listed):
    rows = [line.split() for line in (TREE / "licences/sources").read_text().splitlines() if line[0] != "#"]
    packages = {entry["name"]: entry for entry in listed["packages"]}
    names = {entry["SPDXID"]: entry["fileName"].rsplit("/", 1)[-1] for entry in listed["files"]}
    linked = {(names[each["spdxElementId"]], each["relatedSpdxElement"]) for each in listed["relationships"]
              if each["relationshipType"] == "STATIC_LINK"}
    assert linked == {(row[5], packages[row[1]]["SPDXID"]) for row in rows}
    for _, name, version, digest, licence, _ in rows:
        entry = packages[name]
        assert (entry["versionInfo"], entry["licenseDeclared"], entry["checksums"][0]["checksumValue"]) == (version, licence, digest)
        assert entry["externalRefs"][0]["referenceLocator"].startswith(f"pkg:deb/debian/{name}@")
    assert set(packages) == {row[1] for row in rows} | {"otelprof", "otelprof-image"}


def test_the_list_of_materials_refers_to_nothing_that_it_does_not_have(listed):
    here = [entry["SPDXID"] for entry in (listed, *listed["packages"], *listed["files"])]
    assert len(set(here)) == len(here)
    assert {each[end] for each in listed["relationships"] for end in ("spdxElementId", "relatedSpdxElement")} <= set(here)
    assert listed["creationInfo"]["created"] == f"{RELEASED}T00:00:00Z"


# --- the image ---

@needs("skopeo")
def test_the_image_describes_itself():
    said = json.loads(output("skopeo", "inspect", f"oci:{IMAGE}:{VERSION}"))
    assert (said["Architecture"], said["Os"], len(said["Layers"])) == ("amd64", "linux", 1)
    manifest = json.loads(output("skopeo", "inspect", "--raw", f"oci:{IMAGE}:{VERSION}"))
    notes = {name.removeprefix("org.opencontainers.image."): text for name, text in manifest["annotations"].items()}
    assert (notes["title"], notes["version"], notes["created"]) == ("otelprof", VERSION, f"{RELEASED}T00:00:00Z")
    assert {"Apache-2.0", "GPL-2.0-only", "MIT", "curl"} <= set(notes["licenses"].split(" AND "))


@pytest.fixture
def unpacked(tmp_path):
    """Unpacks the image's files, by a tool that knows nothing of how it was made."""
    subprocess.run(["umoci", "unpack", "--image", f"{IMAGE}:{VERSION}", tmp_path / "image"], check=True, capture_output=True)
    return tmp_path / "image/rootfs"


@needs("umoci")
def test_the_image_copies_the_bundle_into_a_volume(unpacked, tmp_path):
    """The image runs under a runtime, as a user without a name or a right, from a read-only root."""
    containers.needs("runc", containers.RULES)
    volume = tmp_path / "volume"
    volume.mkdir()
    volume.chmod(0o777)
    command = json.loads((unpacked.parent / "config.json").read_text())["process"]["args"]
    container = containers.Container(unpacked, command, mounts=[(volume, "/target", True)], user=NOBODY, read_only=True, hardened=True)
    done = containers.Starter(tmp_path, "runc")(container).finish()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    copied = contents(volume)
    assert copied.pop("otelprof.spdx.json") == MATERIALS.read_bytes()
    assert copied == contents(TREE)
    assert {path.lstat().st_uid for path in volume.rglob("*")} == {NOBODY}
    assert os.access(volume / "otelprof", os.X_OK)


def test_the_images_cp_is_all_that_can_run_in_it():
    """cp needs no library."""
    with tarfile.open(fileobj=io.BytesIO(gzipped_layer())) as tar:
        entries = {entry.name: entry for entry in tar}
    assert [name for name in entries if not name.startswith("otelprof")] == ["bin", "bin/cp", "target"]
    assert {(entry.uid, entry.gid, entry.mtime) for entry in entries.values()} == {(0, 0, DATE)}
    assert "There is no dynamic section" in output("readelf", "-d", CP)


def gzipped_layer():
    index = json.loads((IMAGE / "index.json").read_text())
    manifest = json.loads(blob(index["manifests"][0]))
    return blob(manifest["layers"][0])


def blob(descriptor):
    content = (IMAGE / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    assert (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}") == (descriptor["size"], descriptor["digest"])
    return content


# --- installed into a root ---

@pytest.fixture
def root(tmp_path):
    """Makes a root with a shell, coreutils and glibc."""
    folder = tmp_path / "root"
    for name in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "etc", "tmp", "dev", "proc", "run", "var/lib/dpkg/info", "var/lib/dpkg/updates"):
        (folder / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (folder / name).symlink_to(f"usr/{name}")
    (folder / "dev/null").touch()
    for command in COMMANDS:
        program = shutil.which(command)
        shutil.copy(program, folder / "usr/bin" / command)
        for path in re.findall(r"(/\S+) \(0x", output("ldd", program)):
            (folder / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / path[1:])
    (folder / "var/lib/dpkg/status").write_text(
        "Package: libc6\nStatus: install ok installed\nVersion: 2.34\nArchitecture: amd64\nMaintainer: nobody\nDescription: glibc\n")
    return folder


class Dpkg:
    """Runs dpkg with the package's own dependencies; those on this machine's tools, which the root lacks, are
    ignored."""

    newer = f"otelprof_{VERSION}.1_amd64.deb"

    def __init__(self, root):
        self.root = root

    def run(self, *what):
        done = subprocess.run(["dpkg", f"--root={self.root}", "--force-bad-path", *map(str, what)], capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})
        assert done.returncode == 0, done.stdout + done.stderr

    def install(self, package=DEB):
        self.run("-i", package)

    def remove(self):
        self.run("-r", "otelprof")

    def forget(self):
        self.run("-P", "otelprof")


class Rpm(Dpkg):
    """Runs rpm: a new database of packages has no glibc in it."""

    newer = f"otelprof-{VERSION}.1.x86_64.rpm"

    def run(self, *what):
        done = subprocess.run(["rpm", "--root", self.root, "--dbpath", "/var/lib/rpm", *map(str, what)], capture_output=True, text=True,
                              check=False, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})
        assert (done.returncode, "failed" in done.stderr) == (0, False), done.stdout + done.stderr

    def install(self, package=RPM):
        self.run("-U", "--nodeps", package)

    def remove(self):
        self.run("-e", "otelprof")

    def forget(self):
        pass


MANAGERS = [Dpkg, pytest.param(Rpm, marks=needs_rpm)]
both = pytest.mark.parametrize("manager", MANAGERS)


def run_in(root, *command):
    done = subprocess.run([shutil.which("chroot"), root, *command], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin"})
    return done.returncode, done.stdout, done.stderr


def arm(root):
    """Leaves the files that `otelprof host enable` leaves, and a line that is not ours."""
    links = root / "run/opentelemetry/otelprof"
    for folder in ("lib", "lib64", "lib/x86_64-linux-gnu"):
        (links / folder).mkdir(parents=True, exist_ok=True)
        for name in ("libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so"):
            (links / folder / name).symlink_to(f"/{FOLDER}/{name}")
    (root / "etc/ld.so.preload").write_text(f"/lib64/ld-linux-x86-64.so.2\n{OUR_LINE}")


def files_of(root):
    """Returns all files except the package managers' own."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.relative_to(root).as_posix().startswith("var/")}


@only_root
@both
def test_installing_turns_nothing_on(root, manager):
    before = files_of(root)
    packages = manager(root)
    packages.install()
    added = files_of(root) - before
    assert not {name for name in added if name.startswith(("run", "etc/ld", "etc/systemd"))}
    assert all(not line or line.startswith("#") for line in (root / SETTINGS / "otelprof.conf").read_text().splitlines())
    status, text, _ = run_in(root, "otelprof", "host", "status")
    assert (status, text.splitlines()[0]) == (3, "armed: no")
    assert "flamegraph" in output(root / "usr/bin/otelprof", "--help")


@only_root
@both
def test_removing_leaves_nothing(root, manager):
    before = files_of(root)
    packages = manager(root)
    packages.install()
    packages.remove()
    packages.forget()
    # folders that other packages install on every system
    shared = {"usr/include", "usr/share", "usr/share/doc", "usr/share/licenses", "usr/lib/systemd", "usr/lib/systemd/system"}
    assert {name for name in files_of(root) - before - shared if not name.startswith("usr/share/man")} == set()


@only_root
@both
def test_removing_disarms_first(root, manager):
    packages = manager(root)
    packages.install()
    arm(root)
    packages.remove()
    assert (root / "etc/ld.so.preload").read_text() == "/lib64/ld-linux-x86-64.so.2\n"
    assert not (root / "run/opentelemetry").exists()
    assert not (root / FOLDER).exists()


@only_root
@both
def test_removing_disarms_by_the_packages_own_command(root, manager):
    """Another command of that name comes before it in the PATH."""
    packages = manager(root)
    packages.install()
    arm(root)
    (root / "usr/sbin/otelprof").write_text("#!/bin/sh\nexit 2\n")
    (root / "usr/sbin/otelprof").chmod(0o755)
    packages.remove()
    assert not (root / "run/opentelemetry").exists()


@only_root
def test_purging_leaves_the_links_of_a_copy_that_armed_the_host_since(root):
    packages = Dpkg(root)
    packages.install()
    packages.remove()
    arm(root)
    packages.forget()
    assert OUR_LINE in (root / "etc/ld.so.preload").read_text()
    assert (root / "run/opentelemetry/otelprof/lib64/libotelprof.so").is_symlink()


@only_root
@both
def test_changed_settings_outlive_an_upgrade_and_a_removal(root, manager, newer):
    packages = manager(root)
    packages.install()
    conf = root / SETTINGS / "otelprof.conf"
    conf.write_text("OTEL_PROFILER_INCLUDE=app\n")
    packages.install(newer / packages.newer)
    assert conf.read_text() == "OTEL_PROFILER_INCLUDE=app\n"
    packages.remove()
    kept = [path.read_text() for path in conf.parent.glob("otelprof.conf*")]
    assert kept == ["OTEL_PROFILER_INCLUDE=app\n"]
    packages.forget()


@only_root
@both
def test_an_upgrade_leaves_a_host_armed(root, manager, newer):
    packages = manager(root)
    packages.install()
    arm(root)
    (root / "etc/ld.so.preload").write_text(OUR_LINE)
    before = (root / FOLDER / "libotelprof.so").stat().st_ino
    packages.install(newer / packages.newer)
    assert (root / "etc/ld.so.preload").read_text() == OUR_LINE
    after = (root / FOLDER / "libotelprof.so").stat().st_ino
    assert after != before, "a file that programs have mapped is replaced, never written"
    assert run_in(root, "ls", "/usr/lib/opentelemetry") == (0, "otelprof\n", "")
    assert run_in(root, "cat", f"/{FOLDER}/host/release")[1].strip().endswith("x")
    packages.remove()
    assert not (root / "etc/ld.so.preload").exists()


@only_root
@both
def test_an_upgrade_verifies_an_armed_host_again(root, manager, newer):
    """The script uses try-restart: a unit that is not active, because the host is not enabled, stays so."""
    (root / "run/systemd/system").mkdir(parents=True)
    (root / "usr/bin/systemctl").write_text('#!/bin/sh\necho "$@" >> /asked\n')
    (root / "usr/bin/systemctl").chmod(0o755)
    packages = manager(root)
    packages.install()
    assert (root / "asked").read_text() == "daemon-reload\n"
    (root / "asked").unlink()
    packages.install(newer / packages.newer)
    assert "try-restart otelprof-preload.service" in (root / "asked").read_text().splitlines()


def wait_until_mapped(running, library):
    maps = Path(f"/proc/{running.process.pid}/maps")
    eventually(maps.read_text, library, unless=running.process.poll, holds=lambda text: str(library) in text)


@only_root
def test_a_running_process_keeps_its_exporter_through_an_upgrade(start, program, root, newer):
    Dpkg(root).install()
    library = root / FOLDER / "libotelprof.so"
    running = start([program("burn"), "1500", "1"], log_to_stderr=True, env={"LD_PRELOAD": str(library), "OTEL_PROFILER_MIN_LIFETIME": "0"})
    wait_until_mapped(running, library.with_name("libotelprof-flush.so"))
    Dpkg(root).install(newer / Dpkg.newer)
    outcome = running.finish(300)
    assert (outcome.returncode, outcome.stderr) == (7, "")
    assert outcome.instance("burn").cpu_of("burns_cpu") > 0


@only_root
def test_a_running_process_refuses_the_exporter_of_another_build(start, program, root, newer):
    """A package has no folder for each release: after the upgrade the old exporter is gone."""
    Dpkg(root).install()
    library = root / FOLDER / "libotelprof.so"
    running = start([program("burn"), "3000", "1"], log_to_stderr=True, env={"LD_PRELOAD": str(library), "OTEL_PROFILER_MIN_LIFETIME": "2000"})
    wait_until_mapped(running, library)
    os.kill(running.process.pid, signal.SIGSTOP)
    Dpkg(root).install(newer / Dpkg.newer)
    os.kill(running.process.pid, signal.SIGCONT)
    outcome = running.finish(300)
    assert (outcome.returncode, outcome.requests) == (7, [])
    assert "is of another build than libotelprof.so" in outcome.stderr
