#include "stack_store.h"

#include "hash.h"
#include "kernel/profiler_memory.h"
#include "kernel/wait.h"

#include <string.h>

/* Encodes a reference: the arena in the highest bit, and the offset ÷ 8 in the other bits. */
enum { ARENA_SHIFT = 31, CAPACITY = STACK_STORE_BYTES / 8, LEAVE_ROUNDS = 200 };
static const uint32_t place_mask = (UINT32_C(1) << ARENA_SHIFT) - 1;

/* Heads an arena; records follow. */
struct arena_head {
    _Atomic uint32_t used; /* bytes in use, in units of 8 */
    uint32_t reserved;
    _Atomic uint32_t buckets[STACK_STORE_BUCKETS]; /* place of the newest record of each bucket */
};
enum { FIRST_PLACE = sizeof(struct arena_head) / 8 };

static struct arena_head *head_of(const struct stack_store *store, uint32_t arena) {
    return (struct arena_head *)(void *)store->arenas[arena].start;
}

static struct stored_stack *stack_at(const struct stack_store *store, uint32_t arena,
                                     uint32_t place) {
    return (struct stored_stack *)(void *)(store->arenas[arena].start + (uint64_t)place * 8);
}

bool stack_store_start(struct stack_store *store) {
    store->flip_at = CAPACITY / 2;
    return stepped_memory_map(&store->arenas[0], STACK_STORE_BYTES) &&
           stepped_memory_map(&store->arenas[1], STACK_STORE_BYTES);
}

void stack_store_reset(struct stack_store *store) {
    for (int i = 0; i < 2; i++) {
        profiler_memory_reset_in_child(store->arenas[i].start, STACK_STORE_BYTES);
        atomic_store(&store->users[i], 0);
    }
    atomic_store(&store->epoch, 0);
    store->flip_at = CAPACITY / 2;
    store->evacuating = false;
}

/* --- threads in an arena --- */

static uint32_t present_arena(const struct stack_store *store) {
    /* pairs with the increment in stack_store_flip() */
    return atomic_load_explicit(&store->epoch, memory_order_seq_cst) % 2;
}

uint32_t stack_store_enter(struct stack_store *store) {
    for (;;) { /* repeats only if the helper flips in between: once in minutes */
        const uint32_t arena = present_arena(store);
        /* pairs with stack_store_flip(): announces the thread, then checks the arena again */
        atomic_fetch_add_explicit(&store->users[arena], 1, memory_order_seq_cst);
        if (present_arena(store) == arena)
            return arena;
        stack_store_leave(store, arena);
    }
}

void stack_store_leave(struct stack_store *store, uint32_t arena) {
    /* pairs with has_no_user(): the thread's stores to the arena come before the arena is reset */
    atomic_fetch_sub_explicit(&store->users[arena], 1, memory_order_release);
}

/* --- storing --- */

uint32_t stack_store_arena(uint32_t reference) {
    return reference >> ARENA_SHIFT;
}

const struct stored_stack *stack_store_at(const struct stack_store *store, uint32_t reference) {
    return stack_at(store, stack_store_arena(reference), reference & place_mask);
}

static uint32_t find_stored(const struct stack_store *store, uint32_t arena, uint32_t place,
                            const uint64_t *frames, uint32_t count, unsigned flags,
                            uint64_t interval, uint64_t hash) {
    while (place != STACK_NONE) {
        const struct stored_stack *const stack = stack_at(store, arena, place);
        if (stack->hash == hash && stack->frame_count == count && stack->flags == flags &&
            stack->interval == interval && memcmp(stack->frames, frames, count * 8u) == 0)
            return place;
        place = stack->next;
    }
    return STACK_NONE;
}

