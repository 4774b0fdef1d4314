"""Installs a package of npm that a test needs, in its exact version; the package's scripts are not run."""

import contextlib
import os
import shutil
import subprocess

import pytest

AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"  # the system's list, which node does not use by itself


def _install(name, folder):
    """A registry that does not respond ends the test, not the run."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder, name]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=180,
                       env={"NODE_EXTRA_CA_CERTS": AUTHORITIES, **os.environ})


def npm_package(name, folder):
    """Returns the folder of `package@version`, below a folder that is kept; in CI the package must be there."""
    found = folder / "node_modules" / name.rpartition("@")[0]
    if not found.exists() and shutil.which("npm"):
        _install(name, folder)
    if not found.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} cannot be had from npm")
        pytest.skip(f"{name} cannot be had from npm")
    return found
