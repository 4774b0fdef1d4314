#!/usr/bin/python3
"""Runs README's first commands as printed, as a newcomer does: on a fresh Debian 12 and 13 that hold make and git alone.
`make test-hosts` runs it, as root; packages come from where apt has them. newcomer.py [SUITE...] [--keep]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import roots  # noqa: E402 (first: it says where the others are)
import layers  # noqa: E402
import root as image  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("bookworm", "trixie")
PACKAGES = ("ca-certificates", "git", "make")
LIMIT_S = 1800
CLONE = "root/libotelprof"
APP = "gcc -O1 -g -I shim docs/examples/spans.c -o app"  # stands for the reader's own program
# README's commands, and what each leaves: files below the clone, or words that it prints
COMMANDS = (
    ("NO_INSTALL=1 make demo", [], ["missing packages:", "nothing is installed"]),
    ("make demo", ["build/demo/demo.html"], ["spelling::edits_between (index)", "otelprof run --flamegraph app.html"]),
    ("make demo-waits", ["build/demo-waits/demo.html"], ["journal_lock"]),
    ("make demo-python", ["build/demo-python/demo.html"], ["report.is_alike"]),
    ("make demo-links", ["build/demo-links/span.html"], ["shop::wildcard_match"]),
    ("scripts/otelprof run --flamegraph app.html -- ./app args", ["app.html"], ["CPU time:", "resize_image (app)"]),
    ("make install PREFIX=/usr/local", [], ["INSTALL"]),
    ("LD_PRELOAD=/usr/local/lib/otelprof/libotelprof.so ./app", [], []),
)


def fresh(suite):
    folder = roots.CACHE / f"{suite}-fresh"
    folder.parent.mkdir(parents=True, exist_ok=True)
    image.debootstrap(folder, suite, PACKAGES)
    return folder


def run(root, command):
    """Returns (status, all that it printed)."""
    def enter():
        os.chroot(root)
        os.chdir(f"/{CLONE}")

    environment = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    done = subprocess.run(["sh", "-c", command], env={**layers.ENVIRONMENT, **environment}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=enter, timeout=LIMIT_S, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def problem_of(root, command, files, words):
    """Returns what is wrong with a command; "" for nothing."""
    status, printed = run(root, command)
    if status:
        return f"status {status}\n{printed[-3000:]}"
    lacking = [name for name in files if not (root / CLONE / name).is_file()] + [word for word in words if word not in printed]
    return f"lacks {', '.join(lacking)}\n{printed[-3000:]}" if lacking else ""


def check(suite, scratch):
    """Returns the number of commands that failed."""
    failed = 0
    with layers.layered(scratch, fresh(suite)) as root, layers.at_work(root):
        subprocess.run(["git", "clone", "-q", ROOT, root / CLONE], check=True)
        for command, files, words in COMMANDS:
            if "./app" in command:
                run(root, APP)
            began = time.monotonic()
            found = problem_of(root, command, files, words)
            if command.startswith("NO_INSTALL") and (root / CLONE / "build").exists():
                found = found or "it has built something"
            failed += bool(found)
            print(f"{suite}: {command}: {'FAILED: ' + found if found else 'ok'} ({time.monotonic() - began:.0f} s)", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suites", nargs="*", default=SUITES, help=f"of {' '.join(SUITES)}: these alone")
    parser.add_argument("--keep", action="store_true", help="leave what was written, and say where")
    options = parser.parse_args()
    readme = (ROOT / "README.md").read_text()
    if lacking := [command for command, *_ in COMMANDS if command not in readme]:
        print(f"README has no more: {lacking}")
        return 1
    if not shutil.which("debootstrap"):
        print("SKIPPED: a newcomer's commands need debootstrap (Debian: debootstrap)")
        return 1 if os.environ.get("CI") == "true" else 0
    layers.own_mounts()
    scratch = Path(tempfile.mkdtemp(prefix="otelprof-newcomer-", dir="/var/tmp"))
    try:
        failed = sum(check(suite, scratch / suite) for suite in options.suites)
    finally:
        if options.keep:
            print(f"kept: {scratch}")
        else:
            shutil.rmtree(scratch)
    print(f"{failed} commands failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
