/* The countdown of bytes that a thread allocates: one threshold, and all that is to happen there.
 *
 * malloc compares with own_tls.alloc_left, and subtracts; it looks at nothing else of ours. So all
 * that a thread is to do for us in an allocation rides on that comparison:
 *
 *   event               who sets it                             who serves it
 *   a sample            the heap: it draws the bytes to the     heap_sample(); an allocation that
 *                       next one, countdown_set()               fails has the heap draw again
 *   COUNTDOWN_HELPER    the handler, while a helper is wanted   capture.want_helper
 *   COUNTDOWN_SETTINGS  the handler, while the thread has not   capture_follow_settings()
 *                       followed the settings
 *   nothing             the threshold is never further than     capture_follow_settings(), if there
 *                       COUNTDOWN_MOST bytes                    is something to follow
 *
 * Who sets an event sets the threshold to 0, and the rest of the gap is lost: that is why the heap
 * draws a new one then. Exponential gaps have no memory, so that a new one is as good as the rest.
 * Several at once are served in one call (hooks/malloc.c): first it is decided whether the
 * allocation is sampled, by the gap and at the interval that were there before; then the settings
 * are followed; then the helper is asked for; the sample is taken when the allocator has answered.
 *
 * Context of all: the thread itself, own_tls.thread set. Async-signal-safe: yes.
 */
#ifndef OTELPROF_COUNTDOWN_H
#define OTELPROF_COUNTDOWN_H

#include "thread_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What own_tls.alloc_left is where nobody counts. */
#define COUNTDOWN_ALWAYS UINT64_C(0) /* every call comes: a thread of ours, or none yet */
#define COUNTDOWN_NEVER  UINT64_MAX  /* none does any more: it is not profiled, for good */

/* So many bytes at most: a thread without samples follows new settings within them. At 10 GB/s of
 * allocations it comes by 600 times a second, for some 10 ns. */
#define COUNTDOWN_MOST (UINT64_C(16) << 20)

/* Bits of thread_state.events. */
enum countdown_event { COUNTDOWN_HELPER = 1, COUNTDOWN_SETTINGS = 2 };

/* The next sample is `gap` bytes away; COUNTDOWN_NEVER: there is none. No event is pending. */
static inline void countdown_set(struct thread_state *thread, uint64_t gap) {
    const uint64_t left = gap < COUNTDOWN_MOST ? gap : COUNTDOWN_MOST;
    atomic_store_explicit(&thread->events, 0, memory_order_relaxed);
    thread->beyond = gap - left;
    own_tls.countdowns++; /* what is left may be as much as before */
    own_tls.alloc_left = left;
}

/* Has the calling thread's next allocation come by the slow path. To be called again while
 * thread->events is not 0: malloc may have subtracted from what it had compared before. */
static inline void countdown_ask(struct thread_state *thread, uint32_t events) {
    atomic_fetch_or_explicit(&thread->events, events, memory_order_relaxed);
    own_tls.alloc_left = 0;
}

/* On the slow path, with no event pending: whether an allocation of `size` bytes reaches the next
 * sample. If not, it is counted down. */
static inline bool countdown_reaches_sample(struct thread_state *thread, uint64_t size) {
    const uint64_t left = own_tls.alloc_left;
    if (size >= left && size - left >= thread->beyond)
        return true;
    if (size < left) {
        own_tls.alloc_left = left - size;
        return false;
    }
    countdown_set(thread, thread->beyond - (size - left));
    return false;
}

#endif
