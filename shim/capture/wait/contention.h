/* Lock contentions: how often a lock was taken when a thread wanted it, and how long the thread
 * waited.
 *
 * The hook of a lock function looks at the lock before it calls libc's. A lock that is free costs
 * that look and nothing more. Where the lock is taken, the hook reads the clock before and after
 * the call. A contention whose delay is at least the interval is recorded as it is. A shorter one
 * of delay d is recorded with the probability d / interval, and then stands for interval / d
 * contentions of its delay. So both sums are unbiased, whatever the mix of long and short delays
 * (Go's runtime samples blocking events by the same rule).
 * The sample is recorded by the thread itself, when it has the lock: this lengthens the time for
 * which others wait. So samples are bounded: a thread that takes more than
 * CONTENTION_MOST_SAMPLES in a second gets twice the interval, and half of it again, down to that
 * of the settings, after a second with few samples. The bound is of the thread: pauses and other
 * settings do not begin it anew.
 */
#ifndef OTELPROF_CONTENTION_H
#define OTELPROF_CONTENTION_H

#include "record/parked.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

enum { CONTENTION_MOST_SAMPLES = 100 };

/* One contention, on the stack of the hook that waits. */
struct contention {
    struct thread_state *thread; /* NULL: nothing of it is measured */
    uint64_t start_nano;         /* CLOCK_MONOTONIC; 0: contentions are not sampled */
    uint64_t lock;
    uint32_t holder; /* as lock_holder() says */
    bool is_parked;  /* the thread's slot says that it waits here */
};

/* Looks for the clock: libc's own function, whatever other preload has one. It needs no system
 * call, which would lengthen the time that the lock is held by more than many locks are held. Until
 * then, and where there is none, the kernel is asked. Context: calm, at start. */
void contention_start(void);

/* Before the call: the lock at `lock` is taken, and the thread is about to wait for it. `what` is
 * WAIT_LOCK | lock_layout; the lock's memory can be read. Context: any, on a thread of the
 * application. Async-signal-safe: yes. errno is preserved. */
struct contention contention_begin(const struct recorder *recorder,
                                   const struct parked_caller *caller, uint32_t what,
                                   const void *lock);

/* After it, whatever its result. Context: as above. */
void contention_end(const struct recorder *recorder, const struct contention *contention);

/* Whether a contention of `delay` ns (> 0) that ended at `now` is to be recorded. Counts it, if
 * so. Context: the thread itself. Async-signal-safe: yes. */
bool contention_is_sampled(struct thread_state *thread, const struct settings *settings,
                           uint64_t now, uint64_t delay);

/* How many contentions of `delay` ns that one then stands for. Context: any. */
double contention_weight(uint64_t interval, uint64_t delay);

#endif
