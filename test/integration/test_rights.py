"""The helper has no more rights than the program, and hinders no change of rights."""

import os
from pathlib import Path

import pytest

from http_server import OK, HttpServer
from profiled import HELPERS, LIBRARY, Outcome, decode
from test_protocols import make_certificates
from waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.skipif(os.getuid() != 0, reason="only root has what these programs give up")]

# With these settings the helper has loaded its libraries and has sent an export when the program calls.
OLD = {"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "150"}


def helper_status(process):
    """Reads the status of the helper's thread, once the helper has given up its first rights."""
    def found():
        for task in Path(f"/proc/{process}/task").iterdir():
            lines = (task / "status").read_text().splitlines()
            status = {line.split(":")[0]: line.split(":", 1)[1].strip() for line in lines}
            if status["Name"] in HELPERS and status["NoNewPrivs"] == "1":
                return status
        return None

    return eventually(found, "a helper that has given up its rights")


@pytest.mark.parametrize("how", ["user", "cancelled", "number", "mount", "time"])
def test_a_namespace_is_entered_alone_at_any_age(run, program, enterable, how):
    """The helper is suspended meanwhile, and goes on afterwards with what it had."""
    enterable(how)
    outcome = run([program("enters_namespace"), "300", how, "300"], env=OLD)
    assert outcome.stdout == "alone\n"
    instance = outcome.instance("enters_namespace")
    assert instance.cpu_of("burns_before") > 0
    assert instance.cpu_of("burns_in_namespace") > 0


@pytest.fixture
def empty_root(tmp_path):
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    return root


@pytest.mark.parametrize("how, before", [("chroot", "0"), ("pivot_root", "300")])
def test_private_users_with_a_root_of_its_own(run, program, empty_root, how, before):
    """systemd starts a service so: status 217 where a second thread is in the way."""
    outcome = run([program("private_users"), str(empty_root), how, before, "300"], env=OLD)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
    assert outcome.instance("private_users").cpu_total() > 0


CHANGES_USER = [
    ["setpriv", "--reuid", "65534", "--regid", "65534", "--init-groups", "--inh-caps=-all", "--bounding-set=-all", "id"],
    ["setpriv", "--reuid", "65534", "--keep-groups", "--inh-caps=+net_raw", "--ambient-caps=+net_raw", "id"],
    ["capsh", "--keep=1", "--user=nobody", "--inh=cap_net_raw", "--addamb=cap_net_raw", "--", "-c", "id"],
    ["capsh", "--drop=cap_setgid", "--secbits=47", "--uid=65534", "--", "-c", "id"],
    ["capsh", "--caps=cap_setuid+ep", "--uid=65534", "--", "-c", "id"],
    ["su", "nobody", "-s", "/bin/sh", "-c", "id"],
]


@pytest.mark.parametrize("command", CHANGES_USER, ids=" ".join)
def test_a_program_that_keeps_capabilities_on_its_thread_may_change_its_user(run, command):
    """libc ends a process in which one thread may change its user and another may not: the helper is gone meanwhile."""
    plain = run(command, profiled=False)
    assert plain.returncode == 0, plain.stderr
    outcome = run(command, env={**OLD, "OTEL_PROFILER_EXCLUDE": "none"})
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, plain.stdout, plain.stderr)


@pytest.mark.parametrize("before", ["0", "300"])
def test_the_user_is_changed_at_any_age(run, program, before):
    outcome = run([program("gives_up"), "keep", before, "400"], env=OLD)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.instance("gives_up").cpu_of("burns_after") > 0


# each way, and each kind of right, at both ages
GIVEN_UP = [
    ("capset", "300"), ("capset-number", "0"), ("filter", "0"), ("filter-number", "300"), ("user", "300"),
    ("user-number", "0"), ("mounts", "300"), ("network", "0"), ("privileges", "300"), ("privileges", "0"),
    ("landlock", "300"), ("landlock", "0"), ("filter-kill", "300"), ("filter-kill", "0"),
]


@pytest.mark.parametrize("way, before", GIVEN_UP)
def test_the_helper_keeps_no_right_that_the_program_gave_up(run, program, way, before):
    """The right is gone when the call returns, whether the helper has begun to work or not."""
    outcome = run([program("gives_up"), way, before, "300"], env=OLD)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    # behind a filter that would kill it for its socket there is no helper
    assert outcome.stdout == ("alone\n" if way == "filter-kill" else "follows\n")
    if before != "0":
        assert outcome.instance("gives_up").cpu_of("burns_before") > 0
    if way not in ("filter-kill", "network", "mounts"):  # behind other mounts no file is read for names
        assert outcome.instance("gives_up").cpu_of("burns_after") > 0


@pytest.mark.parametrize("way", ["capset-bare", "user-bare", "filter-bare"])
def test_a_change_of_rights_without_a_hook_is_seen_before_the_next_export(run, program, way):
    """Capabilities are dropped before it; a change that cannot follow alone, of ids and filters, ends the helper."""
    outcome = run([program("gives_up"), way, "300", "1500"], env=OLD)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.splitlines()[-1] == ("follows" if way == "capset-bare" else "alone")


@pytest.mark.parametrize("way", ["serves-bare", "serves-number"])
def test_a_program_that_serves_another_user_has_no_helper_that_is_root(run, program, way):
    """Its saved ids are root's, and it will be root again: the helper takes the ids over before the next export."""
    outcome = run([program("gives_up"), way, "300", "1500"], env=OLD)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.splitlines()[-1] == "follows"
    assert outcome.instance("gives_up").cpu_of("burns_after") > 0


def test_a_helper_waits_for_a_setuid_that_is_under_way(run, program):
    """The helper's call comes before the one of the calling thread: that is no reason for the helper to end."""
    outcome = run([program("slow_setuid"), "300", "700", "300"], env=OLD)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.instance("slow_setuid").cpu_of("burns_after") > 0


