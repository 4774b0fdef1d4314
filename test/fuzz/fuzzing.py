"""Runs the fuzzers, each in a process of its own, as many at a time as there are processors.

`make fuzz` explores: each fuzzer runs for a time, begins with its seeds and with what it found worth keeping before
(build/fuzz/corpus), and keeps what it finds there. The tests repeat: each fuzzer runs its seeds, the corpus that is there
and then REPEATED_RUNS inputs made with one fixed seed, so that two runs of one commit try the same inputs.

An input that breaks a promise is left in build/fuzz/found, for `build/fuzz/NAME FILE` to run again.
"""

import concurrent.futures
import os
import re
import subprocess
import tempfile

from seeds import BUILD, SEEDS, write_seeds

FUZZ = BUILD / "fuzz"
NAMES = sorted(SEEDS)
# bytes of an input: more than the bounds of a line and of headers; more than the objects of the seeds
MAX_BYTES = {"config_file": 8192, "endpoint": 8192, "grpc_response": 16384, "elf": 32768, "dwarf": 32768, "demangle": 2048}
USUAL_MAX_BYTES = 4096
LEAST_RUNS = 200  # fewer would be a fuzzer that does not work, however busy the machine is
REPEATED_RUNS = 8_000
# The fuzzers whose inputs cost 2 to 4 ms: 7 seconds of a processor each.
SLOW_REPEATED_RUNS = {"config": 2_000, "dwarf": 4_000, "elf": 4_000, "perf_map": 4_000}
FIXED_SEED = 1
HANG_SECONDS = 600  # of wall time for one input; what an input may cost in CPU time is in budget.h


class Result:
    """Holds one fuzzer's run: `problem` is empty if all is well."""

    def __init__(self, name, runs, edges, problem):
        self.name = name
        self.runs = runs
        self.edges = edges
        self.problem = problem

    def __str__(self):
        return f"{self.name:12} {self.runs:10} runs {self.edges:6} edges  {'BROKEN' if self.problem else 'ok'}"


def is_built():
    """Returns whether the fuzzers are built: not where clang has no fuzzer's runtime, as `make fuzzers` reports."""
    return all((FUZZ / name).exists() for name in NAMES)


def last_number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def folders(name):
    """Returns the fuzzer's folders of seeds, of its corpus and of what it found. Creates them."""
    seeds, corpus, found = (FUZZ / kind / name for kind in ("seeds", "corpus", "found"))
    write_seeds(name, seeds)
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    return seeds, corpus, found


def run_fuzzer(name, bound, inputs, timeout):
    """Runs one fuzzer. The first folder of `inputs` gets what it finds worth keeping."""
    command = [
        FUZZ / name, *bound, f"-max_len={MAX_BYTES.get(name, USUAL_MAX_BYTES)}", f"-timeout={HANG_SECONDS}",
        "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={FUZZ}/found/{name}/", *inputs,
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_PRELOAD"))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False, timeout=timeout)
    runs = last_number(r"number_of_executed_units: (\d+)", done.stderr)
    problem = ""
    if done.returncode:
        problem = done.stderr[-6000:]
    elif runs < LEAST_RUNS:
        problem = f"only {runs} runs"
    return Result(name, runs, last_number(r"cov: (\d+)", done.stderr), problem)


def explore(name, seconds):
    seeds, corpus, _ = folders(name)
    return run_fuzzer(name, [f"-max_total_time={seconds}"], [corpus, seeds], seconds * 2 + 2 * HANG_SECONDS)


def repeat(name):
    seeds, corpus, _ = folders(name)
    with tempfile.TemporaryDirectory() as nothing:
        bound = [f"-runs={SLOW_REPEATED_RUNS.get(name, REPEATED_RUNS)}", f"-seed={FIXED_SEED}"]
        return run_fuzzer(name, bound, [nothing, seeds, corpus], None)


def fuzz_all(names, run):
    """Yields run(name) for each name in the order of their ends."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for one in concurrent.futures.as_completed([pool.submit(run, name) for name in names]):
            yield one.result()
