"""scripts/bundle/fetch-sources works with an archive of two small packages in a folder, which apt itself reads and
verifies."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = "amd64"
MAIN, SECURITY = ("Debian", "pool/main", ""), ("Debian-Security", "pool/updates/main", "-security")  # label, pool, ending of the suites
INSIDE = "libotelprof-flush.so"
SETTINGS = """# as bad as a machine's own settings can be: none of it is for the bundle
Dir::State "{0}/state"; Dir::State::status "{0}/status"; Dir::Cache "{0}/cache"; Dir::Log "{0}/log";
Dir::Etc::sourcelist "{0}/sources.list"; Dir::Etc::sourceparts "-"; Dir::Etc::trusted "-"; Dir::Etc::trustedparts "-";
APT::Sandbox::User ""; APT::Architecture "{1}"; APT::Architectures {{ "{1}"; }};
APT::Get::AllowUnauthenticated "true"; Acquire::AllowInsecureRepositories "true"; Acquire::AllowWeakRepositories "true";
Acquire::AllowDowngradeToInsecureRepositories "true"; Acquire::http::Proxy "http://127.0.0.1:1"; Acquire::Retries::Delay "false";
"""

HAS_TOOLS = all(map(shutil.which, ("apt-get", "dpkg", "gpg"))) or os.environ.get("CI") == "true"
pytestmark = pytest.mark.skipif(not HAS_TOOLS, reason="no apt, dpkg or gpg: `scripts/install-deps test`")


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Key:
    """Makes a key without a password, in a folder whose path is short enough for gpg's agent."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="key", dir="/tmp"))
        self.gpg("--quick-gen-key", "archive@example.com", "ed25519", "sign", "never")
        self.public = self.folder / "public.gpg"
        self.gpg("--output", self.public, "--export")

    def gpg(self, *arguments):
        subprocess.run(["gpg", "--homedir", self.folder, "--batch", "--quiet", "--passphrase", "", *arguments], check=True, capture_output=True)

    def remove(self):
        subprocess.run(["gpgconf", "--homedir", self.folder, "--kill", "all"], check=False, capture_output=True)
        shutil.rmtree(self.folder)


class Source(NamedTuple):
    """Makes a source package: a .dsc, and one more file."""

    name: str
    version: str

    def files(self):
        stem = f"{self.name}_{self.version.split(':')[-1]}"
        tar = f"the source of {self.name} {self.version}".encode()
        dsc = f"Source: {self.name}\nVersion: {self.version}\nChecksums-Sha256:\n {sha256(tar)} {len(tar)} {stem}.tar.xz\nFiles:\n"
        return {f"{stem}.dsc": dsc.encode(), f"{stem}.tar.xz": tar}

    def dsc(self):
        return next(iter(self.files()))

    def hash(self):
        return sha256(self.files()[self.dsc()])

    def row(self, release, licence):
        return f"{release:8} {self.name:8} {self.version:20} {self.hash()} {licence:12} {INSIDE}"

    def entry(self, folder):
        sums = "".join(f" {sha256(content)} {len(content)} {name}\n" for name, content in self.files().items())
        return f"Package: {self.name}\nBinary: {self.name}\nVersion: {self.version}\nArchitecture: any\nFormat: 3.0 (native)\n" \
               f"Directory: {folder}\nChecksums-Sha256:\n{sums}\n"


CURL, CURL_NEXT, CURL_FIXED = (Source("curl", f"8.14.1-2+deb13u{number}") for number in (5, 9, 10))
CURL_OLD = Source("curl", "8.14.1-2")
ZLIB, ZLIB_NEXT = Source("zlib", "1:1.2.13.dfsg-1"), Source("zlib", "1:1.2.13.dfsg-1+deb12u1")
TABLE = f"# What is inside:\n{CURL.row('trixie', 'curl')}\n# (a remark)\n{ZLIB.row('bookworm', 'Zlib')}\n"
THIRD_PARTY = "# Third\n\n| Debian source package | version | licence |\n| --- | --- | --- |\n{}| zlib | 1:1.2.13.dfsg-1 | Zlib |\n\nThe end.\n"


