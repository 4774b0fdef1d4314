/* Manages the memory of one flush cycle: callers take it piece by piece, and free all of it at
 * once.
 *
 * The messages of one export are thousands of small objects of the same lifetime; with an arena no
 * message needs a destructor, and no memory can leak. If malloc fails, the arena sets `failed`,
 * which the code that packs the messages checks. Context: flush. Not thread-safe.
 */
#ifndef OTELPROF_ARENA_H
#define OTELPROF_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t used;  /* bytes used in the newest block */
    size_t total; /* bytes held, for the bound on an export's size */
    bool failed;
};

/* Returns zeroed memory, aligned to 16 bytes, that lives until arena_free(); NULL without memory.
 */
void *arena_take(struct arena *arena, size_t size);

/* Returns memory as arena_take() does, but not zeroed: for memory that the caller fills at once. */
void *arena_take_raw(struct arena *arena, size_t size);

/* Returns a copy of `size` bytes with a NUL behind it; NULL without memory. */
char *arena_copy(struct arena *arena, const void *bytes, size_t size);

/* Frees all memory; the arena is then empty and usable again. */
void arena_free(struct arena *arena);

/* Holds an array of pointers that grows in an arena. */
struct arena_list {
    void **items;
    size_t count;
    size_t capacity;
};

/* Adds an item. Returns false without memory. */
bool arena_list_add(struct arena *arena, struct arena_list *list, void *item);

#endif
