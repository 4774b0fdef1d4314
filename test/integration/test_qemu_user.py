"""A program that qemu emulates is reported by qemu's own process, which has the preload, too: alone, and by the
program's name."""

import sys

import pytest
from profiled import EXACT_CPU, attributes_of

QEMU = "qemu-x86_64"  # Debian: qemu-user, which `scripts/install-deps test-all` installs
pytestmark = pytest.mark.system
DEBUG = {**EXACT_CPU, "OTEL_LOG_LEVEL": "debug"}
TWO_FORKS = "import os\nfor _ in range(2):\n  if os.fork() == 0:\n    sum(range(200000)); os._exit(0)\nfor _ in range(2): print(os.wait()[1])"


def test_one_of_qemu_and_its_guest_reports_by_the_guests_name(run, program):
    outcome = run([QEMU, program("burn"), "200", "1"], env=DEBUG, log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("burnt\n", 7), outcome.stderr
    assert outcome.stderr.count("qemu emulates the program; nothing is profiled in it") == 1, outcome.stderr
    (instance,) = outcome.instances()
    assert instance.executable == "burn"
    names = {attributes_of(it.resource)["service.name"] for request in outcome.requests for it in request.resource_profiles}
    assert names == {"unknown_service:burn"}


def test_forked_children_of_a_guest_end_as_they_do_alone(run):
    outcome = run([QEMU, sys.executable, "-c", TWO_FORKS], env=DEBUG)
    assert (outcome.stdout, outcome.returncode) == ("0\n0\n", 0), outcome.stderr
    assert {it.executable for it in outcome.instances()} == {sys.executable.rsplit("/", 1)[1]}
    pids = [it.pid for it in outcome.instances()]
    assert len(pids) == len(set(pids)), "two instances report one process"


def test_a_program_that_no_emulator_runs_is_profiled(run, program):
    outcome = run([program("burn"), "20", "1"], env=DEBUG, log_to_stderr=True)
    assert "qemu emulates" not in outcome.stderr
    assert outcome.instance("burn").cpu_total() > 0
