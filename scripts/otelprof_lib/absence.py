"""Explains why a program that ran left no profile."""

import os
import shutil
import stat
import struct
from typing import NamedTuple, Optional

PT_INTERP = 3
MOST_HEADERS = 4096
SHORT_SECONDS = 0.1  # of CPU time: less may hold no sample at the default rate


class _Image(NamedTuple):
    bits: int
    loader: Optional[str]  # the path of the dynamic loader; None: statically linked


def _image(path):
    """Returns the facts of an ELF file; None if the file is no ELF file, or cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF":
                return None
            if head[4] == 1:
                return _Image(32, "")
            (at,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
            for i in range(min(count, MOST_HEADERS)):
                file.seek(at + i * size)
                header = file.read(56)
                if struct.unpack_from("<I", header)[0] == PT_INTERP:
                    offset, length = struct.unpack_from("<Q", header, 8)[0], struct.unpack_from("<Q", header, 32)[0]
                    file.seek(offset)
                    return _Image(64, os.fsdecode(file.read(min(length, 4096)).split(b"\0")[0]))
    except (OSError, struct.error, OverflowError, ValueError):
        return None
    return _Image(64, None)


def _script_interpreter(path):
    """Returns the program that the first line of a script names, or None."""
    try:
        with open(path, "rb") as file:
            words = file.readline(4096).split()
    except OSError:
        return None
    return os.fsdecode(words[0][2:]) if words and words[0][:2] == b"#!" and len(words[0]) > 2 else None


def _ignores_preload(path, user, group):
    """Returns whether the dynamic loader drops LD_PRELOAD: the file gives the process another user's or group's rights."""
    try:
        facts = os.stat(path)
    except OSError:
        return False
    return bool(facts.st_mode & stat.S_ISUID and facts.st_uid != user or facts.st_mode & stat.S_ISGID and facts.st_gid != group)


def reason(program, cpu_seconds, environment, user, group):
    """Returns the clause that completes "no profile arrived: …". `user` and `group`: ids of the process that started the program."""
    path = shutil.which(program) or program
    path = _script_interpreter(path) or path
    name, image = os.path.basename(path), _image(path)
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return "OTEL_SDK_DISABLED=true turns the profiler off"
    if image and image.bits == 32:
        return f"{name} is a 32-bit program, which is not profiled"
    if image and image.loader is None:
        return f"{name} is statically linked, so LD_PRELOAD has no effect on it (so are programs of Go that use no C)"
    if image and "musl" in os.path.basename(image.loader):
        return f"{name} uses musl, and only programs of glibc are profiled"
    if _ignores_preload(path, user, group):
        return f"{name} runs with the rights of the file's owner or group, so the dynamic loader ignores LD_PRELOAD"
    if cpu_seconds < SHORT_SECONDS:
        return f"the program used {cpu_seconds:.3f} s of CPU time, too little for a sample"
    return "OTEL_LOG_LEVEL=debug logs the reason"
