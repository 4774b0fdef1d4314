"""The helper has no more than the program has, and is in the way of nothing that it gives up."""

import os

import pytest

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root has what these programs give up")

# The helper has loaded its libraries and has sent an export when the program calls.
OLD = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "150"}


@pytest.mark.parametrize("how", ["user", "cancelled", "number", "mount", "time"])
def test_a_namespace_is_entered_alone_at_any_age(run, program, how):
    """The helper is suspended meanwhile, and goes on afterwards with what it had."""
    outcome = run([program("enters_namespace"), "600", how, "600"], env=OLD)
    assert outcome.stdout == "alone\n"
    instance = outcome.instance("enters_namespace")
    assert instance.cpu_of("burns_before") > 0.4e9
    assert instance.cpu_of("burns_in_namespace") > 0.4e9


@pytest.fixture
def empty_root(tmp_path):
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    return root


@pytest.mark.parametrize("before", ["0", "600"])
@pytest.mark.parametrize("how", ["chroot", "pivot_root"])
def test_private_users_with_a_root_of_its_own(run, program, empty_root, how, before):
    """As systemd starts a service: status 217 where a second thread is in the way."""
    outcome = run([program("private_users"), str(empty_root), how, before, "600"], env=OLD)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
    assert outcome.instance("private_users").cpu_of("burns_in_namespace") > 0.4e9


CHANGES_USER = [
    ["setpriv", "--reuid", "65534", "--clear-groups", "id"],
    ["setpriv", "--reuid", "65534", "--regid", "65534", "--init-groups", "--inh-caps=-all", "--bounding-set=-all", "id"],
    ["setpriv", "--reuid", "65534", "--keep-groups", "--inh-caps=+net_raw", "--ambient-caps=+net_raw", "id"],
    ["capsh", "--user=nobody", "--", "-c", "id"],
    ["capsh", "--keep=1", "--user=nobody", "--inh=cap_net_raw", "--addamb=cap_net_raw", "--", "-c", "id"],
    ["capsh", "--drop=cap_setgid", "--secbits=47", "--uid=65534", "--", "-c", "id"],
    ["capsh", "--caps=cap_setuid+ep", "--uid=65534", "--", "-c", "id"],
    ["runuser", "-u", "nobody", "--", "id"],
    ["su", "nobody", "-s", "/bin/sh", "-c", "id"],
]


@pytest.mark.parametrize("command", CHANGES_USER, ids=" ".join)
def test_a_program_that_keeps_capabilities_on_its_thread_may_change_its_user(run, command):
    """libc ends a process in which one thread may and another may not: the helper is gone meanwhile."""
    plain = run(command, profiled=False)
    assert plain.returncode == 0, plain.stderr
    outcome = run(command, env={**OLD, "OTEL_PROFILER_EXCLUDE": "none"})
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, plain.stdout, plain.stderr)


@pytest.mark.parametrize("before", ["0", "600"])
def test_the_user_is_changed_at_any_age(run, program, before):
    outcome = run([program("gives_up"), "keep", before, "400"], env=OLD)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.instance("gives_up").cpu_of("burns_after") > 0.25e9
