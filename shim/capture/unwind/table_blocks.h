/* Allocates memory for unwind tables that are registered and removed (registered_tables.h).
 *
 * A block has a power of two of bytes; what is given back is used again for the same size. Large
 * ones are mappings of their own. A forked child has all of it: the code that the tables describe
 * lives on there. What is mapped has a bound. Context: any, by one thread at a time.
 * Async-signal-safe: yes.
 */
#ifndef OTELPROF_TABLE_BLOCKS_H
#define OTELPROF_TABLE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

enum {
    TABLE_BLOCK_LEAST_BITS = 8,
    TABLE_BLOCK_MOST_BITS = 15,      /* larger ones are mappings */
    TABLE_BLOCKS_LARGEST = 64 << 20, /* bytes mapped at most: see docs/internals */
    TABLE_BLOCKS_CHUNK = 256 << 10,  /* mapped at once */
    TABLE_BLOCK_SIZES = TABLE_BLOCK_MOST_BITS - TABLE_BLOCK_LEAST_BITS + 1,
};

struct table_blocks {
    void *free[TABLE_BLOCK_SIZES]; /* each begins with a pointer to the next */
    uintptr_t chunk;               /* rest of the last block */
    uintptr_t chunk_end;
    size_t mapped;
};

/* Returns a block of at least `size` bytes, aligned to 16, with undefined content. NULL: no memory,
 * or too much of it is in use. */
void *table_blocks_take(struct table_blocks *blocks, size_t size);

/* Frees a block; `size` is that of the table_blocks_take() call. */
void table_blocks_give(struct table_blocks *blocks, void *block, size_t size);

#endif
