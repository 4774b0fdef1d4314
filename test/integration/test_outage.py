"""The receiver goes away for many intervals and comes back."""

import gzip
import signal
import time

import pytest

from ports import reserved_port
from profiled import Outcome, Receiver
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

INTERVAL = 0.02
SLACK_BYTES = 2 << 20
FIRST_DELAY, LAST_DELAY = 1.0, 60.0  # from shim/flush/export/sender.c; jitter shortens each by up to half
ATTEMPTS = 3  # failed attempts; the one after them succeeds: 3.5 to 7 s after the first, 175 intervals and more


class ReceiverThatCounts(Receiver):
    """Records how many attempts there were when the first export came, and when that was: its sender waits for the
    response."""

    def __init__(self, port, attempts):
        self.attempts = attempts
        self.tried = self.reached = None
        super().__init__(port)

    def _keep(self, body, headers):
        if self.tried is None:
            self.tried, self.reached = self.attempts(), time.monotonic()
        super()._keep(body, headers)


def attempts_allowed(seconds):
    """Returns how many connections the shortest back-off allows in that time, the first at once."""
    allowed, delay, at = 0, FIRST_DELAY, 0.0
    while at <= seconds:
        allowed += 1
        at += delay / 2
        delay = min(2 * delay, LAST_DELAY)
    return allowed


def resident_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def intervals_of(requests):
    """Returns (start, end, ids of the profiles) of each export, in order of arrival; nanoseconds."""
    found = []
    for request in requests:
        profiles = [
            p for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles
        ]
        start = profiles[0].time_unix_nano
        found.append(
            (start, start + profiles[0].duration_nano, [p.profile_id for p in profiles])
        )
    return found


# a queue that is full for most of the time (an export of 500 stacks has 5 kB), and one that has room for all
@pytest.mark.parametrize(
    "compression, bound, stacks, full", [("gzip", 256 << 10, 500, True), ("none", 64 << 20, 20, False)]
)
def test_a_long_outage(start, program, library, tmp_path, compression, bound, stacks, full):
    port = reserved_port()
    before = Receiver(port)
    attempts_file = tmp_path / "attempts"
    attempts = lambda: attempts_file.stat().st_size
    profiled = start(
        [program("ticks"), "1", str(stacks)],
        env={
            "LD_PRELOAD": f"{library} {program('counts_connects.so')}",
            "COUNTED_FILE": str(attempts_file),
            "COUNTED_PORT": str(port),
            "OTEL_EXPORTER_OTLP_ENDPOINT": before.url,
            "OTEL_EXPORTER_OTLP_COMPRESSION": compression,
            "OTEL_PROFILE_EXPORT_INTERVAL": str(int(INTERVAL * 1000)),
            "OTEL_PROFILE_MAX_QUEUE_SIZE": str(bound),
            "OTEL_PROFILER_TYPES": "alloc",
            "OTEL_PROFILER_ALLOC_INTERVAL": "1",
        },
    )
    pid = profiled.process.pid
    usual, memory = [], []

    def wait_for(condition, what, measured):
        def measures():
            measured.append(resident_bytes(pid))
            return condition()
        return eventually(measures, what, unless=profiled.process.poll)

    wait_for(lambda: len(before.requests) >= 40, "40 exports", usual)
    before.close()

    gone, tried_before = time.monotonic(), attempts()
    wait_for(lambda: attempts() - tried_before >= ATTEMPTS, f"{ATTEMPTS} attempts", memory)
    assert max(memory) <= max(usual) + bound + SLACK_BYTES

    after = ReceiverThatCounts(port, attempts)
    wait_for(lambda: after.requests, "an export to the new receiver", memory)
    tried, lasted = after.tried - tried_before, after.reached - gone
    assert ATTEMPTS < tried <= attempts_allowed(lasted), f"{tried} connections in {lasted:.1f} s"
    back_at = time.time_ns()
    wait_for(lambda: intervals_of(after.requests[-1:])[0][0] > back_at, "an export of the time behind the outage", [])
    profiled.process.send_signal(signal.SIGUSR1)
    ended = profiled.finish(TIMEOUT_S)
    after.close()
    assert max(memory) <= max(usual) + bound + SLACK_BYTES

    arrived = intervals_of(after.requests)
    kept = [len(gzip.compress(b)) for b, (s, _, _) in zip(after.bodies, arrived) if s < back_at]
    arrived = intervals_of(before.requests) + arrived
    ids = [one for _, _, ids in arrived for one in ids]
    assert len(ids) == len(set(ids)), "each profile once"
    gaps = [begin - end for (_, end, _), (begin, _, _) in zip(arrived, arrived[1:])]
    assert min(gaps) > -INTERVAL * 1e9 / 2, "in order"
    if full:
        assert sum(kept) >= bound / 2, "all that was in the queue came"
    else:
        outcome = Outcome(ended.returncode, "", "", before.requests + after.requests)
        arrived = outcome.instance("ticks").value_of("descend", "alloc_objects")
        assert arrived == int(ended.stdout) * stacks, "all that was recorded came"
