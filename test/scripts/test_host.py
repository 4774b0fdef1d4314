"""`otelprof host` verifies, edits /etc/ld.so.preload, and leaves no trace. Each test has a machine of its own."""

import os
import shutil
import subprocess
import threading

import pytest
from otlp_sink import OtlpSink
from own_machine import BUNDLE, CONFIGURATION, LINE, PRELOAD, RUN

pytestmark = pytest.mark.system
OTHER = "/usr/lib/other.so"  # does not exist: the loader reports that, to each program alike


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Builds an object with a constructor of this body."""
    def build(body):
        folder = tmp_path_factory.mktemp("library")
        source = folder / "library.c"
        source.write_text('#define _GNU_SOURCE\n#include <errno.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n'
                          f"__attribute__((constructor)) static void start(void) {{ {body} }}\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libotelprof.so", source], check=True)
        return folder / "libotelprof.so"
    return build


def assert_enabled(machine, others=""):
    assert machine.preload() == others + LINE
    assert machine.host("status").returncode == 0
    maps = machine.run("cat", "/proc/self/maps")
    assert f"{BUNDLE}/libotelprof.so" in maps.stdout and maps.stderr == ""


# --- the line ---


@pytest.mark.parametrize("before", [None, "", "# comment\n", f"{OTHER}\n", OTHER, f"\t{OTHER} # x\n\n", f"{OTHER}\r\n", f"# {LINE}"])
def test_the_line_is_added_and_taken_away_and_all_else_stays(machine, before):
    """All else stays byte by byte; but a last line without an end gets one, and an empty file is removed."""
    if before is not None:
        machine.write(PRELOAD, before)
    done = machine.host("enable")
    assert done.returncode == 0, done.stderr
    others = before or ""
    others += "\n" if others and not others.endswith("\n") else ""
    assert machine.preload() == others + LINE
    status = machine.path(PRELOAD).stat()
    assert (status.st_mode, status.st_uid, status.st_gid) == (0o100644, 0, 0)
    assert machine.host("disable").returncode == 0
    assert machine.preload() == (others or None)


def test_a_line_that_is_there_is_kept_where_it_is(machine):
    machine.write(PRELOAD, f"{OTHER}\n{LINE}{OTHER}2\n")
    assert machine.host("enable").returncode == 0
    assert machine.preload() == f"{OTHER}\n{LINE}{OTHER}2\n"
    assert machine.host("enable").returncode == 0
    assert machine.preload() == f"{OTHER}\n{LINE}{OTHER}2\n"
    assert machine.host("disable").returncode == 0
    assert machine.preload() == f"{OTHER}\n{OTHER}2\n"


@pytest.mark.parametrize("mode, becomes", [(0o600, 0o644), (0o640, 0o644), (0o444, 0o444), (0o755, 0o755)])
def test_every_program_may_read_the_file(machine, mode, becomes):
    machine.write(PRELOAD, f"{OTHER}\n", mode)
    assert machine.host("enable").returncode == 0
    assert machine.path(PRELOAD).stat().st_mode & 0o7777 == becomes


def test_a_reader_sees_the_old_file_or_the_new_one(machine):
    """The file has other lines; it is read while the host is enabled and disabled."""
    others = "".join(f"{OTHER}{number}\n" for number in range(20))
    machine.write(PRELOAD, others)
    seen, over = set(), threading.Event()

    def read():
        while not over.is_set():
            seen.add(machine.preload())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert machine.host("enable").returncode == 0
        assert machine.host("disable").returncode == 0
    finally:
        over.set()
        reader.join()
    assert seen <= {others, others + LINE}
    assert machine.path("/etc").joinpath("ld.so.preload").read_text() == others
    assert not list(machine.path("/etc").glob("ld.so.preload.*"))


@pytest.mark.skipif(not os.path.exists("/lib32/libc.so.6") and os.environ.get("CI") != "true", reason="needs Debian's libc6-i386")
def test_the_loader_of_a_32_bit_program_prints_nothing(machine):
    """The program is the C library. Without the object that is there for it, the loader would complain."""
    assert machine.host("enable").returncode == 0
    program = ("/lib/ld-linux.so.2", "/lib32/libc.so.6")
    done = machine.run(*program)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("GNU C Library")
    machine.path(f"{BUNDLE}/lib32/libotelprof.so").unlink()
    assert "cannot be preloaded" in machine.run(*program).stderr


# --- what is refused ---


def assert_refused(machine, reason, before=None):
    files = machine.files()
    done = machine.host("enable")
    assert done.returncode == 1
    assert reason in done.stderr
    assert machine.files() == files
    assert machine.preload() == before


def test_a_link_in_place_of_the_file_is_refused(machine):
    machine.write("/etc/real", f"{OTHER}\n")
    machine.path(PRELOAD).symlink_to("real")
    assert_refused(machine, "is a symbolic link", f"{OTHER}\n")


def test_a_mount_point_in_place_of_the_file_is_refused(machine):
    machine.write(PRELOAD, "")
    machine.write("/srv/mounted", "")
    machine.run("mount", "--bind", "/srv/mounted", PRELOAD)
    assert_refused(machine, "is a mount point", "")


def test_a_file_that_another_user_may_write_is_refused(machine):
    machine.write(PRELOAD, "", 0o666)
    assert_refused(machine, "may be written by others than root", "")
    machine.path(PRELOAD).chmod(0o644)
    os.chown(machine.path(PRELOAD), 65534, 65534)
    assert_refused(machine, "is not root's", "")


@pytest.mark.parametrize("path", [f"{BUNDLE}/libotelprof.so", f"{BUNDLE}/libotelprof-flush.so", f"{BUNDLE}/lib32", BUNDLE, "/srv"])
@pytest.mark.parametrize("how", ["owner", "group", "others"])
def test_objects_that_another_user_can_write_are_refused(machine, path, how):
    target = machine.path(path)
    if how == "owner":
        os.chown(target, 65534, 0)
    else:
        target.chmod(target.stat().st_mode | (0o020 if how == "group" else 0o002))
    assert_refused(machine, "refused: ")


@pytest.mark.parametrize("path", [f"{BUNDLE}/libotelprof.so", BUNDLE])
def test_objects_that_not_everybody_can_load_are_refused(machine, path):
    machine.path(path).chmod(0o700)
    assert_refused(machine, "not every user's programs can load")


@pytest.mark.parametrize("switch", [CONFIGURATION, RUN])
def test_a_kill_switch_keeps_it_from_being_enabled(machine, switch):
    machine.write(f"{switch}/disabled", "")
    assert_refused(machine, f"{switch}/disabled exists")


@pytest.mark.parametrize("switch", [CONFIGURATION, RUN])
def test_a_kill_switch_that_is_a_link_to_nowhere_is_one_as_well(machine, switch):
    """For the profiler such a link counts as a kill switch, too."""
    machine.path(switch).mkdir(parents=True)
    machine.path(f"{switch}/disabled").symlink_to("nowhere")
    assert_refused(machine, f"{switch}/disabled exists")
    assert f"kill switch: {switch}/disabled: nothing is profiled\n" in machine.host("status").stdout


def test_a_file_whose_bytes_no_shell_can_keep_is_refused(machine):
    machine.write(PRELOAD, f"{OTHER}\n\0\n")
    assert_refused(machine, "has a NUL byte", f"{OTHER}\n\0\n")


def test_only_root_enables(machine):
    done = machine.host("enable", shell=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"))
    assert done.returncode == 1 and "only root" in done.stderr


# --- verification ---


def test_verify_compares_and_changes_nothing(machine):
    files = machine.files()
    done = machine.host("verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: " in done.stdout and "by /etc/ld.so.preload itself" not in done.stdout
    assert machine.files() == files


def test_without_root_it_verifies_by_variables(machine):
    done = machine.host("verify", shell=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "not verified by /etc/ld.so.preload itself" in done.stdout


BROKEN = {
    "aborts": ("abort();", "ends with status 134"),
    "prints": ('write(2, "noise\\n", 6);', "writes another standard error: noise"),
    "prints on standard output": ('write(1, "noise\\n", 6);', "writes another standard output"),
    "ends": ("_exit(9);", "ends with status 9"),
    "breaks only true": ('if (!strcmp(program_invocation_short_name, "true")) _exit(1);', "true, with the preload"),
    "aborts unless LD_PRELOAD names it": ('if (!getenv("LD_PRELOAD")) abort();', "with the preload by /etc/ld.so.preload, ends"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_library_that_changes_programs_is_refused(machine, library, how):
    body, reason = BROKEN[how]
    machine.installs(library(body))
    assert_refused(machine, reason)


def test_a_library_that_hangs_is_refused(machine, library):
    machine.installs(library("for (;;) pause();"))
    assert_refused(machine, "ends with status 137")


def test_the_operators_own_environment_does_not_count(machine):
    told = {"OTEL_LOG_LEVEL": "debug", "OTEL_PROFILER_INCLUDE": "*", "NO_SUCH": "x", "OTEL_PROFILER_CPU_FREQUENCY": "0"}
    done = machine.host("verify", env=told)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_that_differs_without_the_preload_is_not_compared(machine, library):
    """Another preload writes its pid into each program's standard error."""
    shutil.copy(library('int dprintf(int, const char *, ...); dprintf(2, "%d\\n", getpid());'), machine.path("/srv/other.so"))
    machine.write(PRELOAD, "/srv/other.so\n")
    done = machine.host("verify")
    assert (done.returncode, done.stderr.strip("0123456789\n")) == (0, "")


