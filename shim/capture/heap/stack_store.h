/* Stores the stacks of live objects, each once.
 *
 * The store is append-only and lock-free: a record is written, then published at the head of its
 * bucket. Two threads that store the same stack at the same moment may store it twice; the harvest
 * merges them.
 *
 * No single stack is ever freed. Instead there are two arenas. When the present arena fills up with
 * unused stacks, the helper flips to the other arena, copies the stacks of live objects there, and
 * empties the first (stack_store_flip). So a process can run for months; only if the stacks of its
 * live objects fill an arena, objects with new stacks are not tracked (and counted as dropped).
 *
 * During a realloc() a reference is neither in the table nor between enter and leave, and a flip
 * may happen: 1. heap_forget() reads the epoch, then removes the object, and sets taken->epoch. 2.
 * A flip increments the epoch, waits until no thread is in the old arena, evacuates the stacks
 *    of objects in the table, not that of the removed one, and empties the old arena.
 * 3. heap_put_back() enters, so that no arena that it uses is emptied. It inserts the object only
 *    if the reference is of the present arena and the epoch is still taken->epoch, and else drops
 *    it. The arena alone would miss two flips. The epoch alone would miss an object that was
 *    removed after the epoch had changed and before its stack was evacuated.
 */
#ifndef OTELPROF_STACK_STORE_H
#define OTELPROF_STACK_STORE_H

#include "kernel/stepped_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    STACK_STORE_BUCKETS = 1 << 15,
    STACK_STORE_BYTES = 16 << 20, /* size of an arena: about 50,000 stacks of 40 frames */
    STACK_NONE = 0,
};

struct stored_stack {
    uint32_t next; /* place of the next record in the bucket */
    uint16_t frame_count;
    uint16_t flags; /* harvest_sample.flags */
    uint64_t hash;
    uint64_t interval; /* harvest_sample.interval */
    uint64_t frames[];
};

struct stack_store {
    struct stepped_memory arenas[2]; /* each of STACK_STORE_BYTES: the buckets, then the records */
    _Atomic uint32_t epoch;          /* number of flips so far; its parity is the present arena */
    _Atomic uint32_t users[2];       /* number of threads between enter and leave, by arena */
    uint32_t flip_at;                /* units of 8 bytes in use at which the helper flips */
    bool evacuating;                 /* the other arena is not empty yet */
};

/* Maps the arenas. Returns false if there is no memory. Context: calm. */
bool stack_store_start(struct stack_store *store);

/* References to the entered arena stay valid between enter and leave. So a caller enters before
 * stack_store_keep(), and leaves after it has put the reference into the live table. Returns the
 * arena. Context: any, but not nested on one thread, and no handler of the application may leave by
 * a jump. */
uint32_t stack_store_enter(struct stack_store *store);
void stack_store_leave(struct stack_store *store, uint32_t arena);

/* Returns a reference to the stack, or STACK_NONE if there is no room. Equal stacks of two
 * intervals are stored separately, because an address may be in another function in each interval.
 * Context: between enter and leave. Async-signal-safe: yes. */
uint32_t stack_store_keep(struct stack_store *store, uint32_t arena, const uint64_t *frames,
                          uint32_t count, unsigned flags, uint64_t interval);

/* Returns the number of flips so far. A reference from before the last flip is valid only if its
 * stack was evacuated; a reference from before the last two flips may now refer to another stack.
 * Context: any. */
static inline uint32_t stack_store_epoch(const struct stack_store *store) {
    /* pairs with the increment in stack_store_flip() */
    return atomic_load_explicit(&store->epoch, memory_order_acquire);
}

/* Returns the arena of a reference. */
uint32_t stack_store_arena(uint32_t reference);

/* Returns the stack of a reference. Context: any. Async-signal-safe: yes. */
const struct stored_stack *stack_store_at(const struct stack_store *store, uint32_t reference);

/* If the present arena is full enough, flips to the other arena and calls `evacuate`, which must
 * pass every reference in use to stack_store_evacuate(). If a thread takes too long to leave, the
 * next call continues. Context: the helper. */
void stack_store_flip(struct stack_store *store, void (*evacuate)(void *arg), void *arg);

/* Copies the stack to the present arena and returns its reference; STACK_NONE: no room. Context:
 * the `evacuate` callback. */
uint32_t stack_store_evacuate(struct stack_store *store, uint32_t reference);

/* Returns true if less than a quarter of the present arena is free. Context: any. */
bool stack_store_is_scarce(const struct stack_store *store);

/* Empties the store in a forked child. */
void stack_store_reset(struct stack_store *store);

#endif
