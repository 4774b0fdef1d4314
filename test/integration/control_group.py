"""Makes control groups for tests, where this machine lets root make one."""

import contextlib
import os
import uuid
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def control_group(limits):
    """Returns the words that start a command in a new group with the first of `limits` that can be set; None: none
    can. A limit: the hierarchy's folder in GROUPS ("": version 2), the file that sets the limit, its value, and the
    file that takes members."""
    for hierarchy, name, text, members in limits:
        group = GROUPS / hierarchy / f"otelprof-test-{uuid.uuid4().hex[:8]}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if os.access(group / name, os.W_OK):
                (group / name).write_text(text)
                yield ["/bin/sh", "-c", f'echo $$ > {group / members} && exec "$@"', "sh"]
                return
        finally:
            group.rmdir()
    yield None


def processor_quota(percent):
    """Starts a command in a group whose processes get that share of one processor."""
    period_us = 100000
    quota = period_us * percent // 100
    return control_group([("cpu", "cpu.cfs_quota_us", str(quota), "tasks"),
                          ("", "cpu.max", f"{quota} {period_us}", "cgroup.procs")])


def memory_limit(limit):
    """Starts a command in a group whose processes may have that many bytes."""
    return control_group([("memory", "memory.limit_in_bytes", str(limit), "cgroup.procs"),
                          ("", "memory.max", str(limit), "cgroup.procs")])
