"""Makes a machine of a test's own: a mount namespace with an /etc, a /run and a /srv that no other process sees. There
`otelprof host` may do all that it does to a real machine. The command is in /srv/otelprof, as in a bundle."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
BUNDLE = "/srv/otelprof"
PRELOAD = "/etc/ld.so.preload"
RUN = "/run/opentelemetry/otelprof"
LINE = f"{RUN}/$LIB/libotelprof.so\n"
CONFIGURATION = "/etc/opentelemetry/otelprof"
OF_ETC = ("passwd", "group", "ld.so.cache", "nsswitch.conf")
SET_UP = f"""set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /srv
mkdir /srv/etc
for name in {" ".join(OF_ETC)}; do [ ! -e /etc/$name ] || cp -a /etc/$name /srv/etc; done
mount --bind /srv/etc /etc
mount -t tmpfs -o mode=755 tmpfs /run
echo ready
exec sleep 3600
"""


def can_be_made():
    return os.geteuid() == 0 and all(map(shutil.which, ("unshare", "nsenter", "mount"))) and \
        subprocess.run(["unshare", "-m", "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0


class Machine:
    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-c", SET_UP], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"
        self.root = Path(f"/proc/{self.holder.pid}/root")
        folder = self.path(BUNDLE)
        (folder / "lib32").mkdir(parents=True)
        for name in ("libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so", "lib32/libotelprof.so"):
            shutil.copy(BUILD / name, folder / name)
        shutil.copy(ROOT / "scripts/otelprof", folder)
        shutil.copytree(ROOT / "scripts/host", folder / "host")
        (folder / "otelprof_lib").mkdir()
        self.run("chown", "-R", "0:0", BUNDLE)

    def path(self, absolute):
        return self.root / absolute.lstrip("/")

    def write(self, path, text, mode=0o644):
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, str):
            text = text.encode()
        file.write_bytes(text)
        file.chmod(mode)

    def preload(self):
        with contextlib.suppress(FileNotFoundError):
            return self.path(PRELOAD).read_bytes().decode()
        return None

    def run(self, *command, env=None):
        return subprocess.run([shutil.which("nsenter"), f"--mount=/proc/{self.holder.pid}/ns/mnt", "--", *command], env={"PATH": os.environ["PATH"]} | (env or {}),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)

    def host(self, command, shell=(), **more):
        return self.run(*shell, f"{BUNDLE}/otelprof", "host", command, **more)

    def installs(self, program):
        """Puts an object that a test has built in the library's place."""
        shutil.copy(program, self.path(f"{BUNDLE}/libotelprof.so"))

    def files(self):
        """Returns all of /etc and /run, as path: content or target."""
        found = {}
        for top in ("/etc", "/run"):
            for path in self.path(top).rglob("*"):
                name = str(path.relative_to(self.root))
                found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else path.stat().st_mode
        return found

    def end(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
