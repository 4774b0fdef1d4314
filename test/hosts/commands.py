"""Runs ordinary commands in a Debian, and programs whose loader must load the library or ignore it: their output and
files are the same with the profiler as without. `otelprof host disable` leaves no trace."""

import dataclasses
import re
import shutil
from pathlib import Path

import installed
import layers
import programs
import roots
from machine import services
from profiled import Receiver

LIST = Path(__file__).resolve().parent / "ordinary_commands"
LEAST = 200  # commands that are found in every Debian
NOT_FOUND = 127
NOTES = re.compile(r"^(var/(log|cache|lib/systemd)|run)(/|$)|-$")  # files in which programs note a run, and copies of these files
EVERYTHING = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000"}
OURS = "etc/opentelemetry"
# How the loader of 32-bit programs treats LD_PRELOAD does not count: only /etc/ld.so.preload has $LIB.
BY_HAND = ("static", "static-pie", "go", "musl", "musl-static")


@dataclasses.dataclass
class Round:
    said: dict  # by command: (status, output, errors)
    left: dict  # a listing of the files that the commands made
    senders: dict  # names that sent a profile: how many processes of each
    trouble: list  # other problems


def listed():
    lines = LIST.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def run_all(root, **environment):
    """Runs each in a folder of its own, with `environment` added."""
    said = {}
    for number, line in enumerate(listed()):
        folder = root / "tmp/ordinary" / str(number)
        folder.mkdir(parents=True)
        said[line] = shell(root, f"/tmp/ordinary/{number}", line, **environment)
    return said


def shell(root, folder, line, **environment):
    return layers.in_root(root, ["/bin/sh", "-c", f"cd {folder} && {{ {line}\n}}"], **environment)


def plain_round(root):
    return run_all(root), {}, []


def host_wide(include):
    """Runs all with the host enabled, with that OTEL_PROFILER_INCLUDE or none."""
    def work(root):
        receiver = Receiver()
        installed.set_up(root, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **EVERYTHING,
                         **({"OTEL_PROFILER_INCLUDE": include} if include else {}))
        installed.expect_host(root, "enable")
        receiver.requests.clear()  # exports of the verification: with OTEL_PROFILER_MIN_LIFETIME=0 they are sent, too
        trouble = [] if installed.line(root) else ["host enable wrote no line"]
        trouble += programs.wrong(root, "/usr/local/bin", [name for name in programs.NAMES if name != "app"])
        said = run_all(root)
        installed.expect_host(root, "disable")
        receiver.close()
        return said, services(receiver.requests), trouble
    return work


def by_ld_preload(root):
    """Profiles every process, shells too."""
    receiver = Receiver()
    environment = {"LD_PRELOAD": f"/{installed.FOLDER}/libotelprof.so", "OTEL_PROFILER_EXCLUDE": "none",
                   "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **EVERYTHING}
    trouble = list(programs.wrong(root, "/usr/local/bin", BY_HAND, **environment))
    said = run_all(root, **environment)
    receiver.close()
    return said, services(receiver.requests), trouble


def one_round(lower, scratch, work):
    with layers.layered(scratch, *lower) as root:
        with layers.at_work(root):
            said, senders, trouble = work(root)
        left = {path: what for path, what in layers.listing(scratch / "changes", "tmp/ordinary", "etc", "usr", "var").items()
                if not NOTES.search(path) and not path.startswith(OURS)}
    return Round(said, left, senders, trouble)


def differences(plain, again, other):
    """Returns lines: how `other` differs from two rounds without the profiler that agree."""
    yield from other.trouble
    for line, expected in plain.said.items():
        if other.said[line] != expected and again.said[line] == expected:
            yield f"{line}: {expected} without, {other.said[line]} with"
    left = {path: what for path, what in plain.left.items() if again.left.get(path) == what}
    yield from layers.difference(left, {path: what for path, what in other.left.items() if path in left or path not in again.left})


def unsteady(plain, again):
    """Returns lines: commands to take off the list."""
    return [f"no two runs say the same, take it off the list: {line}: {said} and {again.said[line]}"
            for line, said in plain.said.items() if again.said[line] != said]


def trace(lower, scratch):
    """Returns lines: what verify, enable and disable leave in a host whose /etc/ld.so.preload is missing, or
    another's."""
    for number, text in enumerate((None, "/usr/lib/x86_64-linux-gnu/libeatmydata.so\n")):
        with layers.layered(scratch / str(number), *lower) as root, layers.at_work(root):
            if text:
                (root / installed.PRELOAD).write_text(text)
            before = layers.listing(root, "etc", "run", "usr")
            for action in ("verify", "enable", "disable"):
                installed.expect_host(root, action)
            yield from layers.difference(before, layers.listing(root, "etc", "run", "usr"))


def given(suite, debian, bundle, scratch):
    """Makes a layer above the release: the bundle, and the programs."""
    built = programs.build(scratch / "programs", debian)
    with layers.layered(scratch / "given", debian) as root, layers.at_work(root):
        installed.install(root, bundle, suite)
        for path in built.values():
            shutil.copy(path, root / "usr/local/bin")
    return scratch / "given/changes"


def check(suite, debian, bundle, scratch):
    lower = given(suite, debian, bundle, scratch), debian
    plain, again = (one_round(lower, scratch / name, plain_round) for name in ("plain", "again"))
    found = unsteady(plain, again)
    if sum(status != NOT_FOUND for status, _, _ in plain.said.values()) < LEAST:
        found.append(f"fewer than {LEAST} commands are there")
    profiled = {}
    for name, work in (("host-wide", host_wide("")), ("included", host_wide("*")), ("LD_PRELOAD", by_ld_preload)):
        other = one_round(lower, scratch / name, work)
        found += [f"{name}: {line}" for line in differences(plain, again, other)]
        profiled[name] = other.senders
    found += [f"trace: {line}" for line in trace(lower, scratch / "trace")]
    found += amiss(suite, profiled)
    steady = sum(status != NOT_FOUND for status, _, _ in plain.said.values())
    yield suite, f"{steady} the same; processes profiled: {', '.join(f'{sum(senders.values())} {name}' for name, senders in profiled.items())}", found


def amiss(suite, profiled):
    """Returns lines: programs that are profiled and should not be, or none where some should be."""
    for name, senders in profiled.items():
        should = name != "host-wide" and suite not in roots.TOO_OLD
        if bool(senders) != should:
            yield f"{name}: profiles came from {senders}"
