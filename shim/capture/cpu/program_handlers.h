/* The program's signal handlers that ask for the alternate stack, where the kernel has one of ours.
 *
 * The kernel enters our handler, with every signal blocked. It copies the signal's frame to where
 * the kernel would have written it without us: onto the alternate stack that the program has set,
 * or, if the program has set none, below the interrupted stack pointer. Then one rt_sigreturn
 * begins the program's handler there, with the registers, the space, the mask and the ucontext that
 * it has without us: no signal comes in between. It returns by a routine of ours, which unwinders
 * recognize as a signal's frame. If the frame cannot be written, the process ends by SIGSEGV, as by
 * the kernel. A handler without SA_ONSTACK is entered by the kernel itself.
 *
 * The kernel's action of a signal identifies the handler: there are a few entries, and the handler
 * of each, with its mask, is stored for each signal. A program that sets more of them than that for
 * one signal, in turns, and meanwhile restores one by a bare system call, gets a later one. */
#ifndef OTELPROF_PROGRAM_HANDLERS_H
#define OTELPROF_PROGRAM_HANDLERS_H

#include <signal.h>
#include <stdbool.h>

/* Returns the kernel's action for the program's `action`: that action, or one with an entry of
 * ours. `is_borrowed`: the caller is a child of vfork(), which gets no entry that its parent lacks.
 * Context: any. Async-signal-safe: yes. */
struct sigaction program_handlers_wrap(int number, const struct sigaction *action,
                                       bool is_borrowed);

/* Returns the action that the program has set, where the kernel's `action` has an entry of ours.
 * Context: any. Async-signal-safe: yes. */
struct sigaction program_handlers_seen(int number, const struct sigaction *action);

/* Gives the kernel the program's handlers in place of entries: those that constructors before ours
 * have set, in a process whose threads get no signal stacks. errno is preserved. Context: calm, at
 * start, once no new entry is given. */
void program_handlers_unwrap(void);

#endif
