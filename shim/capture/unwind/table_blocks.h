/* Allocates memory for unwind tables that are registered and removed (registered_tables.h).
 *
 * The size of a block is a power of two; a freed block is reused for the same size. Large blocks
 * are mappings of their own. A forked child keeps all blocks, because it keeps the code that the
 * tables describe. The mapped bytes have a bound. Context: any, by one thread at a time.
 * Async-signal-safe: yes.
 */
#ifndef OTELPROF_TABLE_BLOCKS_H
#define OTELPROF_TABLE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

enum {
    TABLE_BLOCK_LEAST_BITS = 8,
    TABLE_BLOCK_MOST_BITS = 15,      /* larger blocks are mappings of their own */
    TABLE_BLOCKS_LARGEST = 64 << 20, /* bytes mapped at most: see docs/internals */
    TABLE_BLOCKS_CHUNK = 256 << 10,  /* bytes mapped at a time */
    TABLE_BLOCK_SIZES = TABLE_BLOCK_MOST_BITS - TABLE_BLOCK_LEAST_BITS + 1,
};

struct table_blocks {
    /* lists of free blocks; each block begins with a pointer to the next */
    void *free[TABLE_BLOCK_SIZES];
    uintptr_t chunk; /* the unused rest of the last chunk */
    uintptr_t chunk_end;
    size_t mapped;
};

/* Returns a block of at least `size` bytes, aligned to 16, with undefined content. NULL: no memory,
 * or the bound is reached. */
void *table_blocks_take(struct table_blocks *blocks, size_t size);

/* Frees a block; `size`: as passed to table_blocks_take(). */
void table_blocks_give(struct table_blocks *blocks, void *block, size_t size);

#endif
