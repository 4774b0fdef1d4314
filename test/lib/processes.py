"""Reads what the kernel reports about a running process."""

import os
from pathlib import Path

READ, POLL, WAIT4, FUTEX = 0, 7, 61, 202  # x86-64


def stat_fields(pid, thread=None):
    """Returns (name, the fields of /proc/PID/stat behind it), or those of a thread."""
    place = f"{pid}/task/{thread}" if thread else pid
    head, fields = Path(f"/proc/{place}/stat").read_text(errors="replace").rsplit(")", 1)
    return head.split("(", 1)[1], fields.split()


def cpu_seconds(pid, thread=None):
    _, fields = stat_fields(pid, thread)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def call_of(pid):
    """Returns the number of the system call that the first thread is in; None: the thread runs, or has ended."""
    word = Path(f"/proc/{pid}/syscall").read_text().split()[0]
    return int(word) if word.isdigit() else None


def reads_from(pid):
    """Returns the path of the file that the first thread reads, in the system call; None: the thread does something
    else."""
    number, *arguments = Path(f"/proc/{pid}/syscall").read_text().split()
    if number != str(READ):
        return None
    try:
        return os.readlink(f"/proc/{pid}/fd/{int(arguments[0], 16)}")
    except OSError:  # closed meanwhile
        return None
