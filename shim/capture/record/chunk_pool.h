/* Allocates chunks of one size for the threads' sample tables, without locks.
 *
 * A chunk has a small number, so that tables can link records with 32 bits. Memory is mapped in
 * segments as it is needed, and never beyond CHUNK_LIMIT. If the pool is exhausted, the caller
 * counts the sample as dropped. The free list is a stack whose head carries a tag against the ABA
 * problem (Treiber 1986).
 */
#ifndef OTELPROF_CHUNK_POOL_H
#define OTELPROF_CHUNK_POOL_H

#include "drop_reason.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    CHUNK_BITS = 14,
    CHUNK_BYTES = 1 << CHUNK_BITS,
    CHUNKS_PER_SEGMENT = 64,
    CHUNK_SEGMENT_BYTES = CHUNKS_PER_SEGMENT * CHUNK_BYTES, /* 1 MiB */
    CHUNK_SEGMENTS = 256,
    /* A table's first chunk may be any of 256 MiB, so that each of many threads gets a chunk; most
     * threads touch only one page of it. Further chunks come from the first 64 MiB. */
    CHUNK_LIMIT = CHUNKS_PER_SEGMENT * CHUNK_SEGMENTS,
    CHUNK_LIMIT_FURTHER = CHUNK_LIMIT / 4,
    CHUNK_NONE = 0, /* no chunk: numbers begin at 1 */
};

/* Heads every chunk that is in use. */
struct chunk {
    uint32_t next; /* number of the table's next chunk, or of the next free chunk */
    uint32_t used; /* bytes in use, this head included */
};

struct chunk_pool {
    _Atomic uint64_t free_head; /* tag << 32 | chunk number */
    _Atomic uint32_t fresh;     /* number of chunks that were ever taken from new memory */
    _Atomic uint32_t charged;   /* number of chunks that count against the bound of all tables */
    /* why chunk_pool_take() last returned CHUNK_NONE: true: memory was refused; false: the pool was
     * full */
    _Atomic bool is_refused;
    _Atomic uintptr_t segments[CHUNK_SEGMENTS];
};

/* Returns a chunk with its head initialised, or CHUNK_NONE if `limit` chunks exist and none of them
 * is free, or if the kernel or the bound of all tables refuses memory. Context: any.
 * Async-signal-safe: yes. */
uint32_t chunk_pool_take(struct chunk_pool *pool, uint32_t limit);

/* Frees the chunk. Context: any. Async-signal-safe: yes. */
void chunk_pool_give_back(struct chunk_pool *pool, uint32_t number);

/* Returns the reason for the last CHUNK_NONE that any thread got. Context: any. Async-signal-safe:
 * yes. */
static inline enum drop_reason chunk_pool_drop_reason(const struct chunk_pool *pool) {
    return atomic_load_explicit(&pool->is_refused, memory_order_relaxed) ? DROP_NO_MEMORY
                                                                         : DROP_TABLE_FULL;
}

/* Frees every chunk in a forked child, and discharges the memory of the parent's chunks. Context:
 * fork handler, single-threaded. */
void chunk_pool_reset(struct chunk_pool *pool);

/* Returns the chunk with that number. Context: any. Async-signal-safe: yes. */
static inline struct chunk *chunk_at(const struct chunk_pool *pool, uint32_t number) {
    const uint32_t index = number - 1;
    /* pairs with the exchange in chunk_segment_ready() */
    const uintptr_t segment =
        atomic_load_explicit(&pool->segments[index / CHUNKS_PER_SEGMENT], memory_order_acquire);
    return (struct chunk *)(segment + (uintptr_t)(index % CHUNKS_PER_SEGMENT) * CHUNK_BYTES);
}

#endif
