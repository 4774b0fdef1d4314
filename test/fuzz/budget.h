/* Bounds the cost of one input: more CPU time, or more memory at a time, breaks a promise.
 *
 * The tested code runs between budget_begin() and budget_end(). CPU time is the thread's own, so
 * that a busy machine breaks no promise; the sanitizers make all of it some three times as dear. */
#ifndef OTELPROF_FUZZ_BUDGET_H
#define OTELPROF_FUZZ_BUDGET_H

#include "fuzz.h"

#include <sanitizer/allocator_interface.h>
#include <stdatomic.h>
#include <time.h>

struct budget {
    double cpu_start;
    double cpu_seconds;
    int64_t start_bytes;
    int64_t most_bytes;
};

/* Counts with a sign: a block from before the hooks is not added, but it is subtracted when it is
 * freed. libFuzzer's own threads have such blocks, and free them late on a busy machine. */
static struct {
    _Atomic int64_t bytes; /* held by malloc now */
    _Atomic int64_t most;  /* the most since budget_begin() */
} heap_use;

static inline void heap_taken(const volatile void *block, size_t size) {
    (void)block;
    const int64_t now = atomic_fetch_add(&heap_use.bytes, (int64_t)size) + (int64_t)size;
    if (now > atomic_load(&heap_use.most))
        atomic_store(&heap_use.most, now);
}

static inline void heap_given(const volatile void *block) {
    if (block && __sanitizer_get_ownership(block))
        atomic_fetch_sub(&heap_use.bytes, (int64_t)__sanitizer_get_allocated_size(block));
}

static inline double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline struct budget budget_begin(double seconds, size_t bytes) {
    static bool installed;
    if (!installed)
        promise(__sanitizer_install_malloc_and_free_hooks(heap_taken, heap_given));
    installed = true;
    const int64_t now = atomic_load(&heap_use.bytes);
    atomic_store(&heap_use.most, now);
    return (struct budget){cpu_seconds(), seconds, now, (int64_t)bytes};
}

static inline void budget_end(const struct budget *budget) {
    const bool in_time = cpu_seconds() - budget->cpu_start <= budget->cpu_seconds;
    const bool in_memory = atomic_load(&heap_use.most) <= budget->start_bytes + budget->most_bytes;
    promise(in_time);
    promise(in_memory);
}

#endif
