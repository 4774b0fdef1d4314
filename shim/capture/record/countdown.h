/* Counts down the bytes that a thread allocates: one threshold, and all events that happen there.
 *
 * malloc compares the size with profiler_tls.alloc_left, and subtracts the size; it reads no other
 * data of the profiler. So all work of the profiler in an allocation depends on that comparison:
 *
 *   event               set by                                  handled by
 *   a sample            the heap: it draws the bytes to the     heap_sample(); an allocation that
 *                       next one, countdown_set()               fails has the heap draw again
 *   COUNTDOWN_HELPER    the handler, while a helper is wanted   capture.want_helper
 *   COUNTDOWN_SETTINGS  the handler, while the thread has not   capture_follow_settings()
 *                       followed the settings
 *   nothing             the threshold is never further than     capture_follow_settings(), if there
 *                       COUNTDOWN_MOST bytes                    is something to follow
 *
 * Setting an event sets the threshold to 0. The rest of the gap is then lost, so the heap draws a
 * new gap: that changes no probability, because exponential gaps have no memory. One call handles
 * several events (hooks/malloc.c): first it decides if the allocation is sampled, by the gap and
 * the interval from before; then it follows the settings; then it requests the helper; it takes the
 * sample when the allocator has returned.
 *
 * Context of all: the thread itself, profiler_tls.thread set. Async-signal-safe: yes.
 */
#ifndef OTELPROF_COUNTDOWN_H
#define OTELPROF_COUNTDOWN_H

#include "thread_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Values of profiler_tls.alloc_left at which no bytes are counted: */
/* every call takes the slow path: a thread of the profiler's, or one that is not registered yet */
#define COUNTDOWN_ALWAYS UINT64_C(0)
/* no call takes the slow path: the thread is never profiled (again) */
#define COUNTDOWN_NEVER UINT64_MAX

/* Bounds the threshold, in bytes: after so many bytes even a thread without samples follows new
 * settings. At 10 GB/s of allocations the slow path is then taken 600 times a second, for some 10
 * ns each. */
#define COUNTDOWN_MOST (UINT64_C(16) << 20)

/* Lists the bits of thread_state.events. */
enum countdown_event { COUNTDOWN_HELPER = 1, COUNTDOWN_SETTINGS = 2 };

/* Sets the gap to the next sample, in bytes; COUNTDOWN_NEVER: there is none. Clears all events. */
static inline void countdown_set(struct thread_state *thread, uint64_t gap) {
    const uint64_t left = gap < COUNTDOWN_MOST ? gap : COUNTDOWN_MOST;
    atomic_store_explicit(&thread->events, 0, memory_order_relaxed);
    thread->beyond = gap - left;
    /* the interrupted malloc must notice a new gap, even one of the same size */
    profiler_tls.countdowns++;
    profiler_tls.alloc_left = left;
}

/* Sends the calling thread's next allocation down the slow path. The caller must repeat the call
 * while thread->events is not 0, because a malloc that it interrupted may overwrite alloc_left. */
static inline void countdown_ask(struct thread_state *thread, uint32_t events) {
    atomic_fetch_or_explicit(&thread->events, events, memory_order_relaxed);
    profiler_tls.alloc_left = 0;
}

/* Decides, on the slow path and with no event pending, whether an allocation of `size` bytes
 * reaches the next sample. If not, counts it down. */
static inline bool countdown_reaches_sample(struct thread_state *thread, uint64_t size) {
    const uint64_t left = profiler_tls.alloc_left;
    if (size >= left && size - left >= thread->beyond)
        return true;
    if (size < left) {
        profiler_tls.alloc_left = left - size;
        return false;
    }
    countdown_set(thread, thread->beyond - (size - left));
    return false;
}

#endif
