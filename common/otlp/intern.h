/* "Have I seen these bytes before, and under which number?": the index behind every table of the
 * dictionary, so that no item is ever listed twice.
 *
 * Keys are byte strings, copied into the arena; numbers count from 0 in order of first appearance,
 * which makes the output deterministic. Open addressing, doubling at three quarters full; a slot is
 * eight bytes, and the keys are in a list of their own, so that the index of keys already seen is
 * the table itself.
 * Context: flush.
 */
#ifndef OTELPROF_INTERN_H
#define OTELPROF_INTERN_H

#include "arena.h"

#include <stdint.h>

struct intern_key {
    const void *bytes; /* aligned to 16 bytes, followed by a NUL; lives as long as the arena */
    size_t size;
};

struct intern_slot {
    uint32_t hash;
    int32_t number; /* plus one; 0: empty */
};

struct intern {
    struct intern_key *keys; /* by number */
    struct intern_slot *slots;
    uint32_t capacity; /* of slots: a power of two */
    int32_t count;
};

/* Returns the number of the key; `*is_new` is set if this call has assigned it. -1: no memory. */
int32_t intern(struct arena *arena, struct intern *index, const void *key, size_t size,
               bool *is_new);

/* Returns the number of a key that is there already; -1: it is not. */
int32_t intern_find(const struct intern *index, const void *key, size_t size);

/* Makes room for `count` keys at once: growing step by step leaves the smaller tables behind in the
 * arena. Without memory nothing changes. */
void intern_reserve(struct arena *arena, struct intern *index, size_t count);

#endif
