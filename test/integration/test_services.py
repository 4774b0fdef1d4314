"""The claims of docs/deployment.md about other programs hold."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from profiled import LIBRARY, ROOT
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

DOCUMENT = (ROOT / "docs/deployment.md").read_text()
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")

CONFIGURATION = """
{env}
daemon on; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{ listen unix:{folder}/socket; }}
}}
"""


def is_written(file):
    return file.exists() and file.read_text().strip()


def upgrades(master, old_file):
    """A signal that comes before nginx waits for any is handled with the next; nginx ignores one that is too many."""
    if not old_file.exists():
        os.kill(master, signal.SIGUSR2)
    return old_file.exists()


def is_alive(pid):
    """Returns False also for a zombie."""
    try:
        return bool(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False


def is_preloaded(pid):
    return LIBRARY.name in Path(f"/proc/{pid}/maps").read_text()


@pytest.mark.skipif(not NGINX, reason="nginx is not installed (Debian: nginx-light)")
@pytest.mark.parametrize("env", ["", "env LD_PRELOAD;\nenv OTEL_SERVICE_NAME;"])
def test_nginx_keeps_the_preload_at_an_upgrade_if_configured(tmp_path, env):
    assert not env or all(f"  {line}\n" in DOCUMENT for line in env.splitlines())
    (tmp_path / "conf").write_text(CONFIGURATION.format(folder=tmp_path, env=env))
    old_file, new_file = tmp_path / "pid.oldbin", tmp_path / "pid"
    subprocess.run(
        [NGINX, "-c", tmp_path / "conf"], stdin=subprocess.DEVNULL, check=True, timeout=TIMEOUT_S,
        env={"PATH": os.environ["PATH"], "LD_PRELOAD": str(LIBRARY), "OTEL_SERVICE_NAME": "shop",
             "OTEL_PROFILES_EXPORTER": "none"},
    )
    eventually(lambda: is_written(new_file), "the pid of nginx")
    masters = [int(new_file.read_text())]
    try:
        assert is_preloaded(masters[0])
        eventually(lambda: upgrades(masters[0], old_file), "its successor")
        eventually(lambda: is_written(new_file), "the pid of the successor")
        masters.append(int(new_file.read_text()))
        assert masters[0] != masters[1]
        assert is_preloaded(masters[1]) == bool(env)
    finally:
        for pid in reversed(masters):
            os.kill(pid, signal.SIGTERM)
        eventually(lambda: not any(is_alive(pid) for pid in masters), "the end of nginx")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, for two users in one process")
def test_a_program_of_two_users_starts_its_children_without_the_preload():
    """squid starts its kids so."""
    code = ("import os, subprocess, sys\n"
            "os.setresuid(65534, 0, 0)\n"
            "os.execv('/bin/sh', ['sh', '-pc', 'grep -c libotelprof.so /proc/self/maps; echo $LD_PRELOAD'])\n")
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=False, timeout=60,
                          env={"LD_PRELOAD": str(LIBRARY), "OTEL_PROFILES_EXPORTER": "none"})
    assert done.stdout.split() == ["0"], "neither is it loaded nor handed on"
