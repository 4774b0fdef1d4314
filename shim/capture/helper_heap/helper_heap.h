/* The heap of the threads that are ours: the helper, and those that its libraries create.
 *
 * What they allocate comes from one range of addresses of its own (page_heap.h), not from the
 * program's allocator. So no thread of the program ever waits for a lock that the helper holds in
 * malloc, fork() finds no such lock, glibc makes no arena for a second thread, what is only
 * borrowed for an export goes back to the kernel, and there is a ceiling. malloc's fast path is as
 * it was: such threads have no countdown, so each of their calls takes the slow one. So is free's:
 * the heap's addresses are in the address filter for good, as those of sampled objects are.
 * A thread of the program that frees an object of this heap (the loader does, and libc's caches)
 * takes no lock: it hangs the object on a list that ours empty. One that has it grow gets the copy
 * from the program's allocator. Where the kernel refuses the range, or a malloc of the program's
 * stands before ours, our threads use the program's.
 * A forked child goes on with the heap as it is. If one of our threads was in the middle of a
 * change, what is there stays for good, and the child's begins behind it.
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
    _Atomic uintptr_t size; /* 0: not opened */
    bool malloc_is_ours;    /* the program brings none of its own */
    bool refused;
    bool forgotten; /* in a forked child, by the address filter: perhaps not all of it was kept */
    bool of_work;   /* what is taken is of `work`; the worker's own */
    uint64_t queue_bytes;  /* of exports, for which there is room beside the rest */
    uint32_t work;         /* the number of the present or latest piece of work */
    uint32_t work_ceiling; /* in pages */
    _Atomic bool entered;  /* by the worker: it is in the middle of a change, or waits to be */
    _Atomic uint32_t lock; /* of our threads; a futex */
    _Atomic(void *) freed; /* by threads of the program: a list through the objects */
    struct page_heap pages;
};
extern struct helper_heap helper_heap;

/* Whether the object is of this heap. Context: any. Async-signal-safe: yes. */
static inline bool helper_heap_holds(const void *object) {
    /* pairs with open_heap(): who sees the size sees the start */
    const uintptr_t size = atomic_load_explicit(&helper_heap.size, memory_order_acquire);
    return (uintptr_t)object - atomic_load_explicit(&helper_heap.start, memory_order_relaxed) <
           size;
}

/* What is known before the first of our threads allocates; until then there is no heap. Context:
 * calm, at start. */
void helper_heap_prepare(bool malloc_is_ours, uint64_t queue_bytes);

/* Whether the calling thread allocates here: it is ours, and there is a heap. Context: any. */
bool helper_heap_serves(void);

/* As malloc() and its like. NULL: beyond the ceiling. Context: where helper_heap_serves(). */
void *helper_heap_take(size_t size, size_t alignment);
void *helper_heap_take_zeroed(size_t size);

/* The object is one of this heap. Context: any thread; async-signal-safe on those of the program.
 */
void helper_heap_free(void *object);
size_t helper_heap_room(const void *object);
/* Whether it has room for `size` bytes now, where it is. Context: our threads. */
bool helper_heap_resize(void *object, size_t size);

/* A piece of work begins, which may take `bytes` more than there is: what the calling thread takes
 * until it ends is of it. If it ends by being left, all that is given back. Not nested.
 * Context: the helper. */
void helper_heap_begin_work(size_t bytes);
void helper_heap_end_work(bool left);
/* Whether the calling thread must not leave its work just now. Context: a signal handler on the
 * helper, in the middle of its work. */
static inline bool helper_heap_is_entered(void) {
    return atomic_load_explicit(&helper_heap.entered, memory_order_relaxed);
}

/* Gives the kernel what is free. Context: our threads. */
void helper_heap_trim(void);

/* Bytes of objects, in whole pages. Context: our threads. */
size_t helper_heap_used(void);

/* After the address filter was emptied, by hand or by the fork. Context: fork handler. */
void helper_heap_keep_in_filter(void);
/* In a forked child. Context: fork handler. */
void helper_heap_after_fork(void);

#endif
