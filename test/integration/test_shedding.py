"""OTEL_PROFILER_CPU_THRESHOLD stops sampling on a busy machine, or in a busy control group."""

import os
import subprocess
import threading

import pytest
from endpoint import ALL_TYPES, Process, asked  # noqa: F401 # asked: a fixture
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

# Files of the test replace the kernel's: figures of the machine, and of a group that may use one processor.
TOLD = """
mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup && echo 100000 100000 > cpu.max && : > cpu.stat && : > stat &&
mount --bind stat /proc/stat && exec env LD_PRELOAD="$PRELOAD" "$@"
"""


class Told:
    """Runs a program on a machine that is as busy as the test sets it, from one moment to the next."""

    def __init__(self, start, program, library, folder, **environment):
        self.busy = {"machine": 0, "group": 0}  # percent
        self.sums = {"busy": 0, "all": 1, "group": 0}
        self.stop = folder / "stop"
        self.program = start(
            ["unshare", "-m", "sh", "-c", TOLD, "sh", program("works_and_waits"), self.stop],
            env={**ALL_TYPES, "LD_PRELOAD": "", "PRELOAD": str(library), "OTEL_PROFILER_LISTEN": f"unix:{folder}/socket",
                 **environment}, log_to_stderr=True)
        self.process = Process(folder / "socket")
        self.is_over = threading.Event()
        self.teller = threading.Thread(target=self.tell, daemon=True)
        self.teller.start()
        self.process.until_it_answers()

    def tell(self):
        """Writes texts of one length, each at once: a reader sees all of one."""
        folder = f"/proc/{self.program.process.pid}/root/sys/fs/cgroup"
        while not self.is_over.wait(0.05):
            self.sums["busy"] += self.busy["machine"]
            self.sums["all"] += 100
            self.sums["group"] += self.busy["group"] * 10**7  # of one processor: far more than the time that passes
            for name, text in (("stat", f"cpu  {self.sums['busy']:012} 0 0 {self.sums['all'] - self.sums['busy']:012} 0 0 0 0\n"),
                               ("cpu.stat", f"usage_usec {self.sums['group']:020}\n")):
                try:
                    file = os.open(f"{folder}/{name}", os.O_WRONLY)
                except OSError:  # the folder is not mounted yet, or not any more
                    continue
                os.pwrite(file, text.encode(), 0)
                os.close(file)

    def over(self):
        self.stop.touch()
        outcome = self.program.finish(TIMEOUT_S)
        self.is_over.set()
        self.teller.join()
        return outcome


def until(process, sheds):
    return eventually(process.status, "sampling that is off" if sheds else "sampling that is on", holds=lambda status: (
        status["shed"]["now"] == sheds and status["settings"]["OTEL_PROFILER_START"] == ("off" if sheds else "on")))


def samples_in_a_second(process, query=""):
    return process.profile(f"profile?seconds=1{query}").total("cpu")


@pytest.mark.parametrize("what", ["machine", "group"])
def test_nothing_is_sampled_while_processors_are_busy(start, program, library, tmp_path, what):
    it = Told(start, program, library, tmp_path, OTEL_PROFILER_CPU_THRESHOLD="80", OTEL_LOG_LEVEL="debug")
    assert it.process.status()["shed"] == {"now": False, "seconds": 0}
    it.busy[what] = 90
    until(it.process, True)
    assert samples_in_a_second(it.process) == 0
    assert samples_in_a_second(it.process, "&OTEL_PROFILER_START=on") == 0  # whatever a request sets
    metrics = it.process.ask("/metrics").text
    assert "\notelprof_shed 1\n" in metrics
    it.busy[what] = 0
    status = until(it.process, False)
    assert status["shed"]["seconds"] > 2
    eventually(lambda: samples_in_a_second(it.process), "a sample")
    outcome = it.over()
    assert outcome.returncode == 7, outcome.stderr
    assert outcome.instance("works_and_waits").shed_ns > 2e9
    assert "percent busy; nothing is sampled" in outcome.stderr and "sampling goes on, after" in outcome.stderr


def test_a_profiler_that_is_off_sheds_nothing(start, program, library, tmp_path):
    it = Told(start, program, library, tmp_path, OTEL_PROFILER_CPU_THRESHOLD="80")
    it.busy["machine"] = 90
    until(it.process, True)
    assert it.process.control("OTEL_PROFILER_START=off").status == 200
    shed = it.process.status()["shed"]
    assert not shed["now"] and shed["seconds"] > 0
    assert samples_in_a_second(it.process) == 0
    assert it.process.status()["shed"] == shed
    assert it.process.control("OTEL_PROFILER_START=on").status == 200
    assert until(it.process, True)["shed"]["seconds"] > shed["seconds"]
    assert it.over().returncode == 7


def test_a_load_at_the_threshold_does_not_turn_it_on_and_off(start, program, library, tmp_path):
    it = Told(start, program, library, tmp_path, OTEL_PROFILER_CPU_THRESHOLD="80", OTEL_LOG_LEVEL="debug")
    it.busy["machine"] = 90
    until(it.process, True)
    it.busy["machine"] = 75
    for _ in range(8):
        assert samples_in_a_second(it.process) == 0
    outcome = it.over()
    assert outcome.stderr.count("nothing is sampled") == 1 and "sampling goes on" not in outcome.stderr


def test_a_busy_machine_is_seen_and_the_threshold_can_be_taken_back(asked):
    """The real machine is used: every processor is kept busy."""
    burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
    try:
        running = asked(OTEL_PROFILER_CPU_THRESHOLD="1")
        until(running.process, True)
        assert running.process.control("OTEL_PROFILER_CPU_THRESHOLD=0").status == 200
        until(running.process, False)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    outcome = running.over()
    assert outcome.returncode == 7
    assert outcome.instance("works_and_waits").shed_ns > 0


def test_a_child_that_only_computes_decides_for_itself(start, program, tmp_path):
    """Without a sample the child would start no helper, and never be profiled again."""
    running = start([program("forks_and_computes"), tmp_path / "go"], env={
        "OTEL_PROFILER_LISTEN": f"unix:{tmp_path}/", "OTEL_PROFILER_CPU_THRESHOLD": "1"})
    asked_process = Process(tmp_path / f"{running.process.pid}.sock")
    asked_process.until_it_answers()
    until(asked_process, True)
    (tmp_path / "go").touch()
    outcome = running.finish(TIMEOUT_S)
    assert outcome.returncode == 7, outcome.stderr
    (child,) = [it for it in outcome.instances() if it.pid != running.process.pid]
    assert child.cpu_of("compute") > 0 or child.shed_ns > 0
