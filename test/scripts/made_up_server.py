"""Makes the profile of an invented server, of which every figure is known: workers that wait for a lock that a
flusher holds, and an idle pool."""

MILLI = 1_000_000
LOCK = "0x55d0c0a01040"
NAMED = f"journal_lock ({LOCK})"
FLUSHER = {"thread.name": "flusher", "thread.id": 200}
HELD = {"otelprof.lock.address": LOCK, "otelprof.lock.name": "journal_lock", "otelprof.lock.holder.thread.id": 200, "otelprof.lock.holder.thread.name": "flusher"}
SEEN = {**HELD, "otelprof.lock.holder.stack": ["main", "run_flusher", "write_entries", "flush_log"]}
SERVE = ("shop!serve", "shop!worker")
LOG = ("shop!log_request", *SERVE)
POOL = ("libc.so.6!pthread_cond_wait", "shop!take_job", "shop!pool")
FLUSH = ("shop!flush_log", "shop!run_flusher")


def worker(number):
    return {"thread.name": f"worker-{number}", "thread.id": 100 + number}


def pool(number):
    return {"thread.name": "pool", "thread.id": 300 + number}


def waits(kind, **more):
    return {"otelprof.wait.kind": kind, **more}


def idle(kind):
    return waits(kind, **{"otelprof.idle": True})


def stands(condition, milliseconds=0):
    since = {"otelprof.wait.duration": float(milliseconds * MILLI)} if milliseconds else {}
    return {"otelprof.thread.state": condition, **since}


def time_samples(message):
    """Returns cpu, off_cpu and sched_delay: 10 s of each of 2 workers and 4 pool threads, and 1 s of the flusher."""
    cpu = [(("shop!render", *SERVE), 200 + 100 * number, None, worker(number)) for number in range(2)]
    off = [(LOG, (5000 - 1000 * number) * MILLI, None, {**worker(number), **waits("lock"), **SEEN}) for number in range(2)]
    off += [(("shop!query", *SERVE), 2500 * MILLI, None, {**worker(number), **waits("net")}) for number in range(2)]
    off += [(POOL, 10_000 * MILLI, None, {**pool(number), **idle("cond")}) for number in range(4)]
    off += [(FLUSH, 1000 * MILLI, None, {**FLUSHER, **waits("sync")})]
    delay = [(("shop!render", *SERVE), 500 * MILLI, None, worker(number)) for number in range(2)]
    return (message.labelled("samples", "count", 10 * MILLI, cpu).labelled("off_cpu", "nanoseconds", 1, off)
            .labelled("sched_delay", "nanoseconds", 1, delay))


def lock_samples(message):
    rows = [(LOG, value, None, {**worker(number), **waits("lock"), **HELD}) for number, value in enumerate((400, 600))]
    delays = [(stack, value * 9 * MILLI, None, labels) for stack, value, _, labels in rows]
    return message.labelled("contentions", "count", 10_000, rows).labelled("delay", "nanoseconds", 10_000, delays)


def thread_samples(message):
    rows = [(LOG, 1, None, {**worker(0), **waits("lock"), **SEEN, **stands("blocked", 11)}),
            (("shop!render", *SERVE), 1, None, {**worker(1), **stands("running")}),
            (FLUSH, 1, None, {**FLUSHER, **waits("sync"), **stands("blocked", 12)})]
    rows += [(POOL, 1, None, {**pool(number), **idle("cond"), **stands("blocked", 9900 + number)}) for number in range(4)]
    return message.labelled("threads", "count", 1, rows)


def shop(message):
    """Returns a file's only message; `message` is the class of conftest.py."""
    return thread_samples(lock_samples(time_samples(message())))


def deadlocked(message, milliseconds=2000):
    """Adds two threads, each with a lock that the other waits for, and a third that waits for one of these locks."""
    rows = [
        (("libc.so.6!pthread_mutex_lock", f"bank!transfer_{number}", "bank!main"), 1, None,
         {**worker(number), **waits("lock"), **stands("blocked", milliseconds),
          "otelprof.lock.address": f"0x{lock}000", "otelprof.lock.holder.thread.id": 100 + holder,
          "otelprof.lock.holder.thread.name": f"worker-{holder}"})
        for number, lock, holder in ((0, 1, 1), (1, 2, 0), (2, 1, 1))
    ]
    return message().labelled("threads", "count", 1, rows)
