/* The signal stack that the profiler gives to each sampled thread, hidden from the program.
 *
 * The kernel writes a signal's frame where the stack pointer points, or on the thread's alternate
 * signal stack. Generated code may keep data where a stack would be (oneDNN's does), so every
 * sampled thread has an alternate stack of the profiler, from its begin to its end. The stack that
 * the program sets with sigaltstack() is kept here and used by program_handlers.h.
 *
 * A stack is 64 KiB of addresses. Its pages stay unused until a signal arrives; then a frame and
 * the handler touch one or two. The stacks of 16 neighbouring slots are one mapping. A guard page
 * lies below each of the first 1,024 stacks, and below each sixteenth of the others: a guard costs
 * the process two of the mappings that the kernel allows it.
 *
 * A forked child keeps the memory as it is: its one thread keeps its stack.
 */
#ifndef OTELPROF_OWN_SIGNAL_STACKS_H
#define OTELPROF_OWN_SIGNAL_STACKS_H

#include "unwind/unwind.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

enum { OWN_SIGNAL_STACK_BYTES = 64 << 10 };

struct own_signal_stack {
    uintptr_t low; /* 0: its memory has not been opened yet */
    uintptr_t high;
    /* The program's setting, as the kernel keeps it: SS_ONSTACK is not a state but a flag that the
     * program may have given. Written by the thread alone. */
    stack_t programs;
    uintptr_t thread_pointer; /* its thread's, as libc has it */
    /* The mask of a wait that the thread is in (hooks/masked_wait.c), and the hook's frame. */
    _Atomic uintptr_t wait_frame; /* 0: none */
    uintptr_t wait_return; /* the hook's return address: gone once a handler has jumped out */
    const sigset_t *wait_mask;
    stack_t pending;           /* takes the place of `programs`: program_stack_commit() */
    _Atomic uint32_t pendings; /* how often `pending` has been set; wraps */
    _Atomic uint32_t commits;  /* the last of them that `programs` has */
    _Atomic bool is_kept;      /* by a thread of another slot: own_signal_stacks_exchange() */
};

/* Returns the stack of the slot with that index. NULL: the memory was refused, the kernel's signal
 * frames are too large, or another thread has the stack. Context: calm. Async-signal-safe: yes. */
struct own_signal_stack *own_signal_stacks_take(uint32_t index);

/* Swaps the stacks of two slots in a forked child: slot `index` gets the stack `present`, on which
 * its thread stays, and the slot that owned `present` gets that of slot `index`. If slot `index`
 * had no stack, no other thread will get `present`. Context: fork handler. */
void own_signal_stacks_exchange(uint32_t index, struct own_signal_stack *present);

/* Returns the alternate stack on which code of the calling thread with stack pointer `sp` may run:
 * the profiler's, or the one that the program has set; {0, 0}: none. `kernels`: the kernel's
 * setting. Async-signal-safe: yes. */
struct stack_range own_signal_stacks_range(const stack_t *kernels, uintptr_t sp);

/* Returns the stack on whose memory the address is, by the same rule as own_signal_stack_has();
 * NULL: none. Async-signal-safe: yes. Uses nothing of the thread's. */
struct own_signal_stack *own_signal_stacks_at(uintptr_t address);

/* Returns the stack of the thread that a handler runs on, as the kernel has it: the alternate stack
 * of the thread, or the one that the handler's frame is on. NULL: it has none. Otherwise as
 * own_signal_stacks_at(). */
struct own_signal_stack *own_signal_stacks_of(const ucontext_t *context);

/* Returns true if it is a stack. Otherwise as own_signal_stacks_at(). */
bool own_signal_stacks_include(const struct own_signal_stack *stack);

/* Returns true if the address is on the stack, by the kernel's rule: a stack pointer at the upper
 * end is, one at the lower is not. Async-signal-safe: yes. */
static inline bool own_signal_stack_has(const struct own_signal_stack *stack, uintptr_t address) {
    return address > stack->low && address <= stack->high;
}

/* Notes that the thread waits with that mask, in a function whose frame is at `frame` and that
 * returns to `returns`. `frame` 0: it waits no more. Context: any, the thread itself.
 * Async-signal-safe: yes. */
static inline void own_signal_stack_note_wait(struct own_signal_stack *stack, uintptr_t frame,
                                              uintptr_t returns, const sigset_t *mask) {
    atomic_store_explicit(&stack->wait_frame, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* the reader is a handler of this thread */
    stack->wait_return = returns;
    stack->wait_mask = mask;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&stack->wait_frame, mask ? frame : 0, memory_order_relaxed);
}

/* Returns the setting for sigaltstack(). Async-signal-safe: yes. */
static inline stack_t own_signal_stack_setting(const struct own_signal_stack *stack) {
    return (stack_t){.ss_sp = (void *)stack->low, .ss_size = stack->high - stack->low};
}

/* Returns true if that is the setting of this stack. Async-signal-safe: yes. */
static inline bool own_signal_stack_is(const struct own_signal_stack *stack,
                                       const stack_t *setting) {
    return setting->ss_size && (uintptr_t)setting->ss_sp == stack->low;
}

#endif
