"""Tables show what threads wait for: where their time went, locks with their holders, and what each thread does."""

import os
import re
import subprocess

import pytest
import made_up_server as made_up
from conftest import BUILD, ROOT
from otelprof_lib import waits
from otelprof_lib.aggregate import Frame, aggregate
from otelprof_lib.arguments import types
from otelprof_lib.capture_file import append_message
from otelprof_lib.cli import main
from otelprof_lib.formats import duration
from otelprof_lib.kinds import ATTRIBUTES, KINDS, TYPES
from otelprof_lib.report import report

pytestmark = pytest.mark.fast


@pytest.fixture
def profiles(message):
    return aggregate([made_up.shop(message).request])


@pytest.fixture
def otelprof(tmp_path, message, capsys):
    """otelprof(command, *options, of=...): (status, its output)."""

    def call(command, *options, of=(made_up.shop,)):
        with open(tmp_path / "profile", "wb") as out:
            for make in of:
                append_message(out, make(message).bytes())
        status = main([command, str(tmp_path / "profile"), *options])
        printed, said = capsys.readouterr()
        return status, printed + said

    return call


def rows_of(table):
    """Returns the cells of each line."""
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]


# --- the time of threads ---


def test_the_attributes_are_those_of_the_list():
    named = {value for name, value in vars(waits).items() if name.isupper() and str(value).startswith(("otelprof.", "thread."))}
    assert len(named) > 8 and named <= {key for key, _ in ATTRIBUTES}


def test_nanoseconds_are_shown_as_seconds(profiles):
    assert {name: profile.total for name, profile in profiles.items() if profile.unit in ("seconds", "duration")} == {
        "cpu": pytest.approx(5), "off_cpu": pytest.approx(55), "sched_delay": pytest.approx(1), "lock": pytest.approx(9)}


def test_wall_time_is_cpu_and_delay_and_time_off_cpu(profiles):
    wall = waits.wall(profiles)
    assert wall.total == pytest.approx(sum(profiles[kind].total for kind in ("cpu", "sched_delay", "off_cpu")))
    ends = {stack[0] for stack in wall.stacks}
    words = {frame.name for frame in ends if frame.module == waits.NOT_RUNNING}
    assert words == {"lock", "net", "sync", "idle", "run queue"} and Frame("render", "shop") in ends


def test_there_is_no_wall_time_without_all_its_parts(profiles):
    for missing in ("cpu", "off_cpu"):
        part = {name: profile for name, profile in profiles.items() if name != missing}
        assert waits.with_wall(part) == part and "where the time" not in report(part, 9)


def test_the_overview_has_a_row_for_each_name_and_a_column_for_each_state(profiles):
    title, *lines = report(profiles, 9).split("\n\n")[0].splitlines()
    assert title == "where the time of the threads went"
    assert rows_of("\n".join(lines)) == [
        ["wall time", "on CPU", "run queue", "lock", "net", "sync", "idle", "threads", "name"],
        ["61.000 s", "8.2%", "1.6%", "14.8%", "8.2%", "1.6%", "65.6%", "7", "(all)"],
        ["10.000 s", "20.0%", "5.0%", "50.0%", "25.0%", "-", "-", "1", "worker-0"],
        ["10.000 s", "30.0%", "5.0%", "40.0%", "25.0%", "-", "-", "1", "worker-1"],
        ["1.000 s", "-", "-", "-", "-", "100.0%", "-", "1", "flusher"],
        ["40.000 s", "-", "-", "-", "-", "-", "100.0%", "4", "pool"],
    ]


def test_rare_waits_share_a_column(message):
    cpu = [(("f",), 100, None, {"thread.name": "a", "thread.id": 1})]
    off = [(("f",), (20 - number) * made_up.MILLI, None, {"thread.name": "a", "thread.id": 1, "otelprof.wait.kind": f"kind{number}"})
           for number in range(12)]
    request = message().labelled("samples", "count", made_up.MILLI, cpu).labelled("off_cpu", "nanoseconds", 1, off).request
    head, row = rows_of(report(aggregate([request]), 9).split("\n\n")[0])[1:]
    assert head[3:] == [*(f"kind{number}" for number in range(9)), "other", "threads", "name"]
    shares = [float(cell.rstrip("%")) for cell in row[1:-2] if cell != "-"]
    assert sum(shares) == pytest.approx(100, abs=1) and shares[-1] == pytest.approx(100 * (11 + 10 + 9) / 274, abs=0.1)


