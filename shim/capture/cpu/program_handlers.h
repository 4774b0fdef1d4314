/* Runs the program's signal handlers that request the alternate stack, while the kernel has a stack
 * of ours.
 *
 * The kernel enters our handler, with every signal blocked. It copies the signal's frame to where
 * the kernel would have written it without us: onto the alternate stack that the program has set,
 * or, if the program has set none, below the interrupted stack pointer. Then one rt_sigreturn
 * begins the program's handler there, with the registers, the space, the mask and the ucontext that
 * it would have without us; no signal comes in between. The handler returns by a routine of ours,
 * which unwinders recognize as a signal's frame. If the frame cannot be written, the process ends
 * by SIGSEGV, as by the kernel. A handler without SA_ONSTACK is entered by the kernel itself, until
 * the program needs entries for these, too (program_handlers_include_plain()). Its frame stays
 * where the kernel has written it; the entry sets our stack again where SS_AUTODISARM has disabled
 * it, and shows when the handler returns.
 *
 * The kernel's action of a signal identifies the handler: there are a few entries, and the handler
 * of each, with its mask, is stored for each signal. If a program alternates between more handlers
 * of one signal than there are entries, and restores an old one by a bare system call, a later
 * handler runs in its place. */
#ifndef OTELPROF_PROGRAM_HANDLERS_H
#define OTELPROF_PROGRAM_HANDLERS_H

#include <signal.h>
#include <stdbool.h>

/* Returns the kernel's action for the program's `action`: `action` itself, or an action with an
 * entry of ours. `is_borrowed`: the caller is a child of vfork(), for which no new entry is made.
 * Context: any. Async-signal-safe: yes. */
struct sigaction program_handlers_wrap(int number, const struct sigaction *action,
                                       bool is_borrowed);

/* Returns the action that the program has set, where the kernel's `action` has an entry of ours.
 * Context: any. Async-signal-safe: yes. */
struct sigaction program_handlers_seen(int number, const struct sigaction *action);

/* From now on program_handlers_wrap() returns entries for handlers without SA_ONSTACK, too, where
 * entries are possible. Those that libc has set before get entries by
 * program_handlers_give_all_entries(). The caller is no child of vfork(), and knows that no filter
 * of system calls is set. Context: any. Async-signal-safe: yes. */
void program_handlers_include_plain(void);

/* Gives entries to the handlers without SA_ONSTACK that are set now, once, if
 * program_handlers_may_give_entries(); program_handlers_all_have_entries() returns true once that
 * is done. errno is preserved. Context: any, but no child of vfork(). Async-signal-safe: yes. */
void program_handlers_give_all_entries(void);
bool program_handlers_all_have_entries(void);

/* Returns true if handlers without SA_ONSTACK can get entries now: these entries are wanted, CPU
 * time is sampled, no filter of the program's may kill for the calls, and libc's rt_sigreturn is
 * known. Makes no system call unless the entries are wanted. Context: any. */
bool program_handlers_may_give_entries(void);

/* Gives entries to the handlers of the signals `first` to `last`, which libc has just set without
 * program_handlers_wrap(), if program_handlers_may_give_entries(). errno is preserved. */
void program_handlers_give_entries(int first, int last);

/* Replaces the kernel's action of the signal by `convert(number, action)` if that has another
 * handler, also while other threads set actions. Context: any. Async-signal-safe: yes. */
typedef struct sigaction action_conversion(int number, const struct sigaction *action);
void program_handlers_convert(int number, action_conversion *convert);

/* Replaces entries in the kernel by the program's handlers, which constructors before ours have
 * set. Called in a process whose threads get no signal stacks. errno is preserved. Context: calm,
 * at start, when no new entries are made any more. */
void program_handlers_unwrap(void);

#endif
