/* Defines the wait slot of a thread, which the thread's hooks publish before a call that may block.
 */
#ifndef OTELPROF_WAIT_SLOT_H
#define OTELPROF_WAIT_SLOT_H

#include "wait_detail.h"

#include <stdatomic.h>
#include <stdint.h>

struct wait_slot {
    _Atomic uint64_t sequence;       /* odd: the slot is published; changes with each call */
    _Atomic uintptr_t stack_pointer; /* the caller's stack pointer after the call has returned */
    _Atomic uintptr_t frame_pointer; /* the caller's frame pointer */
    _Atomic uintptr_t pc;            /* return address of the call */
    _Atomic uint64_t object;         /* address of a lock or futex, or number of a descriptor */
    _Atomic uint32_t kind;           /* enum wait_kind; for a lock, combined with its lock_layout */
};

/* Says how to find a lock's holder in its memory. The layout is part of the slot's kind: WAIT_LOCK
 * | layout. */
enum lock_layout {
    LOCK_MUTEX = 0,       /* pthread_mutex_t, mtx_t */
    LOCK_RWLOCK = 1 << 8, /* pthread_rwlock_t */
    /* a futex word that has the holder's thread id, as the kernel defines it (futex(2)) */
    LOCK_PI_FUTEX = 2 << 8,
    LOCK_SILENT = 3 << 8, /* the memory does not show the holder, or cannot be read */
};

static inline enum wait_kind wait_slot_kind(uint32_t kind) {
    return (enum wait_kind)(kind & 0xff);
}
static inline enum lock_layout wait_slot_layout(uint32_t kind) {
    return (enum lock_layout)(kind & 0xff00);
}

/* Describes the caller of a hook, read from the hook's own frame. */
struct hook_caller {
    uintptr_t stack_pointer;
    uintptr_t frame_pointer;
    uintptr_t pc;
};

#define WAIT_SLOT_RELAXED memory_order_relaxed

/* Writes the fields, and returns the slot's number. Does not publish the slot yet. If a handler
 * interrupts and writes the slot, too, the slot has another number afterwards, and its fields may
 * be mixed: the caller must check the number. */
static inline uint64_t wait_slot_write(struct wait_slot *slot, const struct hook_caller *caller,
                                       enum wait_kind kind, uint64_t object) {
    const uint64_t number = (atomic_load_explicit(&slot->sequence, WAIT_SLOT_RELAXED) | 1) + 1;
    atomic_store_explicit(&slot->sequence, number, WAIT_SLOT_RELAXED);
    /* pairs with the acquire fence in read_slot(), wait_observe.c: a reader that sees a field of
     * this call sees that the number has changed */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slot->stack_pointer, caller->stack_pointer, WAIT_SLOT_RELAXED);
    atomic_store_explicit(&slot->frame_pointer, caller->frame_pointer, WAIT_SLOT_RELAXED);
    atomic_store_explicit(&slot->pc, caller->pc, WAIT_SLOT_RELAXED);
    atomic_store_explicit(&slot->object, object, WAIT_SLOT_RELAXED);
    atomic_store_explicit(&slot->kind, (uint32_t)kind, WAIT_SLOT_RELAXED);
    return number;
}

/* Repeats wait_slot_write() until no handler interrupts it. Kept out of line, because a loop costs
 * the fast path registers. */
__attribute__((noinline, cold, unused)) static uint64_t
wait_slot_write_again(struct wait_slot *slot, struct hook_caller caller, enum wait_kind kind,
                      uint64_t object) {
    uint64_t number;
    do
        number = wait_slot_write(slot, &caller, kind, object);
    while (atomic_load_explicit(&slot->sequence, WAIT_SLOT_RELAXED) != number);
    return number;
}

/* Publishes the slot. Context: the slot's thread. Async-signal-safe: yes. errno is preserved. */
static inline void wait_slot_begin(struct wait_slot *slot, const struct hook_caller *caller,
                                   enum wait_kind kind, uint64_t object) {
    uint64_t number = wait_slot_write(slot, caller, kind, object);
    /* a handler that ran in between has written its own number */
    if (__builtin_expect(atomic_load_explicit(&slot->sequence, WAIT_SLOT_RELAXED) != number, 0))
        number = wait_slot_write_again(slot, *caller, kind, object);
    /* pairs with the acquire loads of the number in wait_observe.c, as in wait_slot_end() */
    atomic_store_explicit(&slot->sequence, number + 1, memory_order_release);
}

/* Ends the publication of the slot: its number becomes even. Context: as wait_slot_begin(). */
static inline void wait_slot_end(struct wait_slot *slot) {
    const uint64_t number = atomic_load_explicit(&slot->sequence, WAIT_SLOT_RELAXED);
    /* pairs with the acquire loads of the number in wait_observe.c */
    atomic_store_explicit(&slot->sequence, (number | 1) + 1, memory_order_release);
}

#endif