def test_verification_sends_nothing(machine):
    """Root's settings have processes of any age send."""
    sent = []
    sink = OtlpSink(lambda body, headers: sent.append(body))
    machine.write(f"{CONFIGURATION}/otelprof.conf", f"OTEL_PROFILER_MIN_LIFETIME=0\nOTEL_PROFILER_ALLOC_INTERVAL=1\nOTEL_EXPORTER_OTLP_ENDPOINT={sink.url}\n")
    done = machine.host("verify")
    assert (done.returncode, done.stderr) == (0, "")
    sink.close()
    assert sent == []


def test_the_operators_search_path_for_folders_does_not_count(machine):
    """The shell's `cd` searches CDPATH for relative names, such as the command's own."""
    machine.path("/srv/elsewhere/otelprof/host").mkdir(parents=True)
    done = machine.run("env", "-C", "/srv", "otelprof/otelprof", "host", "status", env={"CDPATH": "/srv/elsewhere"})
    assert (done.returncode, done.stderr) == (3, "")


def test_a_setting_of_which_every_program_would_complain_is_refused(machine):
    machine.write(f"{CONFIGURATION}/otelprof.conf", "NO_SETTING=1\n")
    assert_refused(machine, "writes another standard error")


@pytest.mark.parametrize("text, reason", [("", "libotelprof.so is empty"), ("no ELF", "libotelprof.so cannot be loaded: ")])
def test_a_library_of_another_kind_is_refused(machine, text, reason):
    machine.write(f"{BUNDLE}/libotelprof.so", text)
    assert_refused(machine, reason)


