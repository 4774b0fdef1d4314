#include "chunk_pool.h"

#include "kernel/profiler_memory.h"
#include "kernel/stepped_memory.h"

#include <stdbool.h>
#include <string.h>

static bool chunk_segment_ready(struct chunk_pool *pool, uint32_t number) {
    _Atomic uintptr_t *const segment = &pool->segments[(number - 1) / CHUNKS_PER_SEGMENT];
    if (atomic_load_explicit(segment, memory_order_relaxed))
        return true;
    void *const memory = profiler_memory_part(CHUNK_SEGMENT_BYTES);
    if (!memory)
        return false;
    uintptr_t expected = 0;
    /* pairs with the acquire in chunk_at(): another thread that uses the segment sees it zeroed */
    if (!atomic_compare_exchange_strong_explicit(segment, &expected, (uintptr_t)memory,
                                                 memory_order_release, memory_order_relaxed))
        /* drops this mapping, because another thread mapped the segment first */
        profiler_memory_unmap(memory, CHUNK_SEGMENT_BYTES);
    return true;
}

/* Takes the chunk that was given back last; CHUNK_NONE: no chunk is free. The acquire pairs with
 * the release in chunk_pool_give_back(): the writes of the chunk's former owner are seen. */
static uint32_t chunk_pop_free(struct chunk_pool *pool) {
    uint64_t head = atomic_load_explicit(&pool->free_head, memory_order_acquire);
    while ((uint32_t)head != CHUNK_NONE) {
        /* another thread may take the chunk meanwhile: `next` is then stale, and the tag makes the
         * exchange fail; the memory itself is never unmapped */
        const uint32_t next =
            __atomic_load_n(&chunk_at(pool, (uint32_t)head)->next, __ATOMIC_RELAXED);
        const uint64_t replacement = ((head >> 32) + 1) << 32 | next;
        /* pairs with the release in chunk_pool_give_back() */
        if (atomic_compare_exchange_weak_explicit(&pool->free_head, &head, replacement,
                                                  memory_order_acquire, memory_order_acquire))
            return (uint32_t)head;
    }
    return CHUNK_NONE;
}

/* Returns CHUNK_NONE, and stores the reason. */
static uint32_t no_chunk(struct chunk_pool *pool, bool is_refused) {
    atomic_store_explicit(&pool->is_refused, is_refused, memory_order_relaxed);
    return CHUNK_NONE;
}

static uint32_t take_next(struct chunk_pool *pool, uint32_t limit) {
    uint32_t taken = atomic_load_explicit(&pool->fresh, memory_order_relaxed);
    while (taken < limit) {
        if (!chunk_segment_ready(pool, taken + 1))
            return no_chunk(pool, true);
        if (atomic_compare_exchange_weak_explicit(&pool->fresh, &taken, taken + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return taken + 1;
    }
    return no_chunk(pool, false);
}

static uint32_t chunk_take_fresh(struct chunk_pool *pool, uint32_t limit) {
    /* does not charge a table's first chunk, because most threads touch only a page of it */
    if (limit == CHUNK_LIMIT)
        return take_next(pool, limit);
    if (atomic_load_explicit(&pool->fresh, memory_order_relaxed) >= limit)
        return no_chunk(pool, false);
    if (!stepped_memory_charge(CHUNK_BYTES))
        return no_chunk(pool, true);
    const uint32_t number = take_next(pool, limit);
    if (number == CHUNK_NONE)
        stepped_memory_discharge(CHUNK_BYTES);
    else
        atomic_fetch_add_explicit(&pool->charged, 1, memory_order_relaxed);
    return number;
}

uint32_t chunk_pool_take(struct chunk_pool *pool, uint32_t limit) {
    uint32_t number = chunk_pop_free(pool);
    if (number == CHUNK_NONE)
        number = chunk_take_fresh(pool, limit);
    if (number == CHUNK_NONE)
        return CHUNK_NONE;
    struct chunk *const chunk = chunk_at(pool, number);
    /* pairs with the read in chunk_pop_free() */
    __atomic_store_n(&chunk->next, CHUNK_NONE, __ATOMIC_RELAXED);
    chunk->used = sizeof(struct chunk);
    return number;
}

void chunk_pool_give_back(struct chunk_pool *pool, uint32_t number) {
    uint64_t head = atomic_load_explicit(&pool->free_head, memory_order_relaxed);
    uint64_t replacement;
    do {
        __atomic_store_n(&chunk_at(pool, number)->next, (uint32_t)head, __ATOMIC_RELAXED);
        replacement = ((head >> 32) + 1) << 32 | number;
        /* pairs with the acquire in chunk_pop_free() */
    } while (!atomic_compare_exchange_weak_explicit(&pool->free_head, &head, replacement,
                                                    memory_order_release, memory_order_relaxed));
}

void chunk_pool_reset(struct chunk_pool *pool) {
    atomic_store(&pool->free_head, 0);
    atomic_store(&pool->fresh, 0);
    stepped_memory_discharge((size_t)atomic_exchange(&pool->charged, 0) * CHUNK_BYTES);
    for (int i = 0; i < CHUNK_SEGMENTS; i++)
        profiler_memory_reset_in_child((void *)atomic_load(&pool->segments[i]),
                                       CHUNK_SEGMENT_BYTES);
}
