#include "live_table.h"

#include "hash.h"
#include "kernel/profiler_memory.h"

enum {
    VERSION_SHIFT = 56,
    LEVEL_SHIFT = 3, /* each level has 2^3 times the buckets of the previous level */
    BUCKET_SLOTS = 8,
    /* Slots of a bucket of the last level. If all objects are there, with two slots for each, a
     * bucket holds eight in the mean, and one bucket in 250 overflows; if half of the objects are
     * there, as usual, one in a million (Poisson). */
    LAST_BUCKET_SLOTS = 16,
    SLOTS_PER_OBJECT = 2,
};
static const uint64_t address_mask = (UINT64_C(1) << VERSION_SHIFT) - 1;
static const uint64_t address_taken = 1; /* the address in the key of a slot that is being filled */

/* --- memory --- */

static uint64_t live_level_end(const struct live_level *level) {
    return level->first + level->buckets * level->bucket_slots;
}

static uint64_t slot_count(const struct live_table *table) {
    return live_level_end(&table->levels[table->level_count - 1]);
}

static size_t keys_bytes(const struct live_table *table) {
    return whole_pages(slot_count(table) * sizeof *table->keys);
}

static size_t memory_bytes(const struct live_table *table) {
    return keys_bytes(table) + whole_pages(slot_count(table) * sizeof *table->values);
}

static void plan_levels(struct live_table *table, uint64_t max_objects) {
    struct live_level last = {0, LIVE_FIRST_BUCKETS, LAST_BUCKET_SLOTS};
    while (last.buckets * LAST_BUCKET_SLOTS < max_objects * SLOTS_PER_OBJECT)
        last.buckets *= 2;
    uint64_t buckets = LIVE_FIRST_BUCKETS;
    table->level_count = 0;
    while (buckets * BUCKET_SLOTS < last.buckets * LAST_BUCKET_SLOTS &&
           table->level_count < LIVE_LEVELS - 1) {
        const struct live_level level = {last.first, buckets, BUCKET_SLOTS};
        table->levels[table->level_count++] = level;
        last.first = live_level_end(&level);
        buckets <<= LEVEL_SHIFT;
    }
    table->levels[table->level_count++] = last;
}

size_t live_table_bytes(uint64_t max_objects) {
    struct live_table table;
    plan_levels(&table, max_objects);
    return memory_bytes(&table);
}

bool live_table_start(struct live_table *table, uint64_t max_objects) {
    plan_levels(table, max_objects);
    atomic_store(&table->count, 0);
    atomic_store(&table->bytes, 0);
    atomic_store(&table->levels_used, 1);
    char *const memory = stepped_memory_map(&table->memory, memory_bytes(table));
    if (!memory)
        return false;
    table->keys = (void *)memory;
    table->values = (void *)(memory + keys_bytes(table));
    return true;
}

void live_table_reset(struct live_table *table) {
    atomic_store(&table->count, 0);
    atomic_store(&table->bytes, 0);
    atomic_store(&table->levels_used, 1);
    if (table->memory.start)
        profiler_memory_reset_in_child(table->memory.start, memory_bytes(table));
}

/* --- keys --- */

static uintptr_t key_address(uint64_t key) {
    return key & address_mask;
}

static uint64_t next_version(uint64_t key, uint64_t address) {
    return ((key >> VERSION_SHIFT) + 1) << VERSION_SHIFT | address;
}

struct bucket {
    uint64_t first; /* index of the first slot */
    uint64_t end;
};

static struct bucket live_level_bucket(const struct live_table *table, uint32_t number,
                                       uint64_t hash) {
    const struct live_level *const level = &table->levels[number];
    const uint64_t bucket = (hash >> (number * LEVEL_SHIFT)) & (level->buckets - 1);
    const uint64_t first = level->first + bucket * level->bucket_slots;
    return (struct bucket){first, first + level->bucket_slots};
}

