"""Builds the project for aarch64, and runs programs of that processor by qemu-user, as root.

The root is a Debian of this machine's release for arm64: debootstrap fetches its packages, and each is unpacked, because
nothing is configured in it. Programs run in it by chroot, in a namespace of mounts of their own, without binfmt: a program
that starts another does not work. The build is inside the root, so its path is one inside the root, too.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "test" / "boot"))

import root as image  # noqa: E402

EMULATOR = "/usr/bin/qemu-aarch64-static"
TRIPLET = "aarch64-linux-gnu"
NEEDED = ("debootstrap", f"{TRIPLET}-gcc", f"{TRIPLET}-g++", EMULATOR)
PACKAGES = ("libc6-dev", "libstdc++-12-dev,libstdc++-14-dev", "libcurl4-openssl-dev", "libzstd-dev", "zlib1g-dev", "libprotobuf-c-dev",
            "libdw-dev", "libelf-dev", "liblzma-dev", "nettle-dev", "libyaml-dev", "libunwind-dev", "libmicrohttpd-dev",
            "libiberty-dev", "libcmocka-dev", "python3-minimal")
PROFILED = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_MAX_OVERHEAD": "none"}


def missing():
    return [tool for tool in NEEDED if not shutil.which(tool)]


def available(names):
    """Returns the first of a,b,c that this release has."""
    return next(name for name in names.split(",")
                if subprocess.run(["apt-cache", "show", name], capture_output=True, check=False).stdout)


class Machine:
    def __init__(self, build):
        """`build`: the build folder of this machine. The root is beside it, because make searches that folder for files
        whose names end as those of dependencies (*.d) do."""
        self.root = Path(f"{build}-aarch64") / "root"
        self.build = self.root / "build"

    def prepare(self):
        """Makes the root, once."""
        made = self.root.with_suffix(".made")
        if made.exists():
            return
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.parent.mkdir(parents=True, exist_ok=True)
        packages = ",".join(available(names) for names in PACKAGES)
        subprocess.run(["debootstrap", "--arch=arm64", "--variant=minbase", "--foreign", f"--include={packages}",
                        image.release(), self.root, image.mirror()], check=True, stdout=subprocess.DEVNULL)
        for package in sorted((self.root / "var/cache/apt/archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, self.root], check=True)
            package.unlink()
        shutil.copy(EMULATOR, self.root / "usr/bin")
        (self.root / "tmp").chmod(0o1777)
        made.touch()

    def make(self, *targets):
        """Runs make for aarch64. `targets`: paths below the build folder."""
        packages = self.root / f"usr/lib/{TRIPLET}/pkgconfig"
        environment = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(self.root), "PKG_CONFIG_LIBDIR": str(packages)}
        environment.pop("MAKEFLAGS", None)
        done = subprocess.run(
            ["make", f"-j{os.cpu_count()}", f"CC={TRIPLET}-gcc --sysroot={self.root}", f"CXX={TRIPLET}-g++ --sysroot={self.root}",
             f"AR={TRIPLET}-ar", f"OBJCOPY={TRIPLET}-objcopy", f"BUILD={self.build}", *(f"{self.build}/{name}" for name in targets)],
            cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        assert "warning:" not in done.stderr, done.stderr[-4000:]

    def compile(self, source, name, *flags):
        """Compiles a program into the root; returns its path there."""
        (self.build / "programs").mkdir(parents=True, exist_ok=True)
        subprocess.run([f"{TRIPLET}-gcc", f"--sysroot={self.root}", "-g", "-pthread", "-D_GNU_SOURCE", *flags, source,
                        "-o", self.build / "programs" / name], check=True)
        return f"/build/programs/{name}"

    def run(self, command, environment=None, emulator=(), timeout=300):
        """Runs a program of the root; `environment`: the profiler's settings, None: it is not preloaded."""
        variables = [] if environment is None else ["LD_PRELOAD=/build/libotelprof.so", *(
            f"{name}={value}" for name, value in {**PROFILED, **environment}.items())]
        given = [word for variable in variables for word in ("-E", variable)]
        enter = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_"))}
        return subprocess.run(["unshare", "--mount", "sh", "-c", enter, self.root, EMULATOR, *emulator, *given, *map(str, command)],
                              capture_output=True, text=True, check=False, timeout=timeout, env=clean, cwd="/")
