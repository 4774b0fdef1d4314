/* Declares the interface between syscall() (syscall.c) and the hook families of the same functions,
 * by the table (hooked.def). */
#ifndef OTELPROF_BY_NUMBER_H
#define OTELPROF_BY_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* --- the next syscall() --- */

/* Declares libc's syscall() as it is called: always with six arguments in registers. */
typedef long syscall_function(long number, long a, long b, long c, long d, long e, long f);

/* Points to the next definition of syscall(); before hooks_syscall_finish_init(), to a routine that
 * calls hooks_syscall_finish_init() and then the next definition. */
extern syscall_function *next_syscall;

/* Resolves next_syscall now, instead of at its first call. Context: any. Async-signal-safe: yes.
 */
void hooks_syscall_finish_init(void);

/* --- before a call that is WATCHED, with its first arguments unchanged --- */

/* Lists the helper's tasks after the call has succeeded, and the effects of a filter. */
enum then {
    THEN_NOTHING,
    THEN_COMPARE, /* the helper gives up capabilities if it has more */
    THEN_FOLLOW,
    THEN_OPEN_AGAIN, /* the helper tries files again that were refused; THEN_COMPARE does so, too */
    THEN_DO = 7,     /* the bits of the above */
    /* effects of a filter, which are undone if the call fails */
    THEN_FORGET_FILTER = 1 << 3,
    THEN_FORGET_NO_LOGGING = 1 << 4,
    THEN_FORGET_NO_START = 1 << 5,
    THEN_FORGET_KEEP = 1 << 6,
    THEN_FORGET_COPIES = 1 << 8,
    THEN_GETS_FILE = 1 << 7, /* a positive result is a descriptor, not the thread that refused */
};

/* Performs `then` after a call with this result, and returns the result. Preserves errno. Context:
 * any. */
long hooks_after(enum then then, long result);

/* Handles prctl and its like; in sandbox.c. Context: calm. */
enum then before_prctl(unsigned long option, unsigned long mode, unsigned long filter,
                       unsigned long unused);
enum then before_seccomp(unsigned long operation, unsigned long flags, unsigned long filter,
                         unsigned long unused);
enum then before_landlock_restrict_self(unsigned long a, unsigned long b, unsigned long c,
                                        unsigned long d);

/* Ends the profiler, because the program ends the whole process, as by _exit(), in any state; in
 * exit.c. Context: any. */
enum then before_exit_group(unsigned long status, unsigned long b, unsigned long c,
                            unsigned long d);
/* Prepares for the end of the calling thread, which the program ends alone; in exit.c. Context:
 * calm. */
enum then before_exit(unsigned long status, unsigned long b, unsigned long c, unsigned long d);

/* Handles the setting of an action; in signal.c. `action` is the kernel's struct, or NULL. The
 * kernel really sets the action, unlike sigaction()'s hook: with the default action our next signal
 * would end the process. So the program gets the signal, and sampling moves to another. Preserves
 * errno. Async-signal-safe: yes. */
enum then before_rt_sigaction(unsigned long number, unsigned long action, unsigned long old,
                              unsigned long size);

/* Handles a change of the thread's mask; in mask.c. Async-signal-safe: yes. */
enum then before_rt_sigprocmask(unsigned long how, unsigned long set, unsigned long old,
                                unsigned long size);

/* --- in place of a call --- */

/* Handle COPIES; in clone.c. hooks_clone_copies() returns whether the call, with these first
 * arguments, makes a copy of the process that continues on the same stack; hooks_clone_by_number()
 * makes such a call. Context: any. */
bool hooks_clone_copies(long number, uintptr_t first, uintptr_t second);
long hooks_clone_by_number(long number, long a, long b, long c, long d, long e, long f);

/* Handles ENTERS; in namespaces.c. Context: calm. */
long hooks_namespaces_by_number(long number, long a, long b, long c, long d, long e, long f);

#endif
