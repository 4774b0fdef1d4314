"""Divides a server's CPU time, by the kernel's own sampler: the shares of libotelprof's hooks and handlers, and of
its helper thread. Times of whole servers differ by more than that from run to run."""

import os
import re
import shutil
import statistics
import subprocess
import threading
import time
from collections import Counter

SAMPLES_A_SECOND = 4000
OURS = re.compile(r"/libotelprof[\w-]*\.so")


def descendants(pid):
    """Returns thread groups, with `pid` itself."""
    found, looked = {pid}, [pid]
    while looked:
        try:
            for thread in os.listdir(f"/proc/{looked[0]}/task"):
                with open(f"/proc/{looked[0]}/task/{thread}/children") as children:
                    looked += [int(child) for child in children.read().split()]
        except OSError:
            pass  # the process has ended
        found.add(looked.pop(0))
    return found


class Watch:
    """Follows the processes of a server: backends come and go."""

    def __init__(self, pid):
        self.found, self.ended = {pid}, threading.Event()
        self.thread = threading.Thread(target=self.follow, args=(pid,))
        self.thread.start()

    def follow(self, pid):
        while not self.ended.is_set():
            self.found |= descendants(pid)
            time.sleep(0.02)

    def end(self):
        self.ended.set()
        self.thread.join()
        return self.found


def sampled(path, processes):
    """Returns 'program', 'hooks' or 'helper' -> samples of these processes."""
    told = subprocess.run(["perf", "script", "-i", path, "-F", "comm,pid,tid,ip,dso"], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    counts = Counter()
    for line in told.splitlines():
        found = re.match(r"\s*(.*?)\s+(\d+)/\d+\s+[0-9a-f]+ \((.*)\)", line)
        if not found or int(found.group(2)) not in processes:
            continue
        comm, _, object_ = found.groups()
        counts["helper" if comm.startswith("otelprof") else "hooks" if OURS.search(object_) else "program"] += 1
    return counts


def measured(start, run, path):
    """Measures one run of a server, which `run` starts by a `start` of ours."""
    watches = []

    def start_watched(command, environment):
        server = start(command, environment)
        watches.append(Watch(server.pid))
        return server

    perf = subprocess.Popen(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", str(SAMPLES_A_SECOND), "-o", path],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    try:
        run(start_watched)
    finally:
        processes = set().union(*(watch.end() for watch in watches))
        perf.terminate()
        perf.wait()
    return sampled(path, processes)


def share(counts, kind):
    return 100 * counts[kind] / (sum(counts.values()) or 1)


def bench(servers, start, variants, turns, scratch):
    """`servers`: name -> run(start, environment). Returns percent of all samples, medians."""
    if not shutil.which("perf"):
        print("\nshares of the servers' CPU time: perf is not installed")
        return {}
    figures = {}
    print(f"\nours in the CPU time of servers, % of its samples: medians of {turns} turns")
    print(f"{'':34}{'':12}{'hooks, handlers':>18}{'helper':>10}{'together':>12}")
    for server, run in servers.items():
        for variant in ("default", "all"):
            turns_of = [measured(start, lambda begin, v=variant, r=run: r(begin, variants[v]), os.path.join(scratch, "perf"))
                        for _ in range(turns)]
            row = {kind: statistics.median(share(counts, kind) for counts in turns_of) for kind in ("hooks", "helper")}
            figures[f"{server}: {variant}"] = row
            print(f"{server:34}{variant:12}{row['hooks']:>18.2f}{row['helper']:>10.2f}{sum(row.values()):>12.2f}", flush=True)
    return figures
