#include "own_memory.h"

#include <stdatomic.h>
#include <stdint.h>

/* Mapped, and nobody's yet. */
static struct {
    _Atomic uintptr_t next;
    uintptr_t end;
} ahead;

static void *take_of_ahead(size_t size) {
    uintptr_t next = atomic_load_explicit(&ahead.next, memory_order_relaxed);
    do {
        if (size > ahead.end - next)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&ahead.next, &next, next + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    return (void *)next;
}

void *own_memory_part(size_t size) {
    void *const memory = take_of_ahead(size);
    return memory ? memory : own_memory_map(size);
}

void own_memory_map_ahead(size_t size) {
    const uintptr_t memory = (uintptr_t)own_memory_map(size);
    ahead.end = memory ? memory + size : 0;
    atomic_store_explicit(&ahead.next, memory, memory_order_relaxed);
}
