/* The sampled objects that are live: a hash table from address to weight and stack.
 *
 * Sharded by address; each shard is a small open-addressing table with linear probing and
 * backward-shift deletion (no tombstones, so it never decays; Knuth, TAOCP 6.4, algorithm R).
 * Writers take the shard's spin lock for some tens of nanoseconds; readers (a look-up for an
 * address that is not there, and the helper's copy) take none: they validate the shard's sequence
 * number. A thread never nests here: the caller's own_tls.inside sees to that, so a signal handler
 * of the application that allocates cannot meet its own lock.
 */
#ifndef OTELPROF_LIVE_TABLE_H
#define OTELPROF_LIVE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LIVE_SHARDS = 64,
    LIVE_SHARD_SLOTS = 2048,
    LIVE_SHARD_MAX = 1536, /* objects a shard takes: three quarters */
};

struct live_object {
    uintptr_t address; /* 0: empty slot */
    double objects;    /* what the sample stands for */
    double bytes;
    uint32_t stack; /* stack_store reference */
    uint32_t reserved;
};

struct live_shard {
    _Atomic uint32_t lock;
    _Atomic uint32_t sequence; /* odd while being changed */
    uint32_t count;
    uint32_t reserved;
    struct live_object slots[LIVE_SHARD_SLOTS];
};

struct live_table {
    struct live_shard *shards; /* one mapping; NULL: not started */
};

/* false: no memory. Context: calm. */
bool live_table_start(struct live_table *table);

/* Adds an object; an older one of the same address (freed behind our back) is replaced, and
 * `*replaced` says so. false: the shard is full. Context: any, not nested on one thread. */
bool live_table_insert(struct live_table *table, const struct live_object *object, bool *replaced);

/* Takes the object at `address` out into `*object`. false: there is none. A miss takes no lock.
 * Context: any, not nested on one thread. */
bool live_table_remove(struct live_table *table, uintptr_t address, struct live_object *object);

/* Copies a consistent state of one shard into `objects` (LIVE_SHARD_SLOTS) and returns their
 * number. Context: the helper. */
uint32_t live_table_copy(const struct live_table *table, uint32_t shard,
                         struct live_object *objects);

/* In a forked child: empty, unlocked. */
void live_table_reset(struct live_table *table);

#endif
