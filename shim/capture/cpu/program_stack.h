/* Simulates the alternate signal stack that the program has set, while the kernel has a stack of
 * ours.
 *
 * The rules are the kernel's own (Linux, kernel/signal.c do_sigaltstack(),
 * include/linux/sched/signal.h sas_ss_flags()). If a thread has set another alternate stack by a
 * system call of its own, it keeps that stack until it calls libc's sigaltstack() again.
 */
#ifndef OTELPROF_PROGRAM_STACK_H
#define OTELPROF_PROGRAM_STACK_H

#include "record/own_signal_stacks.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* SS_AUTODISARM (Linux, uapi/linux/signal.h), which libc's headers lack: it disables the stack
 * while a handler runs on it. */
enum { STACK_DISARMS = (int)(1U << 31) };

/* Sets the profiler's stack for the calling thread, in the kernel and in profiler_tls, and saves
 * the program's setting. Returns false if the thread is running on its own alternate stack: then it
 * keeps that stack. Context: calm, the thread itself. Async-signal-safe: yes. */
bool program_stack_hide(struct own_signal_stack *stack, bool is_first_of_process);

/* Implements sigaltstack() for a thread that has profiler_tls.signal_stack. `is_borrowed`: the
 * caller is a child of vfork(), which shares that memory with its parent: then only the kernel's
 * setting changes. Context: any. Async-signal-safe: yes. */
int program_stack_exchange(const stack_t *wanted, stack_t *old, bool is_borrowed);

/* Returns whether a thread that runs at `sp` is on that stack; always false for a stack with
 * SS_AUTODISARM. Async-signal-safe: yes. */
bool program_stack_has(const stack_t *stack, uintptr_t sp);

/* Restores the alternate stack in a handler's frame as the return from the handler does, unless
 * `sp` is on the present stack. Replaces the setting in the frame by the one that the kernel needs.
 * A frame on a stack with SS_AUTODISARM is in use until rt_sigreturn has read it: until then this
 * stack stays pending. Async-signal-safe: yes. */
void program_stack_restore(struct own_signal_stack *stack, stack_t *frames, uintptr_t sp);

/* Makes the pending stack the program's, unless code at `sp` still runs on it: a handler may
 * interrupt the return on that stack before rt_sigreturn. The kernel's setting does not show this,
 * because a handler without SA_ONSTACK may restore an earlier one. Async-signal-safe: yes. */
void program_stack_commit(struct own_signal_stack *stack, uintptr_t sp);

/* Called when our signal has found no alternate stack: a system call of the program's has removed
 * ours. The return from the handler sets ours again. Async-signal-safe: yes. */
void program_stack_heal(ucontext_t *context);

#endif
