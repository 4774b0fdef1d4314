#include "intern.h"

#include "hash.h"

#include <string.h>

enum { FIRST_CAPACITY = 64 };

static uint64_t hash_bytes(const unsigned char *bytes, size_t size) {
    uint64_t hash = size;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = hash_word(hash, word);
    }
    uint64_t rest = 0;
    memcpy(&rest, bytes, size);
    return hash_word(hash, rest);
}

static struct intern_slot *find(struct intern *index, uint64_t hash, const void *key, size_t size) {
    uint32_t at = (uint32_t)hash & (index->capacity - 1);
    for (;; at = (at + 1) & (index->capacity - 1)) { /* ends: half of the slots are empty */
        struct intern_slot *const slot = &index->slots[at];
        if (!slot->key ||
            (slot->hash == hash && slot->size == size && memcmp(slot->key, key, size) == 0))
            return slot;
    }
}

static bool grow(struct arena *arena, struct intern *index) {
    struct intern larger = {.capacity = index->capacity ? 2 * index->capacity : FIRST_CAPACITY,
                            .count = index->count};
    larger.slots = arena_take(arena, larger.capacity * sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (uint32_t i = 0; i < index->capacity; i++) {
        const struct intern_slot *const slot = &index->slots[i];
        if (slot->key)
            *find(&larger, slot->hash, slot->key, slot->size) = *slot;
    }
    *index = larger;
    return true;
}

int32_t intern(struct arena *arena, struct intern *index, const void *key, size_t size,
               bool *is_new) {
    *is_new = false;
    if ((uint32_t)index->count * 2 >= index->capacity && !grow(arena, index))
        return -1;
    const uint64_t hash = hash_bytes(key, size);
    struct intern_slot *const slot = find(index, hash, key, size);
    if (slot->key)
        return slot->number;
    const char *const copy = arena_copy(arena, key, size);
    if (!copy)
        return -1;
    *slot = (struct intern_slot){hash, copy, (uint32_t)size, index->count++};
    *is_new = true;
    return slot->number;
}
