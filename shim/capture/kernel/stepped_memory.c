#include "stepped_memory.h"

#include "first_page.h"
#include "profiler_memory.h"

enum {
    /* log2 of the smallest step, which is a multiple of the page size of any kernel */
    LEAST_STEP_SHIFT = 17,
    MOST_STEPS = 64,
    FIRST_STEPS = 8, /* the largest table may open so many steps, even beyond STEPPED_FIRST_BYTES */
    /* the tables get this part of the memory that a limit leaves: exports and the program need the
     * rest */
    ROOM_PART = 4,
};

IN_FIRST_PAGE static struct stepped_bound {
    _Atomic uint64_t used;
    _Atomic uint64_t most;
} bound = {.most = STEPPED_FIRST_BYTES};

void *stepped_memory_map(struct stepped_memory *memory, size_t size) {
    uint32_t shift = LEAST_STEP_SHIFT;
    while ((size - 1) >> shift >= MOST_STEPS)
        shift++;
    const uint64_t least = (uint64_t)FIRST_STEPS << shift;
    if (atomic_load_explicit(&bound.most, memory_order_relaxed) < least)
        atomic_store_explicit(&bound.most, least, memory_order_relaxed);
    char *const start = profiler_memory_closed_part(size);
    *memory = (struct stepped_memory){start, start ? start + size : NULL, shift, 0};
    return start;
}

bool stepped_memory_charge(size_t bytes) {
    uint64_t used = atomic_load_explicit(&bound.used, memory_order_relaxed);
    do {
        if (used + bytes > atomic_load_explicit(&bound.most, memory_order_relaxed))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&bound.used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

void stepped_memory_discharge(size_t bytes) {
    atomic_fetch_sub_explicit(&bound.used, bytes, memory_order_relaxed);
}

/* Opens a step. If another thread opens the same step at once, one of the two threads takes its
 * charge back. */
static bool open_step(struct stepped_memory *memory, uint32_t step) {
    const uint64_t bit = UINT64_C(1) << step;
    char *const start = memory->start + ((size_t)step << memory->step_shift);
    const size_t rest = (size_t)(memory->end - start);
    const size_t whole = (size_t)1 << memory->step_shift;
    const size_t bytes = rest < whole ? rest : whole;
    if (!stepped_memory_charge(bytes))
        return false;
    const bool opened = profiler_memory_open(start, bytes);
    if (!opened ||
        (atomic_fetch_or_explicit(&memory->opened, bit, memory_order_relaxed) & bit) != 0)
        stepped_memory_discharge(bytes);
    return opened;
}

bool stepped_memory_open_steps(struct stepped_memory *memory, uint64_t wanted) {
    uint64_t closed = wanted & ~atomic_load_explicit(&memory->opened, memory_order_relaxed);
    for (; closed; closed &= closed - 1)
        if (!open_step(memory, (uint32_t)__builtin_ctzll(closed)))
            return false;
    return true;
}

void stepped_memory_allow(uint64_t room) {
    const uint64_t used = atomic_load_explicit(&bound.used, memory_order_relaxed);
    atomic_store_explicit(&bound.most, room == UINT64_MAX ? UINT64_MAX : used + room / ROOM_PART,
                          memory_order_relaxed);
}
