/* Counts down the bytes to the next sample, for the hooks of all allocator entry points.
 *
 * A call that is not sampled costs a compare and a subtraction. These functions only count down;
 * heap.c decides and records. Context: any thread of the application, in a hook. */
#ifndef OTELPROF_ALLOCATION_H
#define OTELPROF_ALLOCATION_H

#include "capture/allocator/allocation_path.h"
#include "capture/capture.h"
#include "entry.h"

#include <stdbool.h>
#include <stdint.h>

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
/* Aligns the function to a line of the instruction cache, so that a short function lies in one
 * line. */
#define FAST __attribute__((aligned(CACHE_LINE)))

/* Returns whether to sample an allocation, after the countdown has ended or if it never began. */
RARE bool allocation_is_sampled_slow(uint64_t size);

/* Counts an allocation of `size` bytes down; call this before the allocation. Returns true if the
 * allocation is to be sampled if it succeeds. */
static inline bool allocation_is_sampled(uint64_t size) {
    if (UNLIKELY(size >= profiler_tls.alloc_left))
        return allocation_is_sampled_slow(size);
    profiler_tls.alloc_left -= size;
    return false;
}

/* Handles a failed allocation. Draws a new gap if the allocation was to be sampled: a rest that is
 * smaller than the failed size would make samples of the next allocations too frequent. Does not
 * return if the calling thread is under a guard. */
RARE void allocation_failed(bool sampled);

/* Records the object if it is sampled; call this after the allocation. Returns `object`. Inlined
 * always: the walk of a sample steps through each function of ours. */
__attribute__((always_inline)) static inline void *allocation_made(void *object, uint64_t size,
                                                                   bool sampled) {
    if (UNLIKELY(!object) && size > 0)
        allocation_failed(sampled);
    else if (UNLIKELY(sampled))
        heap_sample(&capture.heap, object, size);
    return object;
}

/* Forgets the object, if it was sampled. */
RARE void allocation_forget(const void *object);

/* Forgets `object` if it was sampled; call this before the object is freed. */
static inline void allocation_ends(const void *object) {
    if (UNLIKELY(address_filter_may_hold(&allocation_path.filter, object)))
        allocation_forget(object);
}

#endif