@pytest.mark.parametrize("include", ["", "OTEL_PROFILER_INCLUDE=app\n"])
def test_an_exporter_that_was_not_copied_to_its_end_is_refused(machine, include):
    """Each profiled program would log that its profiles are lost."""
    machine.write(f"{CONFIGURATION}/otelprof.conf", include)
    exporter = machine.path(f"{BUNDLE}/libotelprof-flush.so")
    os.truncate(exporter, 4096)
    assert_refused(machine, "libotelprof-flush.so cannot be loaded (the file is cut short)")


def test_a_line_with_which_programs_do_not_run_is_taken_away_again(machine, library):
    """Verification cannot see a library that breaks only on this machine's own /run."""
    machine.installs(library(f'if (access("{RUN}/crash", 0) == 0 && strcmp(program_invocation_short_name, "sh")) abort();'))
    machine.write(PRELOAD, f"# {OTHER}\n")
    done = machine.host("enable")
    assert done.returncode == 1 and "taken away again" in done.stderr
    assert machine.preload() == f"# {OTHER}\n"


# --- disable ---


def mounts(machine):
    return machine.run("cat", "/proc/self/mountinfo").stdout


def test_disabling_leaves_no_trace(machine):
    files, mounted = machine.files(), mounts(machine)
    assert machine.host("enable").returncode == 0
    assert_enabled(machine)
    machine.write(f"{RUN}/crash/0.starts", "")
    done = machine.host("disable")
    assert done.returncode == 0 and "disabled" in done.stdout
    assert machine.files() == files and mounts(machine) == mounted
    again = machine.host("disable")
    assert again.returncode == 0
    assert machine.files() == files


def test_no_user_can_fill_run_by_the_crash_guards_folder(machine):
    """All users may create files there. Root's own file is there before, so that no user takes its name."""
    assert machine.host("enable").returncode == 0
    here, above = (os.statvfs(machine.path(path)) for path in (f"{RUN}/crash", "/run"))
    assert here.f_fsid != above.f_fsid and here.f_blocks * here.f_frsize <= 4 << 20 and here.f_files <= 1024
    folder, record = (machine.path(f"{RUN}/crash{name}").stat() for name in ("", "/0.starts"))
    assert (folder.st_uid, folder.st_mode & 0o7777) == (0, 0o1777)
    assert (record.st_uid, record.st_mode & 0o7777) == (0, 0o600)
    assert machine.host("arm").returncode == 0
    assert mounts(machine).count(f"{RUN}/crash ") == 1


