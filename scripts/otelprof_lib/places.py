"""Finds the parts of libotelprof: in the source tree, or installed."""

import functools
import importlib
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
INSTALLED = os.path.dirname(HERE)  # PREFIX/lib/otelprof/RELEASE
BUILD = os.path.join(INSTALLED, "..", "build")  # scripts/ is beside build/


class NotFound(Exception):
    """Is raised if a part is missing; the message names it and the remedy."""


def _first(candidates, what):
    for path in candidates:
        if os.path.exists(path):
            return os.path.realpath(path)
    raise NotFound(f"{what} is missing (looked at {', '.join(candidates)}); run `make` first")


def library():
    """Returns the absolute path of libotelprof.so."""
    name = "libotelprof.so"
    return _first([os.path.join(INSTALLED, name), os.path.join(BUILD, name)], name)


def release():
    """Returns the name of this release, "" if nothing was built yet."""
    try:
        with open(os.path.join(INSTALLED, "host", "release"), encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        pass
    try:
        with open(os.path.join(BUILD, "release.h"), encoding="ascii") as file:
            return file.read().split('"')[1]
    except (FileNotFoundError, IndexError):
        return ""


def page_parts():
    """Returns the folder of the flame graph's page and libraries."""
    return _first([os.path.join(INSTALLED, "flamegraph")], "the flame graph's page")


def profile_kinds():
    """Returns the path of the list of profiles."""
    name = "profile_kinds.def"
    common = os.path.join(INSTALLED, "..", "common")
    return _first([os.path.join(INSTALLED, name), os.path.join(common, name)], name)


@functools.lru_cache(maxsize=None)
def _load(*names):
    """Imports generated protobuf modules."""
    folder = _first(
        [os.path.join(INSTALLED, "python"), os.path.join(BUILD, "python")], "the OTLP decoder"
    )
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return tuple(map(importlib.import_module, names))
    except ImportError as error:
        raise NotFound(f"{error}; install python3-protobuf") from error


def load_messages():
    """Imports OTLP's modules: (profiles_pb2, profiles_service_pb2)."""
    return _load("profiles_pb2", "profiles_service_pb2")


def load_pprof():
    return _load("pprof_pb2")[0]