def test_a_helper_that_took_ids_over_is_not_in_the_way_of_setuid(run, program):
    """libc ends a process where one thread may become another user and one may not."""
    outcome = run([program("gives_up"), "leaves", "300", "300"], env=OLD)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "follows\n", "")
    assert outcome.instance("gives_up").cpu_of("burns_after") > 0


def test_a_landlocked_program_has_no_helper_that_writes_files(run, program, tmp_path):
    file = tmp_path / "profiles.jsonl"
    settings = {**OLD, "OTEL_PROFILES_EXPORTER": "otlp_file", "OTEL_PROFILER_FILE": str(file)}
    outcome = run([program("gives_up"), "landlock", "300", "300"], env=settings, log_to_stderr=True)
    assert outcome.stdout == "follows\n"
    assert "burns_before" in file.read_text() and "burns_after" not in file.read_text()
    assert outcome.stderr.count("profiles cannot be written") == 1


def test_the_helper_starts_with_the_least_it_can_live_with(start, program):
    """In a program that gives up nothing the helper has CAP_SETGID, CAP_SETUID and CAP_IPC_LOCK, and gains nothing by
    execve."""
    running = start([program("burn"), "3000", "1"], env=OLD)
    status = helper_status(running.process.pid)
    assert (int(status["CapPrm"], 16), int(status["CapInh"], 16)) == (1 << 6 | 1 << 7 | 1 << 14, 0)
    assert status["NoNewPrivs"] == "1"
    running.process.kill()


@pytest.fixture
def hostile_root(tmp_path, program):
    """Makes a root that another user may write to: files that are loaded there leave a trace."""
    root = tmp_path / "jail"
    marks = Path(program("marks.so")).read_bytes()
    folder = root / "lib/x86_64-linux-gnu"
    names = ["libcurl.so.4", "libnss_evil.so.2", "libssl.so.3", "libgcc_s.so.1", "ossl-modules/evil.so"]
    for file in [*(folder / name for name in names), root / str(LIBRARY.parent / "libotelprof-flush.so")[1:]]:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(marks)
    (root / "usr").symlink_to(".")
    for name in ("etc/ssl/openssl.cnf", "lib/ssl/openssl.cnf"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("openssl_conf = all\n[all]\nproviders = list\n[list]\nevil = evil\ndefault = default\n"
                        "[evil]\nmodule = /lib/x86_64-linux-gnu/ossl-modules/evil.so\nactivate = 1\n"
                        "[default]\nactivate = 1\n")
    (root / "etc/nsswitch.conf").write_text("hosts: evil files dns\npasswd: evil files\n")
    (root / "etc/resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    (root / "etc/hosts").write_text("127.0.0.1 receiver.example\n")
    for name in ("self/status", "self/stat", "thread-self/status"):  # a reader that opens one waits for a writer
        (root / "proc" / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / "proc" / name)
    for path in (root, *root.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    return root


ENDPOINTS = {"reached": {}, "name": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://receiver.example:4318"},
             "tls": {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:4318"}}


@pytest.mark.parametrize(("how", "who", "endpoint", "before"), [
    ("name", "self", "reached", "300"), ("name", "child", "reached", "0"), ("name", "self", "name", "0"),
    ("name", "child", "name", "300"), ("name", "self", "tls", "300"), ("name", "child", "tls", "0"),
    ("number", "self", "reached", "0"), ("mount", "self", "reached", "0"), ("mount", "child", "reached", "300"),
    ("bare", "self", "reached", "300"), ("bare", "child", "reached", "0"), ("bare", "self", "name", "0"),
    ("bare", "child", "name", "300"),
])
def test_nothing_is_loaded_out_of_another_root(run, program, hostile_root, how, who, endpoint, before):
    """Root's code comes from root's files: the resolver's, TLS's, and our own."""
    outcome = run([program("jailed"), str(hostile_root), how, who, before],
                  env={**OLD, "OTEL_PROFILER_MIN_LIFETIME": "300", **ENDPOINTS[endpoint]})
    assert (outcome.returncode, outcome.stdout) == (0, "jailed\n"), outcome.stderr
    assert not list(hostile_root.glob("loaded-by-*"))
    if how != "bare" and endpoint == "reached":
        assert outcome.instance("jailed").cpu_total() > 0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture
def secure_receiver(certificates):
    """Receives exports over TLS, with a certificate that the machine's own authorities do not know."""
    server = HttpServer(*[OK] * 200, tls=(certificates / "server.pem", certificates / "server.key"))
    yield server
    server.stop()


@pytest.mark.parametrize(("how", "who", "host"), [
    ("name", "self", "127.0.0.1"), ("number", "child", "127.0.0.1"), ("mount", "child", "localhost"),
])
def test_an_export_arrives_by_tls_from_behind_another_root(
    run, program, hostile_root, certificates, secure_receiver, how, who, host
):
    """All of TLS's files were read before the program changed its root, which it does before the first export."""
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": secure_receiver.url.replace("127.0.0.1", host),
                "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificates / "ca.pem"),
                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(certificates / "client.pem"),
                "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(certificates / "client.key"),
                "OTEL_PROFILER_MIN_LIFETIME": "300"}
    outcome = run([program("jailed"), str(hostile_root), how, who, "0"], env=settings, log_to_stderr=True)
    assert (outcome.returncode, outcome.stdout) == (0, "jailed\n"), outcome.stderr
    assert not list(hostile_root.glob("loaded-by-*"))
    exports = [decode(body, "application/x-protobuf") for body in secure_receiver.taken()]
    assert Outcome(0, "", "", exports).instance("jailed").cpu_total() > 0, outcome.stderr
