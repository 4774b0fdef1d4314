"""The roots of the test of hosts: Debian of four releases by debootstrap, kept in a cache, and roots that hold next
to nothing. Each is the lowest of several layers (layers.py): nothing is ever written into it."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "boot"))

import root as image  # noqa: E402

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otelprof" / "roots"
SUITES = ("bullseye", "bookworm", "trixie", "sid")
# What a host has, another C library, libc's headers to build programs for this release, and others that are preloaded.
PACKAGES = (*image.PACKAGES, "perl", "procps", "gawk", "gzip", "musl", "libc6-dev",
            "libeatmydata1", "libfaketime", "libjemalloc2", "libsocket-wrapper", "snoopy", "torsocks")
# Where glibc is older the profiler stands aside.
TOO_OLD = ("bullseye",)
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = "lib64/ld-linux-x86-64.so.2"
MUSL_LOADER = "lib/ld-musl-x86_64.so.1"


def debian(suite):
    """The release, with a C library for 32-bit programs."""
    CACHE.mkdir(parents=True, exist_ok=True)
    root = CACHE / suite
    image.debootstrap(root, suite, PACKAGES, finish=complete)
    return root


def complete(root):
    add_32_bits(root)
    for link in [root / LOADER, *(root / LIBRARIES).glob("*.so")]:
        if link.is_symlink() and os.readlink(link).startswith("/"):
            make_relative(root, link)


def make_relative(root, link):
    """So that a compiler outside of the root follows it as well."""
    target = os.path.relpath(os.readlink(link), "/" / link.parent.resolve().relative_to(root))
    link.unlink()
    link.symlink_to(target)


def add_32_bits(root):
    in_root = ["chroot", root, "env", "DEBIAN_FRONTEND=noninteractive"]
    # (a mirror that is a snapshot says of sid that it has expired)
    for command in (["dpkg", "--add-architecture", "i386"], ["apt-get", "-q", "-o", "Acquire::Check-Valid-Until=no", "update"],
                    ["apt-get", "-q", "-y", "install", "--no-install-recommends", "libc6:i386"]):
        subprocess.run([*in_root, *command], check=True, stdout=subprocess.DEVNULL)