class Machine:
    """Has a checkout with a table of two packages, an archive, an apt that uses it, and a folder of sources."""

    def __init__(self, folder, key):
        self.folder, self.key = folder, key
        self.table = folder / "checkout/scripts/bundle/sources"
        self.sources, self.used = folder / "sources", folder / "build/sources.used"
        self.table.parent.mkdir(parents=True)
        for name in ("fetch-sources", "third-party"):
            shutil.copy(ROOT / "scripts/bundle" / name, self.table.parent)
        self.table.write_text(TABLE)
        self.third_party = folder / "checkout/THIRD_PARTY.md"
        self.third_party.write_text(THIRD_PARTY.format("| curl | 8.14.1-2+deb13u5 | curl |\n"))
        for name in ("state/lists/partial", "cache/archives/partial", "log"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        (folder / "apt.conf").write_text(SETTINGS.format(folder, ARCHITECTURE))
        self.environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "APT_CONFIG": str(folder / "apt.conf"), "BUNDLE_KEYRING": str(key.public)}

    def part(self, part):
        return self.folder / part[0]

    def publish(self, part, bookworm, trixie, key=None):
        """Makes a part of the archive again. Its pool keeps what it has."""
        label, pool, ending = part
        for release, packages in (("bookworm", bookworm), ("trixie", trixie)):
            suite = self.part(part) / f"dists/{release}{ending}"
            indexes = {"main/source/Sources": "".join(each.entry(f"{pool}/{each.name[0]}/{each.name}") for each in packages),
                       f"main/binary-{ARCHITECTURE}/Packages": "Package: any\nVersion: 1\nArchitecture: all\n\n"}
            for name, text in indexes.items():
                (suite / name).parent.mkdir(parents=True, exist_ok=True)
                (suite / name).write_text(text)
            sums = "".join(f" {sha256(text.encode())} {len(text)} {name}\n" for name, text in indexes.items())
            (suite / "Release").write_text(
                f"Origin: Debian\nLabel: {label}\nSuite: {release}{ending}\nCodename: {release}{ending}\nDate: Thu, 01 May 2025 00:00:00 UTC\n"
                f"Architectures: {ARCHITECTURE}\nComponents: main\nSHA256:\n{sums}")
            (key or self.key).gpg("--yes", "--digest-algo", "SHA512", "--output", suite / "InRelease", "--clearsign", suite / "Release")
            for package in packages:
                for name, content in package.files().items():
                    (self.pool(part, package) / name).parent.mkdir(parents=True, exist_ok=True)
                    (self.pool(part, package) / name).write_bytes(content)

    def pool(self, part, package):
        return self.part(part) / part[1] / package.name[0] / package.name

    def drop(self, part, package):
        for name in package.files():
            (self.pool(part, package) / name).unlink()

    def configure(self, *parts):
        """Sets up the machine's own apt: the binary packages of one release. The lists have been read."""
        lines = [f"deb [signed-by={self.key.public}] copy:{self.part(part)} bookworm{part[2]} main\n" for part in parts]
        (self.folder / "sources.list").write_text("".join(lines))
        subprocess.run(["apt-get", "-qq", "update"], env=self.environment, check=True, capture_output=True)

    def fetch(self, *options, **environment):
        return subprocess.run([self.table.with_name("fetch-sources"), *options, self.sources, self.used], capture_output=True, text=True,
                              check=False, env={**self.environment, **environment})

    def fetches(self, *options, **environment):
        done = self.fetch(*options, **environment)
        assert done.returncode == 0, done.stderr
        return done

    def fetches_without_apt(self):
        """Runs with only an apt-get that refuses everything."""
        (self.folder / "bin").mkdir(exist_ok=True)
        (self.folder / "bin/apt-get").write_text("#!/bin/sh\nexit 100\n")
        (self.folder / "bin/apt-get").chmod(0o755)
        return self.fetches(PATH=f"{self.folder}/bin:{os.environ['PATH']}")

    def refuses(self, why, *options):
        done = self.fetch(*options)
        assert done.returncode == 1 and re.search(why, done.stderr.splitlines()[-1]), done.stderr
        assert not self.used.exists()

    def names(self):
        return {path.name for path in self.sources.iterdir() if path.is_file()}

    def has(self, *packages):
        return all((self.sources / name).is_file() and (self.sources / name).read_bytes() == content
                   for package in packages for name, content in package.files().items())


