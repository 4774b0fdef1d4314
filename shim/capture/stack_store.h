/* The stacks of live objects, each stored once for as long as the process runs.
 *
 * Append-only and lock-free: a record is written, then published at the head of its bucket. Two
 * threads that store the same stack at the same moment may store it twice, which the harvest
 * merges. When the bound is reached, objects with new stacks are no longer tracked (and counted);
 * those with known stacks still are.
 */
#ifndef OTELPROF_STACK_STORE_H
#define OTELPROF_STACK_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    STACK_STORE_BUCKETS = 1 << 15,
    STACK_STORE_BYTES = 16 << 20, /* about 50,000 stacks of 40 frames */
    STACK_NONE = 0,
};

struct stored_stack {
    uint32_t next; /* reference of the next in the bucket */
    uint16_t frame_count;
    uint16_t flags; /* harvest_sample.flags */
    uint64_t hash;
    uint64_t interval; /* harvest_sample.interval */
    uint64_t frames[];
};

struct stack_store {
    char *memory; /* STACK_STORE_BYTES: the buckets, then the records */
};

/* false: no memory. Context: calm. */
bool stack_store_start(struct stack_store *store);

/* A reference to the stack, or STACK_NONE if there is no room. `interval` is the present one: it is
 * kept with a stack that is new. Context: any, but not nested on one
 * thread. Async-signal-safe: yes. */
uint32_t stack_store_keep(struct stack_store *store, const uint64_t *frames, uint32_t count,
                          unsigned flags, uint64_t interval);

/* Context: any. Async-signal-safe: yes. */
const struct stored_stack *stack_store_at(const struct stack_store *store, uint32_t reference);

/* In a forked child: empty again. */
void stack_store_reset(struct stack_store *store);

#endif
