#include "table_blocks.h"

#include "kernel/profiler_memory.h"

#include <string.h>

static unsigned table_block_class(size_t size) {
    unsigned bits = TABLE_BLOCK_LEAST_BITS;
    while (size > (size_t)1 << bits)
        bits++;
    return bits - TABLE_BLOCK_LEAST_BITS;
}

static void *table_blocks_map(struct table_blocks *blocks, size_t size) {
    if (size > TABLE_BLOCKS_LARGEST - blocks->mapped)
        return NULL;
    void *const memory = profiler_memory_take(size);
    if (memory)
        blocks->mapped += size;
    return memory;
}

static bool is_large(size_t size) {
    return size > (size_t)1 << TABLE_BLOCK_MOST_BITS;
}

static void *take_of_chunk(struct table_blocks *blocks, size_t bytes) {
    if (blocks->chunk_end - blocks->chunk < bytes) { /* the rest of the old chunk stays unused */
        const uintptr_t chunk = (uintptr_t)table_blocks_map(blocks, TABLE_BLOCKS_CHUNK);
        if (!chunk)
            return NULL;
        blocks->chunk = chunk;
        blocks->chunk_end = chunk + TABLE_BLOCKS_CHUNK;
    }
    void *const block = (void *)blocks->chunk;
    blocks->chunk += bytes;
    return block;
}

void *table_blocks_take(struct table_blocks *blocks, size_t size) {
    if (size > TABLE_BLOCKS_LARGEST)
        return NULL;
    if (is_large(size))
        return table_blocks_map(blocks, whole_pages(size));
    const unsigned index = table_block_class(size);
    void *const block = blocks->free[index];
    if (!block)
        return take_of_chunk(blocks, (size_t)1 << (index + TABLE_BLOCK_LEAST_BITS));
    memcpy(&blocks->free[index], block, sizeof blocks->free[index]);
    return block;
}

void table_blocks_give(struct table_blocks *blocks, void *block, size_t size) {
    if (is_large(size)) {
        profiler_memory_unmap(block, whole_pages(size));
        blocks->mapped -= whole_pages(size);
        return;
    }
    const unsigned index = table_block_class(size);
    memcpy(block, &blocks->free[index], sizeof blocks->free[index]);
    blocks->free[index] = block;
}
