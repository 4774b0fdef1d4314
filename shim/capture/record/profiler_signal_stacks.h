/* Gives each sampled thread a signal stack of the profiler, hidden from the program.
 *
 * The kernel writes a signal's frame where the stack pointer points, or on the thread's alternate
 * signal stack. Generated code may keep data below the stack pointer (oneDNN's does), so every
 * sampled thread has an alternate stack of the profiler, from its begin to its end. The stack that
 * the program sets with sigaltstack() is recorded here and used by program_handlers.h.
 *
 * The kernel saves its setting as a handler begins, and restores it as the handler returns. The
 * program's setting must be restored with it. So each of the program's settings has a place here,
 * and the kernel's setting names the place of the present one: its size is smaller by the number of
 * the place. A setting with SS_AUTODISARM has that flag in the kernel, too.
 *
 * A stack is 64 KiB of addresses. Its pages stay unused until a signal arrives; then a frame and
 * the handler touch one or two. The stacks of 16 neighbouring slots are one mapping. Each of the
 * first 1,024 stacks has a guard page below it, and of the others every sixteenth, because a guard
 * costs the process two of the mappings that the kernel allows it.
 *
 * A forked child keeps this memory unchanged: its one thread keeps its stack.
 */
#ifndef OTELPROF_PROFILER_SIGNAL_STACKS_H
#define OTELPROF_PROFILER_SIGNAL_STACKS_H

#include "unwind/unwind.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* SS_AUTODISARM (Linux, uapi/linux/signal.h), which libc's headers lack: while a handler runs, the
 * kernel has no alternate stack for the thread. */
enum { STACK_DISARMS = (int)(1U << 31) };

enum {
    PROFILER_SIGNAL_STACK_BYTES = 64 << 10,
    /* Bounds the number of settings. A setting is lost if a handler, and the handlers within it,
     * make so many other settings. */
    PROGRAM_SETTINGS = 16,
};

struct profiler_signal_stack {
    uintptr_t low; /* lowest address; 0: the memory is not opened yet */
    uintptr_t high;
    /* The program's settings, as the kernel keeps them: SS_ONSTACK is not a state but a flag that
     * the program may have given. Only the stack's thread writes the settings. */
    stack_t settings[PROGRAM_SETTINGS];
    uint8_t latest;   /* place of the setting that was made, or found to be present, last */
    uint8_t replaced; /* place of the setting that was replaced last */
    /* Set if the first setting represents the latest one. The kernel never restores the setting
     * that a process begins with: its size is too small, and it lacks the flag SS_DISABLE. */
    bool first_stands_for_latest;
    /* thread pointer of the stack's thread, as libc has it; stays when the thread has ended */
    _Atomic uintptr_t thread_pointer;
    /* Holds the frame of the hook that waits with a temporary mask (hooks/masked_wait.c), and that
     * mask. */
    _Atomic uintptr_t wait_frame; /* 0: none */
    /* the hook's return address; another value there: a handler has left the hook by a jump */
    uintptr_t wait_return;
    const sigset_t *wait_mask;
};

/* Returns the stack of the slot with that index. NULL: the kernel refused the memory, or its signal
 * frames are too large, or another thread has the stack. Context: calm. Async-signal-safe: yes. */
struct profiler_signal_stack *profiler_signal_stacks_take(uint32_t index);

/* Swaps the stacks of two slots in a forked child: slot `index` gets the stack `present`, on which
 * its thread stays, and the slot that owned `present` gets the stack of slot `index`. If slot
 * `index` had no stack, no other thread ever gets `present`. Context: fork handler. */
void profiler_signal_stacks_exchange(uint32_t index, struct profiler_signal_stack *present);

/* Returns the alternate stack on which code of the calling thread with stack pointer `sp` may run:
 * the profiler's, or the one that the program has set; {0, 0}: none. `kernels`: the kernel's
 * setting. Async-signal-safe: yes. */
struct stack_range profiler_signal_stacks_range(const stack_t *kernels, uintptr_t sp);

/* Returns the same stack, by the setting that the kernel has now; errno is preserved. */
struct stack_range profiler_signal_stacks_present(uintptr_t sp);

/* Returns the stack on whose memory the address is, by the same rule as
 * profiler_signal_stack_has(); NULL: none. Async-signal-safe: yes. Uses no thread-local variable.
 */
struct profiler_signal_stack *profiler_signal_stacks_at(uintptr_t address);

/* Returns the stack of the thread that a handler runs on, by the kernel's data: the thread's
 * alternate stack, or the stack that the handler's frame is on. NULL: the thread has no stack of
 * the profiler's. Otherwise like profiler_signal_stacks_at(). */
struct profiler_signal_stack *profiler_signal_stacks_of(const ucontext_t *context);

/* Returns true if a thread with that thread pointer has, or had, a stack. Otherwise like
 * profiler_signal_stacks_at(). */
bool profiler_signal_stacks_know(uintptr_t thread_pointer);

/* Returns true if `stack` is one of the profiler's stacks. Otherwise like
 * profiler_signal_stacks_at(). */
bool profiler_signal_stacks_include(const struct profiler_signal_stack *stack);

/* Returns true if the address is on the stack, by the kernel's rule: a stack pointer at the upper
 * end is on the stack, a stack pointer at the lower end is not. Async-signal-safe: yes. */
static inline bool profiler_signal_stack_has(const struct profiler_signal_stack *stack,
                                             uintptr_t address) {
    return address > stack->low && address <= stack->high;
}

/* Notes that the thread waits with `mask`, in the function with the frame `frame` and the return
 * address `returns`. `mask` NULL or `frame` 0: the wait is over. Context: any, the thread itself.
 * Async-signal-safe: yes. */
static inline void profiler_signal_stack_note_wait(struct profiler_signal_stack *stack,
                                                   uintptr_t frame, uintptr_t returns,
                                                   const sigset_t *mask) {
    atomic_store_explicit(&stack->wait_frame, 0, memory_order_relaxed);
    /* both fences keep the order of the stores for a handler of this thread, the only reader */
    atomic_signal_fence(memory_order_seq_cst);
    stack->wait_return = returns;
    stack->wait_mask = mask;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&stack->wait_frame, mask ? frame : 0, memory_order_relaxed);
}

/* Returns the kernel's setting that names the program's at `place`. Async-signal-safe: yes. */
static inline stack_t profiler_signal_stack_setting(const struct profiler_signal_stack *stack,
                                                    uint32_t place) {
    return (stack_t){.ss_sp = (void *)stack->low,
                     .ss_flags = stack->settings[place].ss_flags & STACK_DISARMS,
                     .ss_size = stack->high - stack->low - place};
}

/* Returns true if that is a setting of this stack. Async-signal-safe: yes. */
static inline bool profiler_signal_stack_is(const struct profiler_signal_stack *stack,
                                            const stack_t *kernels) {
    return kernels->ss_size && (uintptr_t)kernels->ss_sp == stack->low &&
           stack->high - stack->low - kernels->ss_size < PROGRAM_SETTINGS;
}

/* Returns the place of the program's setting. `kernels`: a setting of this stack.
 * Async-signal-safe: yes. */
static inline uint32_t profiler_signal_stack_place(const struct profiler_signal_stack *stack,
                                                   const stack_t *kernels) {
    const uint32_t place = (uint32_t)(stack->high - stack->low - kernels->ss_size);
    return place == 0 && stack->first_stands_for_latest ? stack->latest : place;
}

#endif
