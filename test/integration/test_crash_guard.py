"""In a host-wide installation, an executable that keeps crashing at its start is not profiled, and no other is
affected (shim/process/crash_guard.h)."""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from crash_root import ABORTED, BURNT, NOBODY, CrashRoot
from host_root import root_of
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

SAID = "did not get through its first 30 s in 3 starts within ten minutes; it is not profiled for an hour"
CLEAN_ENDS = {
    "exit": "raise SystemExit(3)",
    "_exit": "import os; os._exit(3)",
    "quick_exit": "import ctypes; ctypes.CDLL(None).quick_exit(3)",
    "by number": "import ctypes; ctypes.CDLL(None).syscall(231, 3)",
    "last thread": "import ctypes; ctypes.CDLL(None).pthread_exit(None)",
    "SIGTERM": "import os; os.kill(os.getpid(), 15)",
    "another user": "import os; os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)",
    "another root": "import os; os.chroot('/open')",
    "no descriptors": "import os; os.closerange(0, 100)",
    "daemon": "import os; os._exit(0) if os.fork() else os.kill(os.getpid(), 9)",
}


@pytest.fixture
def root():
    with root_of(CrashRoot) as made:
        yield made


LIVES = """
import os, signal, subprocess, sys, time
running = [subprocess.Popen([sys.executable, '-S', '-c', 'import sys; sys.stdin.read()'], stdin=subprocess.PIPE) for _ in range(3)]
while not os.path.exists('/open/go'):
    time.sleep(0.1)
for process in running:
    process.kill()
    process.wait()
"""


@pytest.fixture(scope="module", autouse=True)
def living():
    """Programs that have lived since the first test of this file began: (their root, when that was, their expected
    result)."""
    with root_of(CrashRoot) as made, ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        done = pool.submit(made.python, LIVES)
        yield made, began, done
        (made.folder / "open/go").touch()


def test_after_three_crashes_it_is_left_alone_and_that_is_said_once(root):
    root.crash_three_times()
    assert root.app(aborts=True) == BURNT
    assert root.said.count("\n") == 1 and f"warn: /app {SAID}" in root.said
    for _ in range(3):
        assert root.app(aborts=True) == BURNT
        assert root.said == ""


def test_many_unprofiled_processes_at_once_report_it_once(root):
    for _ in range(5):
        root.crash_three_times()
        done = root.start("/bin/sh", "-c", "for i in $(seq 20); do /app 1 1 & done; wait; exit 0", aborts=True)
        assert done.stdout == "burnt\n" * 20
        assert done.stderr.count(SAID) == done.stderr.count("\n") == 1
        root.record().make_older(3600)


def test_a_crashed_zombie_has_failed(root):
    code = """
import os, subprocess, sys
for _ in range(3):
    process = subprocess.Popen([sys.executable, '-S', '-c', 'pass'], env={**os.environ, 'TEST_ABORTS': '1'})
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
subprocess.run([sys.executable, '-S', '-c', 'pass'])
"""
    assert SAID in root.python(code).stderr


def test_another_program_of_the_same_library_is_not_left_alone(root):
    root.crash_three_times()
    assert root.app(aborts=True) == BURNT
    assert root.app("other", aborts=True) == ABORTED
    assert root.app(aborts=True) == BURNT


def test_a_program_that_is_replaced_is_tried_again(root):
    root.crash_three_times()
    assert root.app(aborts=True) == BURNT
    os.utime(root.folder / "app", (1, 1))
    assert root.app(aborts=True) == ABORTED


def test_after_an_hour_it_is_tried_again(root):
    root.crash_three_times()
    assert root.app(aborts=True) == BURNT
    root.record().make_older(3000)
    assert root.app(aborts=True) == BURNT
    root.record().make_older(600)
    root.crash_three_times()
    assert root.app(aborts=True) == BURNT
    assert SAID in root.said


def test_crashes_count_together_for_ten_minutes(root):
    for _ in range(6):
        assert root.app(aborts=True) == ABORTED
        root.record().make_older(301)


@pytest.mark.parametrize("how", CLEAN_ENDS)
def test_a_program_that_ends_by_itself_stays_profiled(root, how):
    many = f"""
import subprocess, sys
for _ in range(20):
    done = subprocess.run([sys.executable, '-S', '-c', {CLEAN_ENDS[how]!r}], capture_output=True)
    assert done.stderr == b'', done
print(done.returncode)
"""
    done = root.python(many)
    assert done.returncode == 0 and done.stderr == "", done
    status = int(done.stdout)
    assert status in ((-signal.SIGTERM,) if how == "SIGTERM" else (0, 3))
    assert root.python("pass", aborts=True).returncode == ABORTED


