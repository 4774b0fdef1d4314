"""Python's functions, as people write them: `module.Class.method`, where a profile has a path and `Class.method`."""

import os
import re

PYTHON = "cpython"  # its profile.frame.type
PACKAGE = "__init__"
FROZEN = re.compile(r"<frozen (.+)>")
INTERPRETER = re.compile(r"(lib)?python[\d.]*(so[\d.]*)?")  # base name of a file


def module_of(path):
    """The last part of its name: the file's stem, or the package's whose __init__.py it is. "" for code that has no file,
    such as <string>."""
    frozen = FROZEN.fullmatch(path)
    if frozen:
        return frozen[1]
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
    """How deep the innermost function of Python is; 0 where there is none."""
    return next((depth for depth, frame in enumerate(stack) if frame.language == PYTHON), 0)


def outside_interpreter(stack):
    """Without what the interpreter does for a function of Python, if that ends in code that has no name: it counts for that
    function, for which the way through the interpreter's own says nothing."""
    inside = innermost(stack)
    is_silent = inside and stack[0].name.startswith("[") and all(map(is_interpreter, stack[:inside]))
    return stack[inside:] if is_silent else stack
