/* The sampled objects that are live: a hash table from address to weight and stack.
 *
 * Sharded by address; each shard is a small open-addressing table with linear probing and
 * backward-shift deletion (no tombstones, so it never decays; Knuth, TAOCP 6.4, algorithm R). A
 * shard begins small and doubles, so memory follows the number of objects.
 * Writers take the shard's spin lock for some tens of nanoseconds; readers (a look-up for an
 * address that is not there, and the helper's copy) take none: they validate the shard's sequence
 * number. A thread never nests here: writers block signals (signals_blocked.h).
 */
#ifndef OTELPROF_LIVE_TABLE_H
#define OTELPROF_LIVE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LIVE_SHARDS = 64, LIVE_FIRST_SLOTS = 32 };

struct live_object {
    uintptr_t address; /* 0: empty slot */
    double objects;    /* what the sample stands for */
    double bytes;
    uint32_t stack; /* stack_store reference */
    uint32_t birth; /* the caller's: when it was allocated */
};

struct live_shard {
    _Alignas(64) _Atomic uint32_t lock;
    _Atomic uint32_t sequence; /* odd while being changed */
    _Atomic uint32_t level;    /* it has LIVE_FIRST_SLOTS << level slots */
    uint32_t count;
};

struct live_table {
    struct live_shard *shards; /* NULL: not started */
    struct live_object *slots; /* level by level, in each shard by shard */
    uint32_t max_level;
    _Atomic uint64_t count; /* of objects */
};

/* Room for at least `max_objects`; for nearly twice as many as a rule. false: no memory. Context:
 * calm. */
bool live_table_start(struct live_table *table, uint64_t max_objects);

/* Adds an object; an older one of the same address (freed behind our back) is replaced, and
 * `*replaced` says so. false: the shard is full. Context: any, not nested on one thread. */
bool live_table_insert(struct live_table *table, const struct live_object *object, bool *replaced);

/* true: certainly not there; false: it may be. Takes no lock. Context: any. Async-signal-safe: yes.
 */
bool live_table_lacks(const struct live_table *table, uintptr_t address);

/* Takes the object at `address` out into `*object`. false: there is none. Context: any, not
 * nested on one thread. */
bool live_table_remove(struct live_table *table, uintptr_t address, struct live_object *object);

/* Asks `keep` about each object, shard by shard under the shard's lock; it may change the object's
 * values, and takes it out by saying false. It may be asked twice about one. Context: any, not
 * nested on one thread. */
void live_table_sift(struct live_table *table, bool (*keep)(void *arg, struct live_object *object),
                     void *arg);

/* The most objects that a shard can hold. */
uint32_t live_table_shard_slots(const struct live_table *table);

/* Copies a consistent state of one shard into `objects` (live_table_shard_slots()) and returns
 * their number. Context: the helper. */
uint32_t live_table_copy(const struct live_table *table, uint32_t shard,
                         struct live_object *objects);

/* In a forked child: empty, unlocked. */
void live_table_reset(struct live_table *table);

#endif
