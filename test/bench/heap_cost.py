"""Measures allocation and live-heap profiling per malloc+free pair, beside other allocators' own profilers and
heaptrack: each as its difference to its own allocator without profiling, in one run.

A family is an allocator without profiling, the same again (how the two differ is the noise), and its profilers. All
families take turns; a difference is the median over the turns of what was measured within one turn.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from profiled import Instance, Receiver, attributes_of  # noqa: E402

LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
TCMALLOC = LIBRARIES + "libtcmalloc.so.4"
JEMALLOC = LIBRARIES + "libjemalloc.so.2"
HEAPTRACK = "/usr/lib/heaptrack/libheaptrack_preload.so"
LIVE_SAMPLES = (0, 1_000, 10_000, 100_000)
# More than the largest number of live samples: by default the interval would grow before.
MAX_LIVE = "200000"
INTERVAL = 524288
# Take microseconds a pair: what takes minutes is measured in the first turn alone.
SLOW = ("heap profiler",)
# Record every allocation, of whatever size: their live objects need not be large.
RECORD_ALL = ("heap profiler", "heaptrack")
SMALL = 1024


def jemalloc_has_profiling():
    stats = subprocess.run(
        ["/bin/true"], capture_output=True, text=True, check=False,
        env={"LD_PRELOAD": JEMALLOC, "MALLOC_CONF": "stats_print:true"},
    )
    return "config.prof: true" in stats.stderr + stats.stdout


def families(ours, programs, scratch):
    """Returns {base: {variant: environment}}; the base's own name first, then "again"."""
    here = dict(ours, OTEL_PROFILER_HEAP_MAX_LIVE=MAX_LIVE)
    found = {
        "libc": {
            "libc": {},
            "again": {},
            # the least that a preload which hooks malloc can cost
            "forwards": {"LD_PRELOAD": os.path.join(programs, "pass_through.so")},
            "ours": here,
            "ours, cpu": dict(here, OTEL_PROFILER_TYPES="cpu"),
        }
    }
    if os.path.exists(HEAPTRACK):
        # its output is discarded, which favours it
        found["libc"]["heaptrack"] = {"LD_PRELOAD": HEAPTRACK, "DUMP_HEAPTRACK_OUTPUT": "/dev/null"}
    if os.path.exists(TCMALLOC):
        base = {"LD_PRELOAD": TCMALLOC}
        found["tcmalloc"] = {
            "tcmalloc": base,
            "again": base,
            "sampler": dict(base, TCMALLOC_SAMPLE_PARAMETER=str(INTERVAL)),
            # one dump at the end; those after each GiB would measure the disk
            "heap profiler": dict(
                base, HEAPPROFILE=os.path.join(scratch, "heap"),
                HEAP_PROFILE_ALLOCATION_INTERVAL="0", HEAP_PROFILE_INUSE_INTERVAL="0",
            ),
        }
    if os.path.exists(JEMALLOC):
        base = {"LD_PRELOAD": JEMALLOC}
        found["jemalloc"] = {"jemalloc": base, "again": base}
        if jemalloc_has_profiling():
            found["jemalloc"]["prof"] = dict(base, MALLOC_CONF="prof:true,prof_active:true")
    return found


def pairs_of(program, live, milliseconds, environment, more=()):
    """Returns {(case, threads, live): ns}."""
    text = subprocess.run(
        [program, str(live), str(milliseconds), *more], env=environment, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ).stdout.decode()
    lines = (line.split() for line in text.splitlines())
    return {(case, int(threads), int(live)): float(ns) for case, threads, live, ns in lines}


def measure_pairs(all_families, programs, clean, turns, milliseconds):
    """Returns {(base, variant): {case: [ns, one a turn]}}."""
    program = os.path.join(programs, "bench_malloc")
    order = [(base, variant) for base, variants in all_families.items() for variant in variants]
    results = {key: {} for key in order}
    for turn in range(turns):
        for live in LIVE_SAMPLES:
            for base, variant in order if turn % 2 == 0 else reversed(order):
                if turn > 0 and variant in SLOW:
                    continue
                environment = {**clean, **all_families[base][variant]}
                more = [str(SMALL)] if variant in RECORD_ALL else []
                for case, ns in pairs_of(program, live, milliseconds, environment, more).items():
                    results[base, variant].setdefault(case, []).append(ns)
        print(f"  turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
    return results


def summarize_pairs(results):
    """Returns [{case, threads, live, base: {ns, difference to it of each variant}}]."""
    rows = {}
    for (base, variant), cases in results.items():
        for case, values in cases.items():
            row = rows.setdefault(case, dict(zip(("case", "threads", "live"), case)))
            alone = results[base, base][case]
            cell = row.setdefault(base, {})
            if variant == base:
                cell["ns"] = statistics.median(values)
            else:
                cell[variant] = statistics.median(v - a for v, a in zip(values, alone))
    return list(rows.values())


def print_pairs(rows, all_families):
    head = f"{'ns a pair':6}{'threads':>9}{'live':>8} "
    for base, variants in all_families.items():
        head += f" | {base:>8}" + "".join(f"{v:>14}" for v in variants if v != base)
    print(head)
    for row in rows:
        line = f"{row['case']:9}{row['threads']:>6}{row['live']:>8} "
        for base, variants in all_families.items():
            line += f" | {row[base]['ns']:>8.2f}"
            line += "".join(f"{row[base][v]:>+14.2f}" for v in variants if v != base)
        print(line)
    print("each allocator's median, then the median difference to it of the same turn; \"again\" is "
          "the noise; live: samples that are live while measured; one turn only: " + ", ".join(SLOW))


def profile_once(command, environment):
    receiver = Receiver()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={
            **environment, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "20000",
        },
    )
    receiver.close()
    instance = None
    for request in receiver.requests:
        for resource in request.resource_profiles:
            instance = instance or Instance(attributes_of(resource.resource))
            for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
                instance.add(request.dictionary, profile)
    return instance


