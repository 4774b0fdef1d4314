"""Tests roots that hold next to nothing: a C library and programs, as the smallest containers do."""

import re
import shutil
import subprocess

import installed
import layers
import programs
import roots
from machine import services
from profiled import Receiver

SETTINGS = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000"}
GLIBC = ("app", "static", "static-pie", "go")
MUSL = ("musl", "musl-static", "static")


def put(folder, source, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / path, folder / path)


def libraries_of(program):
    """Returns the libraries of the C library that it names, by path."""
    said = subprocess.run(["readelf", "-dW", program], capture_output=True, text=True, check=True).stdout
    return [f"lib/x86_64-linux-gnu/{name}" for name in {*re.findall(r"NEEDED.*\[(.+)\]", said), "libc.so.6"}]


def outcomes(root, names):
    """Returns lines: what goes wrong where /etc/ld.so.preload names the library, or LD_PRELOAD; and the senders of
    profiles."""
    library = f"/{installed.FOLDER}/libotelprof.so"
    receiver = Receiver()
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **SETTINGS}
    installed.set_up(root, OTEL_PROFILER_INCLUDE="app", **settings)
    (root / installed.PRELOAD).write_text(f"{library}\n")
    wrong = [f"/etc/ld.so.preload: {line}" for line in programs.wrong(root, "/bin", names)]
    (root / installed.PRELOAD).unlink()
    wrong += [f"LD_PRELOAD: {line}" for line in programs.wrong(root, "/bin", names, LD_PRELOAD=library)]
    receiver.close()
    return wrong, services(receiver.requests)


def small_root(folder, source, bundle, files, built, names):
    put(folder, source, *files)
    for name in ("bin", "proc", "dev", "run", "tmp", "etc"):
        (folder / name).mkdir(exist_ok=True)
    for name in names:
        shutil.copy(built[name], folder / "bin")
    installed.copy(folder, bundle)


def check(suite, debian, bundle, scratch):
    built = programs.build(scratch / "programs", debian)
    found, said = [], []
    for name, files, names in (("glibc", [roots.LOADER, *libraries_of(built["app"])], GLIBC), ("musl", [roots.MUSL_LOADER], MUSL)):
        folder = scratch / name
        small_root(folder, debian, bundle, files, built, names)
        with layers.layered(scratch / f"{name}-at-work", folder) as root, layers.at_work(root):
            wrong, senders = outcomes(root, names)
        expected = {"app": 2} if name == "glibc" and suite not in roots.TOO_OLD else {}
        found += [f"{name}: {line}" for line in wrong]
        found += [f"{name}: profiles came from {senders}"] if senders != expected else []
        said.append(f"{name}: {', '.join(names)} as without, {sum(senders.values())} profiled")
    yield suite, "; ".join(said), found
