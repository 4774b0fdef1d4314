#!/usr/bin/python3
"""Measures the profiler against no preload in one run: `make bench`.

Every variant is run in turn, over and over; differences and ratios are medians over the turns of what was measured
within one turn, so that a drift of the machine affects all alike. "none" runs twice, and how the two differ is the
noise. No figure here passes or fails.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import exports
import heap_cost
import programs as whole_programs
import samples
import waits
from otlp_sink import OtlpSink  # noqa: E402: exports.py has said where it is

PARTS = ("throw", "cpu", "start", "spawn", "malloc", "memory", "decay", "programs", "samples", "links",
         "wire", "flush", "waits")
PERFTOOLS = "/usr/lib/x86_64-linux-gnu/libprofiler.so.0"


def clean_environment():
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(
            ("OTEL_", "LD_PRELOAD", "CPUPROFILE", "HEAP", "TCMALLOC_", "MALLOC_CONF")
        )
    }


def build_variants(library, programs, endpoint, scratch):
    """Returns name -> environment, in the order in which they are run and shown."""
    ours = {"LD_PRELOAD": library, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    ours["OTEL_PROFILER_LOG_FILE"] = os.path.join(scratch, "log")
    ours["OTEL_PROFILER_EXCLUDE"] = "none"  # by default /bin/true is excluded
    ours["OTEL_PROFILER_MAX_OVERHEAD"] = "none"  # rates are not lowered
    variants = {
        "none": {},
        "otelprof": ours,
        "cpu only": dict(ours, OTEL_PROFILER_TYPES="cpu"),
        # the bound of any preload that hooks malloc: forwarding alone
        "pass-through": {"LD_PRELOAD": os.path.join(programs, "pass_through.so")},
        "none again": {},
    }
    if os.path.exists(PERFTOOLS):
        variants["gperftools"] = {
            "LD_PRELOAD": PERFTOOLS,
            "CPUPROFILE": os.path.join(scratch, "peer.prof"),
            "CPUPROFILE_FREQUENCY": "99",
        }
    return {name: {**clean_environment(), **extra} for name, extra in variants.items()}


def output_of(command, environment):
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ).stdout.decode()


def cpu_seconds(command, environment):
    """Returns user and system time of the whole process, its helper's and its exit's included."""
    child = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status != 0:
        raise RuntimeError(f"{command} ended with status {status}")
    return usage.ru_utime + usage.ru_stime


def interleave(variants, turns, measure):
    """Returns variant -> list of what `measure(environment)` returned, one a turn."""
    results = {name: [] for name in variants}
    for turn in range(turns):
        order = list(variants)
        if turn % 2:
            order.reverse()
        for name in order:
            results[name].append(measure(variants[name]))
    return results


def bench_throw(programs, variants, turns):
    command = [os.path.join(programs, "bench_throw")]
    measure = lambda environment: float(output_of(command, environment)) / 1000
    yield "C++ throw+catch, 8 frames", "us", interleave(variants, turns, measure)


def bench_cpu(programs, variants, turns, rounds):
    command = [os.path.join(programs, "bench_cpu"), str(rounds)]
    measure = lambda environment: cpu_seconds(command, environment)
    faster = dict(variants["cpu only"], OTEL_PROFILER_CPU_FREQUENCY="999")
    yield "CPU-bound program, user+system", "s", interleave(
        {**variants, "999 Hz": faster}, turns, measure
    )


def with_excluded(variants):
    """Adds the default, in which /bin/true is not profiled."""
    excluded = dict(variants["otelprof"])
    del excluded["OTEL_PROFILER_EXCLUDE"]
    return {**variants, "excluded": excluded}


def bench_start(programs, variants, turns):
    """Runs /bin/true under each preload, started by a process that has none."""
    spawn = os.path.join(programs, "bench_spawn")
    for name, environment in with_excluded(variants).items():
        if "LD_PRELOAD" not in environment:
            continue
        extra = {k: v for k, v in environment.items() if k != "LD_PRELOAD"}
        lines = output_of([spawn, str(turns), environment["LD_PRELOAD"]], extra).splitlines()
        columns = zip(*([float(field) / 1e6 for field in line.split()] for line in lines))
        rows = dict(zip(("none", name, "none again"), map(list, columns)))
        yield f"/bin/true, wall time ({name})", "ms", rows


def bench_spawn(programs, variants, turns):
    """Spawns from a process that is profiled; where /bin/true is not excluded, the child is too."""
    # the bound of any preload that keeps a thread
    bound = {"idle thread": {"LD_PRELOAD": os.path.join(programs, "idle_thread.so")}}
    for title, mode, *arguments in (
        ("fork, to the end of an idle child", "-f", "100"),
        ("fork, of 100 MiB", "-f", "30", "100"),
        # it has lived long enough for its exporter to be loaded
        ("fork, exporter loaded", "-f", "100", "0", "1300"),
        ("fork+exec /bin/true", "-s", "100"),
    ):
        command = [os.path.join(programs, "bench_spawn"), mode, *arguments]

        def measure(environment, command=command):
            times = [float(line) for line in output_of(command, environment).splitlines()]
            return statistics.median(times) / 1e6

        yield title, "ms", interleave(
            {**with_excluded(variants), **bound}, turns, measure
        )


def bench_samples(programs, variants, library, scratch):
    """Prints tables of its own: the cost of one sample, and which profiler's total is right."""
    wanted = [name for name in ("cpu only", "gperftools") if name in variants]
    cost = {name: variants[name] for name in wanted}
    warm, cold, clock = samples.unwinding(programs, clean_environment())
    samples.print_unwinding(warm, cold, clock)
    taken = samples.signals(programs, cost)
    samples.print_signals(taken)
    threads = [os.path.join(os.path.dirname(programs), "programs", "cpu_shares"), "16", "2"]
    single = [os.path.join(programs, "bench_cpu"), "20"]
    figures = {}
    for title, command in (("16 threads", threads), ("one thread", single)):
        rows = samples.totals(command, clean_environment(), library, PERFTOOLS, scratch)
        samples.print_totals(title, rows)
        figures[title] = rows
    return {
        "warm_ns": {f"{depth} {name}": ns for (depth, name), (ns, _) in warm.items()},
        "cold_ns": cold,
        "clock_ns": clock,
        "signal": {name: {str(key): ns for key, ns in r.items()} for name, r in taken.items()},
        "totals": figures,
    }


