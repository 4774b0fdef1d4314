"""Builds the programs that a root is given: some are profiled, most have a loader that must load the library or
ignore it."""

import os
import shutil
import subprocess
from pathlib import Path

import layers
import roots

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "programs"
TEST = HERE.parent
NAMES = ("app", "static", "static-pie", "thirty-two", "go", "musl", "musl-static")
SAYS = (5, "out\n", "err\n")  # output of plain.c and plain.go
MUSL_SAYS = (5, "15 3 0\nat the end\n", "")  # test/musl/program.c
BURN_SAYS = (7, "burnt\n", "")  # test/programs/burn.c


def for_release(debian_root):
    """Returns the compiler's flags to build with that release's C library."""
    libraries = debian_root / roots.LIBRARIES
    return f"--sysroot={debian_root}", f"-B{libraries}", f"-L{libraries}"


def build(folder, debian_root):
    """Returns {name: program} for that release, with its own C library."""
    folder.mkdir(parents=True, exist_ok=True)
    built = {name: folder / name for name in NAMES}
    compiler("gcc", "-O2", "-g", *for_release(debian_root), TEST / "programs/burn.c", "-pthread", "-o", built["app"])
    compiler("gcc", "-static", SOURCES / "plain.c", "-o", built["static"])
    compiler("gcc", "-static-pie", SOURCES / "plain.c", "-o", built["static-pie"])
    compiler("gcc", "-m32", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector", "-DWITHOUT_START_FILES", SOURCES / "plain.c",
             "-Wl,--dynamic-linker=/lib/ld-linux.so.2,--allow-shlib-undefined", debian_root / "lib/i386-linux-gnu/libc.so.6", "-o", built["thirty-two"])
    compiler("musl-gcc", TEST / "musl/program.c", "-o", built["musl"])
    compiler("musl-gcc", "-static", TEST / "musl/program.c", "-o", built["musl-static"])
    compiler("go", "build", "-buildmode=pie", "-o", built["go"], SOURCES / "plain.go",
             CGO_ENABLED="0", GOCACHE=str(folder / "cache"), GOFLAGS="-trimpath")
    shutil.rmtree(folder / "cache")
    return built


def compiler(*command, **environment):
    subprocess.run(command, check=True, env={**os.environ, **environment})


def said_by(name):
    """Returns (status, output, errors) that are expected of a program."""
    if name == "app":
        return BURN_SAYS
    return MUSL_SAYS if name.startswith("musl") else SAYS


def wrong(root, folder, names, **environment):
    """Returns lines: which of these programs, there, print something else than they should."""
    for name in names:
        outcome = layers.in_root(root, [f"{folder}/{name}"], **environment)
        if outcome != said_by(name):
            yield f"{name}: {outcome}"
