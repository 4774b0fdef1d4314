"""Runs the fuzzers, each in a process of its own, as many at a time as there are processors. The long
form is `make fuzz`, the short one is part of `make test`.

A fuzzer begins with its seeds and with what it found worth keeping before (build/fuzz/corpus). What
breaks a promise is left in build/fuzz/found, for `build/fuzz/NAME FILE` to run again.
"""

import concurrent.futures
import os
import re
import subprocess

from seeds import BUILD, SEEDS, write_seeds

FUZZ = BUILD / "fuzz"
NAMES = sorted(SEEDS)
# of an input: of a line and of headers more than their bound; of objects more than the seeds have
MAX_BYTES = {"config_file": 8192, "grpc_answer": 16384, "elf": 32768, "dwarf": 32768, "demangle": 2048}
USUAL_MAX_BYTES = 4096
LEAST_RUNS = 200  # fewer would be a fuzzer that does not work, however busy the machine is
HANG_SECONDS = 600  # of wall time for one input; what an input may cost in CPU time is in budget.h


class Result:
    """One fuzzer's run: `problem` is empty if all is well."""

    def __init__(self, name, runs, edges, problem):
        self.name = name
        self.runs = runs
        self.edges = edges
        self.problem = problem

    def __str__(self):
        return f"{self.name:12} {self.runs:10} runs {self.edges:6} edges  {'BROKEN' if self.problem else 'ok'}"


def is_built():
    """False where clang has no fuzzer's runtime; `make fuzzers` says so."""
    return all((FUZZ / name).exists() for name in NAMES)


def last_number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def fuzz(name, seconds):
    corpus, seeds, found = (FUZZ / kind / name for kind in ("corpus", "seeds", "found"))
    write_seeds(name, seeds)
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    command = [
        FUZZ / name, f"-max_total_time={seconds}", f"-max_len={MAX_BYTES.get(name, USUAL_MAX_BYTES)}", f"-timeout={HANG_SECONDS}",
        "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={found}/", corpus, seeds,
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_PRELOAD"))}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", check=False,
        timeout=seconds * 2 + 2 * HANG_SECONDS,
    )
    runs = last_number(r"number_of_executed_units: (\d+)", done.stderr)
    edges = last_number(r"cov: (\d+)", done.stderr)
    problem = ""
    if done.returncode:
        problem = done.stderr[-6000:]
    elif runs < LEAST_RUNS:
        problem = f"only {runs} runs in {seconds} s"
    return Result(name, runs, edges, problem)


def fuzz_all(names, seconds):
    """Yields the results in the order of their end."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        running = [pool.submit(fuzz, name, seconds) for name in names]
        for one in concurrent.futures.as_completed(running):
            yield one.result()
