"""Names other allocators, to be preloaded beside the profiler: their libraries as this machine has them."""

import os
import subprocess
from pathlib import Path

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


def library(*names):
    """Returns the first of `names` that is installed; else the first, whose absence the loader will report."""
    return str(next((LIBRARIES / name for name in names if (LIBRARIES / name).exists()), LIBRARIES / names[0]))


PATHS = {
    "jemalloc": library("libjemalloc.so.2"),
    "tcmalloc": library("libtcmalloc_minimal.so.4"),
    "mimalloc": library("libmimalloc.so.2", "libmimalloc.so.3"),  # Debian 12, Debian 13
}


def stands_alone(allocator, command, environment=()):
    """Returns whether a program lives under an allocator without the profiler, three times of three.

    mimalloc 3.0.1 (Debian 13) corrupts objects that threads leave to each other.
    """
    return all(
        subprocess.run(
            [str(part) for part in command], env={**os.environ, **dict(environment), "LD_PRELOAD": PATHS[allocator]},
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        ).returncode == 0
        for _ in range(3)
    )
