"""Makes the roots of the test of hosts: Debian of four releases by debootstrap, kept in a cache, and roots that hold
next to nothing. Each is the lowest of several layers (layers.py): nothing is ever written into it."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "boot"))

import layers  # noqa: E402
import root as image  # noqa: E402

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otelprof" / "roots"
SUITES = ("bullseye", "bookworm", "trixie", "sid")
# Lists what a host has, another C library, libc's headers to build programs for this release, and other preloads.
PACKAGES = (*image.PACKAGES, "perl", "procps", "gawk", "gzip", "musl", "libc6-dev",
            "libeatmydata1", "libfaketime", "libjemalloc2", "libsocket-wrapper", "snoopy", "torsocks")
# Lists OpenTelemetry's C++ SDK, and what builds programs with it; and the releases that have it.
SDK = ("g++", "clang", "pkgconf", "libabsl-dev", "opentelemetry-cpp-dev")
WITH_SDK = ("trixie", "sid")
# Releases whose glibc is older: there the profiler does nothing.
TOO_OLD = ("bullseye",)
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = "lib64/ld-linux-x86-64.so.2"
MUSL_LOADER = "lib/ld-musl-x86_64.so.1"


def debian(suite):
    """Makes the release, with a C library for 32-bit programs."""
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
    """Makes links relative, so that a compiler outside of the root follows them as well."""
    target = os.path.relpath(os.readlink(link), "/" / link.parent.resolve().relative_to(root))
    link.unlink()
    link.symlink_to(target)


def add_32_bits(root):
    subprocess.run(["chroot", root, "dpkg", "--add-architecture", "i386"], check=True)
    add_packages(root, "libc6:i386")


def add_packages(root, *packages):
    in_root = ["chroot", root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "DPkg::Use-Pty=false"]
    # (a mirror that is a snapshot reports that its sid has expired)
    for command in (["-o", "Acquire::Check-Valid-Until=no", "update"], ["-y", "install", "--no-install-recommends", *packages]):
        subprocess.run([*in_root, *command], check=True, stdout=subprocess.DEVNULL)


def with_sdk(suite):
    """Makes a layer above the release, once: with the packages of SDK."""
    below, layer, made = debian(suite), CACHE / f"{suite}-sdk", CACHE / f"{suite}-sdk.made"
    is_made = made.exists() and made.read_text() == shlex.join(SDK)
    if is_made and made.stat().st_mtime > below.with_suffix(".made").stat().st_mtime:
        return layer
    made.unlink(missing_ok=True)
    shutil.rmtree(layer, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        scratch = Path(folder)
        with layers.layered(scratch, below) as root, layers.at_work(root):
            add_packages(root, *SDK)
        (scratch / "changes").rename(layer)
    made.write_text(shlex.join(SDK))
    return layer
