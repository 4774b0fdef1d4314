/* Gives each sampled thread a signal stack of the profiler, hidden from the program.
 *
 * The kernel writes a signal's frame where the stack pointer points, or on the thread's alternate
 * signal stack. Generated code may keep data below the stack pointer (oneDNN's does), so every
 * sampled thread has an alternate stack of the profiler, from its begin to its end. The stack that
 * the program sets with sigaltstack() is recorded here and used by program_handlers.h.
 *
 * A stack is 64 KiB of addresses. Its pages stay unused until a signal arrives; then a frame and
 * the handler touch one or two. The stacks of 16 neighbouring slots are one mapping. Each of the
 * first 1,024 stacks has a guard page below it, and of the others every sixteenth, because a guard
 * costs the process two of the mappings that the kernel allows it.
 *
 * A forked child keeps this memory unchanged: its one thread keeps its stack.
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
    uintptr_t low; /* lowest address; 0: the memory is not opened yet */
    uintptr_t high;
    /* The program's setting, as the kernel keeps it: SS_ONSTACK here is a flag that the program has
     * passed, not a state. Written by the thread alone. */
    stack_t programs;
    uintptr_t thread_pointer; /* libc's thread pointer of the thread that has this stack */
    /* If the thread is in a wait with a mask of its own (hooks/masked_wait.c): the mask, and the
     * hook's frame. */
    _Atomic uintptr_t wait_frame; /* 0: the thread is in no such wait */
    /* the hook's return address, by which a jump out of the hook is detected */
    uintptr_t wait_return;
    const sigset_t *wait_mask;
    stack_t pending;           /* stack that will replace `programs`: program_stack_commit() */
    _Atomic uint32_t pendings; /* number of times that `pending` was set; wraps */
    _Atomic uint32_t commits;  /* value of `pendings` that `programs` includes */
    /* a thread of another slot uses this stack: own_signal_stacks_exchange() */
    _Atomic bool is_kept;
};

/* Returns the stack of the slot with that index. NULL: the kernel refused the memory, or its signal
 * frames are too large, or another thread has the stack. Context: calm. Async-signal-safe: yes. */
struct own_signal_stack *own_signal_stacks_take(uint32_t index);

/* Swaps the stacks of two slots in a forked child: slot `index` gets the stack `present`, on which
 * its thread stays, and the slot that owned `present` gets the stack of slot `index`. If slot
 * `index` had no stack, no other thread ever gets `present`. Context: fork handler. */
void own_signal_stacks_exchange(uint32_t index, struct own_signal_stack *present);

/* Returns the alternate stack on which code of the calling thread with stack pointer `sp` may run:
 * the profiler's, or the one that the program has set; {0, 0}: none. `kernels`: the kernel's
 * setting. Async-signal-safe: yes. */
struct stack_range own_signal_stacks_range(const stack_t *kernels, uintptr_t sp);

/* Returns the stack on whose memory the address is, by the same rule as own_signal_stack_has();
 * NULL: none. Async-signal-safe: yes. Uses no thread-local variable. */
struct own_signal_stack *own_signal_stacks_at(uintptr_t address);

/* Returns the stack of the thread that a handler runs on, by the kernel's data: the thread's
 * alternate stack, or the stack that the handler's frame is on. NULL: the thread has no stack of
 * the profiler's. Otherwise like own_signal_stacks_at(). */
struct own_signal_stack *own_signal_stacks_of(const ucontext_t *context);

/* Returns true if `stack` is one of the profiler's stacks. Otherwise like
 * own_signal_stacks_at(). */
bool own_signal_stacks_include(const struct own_signal_stack *stack);

/* Returns true if the address is on the stack, by the kernel's rule: a stack pointer at the upper
 * end is on the stack, one at the lower end is not. Async-signal-safe: yes. */
static inline bool own_signal_stack_has(const struct own_signal_stack *stack, uintptr_t address) {
    return address > stack->low && address <= stack->high;
}

/* Notes that the thread waits with that mask, in a function whose frame is at `frame` and that
 * returns to `returns`. `frame` 0: the wait is over. Context: any, the thread itself.
 * Async-signal-safe: yes. */
static inline void own_signal_stack_note_wait(struct own_signal_stack *stack, uintptr_t frame,
                                              uintptr_t returns, const sigset_t *mask) {
    atomic_store_explicit(&stack->wait_frame, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* only a handler of this thread reads these */
    stack->wait_return = returns;
    stack->wait_mask = mask;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&stack->wait_frame, mask ? frame : 0, memory_order_relaxed);
}

/* Returns the setting for sigaltstack(). Async-signal-safe: yes. */
static inline stack_t own_signal_stack_setting(const struct own_signal_stack *stack) {
    return (stack_t){.ss_sp = (void *)stack->low, .ss_size = stack->high - stack->low};
}

/* Returns true if `setting` describes this stack. Async-signal-safe: yes. */
static inline bool own_signal_stack_is(const struct own_signal_stack *stack,
                                       const stack_t *setting) {
    return setting->ss_size && (uintptr_t)setting->ss_sp == stack->low;
}

#endif