static bool find_key(const struct live_table *table, uintptr_t address, uint64_t *slot,
                     uint64_t *key) {
    const uint64_t hash = hash_word(0, address);
    /* pairs with use_level(): the memory of these levels is open */
    const uint32_t levels = atomic_load_explicit(&table->levels_used, memory_order_acquire);
    for (uint32_t level = 0; level < levels; level++) {
        const struct bucket bucket = live_level_bucket(table, level, hash);
        for (*slot = bucket.first; *slot < bucket.end; ++*slot) {
            /* pairs with live_table_publish(): a thread that reads the address sees the object's
             * values */
            *key = atomic_load_explicit(&table->keys[*slot], memory_order_acquire);
            if (key_address(*key) == address)
                return true;
        }
    }
    return false;
}

/* --- values --- */

/* Reads the values of a slot. The caller has read the key; it must read the key again, or swap it,
 * afterwards. */
static inline struct live_object read_values(const struct live_table *table, uint64_t slot,
                                             uint64_t key) {
    const struct live_values *const values = &table->values[slot];
    const uint64_t stack_and_birth =
        atomic_load_explicit(&values->stack_and_birth, memory_order_relaxed);
    return (struct live_object){.address = key_address(key),
                                .objects =
                                    atomic_load_explicit(&values->objects, memory_order_relaxed),
                                .size = atomic_load_explicit(&values->size, memory_order_relaxed),
                                .bytes = atomic_load_explicit(&values->bytes, memory_order_relaxed),
                                .stack = (uint32_t)(stack_and_birth >> 32),
                                .birth = (uint32_t)stack_and_birth};
}

static uint64_t pack_stack_and_birth(const struct live_object *object) {
    return (uint64_t)object->stack << 32 | object->birth;
}

/* --- insertion and removal --- */

static bool open_bucket(struct live_table *table, struct bucket bucket) {
    const size_t slots = bucket.end - bucket.first;
    return stepped_memory_open(&table->memory, (void *)(uintptr_t)&table->keys[bucket.first],
                               slots * sizeof *table->keys) &&
           stepped_memory_open(&table->memory, &table->values[bucket.first],
                               slots * sizeof *table->values);
}

static bool take_slot(struct live_table *table, struct bucket bucket, uint64_t *slot,
                      uint64_t *key) {
    if (!open_bucket(table, bucket))
        return false;
    for (*slot = bucket.first; *slot < bucket.end; ++*slot) {
        uint64_t found = atomic_load_explicit(&table->keys[*slot], memory_order_relaxed);
        *key = next_version(found, address_taken);
        /* acquire: the values are written only after the slot was taken; pairs with the release in
         * take_out() */
        if (key_address(found) == 0 &&
            atomic_compare_exchange_strong_explicit(&table->keys[*slot], &found, *key,
                                                    memory_order_acquire, memory_order_relaxed))
            return true;
    }
    return false;
}

static void live_table_publish(struct live_table *table, uint64_t slot, uint64_t key,
                               const struct live_object *object) {
    struct live_values *const values = &table->values[slot];
    /* pairs with the acquire fence in read_object(): a thread that still reads the slot's previous
     * object and sees a new value sees that the key has changed */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&values->objects, object->objects, memory_order_relaxed);
    atomic_store_explicit(&values->size, object->size, memory_order_relaxed);
    atomic_store_explicit(&values->bytes, object->bytes, memory_order_relaxed);
    atomic_store_explicit(&values->stack_and_birth, pack_stack_and_birth(object),
                          memory_order_relaxed);
    atomic_store_explicit(&table->keys[slot], (key & ~address_mask) | object->address,
                          memory_order_release);
}

/* Marks a level as used, before an object is published there: removals search used levels only.
 * Pairs with the acquire loads of `levels_used`. */
static void use_level(struct live_table *table, uint32_t level) {
    uint32_t used = atomic_load_explicit(&table->levels_used, memory_order_relaxed);
    while (used <= level &&
           !atomic_compare_exchange_weak_explicit(&table->levels_used, &used, level + 1,
                                                  memory_order_release, memory_order_relaxed))
        continue;
}

bool live_table_insert(struct live_table *table, const struct live_object *object, bool *replaced) {
    struct live_object old;
    const uint64_t hash = hash_word(0, object->address);
    *replaced = live_table_remove(table, object->address, &old);
    for (uint32_t level = 0; level < table->level_count; level++) {
        uint64_t slot;
        uint64_t key;
        if (!take_slot(table, live_level_bucket(table, level, hash), &slot, &key))
            continue;
        use_level(table, level);
        /* counted before another thread can remove the object, so that neither sum falls below 0 */
        atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&table->bytes, object->bytes, memory_order_relaxed);
        live_table_publish(table, slot, key, object);
        return true;
    }
    return false;
}

