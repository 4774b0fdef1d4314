/* What the hooks of every allocator's entry points share: the countdown of bytes to the next
 * sample.
 *
 * A call that is not sampled costs a compare and a subtraction. These functions only count down;
 * heap.c decides and records. Context: any thread of the application, in a hook.
 */
#ifndef OTELPROF_ALLOCATION_H
#define OTELPROF_ALLOCATION_H

#include "capture/allocator/allocation_path.h"
#include "capture/capture.h"

#include <stdbool.h>
#include <stdint.h>

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
/* Kept out of the fast functions, which must not grow a stack frame for them. */
#define RARE __attribute__((noinline, cold))
/* In one line of the instruction cache, where it fits. */
#define FAST __attribute__((aligned(CACHE_LINE)))

/* The countdown is over, or was never started: whether the allocation is to be sampled. */
RARE bool allocation_is_sampled_slow(uint64_t size);

/* Before an allocation of `size` bytes: whether it is to be sampled, if it succeeds. */
static inline bool allocation_is_sampled(uint64_t size) {
    if (UNLIKELY(size >= own_tls.alloc_left))
        return allocation_is_sampled_slow(size);
    own_tls.alloc_left -= size;
    return false;
}

/* It has failed: to go on with the rest of a gap that was less than its size would have the next
 * ones sampled too often. Does not return if the calling thread is under a guard. */
RARE void allocation_failed(bool sampled);

/* After it. Returns `object`. */
static inline void *allocation_made(void *object, uint64_t size, bool sampled) {
    if (UNLIKELY(!object) && size > 0)
        allocation_failed(sampled);
    else if (UNLIKELY(sampled))
        heap_sample(&capture.heap, object, size);
    return object;
}

/* Before `object` is freed. */
static inline void allocation_ends(const void *object) {
    struct live_object taken;
    if (UNLIKELY(address_filter_may_hold(&allocation_path.filter, object)))
        (void)heap_forget(&capture.heap, object, &taken);
}

#endif
