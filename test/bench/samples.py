"""Measures the cost of one CPU sample, and how near each profiler's total comes to the kernel's: beside libunwind,
glibc, frame pointers and gperftools, in one run."""

import os
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

COLD_RUNS = 21
UNWINDERS = ("ours", "unw_backtrace", "unw_step", "glibc")
BOUND = "frame_pointers"  # for code that was built with frame pointers
DEPTHS = (10, 30, 60, 128)


def lines_of(command, environment):
    done = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return [line.split() for line in done.stdout.decode().splitlines()]


def unwinding(programs, environment):
    """Returns {(depth, unwinder): (ns, frames)}, warm; {unwinder: ns} of a process's first stack; ns of one reading
    of a thread's CPU clock."""
    program = os.path.join(programs, "bench_unwind")
    warm, clock = {}, 0
    for line in lines_of([program], environment):
        if line[0] == "clock":
            clock = float(line[1])
        else:
            warm[int(line[0]), line[1]] = float(line[2]), int(line[3])
    cold = {
        name: statistics.median(
            float(lines_of([program, "cold", name], environment)[0][0]) for _ in range(COLD_RUNS)
        )
        for name in UNWINDERS
    }
    return warm, cold, clock


def print_unwinding(warm, cold, clock):
    columns = (*UNWINDERS, BOUND, "table")
    print("\nunwinding one stack, warm: ns (ns a frame); then adding it to our table")
    print(f"{'depth':>8}" + "".join(f"{name:>19}" for name in columns))
    for depth in DEPTHS:
        cells = (warm[depth, name] for name in columns)
        print(f"{depth:>8}" + "".join(f"{ns:>10.0f} ({ns / n:6.2f})" for ns, n in cells))
    print(f"{'first':>8}" + "".join(f"{cold[name]:>19.0f}" for name in UNWINDERS))
    print(f"first: the first stack of a process, of 30 frames; the median of {COLD_RUNS} processes")
    print(f"one reading of the thread's CPU clock, which each sample needs: {clock:.0f} ns")


def signals(programs, variants):
    """Returns {variant: {(depth, kind): ns, "stack": bytes, ...}} of bench_signal."""
    results = {}
    for name, environment in variants.items():
        figures = {}
        for line in lines_of([os.path.join(programs, "bench_signal")], environment):
            key = (int(line[0]), line[1]) if len(line) == 3 else line[0]
            figures[key] = float(line[-1])
        firsts = [
            {line[1]: float(line[2])
             for line in lines_of([os.path.join(programs, "bench_signal"), "first"], environment)}
            for _ in range(COLD_RUNS)
        ]
        for kind in firsts[0]:
            figures["first", kind] = statistics.median(run[kind] for run in firsts)
        results[name] = figures
    return results


def print_signals(results):
    print("\none CPU sample from signal to return, over a handler that does nothing: us")
    print(f"{'depth':>8}" + "".join(f"{name:>14}" for name in results))
    for depth in DEPTHS:
        row = (r[depth, "sample"] - r[depth, "empty"] for r in results.values())
        print(f"{depth:>8}" + "".join(f"{ns / 1000:>+14.2f}" for ns in row))
    row = (r["first", "first"] - r["first", "empty"] for r in results.values())
    print(f"{'first':>8}" + "".join(f"{ns / 1000:>+14.2f}" for ns in row))
    faults = ", ".join(f"{name} {r['first', 'faults']:.0f}" for name, r in results.items())
    print(f"first: of a process, 30 frames; pages that it has the kernel map: {faults}")
    empty = statistics.median(r[30, "empty"] for r in results.values())
    print(f"the bound, delivery and an empty handler: {empty / 1000:.2f} us")
    for key, frame, what in (
        ("stack", "stack_frame", "the interrupted stack"),
        ("alternate", "frame", "an alternate stack"),
    ):
        used = ", ".join(
            f"{name} {r[key]:.0f} ({max(0, r[key] - r[frame]):.0f})" for name, r in results.items()
        )
        print(f"bytes of {what} that a sample takes (without the kernel's frame): {used}")


# --- totals ---


def peer_seconds(path):
    """Returns CPU seconds in a profile of gperftools (8-byte words: 0, 3, 0, period in us, 0, then records of count,
    depth and that many addresses; the last has count 0)."""
    words = path.read_bytes()
    words = struct.unpack(f"<{len(words) // 8}Q", words[: len(words) // 8 * 8])
    period, at, count = words[3] / 1e6, 5, 0
    while at + 2 < len(words) and words[at] != 0:
        count += words[at]
        at += 2 + words[at + 1]
    return count * period


def run_for(command, environment):
    """Returns (user + system seconds)."""
    child = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_utime + usage.ru_stime


def totals(command, base, library, peer_library, scratch):
    """Returns [(profiler, seconds by getrusage, seconds in the profile)]; None where there is no peer."""
    from profiled import Instance, Receiver, attributes_of

    receiver = Receiver()
    ours = {
        **base, "LD_PRELOAD": library, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_PROFILER_TYPES": "cpu", "OTEL_PROFILER_LOG_FILE": os.path.join(scratch, "log"),
    }
    spent = run_for(command, ours)
    time.sleep(0.2)
    instance = None
    for request in receiver.requests:
        for resource in request.resource_profiles:
            instance = instance or Instance(attributes_of(resource.resource))
            for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
                instance.add(request.dictionary, profile)
    receiver.close()
    # the helper thread's time is separate from the samples, and is in getrusage
    rows = [("otelprof", spent, (instance.cpu_total() + instance.own_cpu_ns) / 1e9)]
    if os.path.exists(peer_library):
        path = Path(scratch) / "total.prof"
        spent = run_for(command, {**base, "LD_PRELOAD": peer_library, "CPUPROFILE": str(path)})
        rows.append(("gperftools", spent, peer_seconds(path)))
    return rows


def print_totals(title, rows):
    print(f"\n{title}: the profile's total against getrusage")
    for name, spent, measured in rows:
        error = 100 * (measured - spent) / spent
        print(f"{name:>14} {measured:8.3f} s of {spent:8.3f} s  {error:+.2f} %")


def links(programs, environment):
    """Returns {where the record is: ns of an allocation that is a sample}; prints the excess over no record."""
    wanted = {**environment, "OTEL_PROFILER_TYPES": "alloc", "OTEL_PROFILER_ALLOC_INTERVAL": "1"}
    rows = lines_of([os.path.join(programs, "bench_context"), "3000000"], wanted)
    cost = {name: float(ns) for name, ns in rows}
    print("\na sampled allocation whose thread works for a span: ns more than without")
    for name, ns in cost.items():
        print(f"{name:>14} {ns - cost['none']:+8.0f}")
    return cost