@pytest.fixture(scope="module")
def key():
    key = Key()
    yield key
    key.remove()


@pytest.fixture(scope="module")
def other_key():
    key = Key()
    yield key
    key.remove()


@pytest.fixture
def machine(tmp_path, key):
    """Has an archive with the versions of the table."""
    machine = Machine(tmp_path, key)
    machine.publish(MAIN, [ZLIB], [CURL])
    machine.configure(MAIN)
    return machine


def replaced(text, old, new):
    """Returns a table with another version of a package in it, in the same columns."""
    return text.replace(f"{old.version:20}", f"{new.version:20}").replace(old.hash(), new.hash())


def said_of(machine, old, new, release="trixie"):
    return f"fetch-sources: {old.name} {old.version} is gone from the archive; the bundle is built from {new.version} of {release} instead: " \
           f"`make bundle LATEST=1` writes that to {machine.table}\n"


# --- the versions of the table ---

def test_the_versions_of_the_table_are_brought(machine):
    done = machine.fetches()
    assert (done.stdout.splitlines(), done.stderr) == (["  FETCH  curl=8.14.1-2+deb13u5", "  FETCH  zlib=1:1.2.13.dfsg-1"], "")
    assert machine.has(CURL, ZLIB)
    assert machine.names() == {*CURL.files(), *ZLIB.files()}
    assert machine.used.read_text() == TABLE
    assert machine.fetches_without_apt().stdout == ""


def test_a_version_that_only_the_pool_has_is_not_replaced(machine):
    machine.publish(MAIN, [ZLIB], [CURL_NEXT])
    assert machine.fetches().stderr == ""
    assert machine.has(CURL) and machine.used.read_text() == TABLE


def test_a_version_of_the_security_suite_is_brought(machine):
    machine.publish(MAIN, [ZLIB], [CURL_OLD])
    machine.publish(SECURITY, [], [CURL])
    machine.drop(MAIN, CURL)
    machine.configure(MAIN, SECURITY)
    assert machine.fetches().stderr == ""
    machine.publish(SECURITY, [], [])
    shutil.rmtree(machine.sources)
    assert machine.fetches().stderr == "", "by the pool of the security suites"
    assert machine.has(CURL) and machine.used.read_text() == TABLE


def test_a_file_that_was_cut_off_is_brought_again(machine):
    machine.fetches()
    for name in CURL.files():
        (machine.sources / name).write_bytes(b"half")
        assert machine.fetches().stderr == ""
        assert machine.has(CURL)


# --- a version that the archive has dropped ---

@pytest.fixture
def dropped(machine):
    """Has the next point release in the archive, and the table's curl nowhere."""
    machine.publish(MAIN, [ZLIB], [CURL_OLD, CURL_NEXT])
    machine.drop(MAIN, CURL)
    return machine


def test_a_dropped_version_is_replaced_by_the_indexs(dropped):
    done = dropped.fetches()
    assert done.stderr == said_of(dropped, CURL, CURL_NEXT)
    assert dropped.has(CURL_NEXT, ZLIB)
    assert dropped.used.read_text() == replaced(TABLE, CURL, CURL_NEXT) != TABLE
    assert dropped.table.read_text() == TABLE, "the table is moved on request alone"


def test_the_replacement_is_kept_for_builds_without_a_network(dropped):
    dropped.fetches()
    dropped.used.unlink()
    done = dropped.fetches_without_apt()
    assert (done.stdout, done.stderr) == ("", said_of(dropped, CURL, CURL_NEXT))
    assert dropped.used.read_text() == replaced(TABLE, CURL, CURL_NEXT)


def test_the_replacement_of_one_version_is_not_that_of_another(dropped):
    dropped.fetches()
    dropped.publish(MAIN, [ZLIB], [CURL_FIXED])
    table = replaced(TABLE, CURL, CURL_FIXED)
    dropped.table.write_text(table)
    assert dropped.fetches().stderr == ""
    assert dropped.used.read_text() == table