def test_waits_that_were_never_sampled_are_reported(message):
    rows = [(("f",), 2 * made_up.MILLI, None, made_up.worker(0)), (("f",), made_up.MILLI, None, {**made_up.worker(0), **made_up.waits("io")})]
    request = message().labelled("samples", "count", made_up.MILLI, [(("f",), 1, None, made_up.worker(0))]).labelled("off_cpu", "nanoseconds", 1, rows).request
    assert rows_of(report(aggregate([request]), 9).split("\n\n")[0])[1:] == [
        ["wall time", "on CPU", "run queue", "io", "not seen", "threads", "name"],
        ["0.004 s", "25.0%", "-", "25.0%", "50.0%", "1", "worker-0"]]


def test_threads_that_no_sample_has_met_are_one_row(message):
    rows = [(("f",), 1, None, {"otelprof.stack.unsampled": True})]
    request = message().labelled("samples", "count", made_up.MILLI, rows).labelled("off_cpu", "nanoseconds", 1, rows).request
    assert rows_of(report(aggregate([request]), 9).split("\n\n")[0])[-1] == ["0.001 s", "100.0%", "-", "0.0%", "-", "(unknown)"]


def test_a_thread_that_changes_its_name_is_one_of_all(message):
    rows = [(("f",), 1, None, {"thread.name": name, "thread.id": 1}) for name in ("before", "after")]
    request = message().labelled("samples", "count", made_up.MILLI, rows).labelled("off_cpu", "nanoseconds", 1, rows).request
    assert [row[-2:] for row in rows_of(report(aggregate([request]), 9).split("\n\n")[0])[2:]] == [["1", "(all)"], ["1", "after"], ["1", "before"]]


def test_processes_are_told_apart(otelprof, message):
    def process(name, pid):
        def make(message):
            export = made_up.shop(message)
            attributes = export.request.resource_profiles[0].resource.attributes
            attributes[0].value.string_value = f"instance {pid}"
            attributes.add(key="process.executable.name").value.string_value = name
            attributes.add(key="process.pid").value.int_value = pid
            return export
        return make

    two = (process("shop", 7), process("shop", 8), process("bank", 9))
    _, shown = otelprof("top", of=two)
    names = {row[-1]: row[-2] for row in rows_of(shown.split("\n\n")[0])[2:]}
    assert names["shop: pool"] == "8" and names["bank: worker-1"] == "1"
    _, shown = otelprof("locks", of=two)
    assert re.findall(r"journal_lock \(0x\w+\) of .*", shown) == [f"{made_up.NAMED} of {name}" for name in ("bank 9", "shop 7", "shop 8")]
    assert "CPU time: 5.000 s" in otelprof("top", "--label", "process.pid=8", of=two)[1]
    _, shown = otelprof("threads", of=two)
    assert len(re.findall(r"^pool \(300, 301, 302, 303\) of (?:shop|bank) [789]: idle in cond for 9.9 s$", shown, re.M)) == 3


def test_functions_off_cpu_have_the_reasons_of_their_waits(otelprof):
    rows = rows_of(otelprof("top", "--kind", "off_cpu")[1].split("\n\n")[0])
    assert rows[1] == ["self", "total", "waits for", "function"]
    assert {row[-1].split()[0]: row[-2] for row in rows[2:]} == {
        "pthread_cond_wait": "cond", "take_job": "cond", "pool": "cond", "log_request": "lock", "query": "net", "serve": "lock", "worker": "lock",
        "flush_log": "sync", "run_flusher": "sync"}


