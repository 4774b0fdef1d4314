#include "intern.h"

#include "hash.h"

#include <string.h>

enum { FIRST_CAPACITY = 64, MAX_CAPACITY = 1 << 30 };

static uint32_t hash_bytes(const unsigned char *bytes, size_t size) {
    uint64_t hash = size;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = hash_word(hash, word);
    }
    uint64_t rest = 0;
    memcpy(&rest, bytes, size);
    return (uint32_t)hash_word(hash, rest);
}

/* Returns how many keys fit into so many slots: a quarter stays empty, so that searches end. */
static uint32_t room(uint32_t capacity) {
    return capacity / 4 * 3;
}

static struct intern_slot *intern_find_slot(const struct intern *index, uint32_t hash,
                                            const void *key, size_t size) {
    uint32_t at = hash & (index->capacity - 1);
    for (;; at = (at + 1) & (index->capacity - 1)) {
        struct intern_slot *const slot = &index->slots[at];
        if (!slot->number)
            return slot;
        const struct intern_key *const known = &index->keys[slot->number - 1];
        if (slot->hash == hash && known->size == size && memcmp(known->bytes, key, size) == 0)
            return slot;
    }
}

/* Copies a slot to any empty slot, because all keys are distinct. */
static void intern_move_slot(struct intern *larger, const struct intern_slot *slot) {
    uint32_t at = slot->hash & (larger->capacity - 1);
    while (larger->slots[at].number)
        at = (at + 1) & (larger->capacity - 1);
    larger->slots[at] = *slot;
}

static bool intern_grow(struct arena *arena, struct intern *index, uint32_t capacity) {
    struct intern larger = {.capacity = capacity, .count = index->count};
    larger.slots = arena_take(arena, capacity * sizeof *larger.slots);
    larger.keys = arena_take_raw(arena, room(capacity) * sizeof *larger.keys);
    if (!larger.slots || !larger.keys)
        return false;
    for (uint32_t i = 0; i < index->capacity; i++)
        if (index->slots[i].number)
            intern_move_slot(&larger, &index->slots[i]);
    if (index->count)
        memcpy(larger.keys, index->keys, (size_t)index->count * sizeof *larger.keys);
    *index = larger;
    return true;
}

void intern_reserve(struct arena *arena, struct intern *index, size_t count) {
    uint32_t capacity = index->capacity ? index->capacity : FIRST_CAPACITY;
    while (room(capacity) < count && capacity < MAX_CAPACITY)
        capacity *= 2;
    if (capacity > index->capacity)
        (void)intern_grow(arena, index, capacity);
}

int32_t intern_find(const struct intern *index, const void *key, size_t size) {
    if (index->capacity == 0)
        return -1;
    return intern_find_slot(index, hash_bytes(key, size), key, size)->number - 1;
}

int32_t intern(struct arena *arena, struct intern *index, const void *key, size_t size,
               bool *is_new) {
    *is_new = false;
    if ((uint32_t)index->count >= room(index->capacity) &&
        (index->capacity >= MAX_CAPACITY ||
         !intern_grow(arena, index, index->capacity ? 2 * index->capacity : FIRST_CAPACITY)))
        return -1;
    const uint32_t hash = hash_bytes(key, size);
    struct intern_slot *const slot = intern_find_slot(index, hash, key, size);
    if (slot->number)
        return slot->number - 1;
    const char *const copy = arena_copy(arena, key, size);
    if (!copy)
        return -1;
    index->keys[index->count] = (struct intern_key){copy, size};
    *slot = (struct intern_slot){hash, ++index->count};
    *is_new = true;
    return index->count - 1;
}