def test_the_security_suite_is_asked_too_where_apt_has_it(dropped):
    dropped.publish(SECURITY, [], [CURL_FIXED])
    assert dropped.fetches().stderr == said_of(dropped, CURL, CURL_NEXT)
    shutil.rmtree(dropped.sources)
    dropped.configure(MAIN, SECURITY)
    assert dropped.fetches().stderr == said_of(dropped, CURL, CURL_FIXED)
    assert dropped.has(CURL_FIXED) and dropped.used.read_text() == replaced(TABLE, CURL, CURL_FIXED)


def test_a_version_that_has_moved_from_the_security_suite_to_the_release_is_taken(dropped):
    """Both indexes name the version, and one pool has it."""
    dropped.publish(MAIN, [ZLIB], [CURL_FIXED])
    dropped.publish(SECURITY, [], [CURL_FIXED])
    dropped.drop(SECURITY, CURL_FIXED)
    dropped.configure(MAIN, SECURITY)
    assert dropped.fetches().stderr == said_of(dropped, CURL, CURL_FIXED)
    assert dropped.has(CURL_FIXED)


def test_another_release_offers_nothing(machine):
    machine.publish(MAIN, [ZLIB, CURL_FIXED], [])
    machine.drop(MAIN, CURL)
    machine.refuses("curl 8.14.1-2.deb13u5 cannot be fetched, and nothing newer for trixie")


def test_nothing_older_is_taken(machine):
    machine.publish(MAIN, [ZLIB], [CURL_OLD])
    machine.drop(MAIN, CURL)
    machine.refuses("nothing newer for trixie")


def test_a_version_that_an_index_still_names_is_replaced_if_no_pool_has_it(dropped):
    """The security suite's index names versions even after they have moved to the release."""
    dropped.publish(SECURITY, [], [CURL])
    dropped.drop(SECURITY, CURL)
    dropped.configure(MAIN, SECURITY)
    assert dropped.fetches().stderr == said_of(dropped, CURL, CURL_NEXT)
    assert dropped.has(CURL_NEXT)


def is_gone(machine):
    shutil.rmtree(machine.part(SECURITY))


def is_not_reached(machine):
    """Gives the archive another address, where nothing listens. This apt only warns of that."""
    part = machine.part(SECURITY)
    listed = machine.folder / "sources.list"
    listed.write_text(listed.read_text().replace(f"copy:{part}", "http://archive.invalid"))
    for path in (machine.folder / "state/lists").glob("*_Debian-Security_*"):
        path.rename(path.with_name("archive.invalid_" + path.name.partition("_Debian-Security_")[2]))


@pytest.mark.parametrize("change", [is_gone, is_not_reached])
def test_a_build_without_the_security_suites_reports_it(dropped, change):
    dropped.publish(SECURITY, [], [CURL_FIXED])
    dropped.configure(MAIN, SECURITY)
    change(dropped)
    first, second = dropped.fetches().stderr.splitlines(keepends=True)
    assert first == "fetch-sources: Debian's security suites cannot be read and verified; going on without them\n"
    assert second == said_of(dropped, CURL, CURL_NEXT)


# --- what is refused ---

@pytest.mark.parametrize("ending", [".dsc", ".tar.xz"])
@pytest.mark.parametrize("where", ["index", "pool"])
def test_a_file_with_another_hash_is_refused(machine, where, ending):
    """There is a newer version, but the table's is not gone: a changed file must not select what is built."""
    machine.publish(MAIN, [ZLIB], [CURL, CURL_NEXT] if where == "index" else [CURL_NEXT])
    (name,) = [name for name in CURL.files() if name.endswith(ending)]
    file = machine.pool(MAIN, CURL) / name
    file.write_bytes(file.read_bytes()[::-1])
    machine.refuses(f"refused, and removed: what the archive has as {re.escape(name)} has another hash than it should")
    assert name not in machine.names()


@pytest.mark.parametrize("ending", [".dsc", ".tar.xz"])
def test_a_replacement_with_another_hash_is_refused(dropped, ending):
    (name,) = [name for name in CURL_NEXT.files() if name.endswith(ending)]
    file = dropped.pool(MAIN, CURL_NEXT) / name
    file.write_bytes(file.read_bytes()[::-1])
    dropped.refuses(f"refused, and removed: what the archive has as {re.escape(name)} has another hash than it should")
    assert not dropped.has(CURL_NEXT)


