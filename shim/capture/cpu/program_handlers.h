/* The program's signal handlers that ask for the alternate stack, where the kernel has one of ours.
 *
 * The kernel enters ours, with every signal blocked. It copies the signal's frame to where the
 * kernel would have written it without us: onto the alternate stack that the program has set, or,
 * if the program has set none, below the interrupted stack pointer. Then one rt_sigreturn begins
 * the handler there, with the registers, the room, the mask and the ucontext that it has without
 * us: no signal comes in between. It returns by a routine of ours, which unwinders know as a
 * signal's frame. If the frame cannot be written, the process ends by SIGSEGV, as by the kernel. A
 * handler without SA_ONSTACK is entered by the kernel itself.
 *
 * The kernel's action of a signal says which handler is meant: there are a few entries, and the
 * handler of each, with its mask, is kept for each signal. A program that sets more of them than
 * that for one signal, in turns, and meanwhile restores one by a bare system call, gets a later
 * one.
 */
#ifndef OTELPROF_PROGRAM_HANDLERS_H
#define OTELPROF_PROGRAM_HANDLERS_H

#include <signal.h>

/* What the kernel is to have for the program's `action`: that action, or one with an entry of ours.
 * `is_borrowed`: a child of vfork() asks, which gets no entry that its parent has not. Context:
 * any. Async-signal-safe: yes. */
struct sigaction program_handlers_wrap(int number, const struct sigaction *action,
                                       bool is_borrowed);

/* The action that the program has set, where the kernel's `action` has an entry of ours.
 * Context: any. Async-signal-safe: yes. */
struct sigaction program_handlers_seen(int number, const struct sigaction *action);

#endif