def test_a_function_whose_waits_were_never_sampled_waits_for_nothing_known(otelprof):
    """Most of its waits were never sampled; a few were."""
    def make(message):
        rows = [(("shop!worker",), 5 * made_up.MILLI, None, made_up.worker(0)),
                (("shop!naps", "shop!worker"), made_up.MILLI, None, {**made_up.worker(0), **made_up.waits("sleep")})]
        return message().labelled("off_cpu", "nanoseconds", 1, rows)

    rows = rows_of(otelprof("top", "--kind", "off_cpu", of=(make,))[1].split("\n\n")[0])
    assert {row[-1]: row[-2] for row in rows[2:]} == {"worker (shop)": "not seen", "naps (shop)": "sleep"}


def test_waits_end_in_the_function_of_libc_that_the_program_called(otelprof):
    def inside(message):
        caller = ("libc.so.6!pthread_mutex_lock", "app!work", "libc.so.6!start_thread")
        rows = [((leaf, *caller), made_up.MILLI, None, made_up.waits("lock")) for leaf in ("libc.so.6!futex_wait", "libc.so.6!lll_wait")]
        rows += [(("libc.so.6!read", "libc.so.6!start_thread"), made_up.MILLI, None, made_up.waits("io")),
                 (("libc.so.6!exit", "libc.so.6!__libc_start_main", "app!_start"), made_up.MILLI, None, made_up.waits("io"))]
        return (message().labelled("off_cpu", "nanoseconds", 1, rows)
                .labelled("samples", "count", made_up.MILLI, [(("libc.so.6!memcpy", *caller), 1, None, {})]))

    def functions(*options):
        return {row[-1].split()[0] for row in rows_of(otelprof("top", *options, of=(inside,))[1].split("\n\n")[0])[2:]}

    assert functions("--kind", "off_cpu") == {
        "pthread_mutex_lock", "work", "start_thread", "read", "exit", "__libc_start_main", "_start"}, "what libc begins by itself stays"
    assert {"futex_wait", "lll_wait"} < functions("--kind", "off_cpu", "--inside-libc")
    assert "memcpy" in functions("--kind", "cpu")


# --- idle threads ---


def test_idle_threads_are_said_and_hidden(otelprof):
    _, shown = otelprof("top")
    assert "idle: 72.7% of time off CPU, 57.1% of threads (--hide-idle leaves it out)" in shown
    _, shown = otelprof("top", "--hide-idle")
    assert "time off CPU: 15.000 s" in shown and "threads: 3 (" in shown and "take_job" not in shown and "idle" not in shown
    assert "CPU time: 5.000 s" in shown


# --- locks ---


def test_locks_are_shown_with_their_holders(otelprof):
    status, shown = otelprof("locks")
    assert status == 0 and rows_of(shown) == [
        ["locks"],
        ["delay", "contentions", "mean", "off CPU", "lock"],
        ["9.0 s", "1.0k", "9.0 ms", "9.0 s", made_up.NAMED],
        ["held by", "100.0%", "flusher (thread 200)"],
        ["last seen in flush_log, from write_entries, from run_flusher, from main"],
        ["waited for in", "100.0%", "log_request (shop)"],
    ]
    assert otelprof("top")[1].count(shown.strip()) == otelprof("top", "--kind", "lock")[1].count(shown.strip()) == 1


def test_locks_of_waits_that_go_on_are_shown(otelprof):
    """A contention is counted when it has ended; time off CPU counts while it passes."""
    _, shown = otelprof("locks", of=(lambda message: made_up.time_samples(message()),))
    assert rows_of(shown)[1:4] == [["off CPU", "lock"], ["9.0 s", made_up.NAMED], ["held by", "100.0%", "flusher (thread 200)"]]


def test_a_lock_whose_holder_is_not_known(otelprof):
    def unknown(message):
        labels = {**made_up.worker(0), **made_up.waits("lock"), "otelprof.lock.address": "0x1"}
        return message().labelled("off_cpu", "nanoseconds", 1, [(made_up.LOG, made_up.MILLI, None, labels)])

    assert ["held by", "100.0%", "not known"] in rows_of(otelprof("locks", of=(unknown,))[1])


