#include "profiler_memory.h"

#include "first_page.h"

#include <stdatomic.h>
#include <stdint.h>

IN_FIRST_PAGE static struct profiler_memory {
    struct ahead {              /* memory that was mapped ahead and is not handed out yet */
        _Atomic uintptr_t next; /* where that memory begins */
        uintptr_t end;          /* where it ends */
    } writable, closed;
    _Atomic bool refused; /* the kernel has refused MADV_WIPEONFORK for a mapping */
    bool emptied;         /* this is a forked child, and the kernel has emptied the memory */
} profiler_memory;

static void *map_emptied_in_child(size_t size, int protection) {
    const int saved = errno;
    void *const memory = profiler_memory_with(size, protection);
    if (memory && madvise(memory, size, MADV_WIPEONFORK) != 0)
        atomic_store_explicit(&profiler_memory.refused, true, memory_order_relaxed);
    errno = saved;
    return memory;
}

void *profiler_memory_map(size_t size) {
    return map_emptied_in_child(size, PROT_READ | PROT_WRITE);
}

static void *take_of_ahead(struct ahead *ahead, size_t size) {
    uintptr_t next = atomic_load_explicit(&ahead->next, memory_order_relaxed);
    do {
        if (size > ahead->end - next)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&ahead->next, &next, next + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    return (void *)next;
}

void *profiler_memory_part(size_t size) {
    void *const memory = take_of_ahead(&profiler_memory.writable, size);
    return memory ? memory : profiler_memory_map(size);
}

void *profiler_memory_closed_part(size_t size) {
    void *const memory = take_of_ahead(&profiler_memory.closed, size);
    return memory ? memory : map_emptied_in_child(size, PROT_READ);
}

static void set_ahead(struct ahead *ahead, uintptr_t start, size_t size) {
    ahead->end = start + size;
    atomic_store_explicit(&ahead->next, start, memory_order_relaxed);
}

void profiler_memory_map_ahead(size_t writable, size_t closed) {
    char *const memory = map_emptied_in_child(writable + closed, PROT_READ);
    if (memory && profiler_memory_open(memory, writable)) {
        set_ahead(&profiler_memory.writable, (uintptr_t)memory, writable);
        set_ahead(&profiler_memory.closed, (uintptr_t)memory + writable, closed);
        return;
    }
    if (memory)
        profiler_memory_unmap(memory, writable + closed);
    set_ahead(&profiler_memory.writable, 0, 0);
    set_ahead(&profiler_memory.closed, 0, 0);
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