/* Returns true if this caller, and no other, has removed the object. Release, because the values
 * must be read before the slot can be filled again; pairs with the acquire that takes the slot. */
static bool take_out(struct live_table *table, uint64_t slot, uint64_t key,
                     const struct live_object *object) {
    if (!atomic_compare_exchange_strong_explicit(&table->keys[slot], &key, next_version(key, 0),
                                                 memory_order_acq_rel, memory_order_relaxed))
        return false;
    atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&table->bytes, object->bytes, memory_order_relaxed);
    return true;
}

bool live_table_remove(struct live_table *table, uintptr_t address, struct live_object *object) {
    uint64_t slot;
    uint64_t key;
    if (address <= address_taken) /* marks of slots are no addresses */
        return false;
    /* repeats if another thread removes the object first */
    while (find_key(table, address, &slot, &key)) {
        *object = read_values(table, slot, key);
        if (take_out(table, slot, key, object))
            return true;
    }
    return false;
}

/* --- all objects --- */

static uint64_t used_slots(const struct live_table *table) {
    /* pairs with use_level() */
    const uint32_t levels = atomic_load_explicit(&table->levels_used, memory_order_acquire);
    return live_level_end(&table->levels[levels - 1]);
}

/* Reads the object in a slot. Returns false if the slot has no object, or lost it while it was
 * read. */
static bool read_object(const struct live_table *table, uint64_t slot, uint64_t *key,
                        struct live_object *object) {
    /* pairs with the store of the key in live_table_publish() */
    *key = atomic_load_explicit(&table->keys[slot], memory_order_acquire);
    if (key_address(*key) <= address_taken)
        return false;
    *object = read_values(table, slot, *key);
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in live_table_publish() */
    return atomic_load_explicit(&table->keys[slot], memory_order_relaxed) == *key;
}

void live_table_visit(const struct live_table *table,
                      void (*visit)(void *arg, const struct live_object *object), void *arg) {
    const uint64_t slots = used_slots(table);
    for (uint64_t slot = 0; slot < slots; slot++) {
        uint64_t key;
        struct live_object object;
        if (read_object(table, slot, &key, &object))
            visit(arg, &object);
    }
}

/* Changes each word by itself, and only if it still has the old value. In rare cases another object
 * with the same word has come into the slot meanwhile. Then an evacuated stack is right for that
 * object, too; a changed weight is wrong for it, once. */
static void change_values(struct live_table *table, uint64_t slot, const struct live_object *before,
                          const struct live_object *after) {
    struct live_values *const values = &table->values[slot];
    double objects = before->objects;
    uint64_t bytes = before->bytes;
    uint64_t stack_and_birth = pack_stack_and_birth(before);
    if (after->objects != before->objects)
        (void)atomic_compare_exchange_strong_explicit(&values->objects, &objects, after->objects,
                                                      memory_order_relaxed, memory_order_relaxed);
    if (after->bytes != before->bytes &&
        atomic_compare_exchange_strong_explicit(&values->bytes, &bytes, after->bytes,
                                                memory_order_relaxed, memory_order_relaxed))
        atomic_fetch_add_explicit(&table->bytes, after->bytes - before->bytes,
                                  memory_order_relaxed);
    if (after->stack != before->stack)
        (void)atomic_compare_exchange_strong_explicit(&values->stack_and_birth, &stack_and_birth,
                                                      pack_stack_and_birth(after),
                                                      memory_order_relaxed, memory_order_relaxed);
}

void live_table_retain_if(struct live_table *table, const struct live_retainer *retainer) {
    const uint64_t slots = used_slots(table);
    for (uint64_t slot = 0; slot < slots; slot++) {
        uint64_t key;
        struct live_object before;
        if (!read_object(table, slot, &key, &before))
            continue;
        struct live_object after = before;
        if (retainer->keep(retainer->arg, &after))
            change_values(table, slot, &before, &after);
        else if (take_out(table, slot, key, &before))
            retainer->gone(retainer->arg, &before);
    }
}