def test_where_nothing_can_be_mounted_the_crash_guard_is_for_root_alone(machine):
    machine.write("/srv/tools/mount", "#!/bin/sh\nexit 1\n", 0o755)
    done = machine.host("enable", env={"PATH": f"/srv/tools:{os.environ['PATH']}"})
    assert done.returncode == 0 and "for root's programs alone" in done.stdout
    assert machine.path(f"{RUN}/crash").stat().st_mode & 0o7777 == 0o755
    assert "crash guard: on for root's programs alone" in machine.host("status").stdout
    assert machine.host("disable").returncode == 0
    assert not machine.path(RUN).exists()


def test_the_operators_lines_stay(machine):
    assert machine.host("enable").returncode == 0
    machine.write(f"{CONFIGURATION}/otelprof.conf", "OTEL_PROFILER_INCLUDE=app\n")
    machine.write(f"{CONFIGURATION}/conf.d/one.conf", "")
    done = machine.host("disable")
    assert f"{CONFIGURATION}/otelprof.conf has been changed: it stays" in done.stdout
    assert machine.path(f"{CONFIGURATION}/conf.d/one.conf").exists()


@pytest.mark.parametrize("others", ["", "# comment\n"])
@pytest.mark.parametrize("body", ["abort();", "for (;;) pause();"], ids=["aborts", "hangs"])
def test_disabling_works_when_no_program_runs(machine, library, body, others):
    """The exception is a shell, which must already run."""
    machine.write(PRELOAD, others)
    assert machine.host("enable").returncode == 0
    machine.path(f"{BUNDLE}/libotelprof.so").unlink()
    machine.installs(library(f'if (strcmp(program_invocation_short_name, "sh")) {body}'))
    done = machine.host("disable", shell=("/bin/sh",))
    assert done.returncode == 0, done.stderr
    assert machine.preload() == (others or None)
    assert not list(machine.path("/etc").glob("ld.so.preload.*"))
    assert not machine.path(RUN).exists()


def test_the_link_of_packages_finds_its_parts_when_no_program_runs(machine, library):
    machine.path("/srv/lib/opentelemetry").mkdir(parents=True)
    machine.path("/srv/bin").mkdir()
    machine.path(BUNDLE).rename(machine.path("/srv/lib/opentelemetry/otelprof"))
    machine.path("/srv/bin/otelprof").symlink_to("../lib/opentelemetry/otelprof/otelprof")
    assert machine.run("/srv/bin/otelprof", "host", "enable").returncode == 0
    installed = machine.path("/srv/lib/opentelemetry/otelprof/libotelprof.so")
    installed.unlink()
    shutil.copy(library('if (strcmp(program_invocation_short_name, "sh")) for (;;) pause();'), installed)
    assert machine.run("/bin/sh", "/srv/bin/otelprof", "host", "disable").returncode == 0
    assert machine.preload() is None


def test_disabling_works_when_the_library_is_gone(machine):
    assert machine.host("enable").returncode == 0
    machine.path(f"{BUNDLE}/libotelprof.so").unlink()
    assert machine.host("disable").returncode == 0
    assert machine.preload() is None


def test_another_line_that_names_us_is_not_left_without_its_objects(machine):
    assert machine.host("enable").returncode == 0
    machine.write(PRELOAD, f"{LINE.strip()} {OTHER}\n")
    done = machine.host("disable")
    assert done.returncode == 1 and "remove it by hand" in done.stderr
    assert machine.path(f"{RUN}/lib/x86_64-linux-gnu/libotelprof.so").is_symlink()


def test_disabling_removes_the_files_of_killed_commands(machine):
    machine.write("/srv/tools/sync", '#!/bin/sh\nread -r shell </srv/shell\nkill -9 "$PPID" "$shell"\n', 0o755)
    files = machine.files()
    command = f"echo $$ >/srv/shell; exec {BUNDLE}/otelprof host enable"
    done = machine.run("sh", "-c", command, env={"PATH": f"/srv/tools:{os.environ['PATH']}"})
    assert done.returncode == -9
    assert list(machine.path("/etc").glob("ld.so.preload.otelprof.*"))
    machine.path("/run/otelprof.abcdef/asked").mkdir(parents=True)
    assert machine.host("disable").returncode == 0
    assert machine.files() == files


def test_a_file_that_cannot_be_replaced_leaves_no_other_one_behind(machine):
    """The file can be neither renamed over nor written, like an immutable one."""
    machine.write(PRELOAD, f"# {OTHER}\n")
    assert machine.host("enable").returncode == 0
    machine.write("/srv/tools/mv", f"#!/bin/sh\nmount --bind {PRELOAD} {PRELOAD}\nmount -o remount,bind,ro {PRELOAD}\nexit 1\n", 0o755)
    done = machine.host("disable", env={"PATH": f"/srv/tools:{os.environ['PATH']}"})
    assert done.returncode == 1 and "our line is still in it" in done.stderr
    assert not list(machine.path("/etc").glob("ld.so.preload.*"))


