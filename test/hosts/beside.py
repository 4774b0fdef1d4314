"""Preloads others beside the profiler: for the whole host in either order, and by LD_PRELOAD, which start scripts
change."""

import itertools
import shutil
import subprocess

import commands
import installed
import layers
import programs
import roots
from machine import services
from profiled import Receiver

# Lists where they are in one release or another, and their settings.
OTHERS = {
    "eatmydata": (f"{roots.LIBRARIES}/libeatmydata.so", {}),
    "faketime": (f"{roots.LIBRARIES}/faketime/libfaketime.so.1", {"FAKETIME": "-15d"}),
    "jemalloc": (f"{roots.LIBRARIES}/libjemalloc.so.2", {}),
    "snoopy": (f"{roots.LIBRARIES}/libsnoopy.so", {}),
    "socket_wrapper": (f"{roots.LIBRARIES}/libsocket_wrapper.so", {"SOCKET_WRAPPER_DIR": "/tmp"}),
    "torsocks": (f"{roots.LIBRARIES}/**/libtorsocks.so", {}),
    "injector": ("usr/local/lib/injector.so", {}),
}
# These redirect connections: no profile of a program with one of them arrives.
ROUTES = ("socket_wrapper", "torsocks")
# `otelprof host verify` refuses beside these: faketime gives each process a variable of its own, so that no two runs of
# env are equal; torsocks denies fstat, by syscall(), and prints that.
REFUSED = {("bullseye", "faketime"), ("bullseye", "torsocks")}
EVERY = 9  # every such command of the list
OURS = f"/{installed.FOLDER}/libotelprof.so"
ANOTHER_COPY = "/opt/otelprof/libotelprof.so"
START_SCRIPTS = {
    "overwrites": ("export LD_PRELOAD={other}", False),
    "prepends": ("export LD_PRELOAD={other}:$LD_PRELOAD", True),
    "appends": ("export LD_PRELOAD=$LD_PRELOAD:{other}", True),
    "appends after a space": ('export LD_PRELOAD="$LD_PRELOAD {other}"', True),
    "appends another copy of ours": (f"export LD_PRELOAD=$LD_PRELOAD:{ANOTHER_COPY}", True),
    "unsets": ("unset LD_PRELOAD", False),
}


def some_commands(root, **environment):
    said = {}
    for line in itertools.islice(commands.listed(), 0, None, EVERY):
        folder = root / "tmp/beside"
        folder.mkdir()
        said[line] = commands.shell(root, "/tmp/beside", line, **environment)
        shutil.rmtree(folder)
    for line in ("/usr/local/bin/app", "printenv INJECTED"):
        said[line] = commands.shell(root, "/tmp", line, **environment)
    return said


def host_wide(root, name, path, told):
    """Returns lines: what differs with the profiler, before the other and behind it, from the other alone; None: how
    many were profiled."""
    preload = root / installed.PRELOAD
    preload.write_text(f"/{path}\n")
    alone = some_commands(root, **told)
    receiver = Receiver()
    installed.set_up(root, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **commands.EVERYTHING,
                     **({} if name in ROUTES else {"OTEL_PROFILER_INCLUDE": "app,perl"}))
    installed.expect_host(root, "enable")
    receiver.requests.clear()  # exports of the verification: with OTEL_PROFILER_MIN_LIFETIME=0 they are sent, too
    behind = preload.read_text()
    for order, text in (("behind", behind), ("before", "".join(f"{line}\n" for line in reversed(behind.split())))):
        preload.write_text(text)
        for line, said in some_commands(root, **told).items():
            if said != alone[line]:
                yield f"ours {order} {name}: {line}: {alone[line]} without, {said} with"
    installed.expect_host(root, "disable")
    if installed.line(root) != f"/{path}\n":
        yield f"{name}: disable left {installed.line(root)!r}"
    preload.unlink()
    receiver.close()
    yield from amiss(name, services(receiver.requests), name not in ROUTES)


def amiss(name, senders, should):
    if bool(senders) != should:
        yield f"{name}: profiles came from {senders}"


def by_start_scripts(root, too_old):
    """Returns lines: a program's start script that changes LD_PRELOAD decides, and harms nothing."""
    script = root / "usr/local/bin/start"
    for what, (line, stays) in START_SCRIPTS.items():
        script.write_text(f"#!/bin/sh\n{line.format(other=f'/{roots.LIBRARIES}/libeatmydata.so')}\nexec /usr/local/bin/app\n")
        script.chmod(0o755)
        receiver = Receiver()
        said = layers.in_root(root, ["/usr/local/bin/start"], LD_PRELOAD=OURS,
                              OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **commands.EVERYTHING)
        receiver.close()
        if said != programs.BURN_SAYS:
            yield f"a start script {what}: {said}"
        senders = services(receiver.requests)
        if senders != ({"app": 1} if stays and not too_old else {}):
            yield f"a start script {what}: profiles came from {senders}"


def build_injector(root):
    target = root / OTHERS["injector"][0]
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-nostdlib", programs.SOURCES / "injector.so.c", "-o", target], check=True)


def check(suite, debian, bundle, scratch):
    lower = commands.given(suite, debian, bundle, scratch), debian
    too_old = suite in roots.TOO_OLD
    found, there = [], []
    with layers.layered(scratch / "beside", *lower) as root, layers.at_work(root):
        build_injector(root)
        shutil.copytree(bundle, root / "opt/otelprof", symlinks=True)
        for name, (pattern, told) in OTHERS.items():
            for path in [] if (suite, name) in REFUSED else list(root.glob(pattern))[:1]:
                there.append(name)
                lines = host_wide(root, name, path.relative_to(root), told)
                found += [line for line in lines if not (too_old and "profiles came from {}" in line)]
        found += by_start_scripts(root, too_old)
    yield suite, f"{', '.join(there)}, {len(START_SCRIPTS)} start scripts", found