def bench_wire(programs, library):
    figures = exports.wire(programs, library, clean_environment())
    exports.print_wire(figures)
    return {"wire": figures}


def bench_flush(programs, library):
    figures = exports.flush(programs, library, clean_environment())
    exports.print_flush(figures)
    return {"flush": figures}


def summarize(title, unit, results):
    medians = {}
    ratios = {}
    differences = {}
    for name, values in results.items():
        if not values:
            continue
        pairs = list(zip(values, results["none"]))
        medians[name] = statistics.median(values)
        ratios[name] = statistics.median(value / base for value, base in pairs)
        differences[name] = statistics.median(value - base for value, base in pairs)
    return {
        "case": title,
        "unit": unit,
        "turns": len(results["none"]),
        "median": medians,
        "ratio": ratios,
        "difference": differences,
    }


def print_table(rows, names):
    head = f"{'':46}{'none':>10}" + "".join(f"{name:>22}" for name in names if name != "none")
    print(head)
    for row in rows:
        line = f"{row['case']:46}{row['median']['none']:>7.2f} {row['unit']:<2}"
        for name in names:
            if name == "none":
                continue
            if name not in row["median"]:
                line += f"{'':>22}"
                continue
            line += (
                f"{row['median'][name]:>8.2f} {row['difference'][name]:>+6.2f}"
                f" ×{row['ratio'][name]:.3f}"
            )
        print(line)


def bench_own_tables(wanted, programs, variants, library, scratch, quick):
    """Runs the parts that print tables of their own; returns their figures."""
    clean, ours = clean_environment(), {
        name: value for name, value in variants["otelprof"].items()
        if name.startswith(("OTEL_", "LD_PRELOAD"))
    }
    parts = {
        "malloc": lambda: heap_cost.bench_pairs(
            programs, clean, ours, scratch, 2 if quick else 9, 2 if quick else 5
        ),
        "memory": lambda: heap_cost.bench_resident(programs, clean, ours, 1 if quick else 5),
        "decay": lambda: heap_cost.bench_decay(
            programs, clean, ours, 1_000_000 if quick else 10_000_000
        ),
        "programs": lambda: whole_programs.bench_programs(clean, ours, scratch, 2 if quick else 21),
        "samples": lambda: bench_samples(programs, variants, library, scratch),
        "links": lambda: samples.links(programs, {**clean, **ours}),
        "wire": lambda: bench_wire(programs, library),
        "flush": lambda: bench_flush(programs, library),
        "waits": lambda: waits.bench(programs, clean, ours, scratch, quick),
    }
    figures = []
    for name in (name for name in parts if name in wanted):
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        figures.append({"part": name, "figures": parts[name]()})
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="build/libotelprof.so")
    parser.add_argument("--programs", default="build/test/bench", help="where the built programs are")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--quick", action="store_true", help="few turns: a look, no measurement")
    parser.add_argument("--only", default=",".join(PARTS), metavar="PART[,PART...]",
                        help=f"of {', '.join(PARTS)}")
    options = parser.parse_args()
    wanted = options.only.split(",")
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        parser.error(f"--only: {unknown[0]} is none of {', '.join(PARTS)}")
    turns = 2 if options.quick else 9
    with tempfile.TemporaryDirectory() as scratch:
        programs = os.path.abspath(options.programs)
        variants = build_variants(
            os.path.abspath(options.library), programs, OtlpSink().url, scratch
        )
        parts = {
            "throw": lambda: bench_throw(programs, variants, turns),
            "cpu": lambda: bench_cpu(programs, variants, turns, 5 if options.quick else 20),
            "start": lambda: bench_start(programs, variants, 50 if options.quick else 500),
            "spawn": lambda: bench_spawn(programs, variants, turns),
        }
        rows = []
        for name in (name for name in wanted if name in parts):
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            rows += [summarize(*part) for part in parts[name]()]
        if rows:
            print_table(rows, list(with_excluded(variants)) + ["999 Hz"] * ("cpu" in wanted)
                        + ["idle thread"] * ("spawn" in wanted))
            print("each: median, then the median difference and ratio to none of the same turn; "
                  "\"none again\" is the noise")
        rows += bench_own_tables(
            wanted, programs, variants, os.path.abspath(options.library), scratch, options.quick
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
