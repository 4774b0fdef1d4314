/* "Have I seen these bytes before, and under which number?": the index behind every table of the
 * dictionary, so that no item is ever listed twice.
 *
 * Keys are byte strings, copied into the arena; numbers count from 0 in order of first appearance,
 * which makes the output deterministic. Open addressing, doubling at half full.
 * Context: flush.
 */
#ifndef OTELPROF_INTERN_H
#define OTELPROF_INTERN_H

#include "arena.h"

#include <stdint.h>

struct intern_slot {
    uint64_t hash;
    const void *key; /* NULL: empty */
    uint32_t size;
    int32_t number;
};

struct intern {
    struct intern_slot *slots;
    uint32_t capacity; /* a power of two */
    int32_t count;
};

/* The number of the key; `*is_new` says whether it was given just now. -1: no memory. */
int32_t intern(struct arena *arena, struct intern *index, const void *key, size_t size,
               bool *is_new);

#endif