TOGETHER = """
import os, subprocess, sys
command = [sys.executable, '-S', '-c', 'import sys; sys.stdin.read()']
running = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range({count})]
for _ in range({crashes}):
    assert subprocess.call(command, stdin=subprocess.DEVNULL, env={{**os.environ, 'TEST_ABORTS': '1'}}) == -6
for process in running:
    process.communicate()
"""


def test_many_at_once_are_not_left_alone(root):
    for _ in range(3):
        done = root.python(TOGETHER.format(count=20, crashes=0))
        assert (done.stderr, done.returncode) == ("", 0)
    assert root.python("pass", aborts=True).returncode == ABORTED


def test_crashes_among_many_that_live_are_found(root):
    done = root.python(TOGETHER.format(count=10, crashes=3))
    assert (done.stderr, done.returncode) == ("", 0)
    assert SAID in root.python("pass").stderr


def test_a_process_that_is_killed_has_failed(root):
    """Nothing shows whether such an end was a clean one: this is documented."""
    for _ in range(3):
        assert root.python("import os; os.kill(os.getpid(), 9)").returncode == -signal.SIGKILL
    assert SAID in root.python("pass").stderr


def test_processes_of_other_namespaces_have_failed_when_they_are_overdue(root):
    """A process cannot see whether a process of another namespace lives."""
    crash = ["/usr/bin/unshare", "-p", "--fork", "/app", "1", "1"]
    for _ in range(4):
        assert root.start(*crash, aborts=True).returncode == -signal.SIGSEGV  # so that abort() ends the first process
    root.record().make_older(121)
    done = root.start(*crash, aborts=True)
    assert done.returncode == BURNT and SAID in done.stderr


CHILDREN = {
    "fork": "os._exit(0) if os.fork() == 0 else os.wait()",
    "vfork": "import subprocess\ntry: subprocess.run(['/missing'])\nexcept OSError: pass",
}


@pytest.mark.parametrize("child", CHILDREN.values(), ids=CHILDREN.keys())
def test_a_childs_end_does_not_settle_its_parents_start(root, child):
    """A child of vfork has its parent's memory."""
    for _ in range(3):
        assert root.python(f"import os\n{child}\nos.abort()").returncode == ABORTED
    assert SAID in root.python("pass").stderr


def test_each_user_has_failures_of_its_own(root):
    root.crash_three_times(uid=NOBODY)
    assert root.app(aborts=True, uid=NOBODY) == BURNT
    assert SAID in root.said
    root.crash_three_times()
    assert root.app(aborts=True) == BURNT
    for uid in (0, NOBODY):
        status = root.record(uid).path.stat()
        assert (status.st_uid, status.st_mode & 0o7777, status.st_size) == (uid, 0o600, 8192)


def test_a_preload_that_the_environment_names_has_no_guard(root):
    for _ in range(4):
        assert root.app(aborts=True, LD_PRELOAD="/prof/libotelprof.so") == ABORTED
    assert list(root.crash.iterdir()) == []


def test_without_the_folder_there_is_no_guard_and_nothing_is_created(root):
    root.crash.rmdir()
    for _ in range(4):
        assert root.app(aborts=True) == ABORTED
        assert root.said == ""
    assert list(root.crash.parent.iterdir()) == []


# --- a folder that every user may write ---

SQUATTERS = {
    "file": lambda place, victim: (place.write_text("theirs"), place.chmod(0o666), os.chown(place, NOBODY, NOBODY)),
    "unreadable": lambda place, victim: (place.write_text("theirs"), place.chmod(0), os.chown(place, NOBODY, NOBODY)),
    "link": lambda place, victim: (place.symlink_to(victim), os.lchown(place, NOBODY, NOBODY)),
    "dangling link": lambda place, victim: (place.symlink_to("/open/new"), os.lchown(place, NOBODY, NOBODY)),
    "hard link": lambda place, victim: os.link(victim, place),
    "pipe": lambda place, victim: (os.mkfifo(place, 0o666), os.chown(place, NOBODY, NOBODY)),
    "folder": lambda place, victim: (place.mkdir(0o777), os.chown(place, NOBODY, NOBODY)),
}


