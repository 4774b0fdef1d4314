/* The sampled objects that are live: a hash table from address to weight and stack.
 *
 * Lock-free: no call waits for another thread, and one that interrupts another on the same thread
 * finds nothing half-done. An object lies in the bucket of its address, eight slots whose keys
 * share a cache line (sixteen at the last level), at the first of several levels where that bucket
 * has room; each level has eight times the buckets of the one before. So nothing is ever moved,
 * there are no tombstones, the table does not decay, and memory follows the number of objects. A
 * slot's key holds its address and a version, which changes with each object that comes: a slot is
 * taken, filled, and then published by its key; who reads the key, the values and the key again has
 * read one object's; and one compare-and-swap of the key takes an object out, for one caller alone.
 * Afterwards an object changes by one word at a time. (Versioned slots: the sequence lock's reading
 * side; Boehm, "Can seqlocks get along with programming language memory models?", 2012.) Context:
 * any. Async-signal-safe: yes, but a thread that never comes back into an insert that it was
 * interrupted in leaves a slot unused for ever.
 */
#ifndef OTELPROF_LIVE_TABLE_H
#define OTELPROF_LIVE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LIVE_LEVELS = 12, LIVE_FIRST_BUCKETS = 64 };

struct live_object {
    uintptr_t address; /* neither 0 nor 1, and less than 2^56 */
    double objects;    /* what the sample stands for */
    double size;       /* bytes, of each of them */
    uint64_t bytes;    /* of all of them: rounded, so that the table's sum is exact */
    uint32_t stack;    /* stack_store reference */
    uint32_t birth;    /* the caller's: when it was allocated */
    uint32_t turn;     /* of an object taken out, the caller's: not in the table */
};

struct live_values {
    _Atomic double objects;
    _Atomic double size;
    _Atomic uint64_t bytes;
    _Atomic uint64_t stack_and_birth; /* stack << 32 | birth */
};

struct live_level {
    uint64_t first;        /* slot */
    uint64_t buckets;      /* a power of 2 */
    uint32_t bucket_slots; /* in each of them */
};

struct live_table {
    void *memory;           /* NULL: not started; the keys, then the values */
    _Atomic uint64_t *keys; /* version << 56 | address */
    struct live_values *values;
    uint32_t level_count;
    _Atomic uint32_t levels_used; /* grows only */
    _Atomic uint64_t count;       /* of objects */
    _Atomic uint64_t bytes;       /* that they stand for: live_table_bytes_live() */
    struct live_level levels[LIVE_LEVELS];
};

/* The memory that it takes with room for so many. Context: any. */
size_t live_table_bytes(uint64_t max_objects);

/* Room for at least `max_objects`. false: no memory. Context: calm. */
bool live_table_start(struct live_table *table, uint64_t max_objects);

/* Adds an object; an older one of the same address (freed behind our back) is replaced, and
 * `*replaced` says so. false: there is no room; the older one is gone all the same. */
bool live_table_insert(struct live_table *table, const struct live_object *object, bool *replaced);

/* Takes the object at `address` out into `*object`. false: there is none. */
bool live_table_remove(struct live_table *table, uintptr_t address, struct live_object *object);

/* The sum of the objects' bytes. Exact, but for sifting: an object that is freed while its bytes
 * are changed may be taken off with those it had before. */
static inline uint64_t live_table_bytes_live(const struct live_table *table) {
    const uint64_t bytes = atomic_load_explicit(&table->bytes, memory_order_relaxed);
    return bytes <= INT64_MAX ? bytes : 0; /* for a moment, while that happens */
}

/* Calls `visit` for each object that is there throughout. */
void live_table_visit(const struct live_table *table,
                      void (*visit)(void *arg, const struct live_object *object), void *arg);

/* What is to become of the objects. */
struct live_sieve {
    /* May change the object's `objects`, `bytes` and `stack`; false: it is to go. */
    bool (*keep)(void *arg, struct live_object *object);
    /* It has gone, taken out by this call. */
    void (*gone)(void *arg, const struct live_object *object);
    void *arg;
};

/* Puts each object through the sieve. What is freed meanwhile is gone without it. */
void live_table_sift(struct live_table *table, const struct live_sieve *sieve);

/* In a forked child: empty. */
void live_table_reset(struct live_table *table);

#endif
