/* The stacks of live objects, each stored once.
 *
 * Append-only and lock-free: a record is written, then published at the head of its bucket. Two
 * threads that store the same stack at the same moment may store it twice, which the harvest
 * merges.
 * Nothing is freed one by one. There are two arenas: when the one in use has become full of stacks
 * that nobody needs, the helper turns to the other, carries over what live objects refer to, and
 * empties the first (stack_store_turn). So a process that runs for months does not run out of room
 * unless its live objects do; then those with new stacks are not tracked (and counted).
 */
#ifndef OTELPROF_STACK_STORE_H
#define OTELPROF_STACK_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    STACK_STORE_BUCKETS = 1 << 15,
    STACK_STORE_BYTES = 16 << 20, /* of an arena: about 50,000 stacks of 40 frames */
    STACK_NONE = 0,
};

struct stored_stack {
    uint32_t next; /* place of the next in the bucket */
    uint16_t frame_count;
    uint16_t flags; /* harvest_sample.flags */
    uint64_t hash;
    uint64_t interval; /* harvest_sample.interval */
    uint64_t frames[];
};

struct stack_store {
    char *arenas[2];           /* each STACK_STORE_BYTES: the buckets, then the records */
    _Atomic uint32_t turns;    /* from one to the other so far; the arena in use is the parity */
    _Atomic uint32_t users[2]; /* threads between enter and leave, by arena */
    uint32_t turn_at;          /* units of 8 bytes in use at which the helper turns */
    bool turning;              /* the other arena is not empty yet */
};

/* false: no memory. Context: calm. */
bool stack_store_start(struct stack_store *store);

/* While a thread is in, references to the arena it entered stay valid: from before
 * stack_store_keep() until the reference is in the live table. Returns the arena. Context: any, but
 * not nested on one thread, and no handler of the application may leave by a jump. */
uint32_t stack_store_enter(struct stack_store *store);
void stack_store_leave(struct stack_store *store, uint32_t arena);

/* A reference to the stack, or STACK_NONE if there is no room. Equal stacks of two intervals are
 * two: at one address may be two functions. Context: between enter and leave. Async-signal-safe:
 * yes. */
uint32_t stack_store_keep(struct stack_store *store, uint32_t arena, const uint64_t *frames,
                          uint32_t count, unsigned flags, uint64_t interval);

/* How often the store has turned: a reference of before the last turn is good only if it was
 * carried over, one of before the last two may be another stack's by now. Context: any. */
static inline uint32_t stack_store_turn_count(const struct stack_store *store) {
    return atomic_load_explicit(&store->turns, memory_order_acquire);
}

/* The arena of a reference. */
uint32_t stack_store_arena(uint32_t reference);

/* Context: any. Async-signal-safe: yes. */
const struct stored_stack *stack_store_at(const struct stack_store *store, uint32_t reference);

/* If it is time: turns to the other arena and calls `carry_over`, which passes every reference that
 * is in use through stack_store_carry(). Where a thread takes too long to leave, the next call goes
 * on. Context: the helper. */
void stack_store_turn(struct stack_store *store, void (*carry_over)(void *arg), void *arg);

/* The same stack in the present arena; STACK_NONE: no room. Context: carry_over(). */
uint32_t stack_store_carry(struct stack_store *store, uint32_t reference);

/* Whether less than a quarter of the present arena is left. Context: any. */
bool stack_store_is_scarce(const struct stack_store *store);

/* In a forked child: empty again. */
void stack_store_reset(struct stack_store *store);

#endif
