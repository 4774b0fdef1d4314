"""Gives files that real programs left under `otelprof run`, and plain sums over their messages."""

import os
import subprocess

from conftest import BUILD, ROOT
from forked_command import run_command
from otelprof_lib.capture_file import each_message
from otelprof_lib.kinds import KINDS

OTELPROF = ROOT / "scripts" / "otelprof"
PROGRAMS = BUILD / "test" / "programs"
EVERYTHING = (
    f"{PROGRAMS}/burn 600 64 ; {PROGRAMS}/inlined_work 500 && {PROGRAMS}/holds_locks >/dev/null && "
    f"{PROGRAMS}/holds_memory 64 300 && "
    f"/usr/bin/python3 -c 'sum(i * i for i in range(3000000))'"
)


READERS = ("top", "locks", "threads", "flamegraph", "diff", "merge", "pprof", "export")


def otelprof(*arguments, cwd, **options):
    if arguments[0] in READERS and not options:
        return run_command(*arguments, cwd=cwd)
    return subprocess.run(
        [OTELPROF, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False, **options
    )


def succeeds(*arguments, cwd, **options):
    done = otelprof(*arguments, cwd=cwd, **options)
    assert done.returncode == 0, done.stderr
    return done


def capture(folder, name="all.otlp", script=EVERYTHING):
    """Returns a file with all kinds, of several processes."""
    succeeds(
        "run",
        "--quiet",
        "--types",
        "all",
        "--alloc-interval",
        "4096",
        "-o",
        name,
        "--",
        "sh",
        "-c",
        script,
        cwd=folder,
        env=dict(os.environ, OTEL_PROFILE_EXPORT_INTERVAL="200"),
    )
    return folder / name


def instance_of(resource_profiles):
    return next(
        it.value.string_value for it in resource_profiles.resource.attributes if it.key == "service.instance.id"
    )


def _each_profile(path):
    for message in each_message(path):
        for resource_profiles in message.resource_profiles:
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    yield instance_of(resource_profiles), message.dictionary.string_table, profile


def sums(path):
    """Returns the sum of values by sample type; for samples of CPU time also, as `cpu`, in nanoseconds. Of snapshots,
    the sum has the last of each process."""
    snapshots = {value.type for kind in KINDS.values() if kind.is_snapshot for value in kind.values}
    found, latest = {}, {}
    for instance, strings, profile in _each_profile(path):
        name = strings[profile.sample_type.type_strindex]
        value = sum(sum(sample.values) for sample in profile.samples)
        if name in snapshots:
            time, before = latest.get((instance, name), (0, 0))
            if profile.time_unix_nano >= time:
                latest[instance, name] = profile.time_unix_nano, value + (
                    before if profile.time_unix_nano == time else 0
                )
            continue
        found[name] = found.get(name, 0) + value
        if name == "samples":
            found["cpu"] = found.get("cpu", 0) + value * profile.period
    for (_, name), (_, value) in latest.items():
        found[name] = found.get(name, 0) + value
    return {name: value for name, value in found.items() if value}