/* Opens the memory before it takes the place, because a place is never given back. */
static uint32_t reserve_place(struct stack_store *store, uint32_t arena, uint32_t frame_count) {
    struct arena_head *const head = head_of(store, arena);
    struct stepped_memory *const memory = &store->arenas[arena];
    const uint32_t units = (uint32_t)sizeof(struct stored_stack) / 8 + frame_count;
    uint32_t used = atomic_load_explicit(&head->used, memory_order_relaxed);
    do {
        if (FIRST_PLACE + used + units > CAPACITY ||
            !stepped_memory_open(memory, stack_at(store, arena, FIRST_PLACE + used), units * 8))
            return STACK_NONE;
    } while (!atomic_compare_exchange_weak_explicit(&head->used, &used, used + units,
                                                    memory_order_relaxed, memory_order_relaxed));
    return FIRST_PLACE + used;
}

uint32_t stack_store_keep(struct stack_store *store, uint32_t arena, const uint64_t *frames,
                          uint32_t count, unsigned flags, uint64_t interval) {
    struct arena_head *const head = head_of(store, arena);
    const uint64_t hash = hash_words(hash_word(flags, interval), frames, count);
    _Atomic uint32_t *const bucket = &head->buckets[hash % STACK_STORE_BUCKETS];
    /* pairs with the exchange below, on another thread */
    uint32_t newest = atomic_load_explicit(bucket, memory_order_acquire);
    const uint32_t known = find_stored(store, arena, newest, frames, count, flags, interval, hash);
    if (known != STACK_NONE)
        return arena << ARENA_SHIFT | known;

    if (!stepped_memory_open(&store->arenas[arena], head, sizeof *head))
        return STACK_NONE;
    const uint32_t place = reserve_place(store, arena, count);
    if (place == STACK_NONE)
        return STACK_NONE;
    struct stored_stack *const stack = stack_at(store, arena, place);
    stack->frame_count = (uint16_t)count;
    stack->flags = (uint16_t)flags;
    stack->hash = hash;
    stack->interval = interval;
    memcpy(stack->frames, frames, count * 8u);
    do {
        stack->next = newest;
        /* the exchange pairs with the acquire load of the bucket above */
    } while (!atomic_compare_exchange_weak_explicit(bucket, &newest, place, memory_order_release,
                                                    memory_order_acquire));
    return arena << ARENA_SHIFT | place;
}

/* --- flipping --- */

/* Pairs with stack_store_enter() and stack_store_leave(). */
static bool has_no_user(void *users) {
    return atomic_load_explicit((_Atomic uint32_t *)users, memory_order_seq_cst) == 0;
}

static uint32_t used_of(const struct stack_store *store, uint32_t arena) {
    return atomic_load_explicit(&head_of(store, arena)->used, memory_order_relaxed);
}

bool stack_store_is_scarce(const struct stack_store *store) {
    return used_of(store, present_arena(store)) > CAPACITY / 4 * 3;
}

void stack_store_flip(struct stack_store *store, void (*evacuate)(void *arg), void *arg) {
    const uint32_t arena = present_arena(store);
    if (!store->evacuating) {
        if (used_of(store, arena) < store->flip_at)
            return;
        store->evacuating = true;
        /* pairs with stack_store_enter(): changes, then checks for users */
        atomic_fetch_add_explicit(&store->epoch, 1, memory_order_seq_cst);
    }
    const uint32_t present = present_arena(store);
    if (!wait_for_rounds(has_no_user, &store->users[present ^ 1], LEAVE_ROUNDS))
        return;
    evacuate(arg);
    profiler_memory_reset(store->arenas[present ^ 1].start, STACK_STORE_BYTES);
    store->evacuating = false;
    /* if most of the arena is needed, flips again when half of the rest is full */
    const uint32_t used = used_of(store, present);
    const uint32_t half_way = used + (CAPACITY - used) / 2;
    store->flip_at = half_way > CAPACITY / 2 ? half_way : CAPACITY / 2;
}

uint32_t stack_store_evacuate(struct stack_store *store, uint32_t reference) {
    const uint32_t present = present_arena(store);
    if (stack_store_arena(reference) == present)
        return reference;
    const struct stored_stack *const stack = stack_store_at(store, reference);
    return stack_store_keep(store, present, stack->frames, stack->frame_count, stack->flags,
                            stack->interval);
}
