"""Real processes follow the watched file (OTEL_PROFILER_CONTROL_FILE) while they run."""

import json
import os
import signal

import pytest
from endpoint import Process
from processes import cpu_seconds, stat_fields
from profiled import FORKS, Outcome
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

OTHER = 65534  # a user who is neither root nor the process's
THREADS = ("thread_0", "thread_1", "thread_2")
PHASE_SECONDS = 0.3  # CPU time of each thread
POLL_INTERVAL_S = 1  # seconds: control_file.c
EDGE = 40e6  # nanoseconds of a thread's sample that may belong to the phase before: a period, and the kernel's late ticks
READ = "debug: OTEL_PROFILER_CONTROL_FILE: "


class Followed:
    """Runs a program of phases that follows a file, and reads its log."""

    def __init__(self, start, program, tmp_path, **environment):
        self.file = tmp_path / "control"
        self.log = tmp_path / "log"
        self.process = Process(tmp_path / "socket")
        self.program = start([program("works_in_phases")], env={
            "OTEL_PROFILER_LISTEN": f"unix:{tmp_path}/socket",
            "OTEL_PROFILER_CONTROL_FILE": str(self.file), "OTEL_PROFILER_LOG_FILE": str(self.log),
            "OTEL_LOG_LEVEL": "debug", "OTEL_PROFILE_EXPORT_INTERVAL": "400", **environment})
        self.phase = 0

    def lines(self, words):
        text = self.log.read_text() if self.log.exists() else ""
        return [line for line in text.splitlines() if words in line]

    def await_lines(self, words, count):
        eventually(lambda: self.lines(""), f"{count} lines with {words}", unless=self.program.process.poll,
                   holds=lambda lines: sum(words in line for line in lines) >= count)

    def await_in_force(self, settings):
        self.process.until_it_answers()
        eventually(lambda: self.process.status()["settings"], settings, unless=self.program.process.poll,
                   holds=lambda found: settings.items() <= found.items())

    def await_looks(self, count):
        """Requests responses: before each one the helper polls the file if that is due."""
        seconds = lambda: float(self.process.status()["profiled_seconds"])
        begun = seconds()
        eventually(seconds, f"{count} looks at the file", unless=self.program.process.poll,
                   holds=lambda now: now > begun + count * POLL_INTERVAL_S)

    def change(self, act, in_force):
        """Does `act`, and waits until the profiler has logged the change and follows it."""
        before = len(self.lines(READ))
        act()
        self.await_lines(READ, before + 1)
        self.await_in_force(in_force)

    def write(self, *lines, in_force=None):
        def replace():
            new = self.file.with_name("control.new")
            new.write_text("\n".join(lines) + "\n")
            new.rename(self.file)
        self.change(replace, in_force or dict(line.split("=") for line in lines if "=" in line))

    def await_phase(self):
        eventually(lambda: os.pread(self.program.out.fileno(), 1000, 0).decode(), f"phase {self.phase}", unless=self.program.process.poll,
                   holds=lambda said: f"phase {self.phase}\n" in said)

    def enter(self, phase):
        while self.phase < phase:
            self.await_phase()
            self.program.process.send_signal(signal.SIGUSR1)
            self.phase += 1

    def cpu_seconds(self):
        """Returns the CPU time of each of the threads."""
        pid = self.program.process.pid
        threads = [it for it in os.listdir(f"/proc/{pid}/task") if it != str(pid) and not stat_fields(pid, it)[0].startswith("otelprof")]
        assert len(threads) == len(THREADS)
        return {thread: cpu_seconds(pid, thread) for thread in threads}

    def work(self, phase):
        self.enter(phase)
        self.await_phase()
        before = self.cpu_seconds()
        eventually(self.cpu_seconds, f"{PHASE_SECONDS} s of each thread", unless=self.program.process.poll,
                   holds=lambda now: all(now[thread] >= before[thread] + PHASE_SECONDS for thread in before))
        self.enter(phase + 1)

    def finish(self):
        self.enter(7)
        outcome = self.program.finish(TIMEOUT_S)
        assert (outcome.returncode, outcome.stderr) == (0, "")
        self.told = json.loads(outcome.stdout.splitlines()[-1])
        self.exports = [export for request in outcome.requests
                        for export in Outcome(0, "", "", [request]).instances()]

    def cpu(self, thread, phase):
        """Returns the CPU time that samples show, each by the period of its export; and the time that was really
        used."""
        names = {thread, f"phase_{phase}"}
        sampled = sum(count * export.period for export in self.exports
                      for stack, count in export.stacks("samples").items() if names <= set(stack))
        return sampled, self.told[thread][phase]

    def was_sampled(self, phase):
        return all(0 < sampled and abs(sampled - used) < 0.05 * used + EDGE
                   for sampled, used in (self.cpu(thread, phase) for thread in THREADS))

    def was_off(self, phase):
        return all(self.cpu(thread, phase)[0] < EDGE for thread in THREADS)


@pytest.fixture
def followed(start, program, tmp_path):
    return lambda **environment: Followed(start, program, tmp_path, **environment)


