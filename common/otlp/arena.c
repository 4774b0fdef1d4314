#include "arena.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 256 << 10, ALIGNMENT = 16 };

struct arena_block {
    struct arena_block *older;
    size_t size;
    _Alignas(ALIGNMENT) char bytes[];
};

static bool add_block(struct arena *arena, size_t size) {
    const size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    struct arena_block *const block = malloc(sizeof *block + bytes);
    if (!block)
        return false;
    block->older = arena->blocks;
    block->size = bytes;
    arena->blocks = block;
    arena->used = 0;
    arena->total += bytes;
    return true;
}

void *arena_take_raw(struct arena *arena, size_t size) {
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const bool fits = arena->blocks && arena->blocks->size - arena->used >= size;
    if (!fits && !add_block(arena, size)) {
        arena->failed = true;
        return NULL;
    }
    void *const memory = arena->blocks->bytes + arena->used;
    arena->used += size;
    return memory;
}

void *arena_take(struct arena *arena, size_t size) {
    void *const memory = arena_take_raw(arena, size);
    return memory && size ? memset(memory, 0, size) : memory;
}

char *arena_copy(struct arena *arena, const void *bytes, size_t size) {
    char *const copy = arena_take_raw(arena, size + 1);
    if (!copy)
        return NULL;
    if (size)
        memcpy(copy, bytes, size);
    copy[size] = 0;
    return copy;
}

void arena_free(struct arena *arena) {
    while (arena->blocks) {
        struct arena_block *const older = arena->blocks->older;
        free(arena->blocks);
        arena->blocks = older;
    }
    *arena = (struct arena){0};
}

bool arena_list_add(struct arena *arena, struct arena_list *list, void *item) {
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 16;
        void **const items = arena_take_raw(arena, capacity * sizeof *items);
        if (!items)
            return false;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return true;
}
