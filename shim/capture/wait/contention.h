/* Samples lock contentions: how often a thread found a lock taken, and how long it waited.
 *
 * The hook of a lock function checks the lock before it calls libc's function. A free lock costs
 * only that check. If the lock is taken, the hook reads the clock before and after the call. A
 * contention whose delay is at least the interval is always recorded. A shorter one, of delay d, is
 * recorded with probability d / interval, and then counts as interval / d contentions of that
 * delay. So both sums are unbiased, whatever the mix of long and short delays (Go's runtime samples
 * blocking events by the same rule).
 *
 * The thread records the sample itself while it holds the lock, which lengthens the wait of others.
 * So samples are bounded: a thread that takes more than CONTENTION_MOST_SAMPLES in a second gets
 * twice the interval. After a second with few samples the interval is halved, down to that of the
 * settings. Pauses and changed settings do not reset the interval of a thread.
 */
#ifndef OTELPROF_CONTENTION_H
#define OTELPROF_CONTENTION_H

#include "record/record.h"
#include "record/wait_slot.h"

#include <stdbool.h>
#include <stdint.h>

enum { CONTENTION_MOST_SAMPLES = 100 };

/* Describes a contention, on the stack of the hook that waits. */
struct contention {
    struct thread_state *thread; /* NULL: this contention is not measured */
    uint64_t start_nano;         /* CLOCK_MONOTONIC; 0: contentions are not sampled */
    uint64_t lock;
    uint32_t holder;    /* the lock's holder before the wait, as lock_holder_here() returns it */
    bool has_wait_slot; /* the thread's wait slot is published for this wait */
};

/* Finds libc's own clock_gettime(), even if another preloaded library defines one, because libc's
 * makes no system call. The clock is read while the lock is held, and a system call takes longer
 * than many locks are held. Before contention_start(), and if there is no such function, the kernel
 * is called instead. Context: calm, at start. */
void contention_start(void);

/* Begins a contention, before the call: the lock at `lock` is taken, and the thread is about to
 * wait for it. `what` is WAIT_LOCK | lock_layout; the lock's memory must be readable. Context: any,
 * on a thread of the application. Async-signal-safe: yes. errno is preserved. */
struct contention contention_begin(const struct recorder *recorder,
                                   const struct hook_caller *caller, uint32_t what,
                                   const void *lock);

/* Ends the contention after the call, even after a failed call, and records it if it is sampled.
 * Context: as contention_begin(). */
void contention_end(const struct recorder *recorder, const struct contention *contention);

/* Decides whether to record a contention of `delay_ns` (> 0) that ended at `now`, and counts it if
 * so. Context: the thread itself. Async-signal-safe: yes. */
bool contention_is_sampled(struct thread_state *thread, const struct settings *settings,
                           uint64_t now, uint64_t delay_ns);

/* Returns the number of contentions of `delay_ns` that a recorded one counts as. Context: any. */
double contention_weight(uint64_t interval, uint64_t delay_ns);

#endif