def test_every_thread_goes_off_and_on_again(followed):
    """A thread that starts with sampling off records nothing until the file turns it on; sums are right at every
    frequency."""
    it = followed(OTEL_PROFILER_START="off")
    it.await_lines(READ, 1)  # the log reports that there is no file
    it.work(0)
    it.write("OTEL_PROFILER_START=on")
    it.work(2)
    it.write("# for a while", "", "OTEL_PROFILER_START=off")
    it.work(4)
    it.write("OTEL_PROFILER_START=on", "OTEL_PROFILER_CPU_FREQUENCY=500")
    it.work(6)
    it.finish()
    assert all(it.cpu(thread, 0)[0] == 0 for thread in THREADS)
    assert it.was_sampled(2) and it.was_off(4) and it.was_sampled(6)
    assert {export.period for export in it.exports if export.period} == {10**9 // 99, 10**9 // 500}


def test_a_change_of_frequency_keeps_the_sums(followed):
    """The frequency changes within one phase and one export: each sample keeps the weight of its own time."""
    it = followed(OTEL_PROFILE_EXPORT_INTERVAL="60000")
    it.await_lines(READ, 1)
    it.enter(1)
    for frequency in (1000, 50, 2000, 99):
        it.write(f"OTEL_PROFILER_CPU_FREQUENCY={frequency}")
    it.work(1)
    it.finish()
    assert it.was_sampled(1)


def test_a_file_that_goes_sets_nothing(followed):
    """Settings are the configuration's again: on, here."""
    it = followed()
    it.write("OTEL_PROFILER_START=off")
    it.work(1)
    it.change(it.file.unlink, {"OTEL_PROFILER_START": "on"})
    it.work(3)
    it.finish()
    assert it.was_off(1)
    assert it.was_sampled(3)


def test_a_config_maps_link_is_followed(followed, tmp_path):
    """Kubernetes writes a new folder and changes one link; the file's own path never changes."""
    def version(name, frequency):
        (tmp_path / name).mkdir()
        (tmp_path / name / "control").write_text(f"OTEL_PROFILER_CPU_FREQUENCY={frequency}\n")
        os.symlink(name, tmp_path / "..data_tmp")
        os.rename(tmp_path / "..data_tmp", tmp_path / "..data")

    version("..1", 200)
    (tmp_path / "control").symlink_to("..data/control")
    it = followed()
    it.await_lines(READ, 1)
    it.enter(1)
    it.change(lambda: version("..2", 400), {"OTEL_PROFILER_CPU_FREQUENCY": "400"})
    it.work(2)
    it.finish()
    periods = [export.period for export in it.exports if export.period]
    assert (periods[0], periods[-1]) == (10**9 // 200, 10**9 // 400)


REFUSED = "warn: OTEL_PROFILER_CONTROL_FILE: "


@pytest.mark.parametrize("spoil", [lambda file: file.chmod(0o646), lambda file: os.chown(file, OTHER, OTHER),
                                   lambda file: file.parent.chmod(0o777)],
                         ids=["writable", "another's", "in an open folder"])
def test_a_file_that_others_can_write_is_refused(followed, tmp_path, spoil):
    """Such a file sets nothing any more, whatever it had before. The refusal is logged once."""
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / "control"
    file.write_text("OTEL_PROFILER_START=off\n")
    it = followed(OTEL_PROFILER_CONTROL_FILE=str(file))
    it.await_lines(READ, 1)
    it.work(1)
    before = len(it.lines(REFUSED))
    spoil(file)
    os.utime(file)
    it.await_lines(REFUSED, before + 1)
    it.await_in_force({"OTEL_PROFILER_START": "on"})
    it.work(3)
    it.await_looks(2)
    it.finish()
    assert before == 0 and len(it.lines(REFUSED)) == 1
    assert it.was_off(1)
    assert it.was_sampled(3)


def test_a_wrong_line_is_reported_once_and_the_others_hold(followed):
    it = followed()
    it.await_lines(READ, 1)
    it.write("OTEL_PROFILER_CPU_FREQUENCY=fast", "OTEL_PROFILER_START=off", "OTEL_LOG_LEVEL=warn",
             in_force={"OTEL_PROFILER_START": "off"})
    it.await_looks(2)
    it.work(1)
    it.finish()
    wrong = it.lines(REFUSED)
    assert len(wrong) == 1
    assert wrong[0].endswith(f'{it.file}:1: OTEL_PROFILER_CPU_FREQUENCY="fast" is not a frequency from 1 to 4000; '
                             "the line is ignored")
    assert it.was_off(1)


def test_of_a_tree_one_process_reports_a_fault(run, tmp_path):
    """The children watch the same file."""
    file, log = tmp_path / "control", tmp_path / "log"
    file.write_text("nonsense\n")
    code = """
import os, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        bytearray(4096)
burn(0.5)
os.fork(), os.fork()
burn(0.5)
try:
    while True: os.wait()
except ChildProcessError: pass
"""
    outcome = run(["/usr/bin/python3", "-c", FORKS + code], env={
        "OTEL_PROFILER_CONTROL_FILE": str(file), "OTEL_PROFILER_LOG_FILE": str(log), "OTEL_LOG_LEVEL": "debug"})
    assert outcome.returncode == 0, outcome.stderr
    lines = [line for line in log.read_text().splitlines() if "what stands there is not NAME=value" in line]
    assert len(lines) == len(outcome.instances()) == 4
    assert sum("] warn: " in line for line in lines) == 1