def test_nothing_that_a_refused_dsc_names_is_fetched(machine):
    machine.publish(MAIN, [ZLIB], [CURL_NEXT])
    (machine.pool(MAIN, CURL) / CURL.dsc()).write_text(f"Checksums-Sha256:\n {sha256(b'')} 0 ../outside\n")
    (machine.pool(MAIN, CURL).parent / "outside").touch()
    machine.refuses("refused, and removed")
    assert not (machine.folder / "outside").exists()


def test_a_version_of_the_table_that_the_index_has_with_another_hash_is_refused(machine):
    machine.table.write_text(TABLE.replace(CURL.hash(), sha256(b"another")))
    machine.refuses("refused, and removed: what the archive has as curl_.*dsc has another hash")
    assert not set(CURL.files()) & {name for name in machine.names() if name.endswith(".dsc")}


def unsigned(machine, _):
    (machine.part(MAIN) / "dists/trixie/InRelease").unlink()


def signed_by_another(machine, other):
    machine.publish(MAIN, [ZLIB], [CURL_NEXT], key=other)


def index_is_changed(machine, _):
    index = machine.part(MAIN) / "dists/trixie/main/source/Sources"
    index.write_text(index.read_text().replace(CURL_NEXT.hash(), sha256(b"another")))


@pytest.mark.parametrize("change", [unsigned, signed_by_another, index_is_changed])
@pytest.mark.parametrize("options", [(), ("--latest",)])
def test_nothing_is_taken_from_an_index_that_apt_does_not_verify(dropped, other_key, change, options):
    """This machine's settings would allow such an index."""
    change(dropped, other_key)
    dropped.refuses("the archive's indexes cannot be read and verified", *options)
    assert not dropped.has(CURL_NEXT) and dropped.table.read_text() == TABLE


# --- make bundle LATEST=1 ---

