"""Makes a root where /etc/ld.so.preload names the profiler, for tests of host-wide rules.

The root is entered by chroot in a new mount namespace, with the machine's programs in it.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from profiled import BUILD, LIBRARY

NOBODY = 65534
FILES = "etc/opentelemetry/otelprof"


class Root:
    """Makes a root with a setuid wrapper, whose /etc/ld.so.preload names the profiler. Python is the profiled
    program."""

    SHARED = ("usr", "bin", "lib", "lib64", "sbin", "proc", "dev", "tmp")

    def __init__(self, folder):
        self.folder = folder
        self.wrapper = folder / "wrapper"
        self.script = folder.parent / "run"

    def build(self):
        for name in self.SHARED:
            if Path(f"/{name}").is_symlink():
                (self.folder / name).symlink_to(os.readlink(f"/{name}"))
            else:
                (self.folder / name).mkdir()
        for name in ("etc", "run", "prof", "secret", "open"):
            (self.folder / name).mkdir()
        for name in ("passwd", "group", "nsswitch.conf", "ld.so.cache", "hosts"):
            if Path(f"/etc/{name}").exists():
                shutil.copy(f"/etc/{name}", self.folder / "etc")
        for library in (LIBRARY, LIBRARY.with_name("libotelprof-flush.so")):
            shutil.copy(library, self.folder / "prof")
        (self.folder / "etc/ld.so.preload").write_text("/prof/libotelprof.so\n")
        shutil.copy(BUILD / "test/programs/becomes_root", self.wrapper)
        os.chown(self.wrapper, 0, 0)
        self.wrapper.chmod(0o4755)
        (self.folder / "open").chmod(0o1777)
        (self.folder / "secret").chmod(0o700)
        (self.folder / "secret/victim").write_text("precious\n")
        (self.folder / FILES).mkdir(parents=True)
        self.configure("OTEL_PROFILER_INCLUDE=python3*", "OTEL_PROFILER_MIN_LIFETIME=0")
        mounts = "\n".join(f"mount --rbind /{name} {self.folder}/{name}" for name in self.SHARED
                           if not (self.folder / name).is_symlink())
        self.script.write_text(f"set -e\n{mounts}\nmount --make-rprivate {self.folder}/proc 2>/dev/null || true\n"
                               'exec "$@"\n')

    def configure(self, *lines, name="otelprof.conf"):
        """Writes a configuration file of these lines."""
        file = self.folder / FILES / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines))
        return file

    def run(self, uid, command, *setpriv, **environment):
        user = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *setpriv]
        return self.run_as(user, command, **environment)

    def run_as(self, user, command, outside=(), **environment):
        """Runs a command. `user`: a command that changes to the user, inside the root; `outside`: one that runs
        outside of it."""
        given = [f"{name}={value}" for name, value in environment.items()]
        return subprocess.run(
            ["unshare", "-m", "--propagation", "private", "sh", self.script, *outside, "chroot", self.folder, *user,
             "env", "-i", *given, *command],
            capture_output=True, text=True, check=False, timeout=600,
            env={"PATH": os.environ["PATH"], "OTEL_PROFILER_EXCLUDE": "*"},
        )


@contextlib.contextmanager
def root_of(kind):
    """Makes a root of this kind for a test."""
    if os.getuid() != 0:
        pytest.skip("needs root, for a root of its own")
    with tempfile.TemporaryDirectory(prefix="otelprof-root-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        made = kind(Path(name) / "root")
        made.folder.mkdir()
        made.build()
        yield made


@pytest.fixture(name="root")
def host_root():
    with root_of(Root) as made:
        yield made
