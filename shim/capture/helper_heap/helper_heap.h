/* Allocates for the profiler's threads: the helper, and those that its libraries create.
 *
 * These threads allocate from one range of addresses of the heap's own (page_heap.h), not from the
 * program's allocator. So no thread of the program waits for a lock that the helper holds in
 * malloc, and a forked child inherits no such lock; glibc makes no arena for a second thread; the
 * memory of an export goes back to the kernel afterwards; and there is a ceiling. malloc's fast
 * path is unchanged: profiler threads have no countdown, so each of their calls takes the slow
 * path. free's is unchanged, too: the address filter passes all addresses of this heap for ever, as
 * it passes sampled objects. A thread of the program that frees an object of this heap (the loader
 * does, and libc's caches) takes no lock: it adds the object to a list that the profiler's threads
 * empty. If that thread resizes such an object, the thread gets a copy from the program's
 * allocator. If the kernel refuses the range, or a malloc of the program's precedes the profiler's,
 * the profiler's threads use the program's allocator. A forked child continues with the parent's
 * heap. If a profiler thread was just changing the heap, the child never frees the existing
 * objects, and puts its own behind them.
 */
#ifndef OTELPROF_HELPER_HEAP_H
#define OTELPROF_HELPER_HEAP_H

#include "page_heap.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct helper_heap {
    _Atomic uintptr_t start;
    _Atomic uintptr_t size;   /* 0: the heap is not open */
    bool malloc_is_profilers; /* the program does not define malloc itself */
    bool refused;
    bool forgotten;        /* in a forked child the address filter may have lost entries */
    bool of_work;          /* allocations belong to `work`; used by the worker only */
    uint64_t queue_bytes;  /* size of the export queue, which gets space in addition */
    uint32_t work;         /* number of the current or latest piece of work */
    uint32_t work_ceiling; /* largest number of pages in use during the work */
    _Atomic bool entered;  /* set by the worker while it changes the heap, or waits to do so */
    _Atomic uint32_t lock; /* a futex: the lock between the profiler's threads */
    _Atomic(void *) freed; /* a list through the objects that the program has freed */
    struct page_heap pages;
};
extern struct helper_heap helper_heap;

/* Returns true if the object is in this heap. Context: any. Async-signal-safe: yes. */
static inline bool helper_heap_holds(const void *object) {
    /* pairs with open_heap(): a thread that reads this size also reads the start */
    const uintptr_t size = atomic_load_explicit(&helper_heap.size, memory_order_acquire);
    return (uintptr_t)object - atomic_load_explicit(&helper_heap.start, memory_order_relaxed) <
           size;
}

/* Configures the heap before the first profiler thread allocates; before that there is no heap.
 * Context: calm, at start. */
void helper_heap_prepare(bool malloc_is_profilers, uint64_t queue_bytes);

/* Returns true if the calling thread allocates here: it is a thread of the profiler, and the heap
 * is open. The first call on such a thread opens the heap. Context: any. */
bool helper_heap_serves(void);

/* Allocate as malloc() and calloc() do. Return NULL, and set errno, beyond the ceiling, or if the
 * kernel refuses memory. Context: if helper_heap_serves(). */
void *helper_heap_take(size_t size, size_t alignment);
void *helper_heap_take_zeroed(size_t size);

/* Free, and measure, an object of this heap. Context: any thread; async-signal-safe on threads of
 * the program. */
void helper_heap_free(void *object);
size_t helper_heap_room(const void *object);
/* Returns true if the object now has space for `size` bytes, without a move. Context: the
 * profiler's threads. */
bool helper_heap_resize(void *object, size_t size);

/* Begin and end a piece of work, during which the heap may grow by `bytes`. All allocations of the
 * calling thread meanwhile belong to the work, and are freed if the work was left by a jump
 * (`left`). Do nothing while the heap is not open. Not nested. Context: the helper. */
void helper_heap_begin_work(size_t bytes);
void helper_heap_end_work(bool left);
/* Returns true if the calling thread is changing the heap, and so must not leave its work now.
 * Context: a signal handler on the helper, during its work. */
static inline bool helper_heap_is_entered(void) {
    return atomic_load_explicit(&helper_heap.entered, memory_order_relaxed);
}

/* Gives free memory back to the kernel. Context: the profiler's threads. */
void helper_heap_trim(void);

/* Returns the bytes in use, in whole pages. Context: the profiler's threads. */
size_t helper_heap_used(void);

/* Adds the heap to the address filter again, after the profiler or the fork has emptied the filter.
 * Context: fork handler. */
void helper_heap_keep_in_filter(void);
/* Repairs the heap in a forked child. Context: fork handler. */
void helper_heap_after_fork(void);

#endif