def test_latest_moves_the_table_and_prints_the_difference(machine):
    machine.publish(MAIN, [ZLIB_NEXT], [CURL_NEXT, CURL_FIXED])
    done = machine.fetches("--latest")
    moved = replaced(replaced(TABLE, CURL, CURL_FIXED), ZLIB, ZLIB_NEXT)
    assert machine.table.read_text() == machine.used.read_text() == moved
    assert moved.count("# ") == 2
    changed = {line for line in done.stdout.splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")}
    old, new = TABLE.splitlines(), moved.splitlines()
    assert changed == {f"-{old[1]}", f"-{old[3]}", f"+{new[1]}", f"+{new[3]}"}
    assert "| curl | 8.14.1-2+deb13u10 | curl |\n| zlib | 1:1.2.13.dfsg-1+deb12u1 | Zlib |\n\nThe end." in machine.third_party.read_text()
    assert machine.has(CURL_FIXED, ZLIB_NEXT) and not machine.has(CURL)
    assert machine.fetches_without_apt().stderr == "", "the versions are those of the table from now on"


@pytest.mark.parametrize("latest", [False, True])
def test_an_index_that_is_ahead_of_the_pool_does_not_stop_a_build(dropped, latest):
    """The mirror's index ends with a version that the mirror does not have yet."""
    dropped.publish(MAIN, [ZLIB], [CURL_NEXT, CURL_FIXED])
    dropped.drop(MAIN, CURL_FIXED)
    lines = dropped.fetches(*["--latest"] * latest).stderr.splitlines(keepends=True)
    skipped = "fetch-sources: curl 8.14.1-2+deb13u10 is in the archive's index, but cannot be fetched; trying the version before it\n"
    assert lines == [skipped] + [said_of(dropped, CURL, CURL_NEXT)] * (not latest)
    assert dropped.used.read_text() == replaced(TABLE, CURL, CURL_NEXT)
    assert dropped.table.read_text() == (dropped.used.read_text() if latest else TABLE)


def test_latest_moves_nothing_back(machine):
    machine.publish(MAIN, [ZLIB], [CURL_OLD])
    done = machine.fetches("--latest")
    assert done.stdout.splitlines()[-1] == f"fetch-sources: the archive has nothing newer than {machine.table}"
    assert machine.table.read_text() == machine.used.read_text() == TABLE
    assert machine.third_party.read_text() == THIRD_PARTY.format("| curl | 8.14.1-2+deb13u5 | curl |\n")


@pytest.mark.parametrize("change", [is_gone, is_not_reached])
def test_latest_does_not_do_without_the_security_suites(machine, change):
    machine.publish(SECURITY, [], [CURL_FIXED])
    machine.configure(MAIN, SECURITY)
    machine.publish(MAIN, [ZLIB], [CURL_NEXT])
    change(machine)
    machine.refuses("the archive's indexes cannot be read and verified", "--latest")
    assert machine.table.read_text() == TABLE


@pytest.mark.parametrize("latest, options", [((), []), (("LATEST=1",), ["--latest"])])
def test_make_bundle_builds_from_the_table_that_was_written(tmp_path, latest, options):
    """Each step has the table of the step before it."""
    done = subprocess.run(["make", "-n", "bundle", f"BUILD={tmp_path}", "BUNDLE_SOURCES=/given", *latest], cwd=ROOT, capture_output=True,
                          text=True, check=True, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    steps = [line.split() for line in done.stdout.splitlines() if line.startswith(("scripts/bundle/", "install"))]
    folder, table = f"{tmp_path}/bundle-build", f"{tmp_path}/bundle-build/sources.used"
    assert ["scripts/bundle/fetch-sources", *options, "/given", table] in steps
    assert ["scripts/bundle/build-libraries", "/given", table, f"{folder}/libraries"] in steps
    assert ["scripts/bundle/third-party", f"{folder}/libraries/sources", ">", f"{folder}/THIRD_PARTY.md"] in steps
    assert any(f"{folder}/libraries/sources" in step and step[-1].endswith("/licences") for step in steps if step[0] == "install")
    assert not [step for step in steps if "scripts/bundle/sources" in step]


# --- readers of the table ---

@pytest.fixture
def tree(dropped):
    """Makes the relevant part of a bundle whose curl has been replaced."""
    dropped.fetches()
    folder = dropped.folder / "tree"
    (folder / "licences").mkdir(parents=True)
    shutil.copy(dropped.used, folder / "licences/sources")
    (folder / INSIDE).write_text("the exporter")
    return folder


def test_the_packages_name_the_version_that_was_built(tree, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "scripts/packages"), *sys.path])
    code = "import sys; from pathlib import Path; from installed import copyright_file; from materials import materials; " \
           "tree = Path(sys.argv[1]); print(copyright_file(tree), materials(tree, tree / sys.argv[2], '1', 0))"
    done = subprocess.run([sys.executable, "-B", "-c", code, tree, INSIDE], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(ROOT / "scripts/packages")})
    assert f"  curl {CURL_NEXT.version}: curl\n  zlib {ZLIB.version}: Zlib\n" in done.stdout
    assert f'"versionInfo": "{CURL_NEXT.version}"' in done.stdout
    assert CURL_NEXT.hash() in done.stdout
    assert not re.search(re.escape(CURL.version) + r"\b", done.stdout) and CURL.hash() not in done.stdout


def test_third_party_names_the_version_that_was_built(dropped):
    dropped.fetches()
    done = subprocess.run([dropped.table.with_name("third-party"), dropped.used], capture_output=True, text=True, check=True)
    assert done.stdout == THIRD_PARTY.format(f"| curl | {CURL_NEXT.version} | curl |\n")


def test_third_party_of_the_table_is_the_repositorys():
    done = subprocess.run([ROOT / "scripts/bundle/third-party", ROOT / "scripts/bundle/sources"], capture_output=True, text=True, check=True)
    assert done.stdout == (ROOT / "THIRD_PARTY.md").read_text()


def test_the_libraries_are_built_from_the_table_that_is_given(tree, tmp_path):
    """zlib, the first, is searched for by the version and the hash of the table; it cannot be unpacked."""
    table = tmp_path / "given"
    table.write_text(replaced(TABLE, ZLIB, ZLIB_NEXT))
    for name, content in ZLIB_NEXT.files().items():
        (tree / name).write_bytes(content)
    done = subprocess.run([ROOT / "scripts/bundle/build-libraries", tree, table, tmp_path / "libraries"], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and f"dpkg-source --extract {tree}/{ZLIB_NEXT.dsc()}" in done.stderr
