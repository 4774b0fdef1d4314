"""Boots under systemd-nspawn: twice without the profiler, once with it for the whole host, and once with a release
that ends every program that loads it."""

import shutil
import subprocess

import installed
import layers
import machine
import programs
import root as image
import roots

PRELOAD_UNIT = "otelprof-preload.service"
LINE = "/run/opentelemetry/otelprof/$LIB/libotelprof.so"
UNIFIED = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}  # systemd 258 boots with no other; older ones on either
# Matches the unit's own lines, and a mount of its.
OF_THE_UNIT = ("otelprof-preload", "Preload of the profiler", "opentelemetry-otelprof")
# These have the host's /etc, but another /run: the line leads nowhere, and the loader reports that, once for each
# program.
WITHOUT_RUN = {f"boot-{name}" for name in ("inaccessible", "root-directory", "temporary-run")}
LOADER_SAYS = f"ERROR: ld.so: object '{LINE}' from /etc/ld.so.preload cannot be preloaded"


def prepare(suite, debian, bundle, scratch):
    """Makes a layer above the release: services, the bundle, its unit."""
    with layers.layered(scratch / "given", debian) as root:
        image.install_services(root, *programs.for_release(debian))
        image.install_units(root / "etc/systemd/system", programs.SOURCES.parent / "units")
        for name in ("lasting", "kill-switch"):
            shutil.copy(programs.SOURCES / name, root / "usr/local/bin")
        installed.install(root, bundle, suite)
        shutil.copy(bundle / "host/otelprof-preload.service", root / installed.UNIT)  # equal to the package's
        installed.set_up(root, OTEL_PROFILER_INCLUDE="work,perl", OTEL_EXPORTER_OTLP_ENDPOINT=f"unix://{image.SOCKET}")
    return scratch / "given/changes"


def boot(lower, scratch, change):
    """Returns (the boot, the switch's notes, what is left of the line)."""
    with layers.layered(scratch, *lower) as root:
        change(root)
        booted = machine.boot(root, scratch, **UNIFIED)
        notes = scratch / "journal/kill-switch"
        return booted, notes.read_text() if notes.exists() else "", installed.line(root)


def enable(root):
    layers.in_root(root, ["systemctl", "enable", PRELOAD_UNIT])


def enable_bad(root):
    enable(root)
    subprocess.run(["gcc", "-shared", "-fPIC", programs.SOURCES / "aborts.so.c", "-o", root / installed.FOLDER / "libotelprof.so"],
                   check=True)


def without_ours(booted):
    booted.lines = {(who, text) for who, text in booted.lines
                    if not any(part in who + text for part in OF_THE_UNIT)
                    and not (who in WITHOUT_RUN and text.startswith(LOADER_SAYS))}
    return booted


def expected_notes(preloaded, too_old):
    """Returns the expected notes: a second thread is the profiler's."""
    threads = 1 if too_old or not preloaded else 2
    line = LINE if preloaded else ""
    return f"preloaded: {line}\nbefore: {threads} threads\ndisabled: 1 threads\nafter: {threads} threads\n"


def check(suite, debian, bundle, scratch):
    lower = prepare(suite, debian, bundle, scratch), debian
    too_old = suite in roots.TOO_OLD
    booted = {name: boot(lower, scratch / name, change) for name, change in
              (("plain", lambda root: None), ("again", lambda root: None), ("with", enable), ("bad", enable_bad))}
    plain, again = booted["plain"][0], booted["again"][0]
    found = []
    for name in ("with", "bad"):
        one, notes, left = booted[name]
        failed = [line.split()[0] for line in one.failed.splitlines()]
        if name == "bad" and failed == [PRELOAD_UNIT]:
            one.failed = ""
        found += [f"{name}: {line}" for line in machine.problems(plain, again, without_ours(one))]
        if notes != expected_notes(name == "with", too_old):
            found.append(f"{name}: the kill switch's notes: {notes!r}")
        if left:
            found.append(f"{name}: /etc/ld.so.preload holds {left!r} after the end")
    senders = machine.services(booted["with"][0].requests)
    if set(senders) - {"work", "perl"} or bool(senders.get("work")) == too_old or booted["bad"][0].requests:
        found.append(f"profiles came from {senders}, and from a bad release {len(booted['bad'][0].requests)}")
    machine.tell_ours(booted["with"][0])
    yield suite, f"no unit failed, the same journal; {sum(senders.values())} processes profiled", found
