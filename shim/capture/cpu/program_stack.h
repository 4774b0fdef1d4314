/* The alternate signal stack that the program believes in, where the kernel has one of ours.
 *
 * The rules are the kernel's own (Linux, kernel/signal.c do_sigaltstack(), include/linux/sched/
 * signal.h sas_ss_flags()). A thread whose alternate stack is neither ours nor none has set it by a
 * system call of its own: it keeps that stack until it calls libc's sigaltstack() again.
 */
#ifndef OTELPROF_PROGRAM_STACK_H
#define OTELPROF_PROGRAM_STACK_H

#include "record/own_signal_stacks.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* SS_AUTODISARM (Linux, uapi/linux/signal.h), which libc's headers lack: the stack is none while a
 * handler runs on it. */
enum { STACK_DISARMS = (int)(1U << 31) };

/* Sets the profiler's stack for the calling thread, in the kernel and in profiler_tls, and saves
 * the program's setting. Returns false if the thread runs on the alternate stack that it has, and
 * continues with that one. Context: calm, the thread itself. Async-signal-safe: yes. */
bool program_stack_hide(struct own_signal_stack *stack, bool is_first_of_process);

/* Implements sigaltstack() for a thread that has profiler_tls.signal_stack. `is_borrowed`: the
 * caller is a child of vfork(), which shares that memory with its parent: its settings concern the
 * kernel alone. Context: any. Async-signal-safe: yes. */
int program_stack_exchange(const stack_t *wanted, stack_t *old, bool is_borrowed);

/* Returns whether a thread that runs at `sp` is on that stack: never on one with SS_AUTODISARM.
 * Async-signal-safe: yes. */
bool program_stack_has(const stack_t *stack, uintptr_t sp);

/* Does what a return from a handler does with the alternate stack in its frame: nothing where `sp`
 * is on the present stack. Replaces the frame's setting by the one for the kernel. A stack with
 * SS_AUTODISARM must not count as free before rt_sigreturn has read the frame, which lies on it:
 * it stays pending until then. Async-signal-safe: yes. */
void program_stack_restore(struct own_signal_stack *stack, stack_t *frames, uintptr_t sp);

/* Makes the pending stack the program's, unless code at `sp` still runs on it: up to rt_sigreturn
 * that code does, and a handler that comes in between has interrupted it there. The kernel's
 * setting would not show it: a handler without SA_ONSTACK around it puts an earlier one back.
 * Async-signal-safe: yes. */
void program_stack_commit(struct own_signal_stack *stack, uintptr_t sp);

/* Called when our signal has found no alternate stack: a system call of the program's has removed
 * ours. It is set again as the handler returns. Async-signal-safe: yes. */
void program_stack_heal(ucontext_t *context);

#endif