# --- arm and disarm, as the unit does ---


def test_arming_takes_a_line_away_that_an_unclean_end_left(machine, library):
    """This holds also if the command cannot arm."""
    machine.write(PRELOAD, f"# {OTHER}\n{LINE}")
    machine.installs(library("abort();"))
    assert machine.host("arm").returncode == 1
    assert machine.preload() == f"# {OTHER}\n"
    assert not machine.path(RUN).exists()


def test_arming_and_disarming(machine):
    machine.write(PRELOAD, f"# {OTHER}\n{LINE}")
    assert machine.host("arm").returncode == 0
    assert_enabled(machine, f"# {OTHER}\n")
    assert machine.host("disarm").returncode == 0
    assert machine.preload() == f"# {OTHER}\n"
    assert machine.run("true").stderr == ""


def test_with_a_kill_switch_the_unit_arms_nothing_and_does_not_fail(machine):
    machine.write(PRELOAD, LINE)
    machine.write(f"{CONFIGURATION}/disabled", "")
    done = machine.host("arm")
    assert done.returncode == 0 and f"{CONFIGURATION}/disabled exists" in done.stderr
    assert machine.preload() is None


# --- systemd ---

# Does what the real systemctl does with the unit, as far as it concerns the command.
SYSTEMCTL = f"""#!/bin/sh
echo "$*" >> /srv/systemctl.log
unit=/etc/systemd/system/otelprof-preload.service
case "$*" in
*enable*) [ -e $unit ] ;;
restart*) $(while read -r line; do case $line in ExecStart=*) echo "${{line#*=}}" ;; esac done <$unit) ;;
stop*) sh {BUNDLE}/host/otelprof-host disarm ;;
esac
"""


@pytest.fixture
def systemd(machine):
    machine.write("/srv/bin/systemctl", SYSTEMCTL, 0o755)
    machine.path("/run/systemd/system").mkdir(parents=True)
    machine.path("/etc/systemd/system").mkdir(parents=True)
    return {"PATH": f"/srv/bin:{os.environ['PATH']}"}


def test_with_systemd_the_unit_arms(machine, systemd):
    files = machine.files()
    done = machine.host("enable", env=systemd)
    assert done.returncode == 0, done.stderr
    assert_enabled(machine)
    unit = machine.path("/etc/systemd/system/otelprof-preload.service").read_text()
    assert f"\nExecStart=/bin/sh {BUNDLE}/host/otelprof-host arm\n" in unit
    assert f"\nExecStopPost=/bin/sh {BUNDLE}/host/otelprof-host disarm\n" in unit
    assert machine.path("/srv/systemctl.log").read_text().splitlines() == [
        "daemon-reload", "--quiet enable otelprof-preload.service", "restart otelprof-preload.service"]
    assert machine.host("disable", env=systemd).returncode == 0
    assert machine.files() == files


def test_a_unit_that_cannot_be_started_leaves_no_trace(machine, systemd):
    machine.write("/srv/bin/systemctl", SYSTEMCTL.replace("restart*)", "restart*) exit 1;"), 0o755)
    files = machine.files()
    done = machine.host("enable", env=systemd)
    assert done.returncode == 1 and "could not be started" in done.stderr
    assert machine.files() == files


# --- other shells and tools ---


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_each_shell_enables_and_disables(machine, shell):
    path = shutil.which(shell)
    if not path and os.environ.get("CI") != "true":
        pytest.skip(f"{shell} is missing")
    machine.run("mount", "--bind", path, os.path.realpath("/bin/sh"))
    machine.write(PRELOAD, f"# {OTHER}")
    files = machine.files()
    done = machine.host("enable")
    assert (done.returncode, done.stderr) == (0, "")
    assert_enabled(machine, f"# {OTHER}\n")
    assert machine.host("disable").returncode == 0
    assert machine.files() == files | {PRELOAD[1:]: f"# {OTHER}\n".encode()}


def test_busyboxs_tools_are_enough(machine):
    busybox = shutil.which("busybox")
    if not busybox and os.environ.get("CI") != "true":
        pytest.skip("busybox is missing")
    machine.path("/srv/applets").mkdir()
    machine.run(busybox, "--install", "-s", "/srv/applets")
    files = machine.files()
    environment = {"PATH": "/srv/applets"}
    done = machine.host("enable", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert_enabled(machine)
    assert machine.host("disable", env=environment).returncode == 0
    assert machine.files() == files