@pytest.mark.parametrize("what, uid", [
    ("file", 0), ("unreadable", 65533), ("link", 65533), ("dangling link", 0), ("hard link", 0), ("hard link", 65533),
    ("pipe", 65533), ("folder", 0),
])
def test_where_another_user_has_taken_the_name_a_program_is_left_alone(root, what, uid):
    """The program is not harmed, and the profiler prints and writes nothing."""
    victim = root.crash / "victim"
    victim.write_text("precious")
    os.chown(victim, uid, uid)
    SQUATTERS[what](root.record(uid).path, victim)
    before = sorted((path.name, path.lstat().st_ctime_ns) for path in root.crash.iterdir())
    assert root.app(aborts=True, uid=uid) == BURNT
    assert root.said == ""
    assert sorted((path.name, path.lstat().st_ctime_ns) for path in root.crash.iterdir()) == before
    assert victim.read_text() == "precious"
    assert list((root.folder / "open").iterdir()) == []


@pytest.mark.parametrize("what", ["of another user", "without the sticky bit", "a link", "a file", "for root alone"])
def test_a_folder_that_is_not_as_it_should_be_is_as_none(root, what):
    uid = NOBODY if what == "for root alone" else 0
    if what == "of another user":
        os.chown(root.crash, NOBODY, NOBODY)
    elif what == "without the sticky bit":
        root.crash.chmod(0o777)
    elif what == "for root alone":
        root.crash.chmod(0o755)
    else:
        root.crash.rmdir()
        root.crash.symlink_to("/open") if what == "a link" else root.crash.write_text("")
    for _ in range(4):
        assert root.app(aborts=True, uid=uid) == ABORTED
    assert not root.crash.is_dir() or list(root.crash.iterdir()) == []


CONTENTS = {"a byte": b"x", "noise": random.Random(1).randbytes(8192), "long": b"\0" * 99999}


@pytest.mark.parametrize("text", CONTENTS.values(), ids=CONTENTS.keys())
def test_any_bytes_in_the_record_are_survived(root, text):
    path = root.record(NOBODY).path
    path.write_bytes(text)
    path.chmod(0o600)
    os.chown(path, NOBODY, NOBODY)
    root.crash_three_times(uid=NOBODY)
    assert root.app(aborts=True, uid=NOBODY) == BURNT
    assert path.stat().st_size == max(8192, len(text))


@pytest.mark.parametrize("mount", ["-t tmpfs -o ro,mode=1777 none", "-t tmpfs -o size=4k,mode=1777 none"],
                         ids=["read-only", "full"])
def test_a_folder_that_cannot_be_written_is_as_none(root, mount):
    fills = "head -c 4096 /dev/zero > full 2>/dev/null || true"
    root.script.write_text(root.script.read_text().replace(
        'exec "$@"', f'mount {mount} {root.crash}\n(cd {root.crash} && {fills}) 2>/dev/null || true\nexec "$@"'))
    for _ in range(4):
        assert root.app(aborts=True) == ABORTED
        assert root.said == ""
    done = root.python("print('done')")
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_a_limit_on_the_size_of_files_ends_no_process(root):
    """The kernel sends SIGXFSZ to a process that writes beyond the limit."""
    for size in ("0", "100", "8191"):
        limited = ["/usr/bin/prlimit", f"--fsize={size}", "/app", "1", "1"]
        for _ in range(4):
            assert root.start(*limited, aborts=True).returncode == ABORTED
        assert root.start(*limited).returncode == BURNT


def test_a_record_that_is_cut_short_does_not_end_the_process(root):
    code = f"open('/{root.record().path.relative_to(root.folder)}', 'w').close(); print('done')"
    done = root.python(code)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_no_descriptor_is_left(root):
    code = "import os; print(sorted(int(name) for name in os.listdir('/proc/self/fd')))"
    assert root.python(code).stdout == "[0, 1, 2, 3]\n"
    assert list(root.record().starts().values()) == [True]


def test_a_process_of_30_s_has_settled(living):
    """The start has succeeded, however the process ends later. This is the last test: the time passes beside the
    others."""
    root, began, done = living
    eventually(lambda: root.record().path.exists() and list(root.record().starts().values()) == [True] * 4,
               "four starts that got through", 2 * TIMEOUT_S, unless=done.done)
    assert time.monotonic() > began + 30
    (root.folder / "open/go").touch()
    assert done.result().stderr == ""
    assert root.python("pass", aborts=True).returncode == ABORTED
