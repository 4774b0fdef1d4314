#include "stack_store.h"

#include "hash.h"
#include "own_memory.h"

#include <string.h>

/* At the start of the memory; the rest is records, referred to by their offset ÷ 8. */
struct stack_store_head {
    _Atomic uint32_t used; /* units of 8 bytes */
    uint32_t reserved;
    _Atomic uint32_t buckets[STACK_STORE_BUCKETS];
};

static struct stack_store_head *head_of(const struct stack_store *store) {
    return (struct stack_store_head *)(void *)store->memory;
}

bool stack_store_start(struct stack_store *store) {
    store->memory = own_memory_map(STACK_STORE_BYTES);
    return store->memory != NULL;
}

void stack_store_reset(struct stack_store *store) {
    own_memory_reset(store->memory, STACK_STORE_BYTES);
}

const struct stored_stack *stack_store_at(const struct stack_store *store, uint32_t reference) {
    return (const struct stored_stack *)(const void *)(store->memory + (uint64_t)reference * 8);
}

static uint32_t find(const struct stack_store *store, uint32_t at, const uint64_t *frames,
                     uint32_t count, unsigned flags, uint64_t hash) {
    while (at != STACK_NONE) {
        const struct stored_stack *const stack = stack_store_at(store, at);
        if (stack->hash == hash && stack->frame_count == count && stack->flags == flags &&
            memcmp(stack->frames, frames, count * 8u) == 0)
            return at;
        at = stack->next;
    }
    return STACK_NONE;
}

static uint32_t reserve(struct stack_store_head *head, uint32_t frame_count) {
    const uint32_t units = (uint32_t)sizeof(struct stored_stack) / 8 + frame_count;
    const uint32_t first = (uint32_t)sizeof(struct stack_store_head) / 8;
    uint32_t used = atomic_load_explicit(&head->used, memory_order_relaxed);
    do {
        if (first + used + units > STACK_STORE_BYTES / 8)
            return STACK_NONE;
    } while (!atomic_compare_exchange_weak_explicit(&head->used, &used, used + units,
                                                    memory_order_relaxed, memory_order_relaxed));
    return first + used;
}

uint32_t stack_store_keep(struct stack_store *store, const uint64_t *frames, uint32_t count,
                          unsigned flags, uint64_t interval) {
    struct stack_store_head *const head = head_of(store);
    const uint64_t hash = hash_words(flags, frames, count);
    _Atomic uint32_t *const bucket = &head->buckets[hash % STACK_STORE_BUCKETS];
    uint32_t newest = atomic_load_explicit(bucket, memory_order_acquire);
    const uint32_t known = find(store, newest, frames, count, flags, hash);
    if (known != STACK_NONE)
        return known;

    const uint32_t reference = reserve(head, count);
    if (reference == STACK_NONE)
        return STACK_NONE;
    struct stored_stack *const stack =
        (struct stored_stack *)(void *)(store->memory + (uint64_t)reference * 8);
    stack->frame_count = (uint16_t)count;
    stack->flags = (uint16_t)flags;
    stack->hash = hash;
    stack->interval = interval;
    memcpy(stack->frames, frames, count * 8u);
    do {
        stack->next = newest;
        /* pairs with the acquire load of the bucket above */
    } while (!atomic_compare_exchange_weak_explicit(bucket, &newest, reference,
                                                    memory_order_release, memory_order_acquire));
    return reference;
}