def test_a_holder_without_a_name_has_that_of_its_thread(otelprof):
    def half_named(message):
        held = {**made_up.worker(0), **made_up.waits("lock"), "otelprof.lock.address": "0x1", "otelprof.lock.holder.thread.id": 101}
        rows = [(made_up.LOG, made_up.MILLI, None, held), (made_up.FLUSH, made_up.MILLI, None, made_up.worker(1))]
        return message().labelled("off_cpu", "nanoseconds", 1, rows)

    assert ["held by", "100.0%", "worker-1 (thread 101)"] in rows_of(otelprof("locks", of=(half_named,))[1])


@pytest.mark.parametrize("wrappers, place", [
    (("std::sys::sync::mutex::futex::Mutex::lock_contended", "<std::sync::Mutex<T>>::lock"), "wants"),
    (("__gthread_mutex_lock", "std::mutex::lock", "std::lock_guard<std::mutex>::lock_guard"), "wants"),
    (("take_lock", "std::thread::_State_impl<>::_M_run"), "take_lock"),
])
def test_a_lock_is_waited_for_in_a_function_of_the_program(otelprof, wrappers, place):
    """The function is the program's own, not a wrapper that its language's library has around libc's function."""
    def wrapped(message):
        stack = ("libc.so.6!syscall", *(f"shop!{name}" for name in wrappers), "shop!wants")
        labels = {**made_up.worker(0), **made_up.waits("lock"), "otelprof.lock.address": "0x1"}
        return message().labelled("off_cpu", "nanoseconds", 1, [(stack, made_up.MILLI, None, labels)])

    assert ["waited for in", "100.0%", f"{place} (shop)"] in rows_of(otelprof("locks", of=(wrapped,))[1])


def test_no_locks_are_said(otelprof):
    nothing = lambda message: message().profile("samples", "count", 1, {("f",): 1})  # noqa: E731
    assert otelprof("locks", of=(nothing,)) == (0, "no sample waited for a lock\n")
    assert otelprof("threads", of=(nothing,)) == (0, "no samples of threads\n")


# --- threads ---


def test_threads_that_do_the_same_are_one_row(otelprof):
    _, shown = otelprof("top", "--kind", "threads")
    assert rows_of(shown.split("\n\n")[0]) == [
        ["threads: 7 (4 idle, 2 blocked, 1 running)"],
        ["threads", "what they do", "function"],
        ["1", f"blocked in lock {made_up.NAMED} for 11.0 ms", "log_request (shop): worker-0 (100)"],
        ["held by flusher (thread 200)"],
        ["1", "blocked in sync for 12.0 ms", "flush_log (shop): flusher (200)"],
        ["1", "running", "render (shop): worker-1 (101)"],
        ["4", "idle in cond for 9.9 s", "take_job (shop): pool (300, 301, 302, 303)"],
    ]


def test_threads_are_dumped_with_their_stacks(otelprof):
    blocks = otelprof("threads")[1].strip().split("\n\n")
    assert blocks[1] == f"""\
worker-0 (100): blocked in lock {made_up.NAMED} for 11.0 ms
    held by flusher (thread 200), which is blocked in sync for 12.0 ms, in flush_log (shop)
        log_request (shop)
        serve (shop)
        worker (shop)"""
    assert [block.splitlines()[0].split(":")[0] for block in blocks[2:]] == ["flusher (200)", "worker-1 (101)", "pool (300, 301, 302, 303)"]


def test_a_holder_that_has_ended_is_where_it_was_last_seen(otelprof):
    def alone(message):
        labels = {**made_up.worker(0), **made_up.waits("lock"), **made_up.SEEN, **made_up.stands("blocked", 5)}
        return message().labelled("threads", "count", 1, [(made_up.LOG, 1, None, labels)])

    assert "held by flusher (thread 200), last seen in flush_log, from write_entries" in otelprof("threads", of=(alone,))[1]


