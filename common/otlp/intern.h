/* Gives equal byte strings the same number: the index behind every table of the dictionary, so that
 * no item is ever listed twice.
 *
 * Keys are byte strings, copied into the arena; numbers count from 0 in order of first appearance,
 * which makes the output deterministic. The index uses open addressing, and doubles when three
 * quarters are full; a slot has eight bytes. The keys are in a list by number, which is the table
 * itself. Context: flush.
 */
#ifndef OTELPROF_INTERN_H
#define OTELPROF_INTERN_H

#include "arena.h"

#include <stdint.h>

struct intern_key {
    /* bytes of the key, aligned to 16 and followed by a NUL; they live as long as the arena */
    const void *bytes;
    size_t size;
};

struct intern_slot {
    uint32_t hash;
    int32_t number; /* number of the key plus one; 0: empty */
};

struct intern {
    struct intern_key *keys; /* array by number */
    struct intern_slot *slots;
    uint32_t capacity; /* number of slots: a power of two */
    int32_t count;
};

/* Returns the number of the key; `*is_new` is set if this call has assigned the number. -1: no
 * memory. */
int32_t intern(struct arena *arena, struct intern *index, const void *key, size_t size,
               bool *is_new);

/* Returns the number of a known key; -1: the key is not known. */
int32_t intern_find(const struct intern *index, const void *key, size_t size);

/* Makes room for `count` keys at once, because growing step by step leaves the smaller tables in
 * the arena. Without memory the index stays unchanged. */
void intern_reserve(struct arena *arena, struct intern *index, size_t count);

#endif
