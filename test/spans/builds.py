"""Builds programs with OpenTelemetry's C++ API: compilers, options, versions of the ABI, the API's own types (nostd) and
the C++ library's (STL)."""

import os
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest
from profiled import BUILD, ROOT

HERE = ROOT / "test/spans"
FOLDER = BUILD / "test/spans"
Build = namedtuple("Build", "name compiler flags stripped")

V2 = ("-DOPENTELEMETRY_ABI_VERSION_NO=2",)
STL = ("-std=c++17", "-DOPENTELEMETRY_STL_VERSION=2017")
NO_PIE = ("-fno-pie", "-no-pie")

# one build of each kind: for every run of the tests
FEW = [
    Build("gcc", "g++", ("-O2",), True),
    Build("gcc-stl-lto", "g++", ("-O3", "-flto", *STL), True),
    Build("gcc-v2-debug", "g++", ("-O0", *V2), False),
    Build("clang-v2-stl", "clang++", ("-O2", *V2, *STL), True),
    Build("clang-no-pie", "clang++", ("-O3", *NO_PIE), True),
]
# all builds: `make test-spans`
MANY = [
    Build("-".join([compiler, *(flag.strip("-") for flag in optimization), version, types, *(flag.strip("-") for flag in link)]),
          compiler, (*optimization, *(V2 if version == "v2" else ()), *(STL if types == "stl" else ()), *link), True)
    for compiler in ("g++", "clang++")
    for optimization in (("-O0",), ("-O1",), ("-O2",), ("-O3",), ("-O2", "-flto"))
    for version in ("v1", "v2")
    for types in ("nostd", "stl")
    for link in ((), NO_PIE, ("-static-libstdc++", "-static-libgcc"), ("-Wl,-z,norelro",))
]


def headers():
    """Returns the folder of the API's headers, fetched once. Without them tests are skipped, but not in CI."""
    place = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "otelprof/opentelemetry-cpp"
    if not (place / "include").exists():
        done = subprocess.run([HERE / "fetch-headers", place], capture_output=True, text=True, check=False)
        if done.returncode != 0 and os.environ.get("CI") != "true" and not (place / "include").exists():
            pytest.skip(f"OpenTelemetry's C++ headers cannot be had: {done.stderr.strip()}")
        assert (place / "include").exists(), done.stderr
    return place / "include"


def compiled(source, build, *flags, name=None):
    """Returns the program, built in that way; `name`: of the file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = FOLDER / (name or f"{Path(source).stem}-{build.name}")
    part = made.with_name(f"{made.name}.{os.getpid()}")
    inputs = [*HERE.glob("*.cpp"), *HERE.glob("*.h"), ROOT / "shim/otelprof.h", HERE / "builds.py"]
    if made.exists() and made.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
        return made
    command = [build.compiler, *build.flags, *(() if "-O0" in build.flags else ("-g1",)), "-pthread", *flags, "-isystem", headers(),
               "-I", ROOT / "shim", HERE / source, "-o", part, "-ldl"]
    subprocess.run([str(word) for word in command], check=True)
    if build.stripped:
        subprocess.run(["strip", "--strip-debug" if "burns" in source else "--strip-all", part], check=True)
    part.rename(made)
    return made