def test_threads_that_wait_for_each_other_are_said(otelprof):
    for command in (("threads",), ("top", "--kind", "threads")):
        lines = otelprof(*command, of=(made_up.deadlocked,))[1].splitlines()
        at = lines.index("DEADLOCK: these threads wait for each other")
        assert lines[at + 1 : at + 3] == [
            "    worker-0 (100) has waited 2.0 s for 0x1000, held by worker-1 (thread 101), in transfer_0 (bank)",
            "    worker-1 (101) has waited 2.0 s for 0x2000, held by worker-0 (thread 100), in transfer_1 (bank)"]
        assert "\n".join(lines).count("DEADLOCK") == 1


def test_short_waits_are_no_deadlock(otelprof):
    """Threads are polled one after the other: the lock of the first may have gone on to the second since."""
    assert "DEADLOCK" not in otelprof("threads", of=(lambda message: made_up.deadlocked(message, 5),))[1]


def test_threads_are_those_of_the_last_snapshot(message):
    def at(time, number):
        export = message().labelled("threads", "count", 1, [(("f",), 1, None, made_up.pool(each)) for each in range(number)])
        export.scope.profiles[0].time_unix_nano = time
        return export.request

    assert aggregate([at(1, 5), at(3, 2), at(2, 9)])["threads"].total == 2


# --- a real program ---


def test_a_real_program_s_threads_and_locks_are_shown(tmp_path):
    patient = dict.fromkeys(("OTEL_PROFILER_SHUTDOWN_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_PROFILE_EXPORT_TIMEOUT"), "120000")

    def call(*arguments):
        return subprocess.run([ROOT / "scripts/otelprof", *arguments], cwd=tmp_path, env={**os.environ, **patient},
                              stdout=subprocess.PIPE, text=True, check=True).stdout

    call("run", "--quiet", "--types", "all", "-o", "a.otlp", "--flamegraph", "a.html", "--", BUILD / "test/programs/stands_still")
    threads = call("threads", "a.otlp")
    assert re.search(r"^wants \(\d+\): blocked in lock mutex \(0x\w+\).*\n    held by holds \(thread \d+\), which is .* in holds_it", threads, re.M)
    assert re.search(r"^reads \(\d+\): blocked in io.*\n        read \(libc.so.6\)\n        reads \(stands_still\)$", threads, re.M)
    locks = call("locks", "a.otlp")
    assert re.search(r" held by  100.0%  holds \(thread \d+\)\n.*\n? +waited for in  100.0%  wants_it \(stands_still\)$", locks, re.M)
    assert call("top", "a.otlp").startswith("where the time of the threads went\n") and "wall time" in (tmp_path / "a.html").read_text()


# --- words ---


@pytest.mark.parametrize("seconds, text", [(0, "0.0 us"), (1.5e-5, "15.0 us"), (0.0123, "12.3 ms"), (1, "1.0 s"), (4000, "4000.0 s")])
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_all_types_are_asked_for_by_a_word():
    assert types("all") == "all" and types(",".join(TYPES))
    with pytest.raises(Exception, match="all stands alone"):
        types("cpu,all")


def test_each_kind_that_can_be_shown_alone_is(otelprof):
    for kind in ("cpu", "off_cpu", "sched_delay", "lock", "threads", "wall"):
        status, shown = otelprof("top", "--kind", kind)
        title = "wall time" if kind == "wall" else KINDS[kind].title
        assert status == 0 and shown.startswith(f"{title}: ")


def test_names_of_threads_cannot_steer_the_terminal(otelprof):
    def nasty(message):
        labels = {"thread.name": "\x1b[2J", "thread.id": 1, "otelprof.wait.kind": "\x1b[3J", "otelprof.lock.address": "\x1b[4J",
                  "otelprof.lock.holder.thread.id": "\x1b[5J", "otelprof.lock.holder.stack": "\x1b[6J", "otelprof.thread.state": "\x1b[7J"}
        rows = [(("f",), 5 * made_up.MILLI, None, labels)]
        return (message().labelled("samples", "count", 1, rows).labelled("off_cpu", "nanoseconds", 1, rows)
                .labelled("delay", "nanoseconds", 1, rows).labelled("threads", "count", 1, rows))

    for command in ("top", "locks", "threads"):
        assert "\x1b" not in otelprof(command, of=(nasty,))[1], command
