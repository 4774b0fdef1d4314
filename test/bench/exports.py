"""Measures an export: its size on the wire beside pprof's, and the helper thread's CPU time for making and sending
it. Both are of a server-like program, bench_server."""

import collections
import ctypes
import ctypes.util
import gzip
import os
import queue
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[0] / "integration"))
sys.path.insert(0, str(HERE.parents[0] / "lib"))

import pprof  # noqa: E402
from otlp_sink import OtlpSink  # noqa: E402

COMPRESSIONS = ("none", "gzip", "zstd")
GZIP_LEVEL = 6  # zlib's own default, and ours
Arrival = collections.namedtuple("Arrival", "size encoding request")


class Libzstd:
    """Calls libzstd: Python has no module for it; the exporter needs the library, so it is there."""

    def __init__(self):
        self.library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
        self.library.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
        self.library.ZSTD_decompress.restype = ctypes.c_size_t

    def decompress(self, body):
        size = self.library.ZSTD_getFrameContentSize(body, ctypes.c_size_t(len(body)))
        out = ctypes.create_string_buffer(size)
        got = self.library.ZSTD_decompress(
            out, ctypes.c_size_t(size), body, ctypes.c_size_t(len(body))
        )
        if got != size:
            raise ValueError("the body is no zstd frame of known size")
        return out.raw


def decompressed(body, encoding):
    if encoding == "gzip":
        return gzip.decompress(body)
    return Libzstd().decompress(body) if encoding == "zstd" else body


class Receiver(OtlpSink):
    """Keeps what arrives, as it was on the wire."""

    def __init__(self):
        self.arrived = queue.Queue()
        super().__init__(self._keep)

    def _keep(self, body, headers):
        self.arrived.put((body, headers.get("Content-Encoding", "none")))

    def next(self, timeout=60):
        from profiled import profiles_service_pb2

        body, encoding = self.arrived.get(timeout=timeout)
        plain = decompressed(body, encoding)
        request = profiles_service_pb2.ExportProfilesServiceRequest.FromString(plain)
        return Arrival(len(body), encoding, request)


def profiles_of(request):
    return [p for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles]


def exports_of_server(programs, library, base, settings, paths, skipped, wanted):
    """Runs the server for as long as it takes to get `wanted` exports after the first `skipped`."""
    receiver = Receiver()
    environment = {
        **base, "LD_PRELOAD": library, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_PROFILER_MAX_OVERHEAD": "none", **settings
    }
    server = subprocess.Popen(
        [os.path.join(programs, "bench_server"), "16", str(paths)], env=environment
    )
    try:
        for _ in range(skipped):
            receiver.next()
        return [receiver.next() for _ in range(wanted)]
    finally:
        server.kill()
        server.wait()
        receiver.server.shutdown()


# --- size on the wire ---


def gzip_size(message):
    return len(gzip.compress(message.encode(), GZIP_LEVEL))


def wire(programs, library, base):
    """Returns {compression: figures} of one whole interval of 10 s, symbols included."""
    results = {}
    for compression in COMPRESSIONS:
        settings = {"OTEL_EXPORTER_OTLP_COMPRESSION": compression}
        # the first interval is a part of one
        (arrival,) = exports_of_server(programs, library, base, settings, 300, 1, 1)
        if arrival.encoding != compression:
            raise ValueError(f"asked for {compression}, came as {arrival.encoding}")
        together = pprof.Message(arrival.request, pprof.CPU + pprof.HEAP)
        apart = [pprof.Message(arrival.request, types) for types in (pprof.CPU, pprof.HEAP)]
        results[compression] = {
            "ours": arrival.size,
            "uncompressed": arrival.request.ByteSize(),
            "pprof_one": gzip_size(together),
            "pprof_two": sum(map(gzip_size, apart)),
            "samples": sum(len(p.samples) for p in profiles_of(arrival.request)),
            "stacks": len(arrival.request.dictionary.stack_table) - 1,
        }
    return results


def print_wire(results):
    print("\n10 s of a busy server of 16 threads, with symbols: bytes on the wire (without headers),")
    print("beside the same samples as gzip'd pprof: all in one message; CPU and heap apart, as usual")
    print(f"{'':>8}{'ours':>12}{'one':>12}{'ratio':>7}{'two':>12}{'ratio':>7}{'samples':>10}{'stacks':>8}")
    for name, r in results.items():
        peers = "".join(f"{r[k]:>12,}{r['ours'] / r[k]:>7.2f}" for k in ("pprof_one", "pprof_two"))
        print(f"{name:>8}{r['ours']:>12,}{peers}{r['samples']:>10,}{r['stacks']:>8,}")


# --- the helper thread's CPU time ---

FLUSHES = {
    "allocations": {"OTEL_PROFILER_TYPES": "alloc"},
    "cpu, alloc, heap": {},
}
STACKS_OF_A_THREAD = 313  # 16 times as many stacks: 5,000
EXPORTS = 10
PATIENT = 4  # exports until all symbols are cached (shim/flush/symbolize/symbolize.c)


def own_cpu(request):
    dictionary = request.dictionary
    for index in profiles_of(request)[0].attribute_indices:
        attribute = dictionary.attribute_table[index]
        if dictionary.string_table[attribute.key_strindex] == "otelprof.self.cpu_time":
            return attribute.value.int_value
    raise ValueError("the export does not tell the profiler's own CPU time")


def flush(programs, library, base):
    """Returns {what is profiled: figures}. The time is read while an export is encoded, so that two readings differ
    by the cost of one whole export: harvest, merge, encode, send."""
    results = {}
    for name, settings in FLUSHES.items():
        settings = {
            # every allocation, so that each stack is in each export
            "OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILE_EXPORT_INTERVAL": "1000", **settings
        }
        arrivals = exports_of_server(
            programs, library, base, settings, STACKS_OF_A_THREAD, PATIENT, EXPORTS + 1
        )
        spent = [own_cpu(a.request) for a in arrivals]
        costs = [(after - before) / 1e6 for before, after in zip(spent, spent[1:])]
        last = arrivals[-1].request
        results[name] = {
            "milliseconds": costs,
            "stacks": len(last.dictionary.stack_table) - 1,
            "locations": len(last.dictionary.location_table) - 1,
            "samples": sum(len(p.samples) for p in profiles_of(last)),
            "bytes": arrivals[-1].size,
        }
    return results


def print_flush(results):
    print("\nthe helper thread's CPU time for one export, symbols cached: ms, median (least to most)")
    for name, r in results.items():
        costs = sorted(r["milliseconds"])
        print(
            f"{name:>18} {statistics.median(costs):6.2f} ({costs[0]:.2f} to {costs[-1]:.2f})"
            f"  {r['stacks']:,} stacks, {r['samples']:,} samples, {r['locations']:,} locations,"
            f" {r['bytes']:,} bytes"
        )