def count_live_samples(programs, clean, ours):
    """Returns {requested: live objects in our profile after the first phase}."""
    counts = {}
    for live in LIVE_SAMPLES[1:]:
        environment = {**clean, **ours, "OTEL_PROFILER_HEAP_MAX_LIVE": MAX_LIVE}
        instance = profile_once(
            [os.path.join(programs, "bench_malloc"), str(live), "0"], environment
        )
        counts[live] = instance.total("inuse_objects")
    return counts


def bench_pairs(programs, clean, ours, scratch, turns, milliseconds):
    """Prints the table; returns the figures."""
    all_families = families(ours, programs, scratch)
    counts = count_live_samples(programs, clean, ours)
    rows = summarize_pairs(measure_pairs(all_families, programs, clean, turns, milliseconds))
    print_pairs(rows, all_families)
    told = ", ".join(f"{count} of {asked}" for asked, count in counts.items())
    print(f"live samples as our profile tells them: {told}")
    if "prof" not in all_families.get("jemalloc", {"prof": 0}):
        print("jemalloc's package is built without profiling")
    return {"turns": turns, "rows": rows, "live": counts}


def bench_resident(programs, clean, ours, turns):
    """Measures the resident memory that we add to a program of 10 threads, and for each further thread."""
    program = os.path.join(programs, "bench_resident")
    variants = {
        "none": {},
        "ours": dict(ours, OTEL_PROFILE_EXPORT_INTERVAL="500"),
        "ours, cpu": dict(ours, OTEL_PROFILE_EXPORT_INTERVAL="500", OTEL_PROFILER_TYPES="cpu"),
        "none again": {},
    }
    few, many = 10, 110
    found = {name: {few: [], many: []} for name in variants}
    for _ in range(turns):
        for name, extra in variants.items():
            for threads in (few, many):
                text = subprocess.run(
                    [program, str(threads), "2"], env={**clean, **extra}, check=True,
                    stdout=subprocess.PIPE,
                ).stdout.split()
                found[name][threads].append([int(field) for field in text])
    print("\nresident memory, KiB: of 10 threads (anonymous part), of each of 100 further idle ones")
    figures = {}
    for name, of in found.items():
        resident, anonymous = (statistics.median(v[i] for v in of[few]) for i in (0, 1))
        further = statistics.median((b[0] - a[0]) / (many - few) for a, b in zip(of[few], of[many]))
        figures[name] = {"resident": resident, "anonymous": anonymous, "further": further}
        base = figures["none"]
        print(
            f"{name:>12} {resident:>9.0f} ({anonymous:.0f}) {further:>8.2f}    added: "
            f"{resident - base['resident']:+.0f} ({anonymous - base['anonymous']:+.0f}) "
            f"{further - base['further']:+.2f}"
        )
    return figures


def bench_decay(programs, clean, ours, pairs):
    """Samples every pair, in ten parts: no part may be slower because of what came before it."""
    program = os.path.join(programs, "bench_sampled")
    figures = {}
    print(f"\nns a pair, mixed sizes, 4,000 live: ten parts of {pairs // 10}")
    sampled = dict(ours, OTEL_PROFILER_ALLOC_INTERVAL="1")
    for name, extra in (("none", {}), ("all sampled", sampled), ("none again", {})):
        text = subprocess.run(
            [program, str(pairs)], env={**clean, **extra}, check=True, stdout=subprocess.PIPE
        ).stdout.decode()
        figures[name] = [float(line) for line in text.splitlines()]
        print(f"{name:>12} " + "".join(f"{ns:>9.1f}" for ns in figures[name]))
    return figures
