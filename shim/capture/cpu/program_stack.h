/* Simulates the alternate signal stack that the program has set, while the kernel has a stack of
 * ours.
 *
 * The rules are the kernel's own (Linux, kernel/signal.c do_sigaltstack(),
 * include/linux/sched/signal.h sas_ss_flags()). If a thread has set another alternate stack by a
 * system call of its own, it keeps that stack until it calls libc's sigaltstack() again.
 */
#ifndef OTELPROF_PROGRAM_STACK_H
#define OTELPROF_PROGRAM_STACK_H

#include "record/profiler_signal_stacks.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Sets the profiler's stack for the calling thread, in the kernel and in profiler_tls, and saves
 * the program's setting. Returns false if the thread is running on its own alternate stack: then it
 * keeps that stack. Context: calm, the thread itself. Async-signal-safe: yes. */
bool program_stack_hide(struct profiler_signal_stack *stack, bool is_first_of_process);

/* Implements sigaltstack() for a thread that has profiler_tls.signal_stack, and whose stack pointer
 * would be `sp` in the system call without the profiler. `is_borrowed`: the caller is a child of
 * vfork(), which shares that memory with its parent: then only the kernel's setting changes.
 * Returns 0, or -1 and sets errno. Context: any. Async-signal-safe: yes. */
int program_stack_exchange(const stack_t *wanted, stack_t *old, uintptr_t sp, bool is_borrowed);

/* Returns the flags of the program's setting. `stack` may be NULL. Async-signal-safe: yes. */
int program_stack_flags(const struct profiler_signal_stack *stack, const stack_t *kernels);

/* Returns true if the calling thread is the first of its process, and the program has never set a
 * stack for it. Async-signal-safe: yes. */
bool program_stack_is_first(const struct profiler_signal_stack *stack);

/* States that the handlers that begin from now on have entries (program_handlers.h). Context: any.
 * Async-signal-safe: yes. */
void program_stack_is_in_frames(void);

/* Returns whether a thread that runs at `sp` is on that stack; always false for a stack with
 * SS_AUTODISARM. Async-signal-safe: yes. */
bool program_stack_has(const stack_t *stack, uintptr_t sp);

/* Returns whether the calling thread, at `sp`, runs on the stack that the program has set, and
 * `next_sp` is not on that stack. Makes a system call only if `sp` is on one of its settings.
 * Async-signal-safe: yes. */
bool program_stack_is_left(const struct profiler_signal_stack *stack, uintptr_t sp,
                           uintptr_t next_sp);

/* Replaces the setting in a handler's frame by the one that rt_sigreturn is to give to the kernel,
 * as the kernel would: the present one where `sp` is on the program's present stack. Makes no
 * system call, and uses nothing of the thread's. Async-signal-safe: yes. */
void program_stack_restore(struct profiler_signal_stack *stack, stack_t *frames, uintptr_t sp);

/* Does the same as program_stack_restore() if the setting has a place already. Returns false,
 * without a change, if it has none. Inlined into a function that may not use the stack. */
static inline bool program_stack_restore_known(struct profiler_signal_stack *stack, stack_t *frames,
                                               uintptr_t sp) {
    const stack_t *const latest = &stack->settings[stack->latest];
    const uintptr_t from_low = sp - (uintptr_t)latest->ss_sp;
    const bool is_on_it = !(latest->ss_flags & STACK_DISARMS) && from_low - 1 < latest->ss_size;
    /* the setting that a process begins with, which the kernel cannot restore */
    const bool is_first = !frames->ss_size && !frames->ss_flags;
    uint32_t place = stack->latest;
    if (!is_on_it && !is_first)
        for (place = 0; place < PROGRAM_SETTINGS; place++)
            if (stack->settings[place].ss_sp == frames->ss_sp &&
                stack->settings[place].ss_flags == frames->ss_flags &&
                stack->settings[place].ss_size == frames->ss_size)
                break;
    if (place == PROGRAM_SETTINGS)
        return false;
    stack->latest = (uint8_t)place;
    *frames = profiler_signal_stack_setting(stack, place);
    return true;
}

/* Returns the kernel's setting for a thread whose program has disabled its stack, or whose stack is
 * disarmed while a handler runs. Async-signal-safe: yes. */
stack_t program_stack_disabled(struct profiler_signal_stack *stack);

/* Sets our stack again when our signal has found no alternate stack: a system call of the program's
 * has removed ours, or it is disarmed while a handler without SA_ONSTACK runs. The kernel sets our
 * stack as our handler returns, unless the thread is on it. Async-signal-safe: yes. */
void program_stack_heal(ucontext_t *context);

#endif
