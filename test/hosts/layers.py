"""Makes a root that a test can change: a folder above others that stay unchanged (overlayfs), with /proc and /dev, in
a mount namespace of the test's own, and runs commands in it."""

import contextlib
import ctypes
import hashlib
import os
import stat
import subprocess

CLONE_NEWNS, CLONE_NEWNET, MS_REC, MS_PRIVATE = 0x20000, 0x40000000, 0x4000, 0x40000  # sched.h, sys/mount.h
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LIMIT_S = 120
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C", "TERM": "xterm"}


def own_mounts():
    """Makes the mounts of this process invisible outside from here on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "no mounts of its own")


def own_network():
    """Cuts this process off from the network: from here on no other sends to its receivers, and it reaches none."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network of its own")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


@contextlib.contextmanager
def layered(scratch, *lower):
    """Mounts scratch/root: the folders `lower`, the first on top, below one for changes, scratch/changes."""
    root, changes = scratch / "root", scratch / "changes"
    for folder in (root, changes, scratch / "work"):
        folder.mkdir(parents=True, exist_ok=True)
    mount("overlay", root, "overlay", f"lowerdir={':'.join(map(str, lower))},upperdir={changes},workdir={scratch}/work")
    try:
        yield root
    finally:
        subprocess.run(["umount", root], check=True)


def mount(what, where, kind, options=""):
    subprocess.run(["mount", "-t", kind, *(["-o", options] if options else []), what, where], check=True)


@contextlib.contextmanager
def at_work(root):
    """Adds what programs expect of a running machine: /proc, and devices."""
    for name in ("proc", "dev", "run", "tmp"):
        (root / name).mkdir(exist_ok=True)
    mount("proc", root / "proc", "proc")
    mount("tmpfs", root / "dev", "tmpfs")
    mount("tmpfs", root / "run", "tmpfs", "mode=755")
    try:
        for name in DEVICES:
            at = os.stat(f"/dev/{name}")
            os.mknod(root / "dev" / name, stat.S_IFCHR, at.st_rdev)
            os.chmod(root / "dev" / name, 0o666)
        for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
            (root / "dev" / name).symlink_to(target)
        yield root
    finally:
        for name in ("run", "dev", "proc"):
            subprocess.run(["umount", "--recursive", root / name], check=True)


def in_root(root, command, **environment):
    """Returns (status, standard output, standard error) of a command in the root."""
    def enter():
        os.chroot(root)
        os.chdir("/")

    done = subprocess.run(command, env={**ENVIRONMENT, **environment}, stdin=subprocess.DEVNULL, preexec_fn=enter,
                          capture_output=True, timeout=LIMIT_S, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def listing(root, *folders):
    """Returns what is there: {path: (mode, owners, content or target)}. Folders' times and links' numbers count as no
    trace."""
    found = {}
    for folder in (folder for folder in folders if (root / folder).is_dir()):
        for path in [root / folder, *sorted((root / folder).rglob("*"))]:
            at = path.lstat()
            found[str(path.relative_to(root))] = (oct(at.st_mode), at.st_uid, at.st_gid, content(path, at.st_mode))
    return found


def content(path, mode):
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    return hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else ""


def difference(before, after):
    """Returns lines: how one listing differs from the other."""
    return [f"{path}: {before.get(path, 'not there')} before, {after.get(path, 'not there')} after"
            for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
