/* Stores the sampled objects that are live in a hash table from address to weight and stack.
 *
 * The table is lock-free: no call waits for another thread, and a call that interrupts another one
 * on the same thread finds a consistent table. An object is in the bucket of its address: eight
 * slots whose keys share a cache line (sixteen at the last level). There are several levels, each
 * with eight times the buckets of the previous level; an object is at the first level where its
 * bucket had room. So no object is ever moved, no tombstones slow the table down, and memory
 * follows the number of objects.
 *
 * A slot's key holds its address and a version, which changes with each object. A writer takes a
 * slot, fills the slot, and then publishes the object by the slot's key. A reader that reads the
 * key, the values and the same key again has read one object. A compare-and-swap of the key removes
 * an object, so only one caller succeeds. The values of a published object change by one word at a
 * time. (Versioned slots are the reading side of a sequence lock; Boehm, "Can seqlocks get along
 * with programming language memory models?", 2012.)
 *
 * Context: any. Async-signal-safe: yes, but an insert that is interrupted and never continued
 * leaves a slot unused for ever.
 */
#ifndef OTELPROF_LIVE_TABLE_H
#define OTELPROF_LIVE_TABLE_H

#include "kernel/stepped_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LIVE_LEVELS = 12, LIVE_FIRST_BUCKETS = 64 };

struct live_object {
    uintptr_t address; /* address of the object: neither 0 nor 1, and less than 2^56 */
    double objects;    /* the number of objects that the sample counts as */
    double size;       /* bytes of each object */
    /* bytes of all objects that the sample counts as, rounded, so that the table's sum is exact */
    uint64_t bytes;
    uint32_t stack; /* stack_store reference */
    uint32_t birth; /* time of the allocation, in the caller's unit */
    /* epoch of the stack store, set by the caller for a removed object; not in the table */
    uint32_t epoch;
};

struct live_values {
    _Atomic double objects;
    _Atomic double size;
    _Atomic uint64_t bytes;
    _Atomic uint64_t stack_and_birth; /* stack << 32 | birth */
};

struct live_level {
    uint64_t first;        /* index of the level's first slot */
    uint64_t buckets;      /* a power of 2 */
    uint32_t bucket_slots; /* slots in each bucket */
};

struct live_table {
    /* the keys, then the values; without a start address, the table is not started */
    struct stepped_memory memory;
    _Atomic uint64_t *keys; /* version << 56 | address */
    struct live_values *values;
    uint32_t level_count;
    _Atomic uint32_t levels_used; /* number of levels in use; it only grows */
    _Atomic uint64_t count;       /* number of objects */
    _Atomic uint64_t bytes;       /* bytes that the objects count as: live_table_bytes_live() */
    struct live_level levels[LIVE_LEVELS];
};

/* Returns the number of bytes that a table for so many objects takes. Context: any. */
size_t live_table_bytes(uint64_t max_objects);

/* Makes room for at least `max_objects`. Returns false if there is no memory. Context: calm. */
bool live_table_start(struct live_table *table, uint64_t max_objects);

/* Adds an object. An older object with the same address (freed without a hook) is removed;
 * `*replaced` reports that. Returns false if there is no room; the older object is removed even
 * then. */
bool live_table_insert(struct live_table *table, const struct live_object *object, bool *replaced);

/* Moves the object at `address` to `*object`. Returns false if the table has no such object. */
bool live_table_remove(struct live_table *table, uintptr_t address, struct live_object *object);

/* Returns the sum of the objects' bytes. It is exact, except during live_table_retain_if(): an
 * object that is freed while its bytes are changed may be subtracted with the bytes that it had
 * before. */
static inline uint64_t live_table_bytes_live(const struct live_table *table) {
    const uint64_t bytes = atomic_load_explicit(&table->bytes, memory_order_relaxed);
    /* negative for a moment, while an object is changed and freed at once */
    return bytes <= INT64_MAX ? bytes : 0;
}

/* Calls `visit` for each object that is in the table during the whole call, and for some that are
 * not. */
void live_table_visit(const struct live_table *table,
                      void (*visit)(void *arg, const struct live_object *object), void *arg);

/* Decides which objects stay in the table. */
struct live_retainer {
    /* Decides about an object, and may change its `objects`, `bytes` and `stack`. Returns false to
     * remove the object. */
    bool (*keep)(void *arg, struct live_object *object);
    /* Handles an object that this call has removed. */
    void (*gone)(void *arg, const struct live_object *object);
    void *arg;
};

/* Passes each object to keep(). If another thread removes the object meanwhile, its result is
 * ignored, and gone() is not called. */
void live_table_retain_if(struct live_table *table, const struct live_retainer *retainer);

/* Empties the table in a forked child. */
void live_table_reset(struct live_table *table);

#endif
