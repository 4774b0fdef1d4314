"""Two commands `otelprof host` run at once: the line in /etc/ld.so.preload is there with its links, or not at all."""

import os
import shutil

from own_machine import BUNDLE, LINE, PRELOAD, RUN


def meanwhile(machine, tool, when, command):
    """Replaces `tool` by a script that does something else first, if its arguments match."""
    real = shutil.which(tool)
    machine.write(f"/srv/tools/{tool}", f'#!/bin/sh\ncase "$*" in {when}) PATH={os.environ["PATH"]} {command} ;; esac\nexec {real} "$@"\n', 0o755)
    return {"PATH": f"/srv/tools:{os.environ['PATH']}"}


def test_enabling_twice_at_once_enables(machine):
    environment = meanwhile(machine, "mkdir", f"{RUN}/crash", f"mkdir {RUN}/crash")
    done = machine.host("enable", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.host("status").returncode == 0 and machine.preload() == LINE


def test_a_line_that_is_added_while_it_is_disabled_is_not_left_without_its_links(machine):
    environment = meanwhile(machine, "sync", f"{PRELOAD}.*", f"{BUNDLE}/otelprof host disable >/srv/disabled")
    done = machine.host("enable", env=environment)
    assert machine.path("/srv/disabled").read_text().startswith("otelprof: disabled")
    assert done.returncode == 1
    assert machine.preload() is None and not machine.path(RUN).exists()


def test_disabling_while_it_is_enabled_leaves_no_line_without_its_links(machine):
    assert machine.host("enable").returncode == 0
    environment = meanwhile(machine, "umount", f"*{RUN}/crash", f"printf '%s\\n' '{LINE.strip()}' >{PRELOAD}")
    done = machine.host("disable", env=environment)
    assert done.returncode == 0
    assert machine.preload() is None and not machine.path(RUN).exists()
