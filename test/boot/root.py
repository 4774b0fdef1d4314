"""Makes the root that is booted: a minimal Debian of this machine's release by debootstrap, with systemd, our two
objects with the libraries they need, and the units of units/."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ("systemd", "systemd-sysv", "dbus", "libpam-systemd")
LIBRARIES = "/usr/local/lib/otelprof"
SOCKET = "/run/otlp.sock"


def release():
    return re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.M).group(1)


def mirror():
    """Returns the address of apt's packages of this release."""
    form = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages"]
    for line in subprocess.run(form, capture_output=True, text=True, check=True).stdout.splitlines():
        address, _, rest = line.partition(" ")
        if rest == f"{release()} main":
            return address
    raise RuntimeError(f"apt knows no mirror of {release()}")


def packages_needed(build):
    """Returns the packages of the libraries that the exporter is linked with."""
    listed = subprocess.run(["ldd", build / "libotelprof-flush.so"], capture_output=True, text=True, check=True)
    paths = {os.path.realpath(path) for path in re.findall(r"=> (/\S+)", listed.stdout)}
    paths |= {path.removeprefix("/usr") for path in paths}  # packages name either side of the merged /usr
    owners = subprocess.run(["dpkg", "-S", *sorted(paths)], capture_output=True, text=True, check=False)
    return sorted({line.partition(":")[0] for line in owners.stdout.splitlines()})


def debootstrap(root, suite, packages, *, finish=lambda root: None):
    """Makes it once, in minutes. `finish` runs at the end."""
    made = root.with_suffix(".made")
    if made.exists() and made.read_text() == shlex.join(packages):
        return
    made.unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, root, mirror()],
                   check=True, stdout=subprocess.DEVNULL)
    finish(root)
    made.write_text(shlex.join(packages))


def compiled(source, target, *flags):
    subprocess.run(["gcc", "-O1", "-g", "-pthread", *flags, HERE / source, "-o", target], check=True)


def install(root, build):
    """Copies what is tested into the root."""
    folder = root / LIBRARIES.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("libotelprof.so", "libotelprof-flush.so", "libotelprof-cpp.so"):
        shutil.copy(build / name, folder)
    (root / "etc/ld.so.preload").touch()
    settings = root / "etc/opentelemetry/otelprof"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "otelprof.conf").write_text(f"OTEL_PROFILER_INCLUDE=*\nOTEL_EXPORTER_OTLP_ENDPOINT=unix://{SOCKET}\n")
    install_services(root)


def install_services(root, *flags):
    """Installs programs, built with these flags of the compiler, and the units that start them."""
    programs = root / "usr/local/bin"
    compiled("work.c", programs / "work", *flags)
    compiled("setuid_wrapper.c", programs / "setuid_wrapper", *flags)
    (programs / "setuid_wrapper").chmod(0o4755)
    shutil.copy(HERE / "confined", programs)
    (root / "srv/jail").mkdir(exist_ok=True)
    install_units(root / "etc/systemd/system")
    settings = root / "etc/systemd/system.conf.d"
    settings.mkdir(exist_ok=True)
    (settings / "boot.conf").write_text(
        f"[Manager]\nDefaultEnvironment=OTEL_EXPORTER_OTLP_ENDPOINT=unix://{SOCKET}\n")


def drop_in():
    """Returns the list of our system calls, as the documentation has it for narrower filters."""
    text = (HERE.parents[1] / "docs" / "deployment.md").read_text()
    return re.search(r"^```ini\n(.*?)^```", text, re.M | re.S).group(1)


def units(of=HERE / "units"):
    return sorted(path.name for path in of.glob("*.service"))


def install_units(folder, *further):
    """Installs the units of units/ and of further folders."""
    for stale in folder.glob("**/boot-*.*"):
        if not stale.is_dir():
            stale.unlink()
    wants = folder / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    for of in (HERE / "units", *further):
        for name in units(of):
            shutil.copy(of / name, folder)
            (wants / name).symlink_to(f"../{name}")
    narrow = folder / "boot-narrow.service.d"
    narrow.mkdir(exist_ok=True)
    (narrow / "boot-otelprof.conf").write_text(drop_in())
    at_work = " ".join(name for name in units() if name != "boot-end.service")
    put_after(folder, "boot-end.service", f"{at_work} basic.target dbus.service systemd-logind.service")
    for of in further:
        for name in units(of):
            put_after(folder, name, at_work)
            put_after(folder, "boot-end.service", name)


def put_after(folder, name, others):
    order = folder / f"{name}.d"
    order.mkdir(exist_ok=True)
    with open(order / "boot-order.conf", "a") as file:
        file.write(f"[Unit]\nAfter={others}\n")
