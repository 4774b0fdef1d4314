"""Installs the bundle in a root, and runs `otelprof host` there."""

import shutil

import layers
import roots

FOLDER = "usr/lib/opentelemetry/otelprof"
SETTINGS = "etc/opentelemetry/otelprof"
PRELOAD = "etc/ld.so.preload"
UNIT = "usr/lib/systemd/system/otelprof-preload.service"
COMMAND = f"/{FOLDER}/otelprof"


def copy(root, bundle):
    shutil.copytree(bundle, root / FOLDER, symlinks=True, ignore=shutil.ignore_patterns("*.tar.gz", "*.deb", "*.rpm"))


def install(root, bundle, suite):
    """Installs the package; where its libc6 is too old for that, a copy, and a link to the command."""
    if suite in roots.TOO_OLD:
        copy(root, bundle)
        (root / "usr/bin/otelprof").symlink_to("../lib/opentelemetry/otelprof/otelprof")
        return
    (package,) = bundle.glob("*.deb")
    shutil.copy(package, root / "tmp/otelprof.deb")
    status, said, errors = layers.in_root(root, ["dpkg", "-i", "/tmp/otelprof.deb"])
    (root / "tmp/otelprof.deb").unlink()
    if status != 0:
        raise RuntimeError(f"dpkg -i {package.name}: {said}{errors}")


def set_up(root, **settings):
    """Writes settings of the whole host."""
    folder = root / SETTINGS / "conf.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "host.conf").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


def host(root, action):
    """Returns (status, output) of `otelprof host ACTION`."""
    status, said, errors = layers.in_root(root, [COMMAND, "host", action])
    return status, said + errors


def expect_host(root, action):
    status, said = host(root, action)
    if status:
        raise RuntimeError(f"otelprof host {action}: status {status}: {said}")


def line(root):
    file = root / PRELOAD
    return file.read_text() if file.exists() else ""
