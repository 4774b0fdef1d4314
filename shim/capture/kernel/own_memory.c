#include "own_memory.h"

#include "first_page.h"

#include <stdatomic.h>
#include <stdint.h>

IN_FIRST_PAGE static struct own_memory {
    _Atomic uintptr_t next; /* memory mapped ahead, not handed out yet: from here */
    uintptr_t end;          /* to here */
    _Atomic bool refused;   /* MADV_WIPEONFORK was refused, for a part */
    bool emptied;           /* the kernel has emptied it in this process, a forked child */
} own_memory;

void *own_memory_map(size_t size) {
    const int saved = errno;
    void *const memory = own_memory_take(size);
    if (memory && madvise(memory, size, MADV_WIPEONFORK) != 0)
        atomic_store_explicit(&own_memory.refused, true, memory_order_relaxed);
    errno = saved;
    return memory;
}

static void *take_of_ahead(size_t size) {
    uintptr_t next = atomic_load_explicit(&own_memory.next, memory_order_relaxed);
    do {
        if (size > own_memory.end - next)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&own_memory.next, &next, next + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    return (void *)next;
}

void *own_memory_part(size_t size) {
    void *const memory = take_of_ahead(size);
    return memory ? memory : own_memory_map(size);
}

void own_memory_map_ahead(size_t size) {
    const uintptr_t memory = (uintptr_t)own_memory_map(size);
    own_memory.end = memory ? memory + size : 0;
    atomic_store_explicit(&own_memory.next, memory, memory_order_relaxed);
}

void own_memory_after_fork(bool is_empty) {
    own_memory.emptied =
        is_empty && !atomic_load_explicit(&own_memory.refused, memory_order_relaxed);
}

bool own_memory_is_emptied(void) {
    return own_memory.emptied;
}

void own_memory_reset_in_child(void *memory, size_t size) {
    if (!own_memory.emptied)
        own_memory_reset(memory, size);
}
