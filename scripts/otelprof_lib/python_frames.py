"""Formats Python's functions as programmers write them: `module.Class.method`, where a profile has a path and
`Class.method`."""

import os
import re

PYTHON = "cpython"  # the profile.frame.type of Python
PACKAGE = "__init__"
FROZEN = re.compile(r"<frozen (.+)>")
INTERPRETER = re.compile(r"(lib)?python[\d.]*(so[\d.]*)?")  # base name of a file of the interpreter


# folders in which Python finds packages: what follows is a module's whole name
ROOTS = re.compile(r".*/(?:(?:site|dist)-packages|python\d+\.\d+t?(?:/lib-dynload)?|python\d+\.zip)/(?!(?:site|dist)-packages/)")
IDENTIFIERS = re.compile(r"[^\W\d]\w*(?:/[^\W\d]\w*)*")


def _whole_name(path):
    """Returns a module's name with its packages, such as http.client, where the path shows where they begin; else ""."""
    root = ROOTS.match(path)
    name = os.path.splitext(path[root.end():])[0] if root else ""
    if not IDENTIFIERS.fullmatch(name):
        return ""
    return name.removesuffix(f"/{PACKAGE}").replace("/", ".")


def module_of(path):
    """Returns the module's name: with its packages for the standard library and what is installed; else the file's stem, or the
    package's whose __init__.py it is. "" for code without a file, such as <string>."""
    frozen = FROZEN.fullmatch(path)
    if frozen:
        return frozen[1]
    whole = _whole_name(path)
    if whole:
        return whole
    folder, file = os.path.split(path)
    if file.startswith(("<", "[")):
        return ""
    stem = os.path.splitext(file)[0]
    return os.path.basename(folder) or stem if stem == PACKAGE else stem


def function_in_module(name, path):
    module = module_of(path)
    return f"{module}.{name}" if module and name else name


def is_interpreter(frame):
    return frame.language != PYTHON and INTERPRETER.fullmatch(frame.module) is not None


def innermost(stack):
    """Returns the depth of the innermost function of Python; 0 where there is none."""
    return next((depth for depth, frame in enumerate(stack) if frame.language == PYTHON), 0)


def outside_interpreter(stack):
    """Returns a stack without the interpreter's work for a function of Python, if that ends in code without a name: it
    counts for that function, since the path through the interpreter means nothing to a reader."""
    inside = innermost(stack)
    is_silent = inside and stack[0].name.startswith("[") and all(map(is_interpreter, stack[:inside]))
    return stack[inside:] if is_silent else stack
