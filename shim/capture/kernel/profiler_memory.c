#include "profiler_memory.h"

#include "first_page.h"

#include <stdatomic.h>
#include <stdint.h>

IN_FIRST_PAGE static struct profiler_memory {
    _Atomic uintptr_t next; /* memory mapped ahead, not handed out yet: from here */
    uintptr_t end;          /* to here */
    _Atomic bool refused;   /* MADV_WIPEONFORK was refused, for a part */
    bool emptied;           /* the kernel has emptied it in this process, a forked child */
} profiler_memory;

void *profiler_memory_map(size_t size) {
    const int saved = errno;
    void *const memory = profiler_memory_take(size);
    if (memory && madvise(memory, size, MADV_WIPEONFORK) != 0)
        atomic_store_explicit(&profiler_memory.refused, true, memory_order_relaxed);
    errno = saved;
    return memory;
}

static void *take_of_ahead(size_t size) {
    uintptr_t next = atomic_load_explicit(&profiler_memory.next, memory_order_relaxed);
    do {
        if (size > profiler_memory.end - next)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&profiler_memory.next, &next, next + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    return (void *)next;
}

void *profiler_memory_part(size_t size) {
    void *const memory = take_of_ahead(size);
    return memory ? memory : profiler_memory_map(size);
}

void profiler_memory_map_ahead(size_t size) {
    const uintptr_t memory = (uintptr_t)profiler_memory_map(size);
    profiler_memory.end = memory ? memory + size : 0;
    atomic_store_explicit(&profiler_memory.next, memory, memory_order_relaxed);
}

void profiler_memory_after_fork(bool is_empty) {
    profiler_memory.emptied =
        is_empty && !atomic_load_explicit(&profiler_memory.refused, memory_order_relaxed);
}

bool profiler_memory_is_emptied(void) {
    return profiler_memory.emptied;
}

void profiler_memory_reset_in_child(void *memory, size_t size) {
    if (!profiler_memory.emptied)
        profiler_memory_reset(memory, size);
}
