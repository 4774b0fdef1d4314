/* Which thread a signal handler runs on, by what cannot fault.
 *
 * Wine's 32-bit code, DynamoRIO and library operating systems give a thread another register for
 * thread-local storage for a while: then no variable of the thread's may be read, no errno, and no
 * stack protector. The kernel names the thread by its signal stack, which is one of the profiler's
 * (own_signal_stacks.h), and that knows the register's value. A handler checks this first.
 *
 * Context: a handler of the profiler. Async-signal-safe: yes. Nothing here uses anything of the
 * thread's; the file is compiled without stack protector.
 */
#ifndef OTELPROF_SIGNAL_THREAD_H
#define OTELPROF_SIGNAL_THREAD_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/* Called before a handler is installed. Context: calm. */
void signal_thread_prepare(void);

/* Returns false if thread-local variables are not libc's. A thread without a signal stack of the
 * profiler is taken for libc's if its control block has the form of one. */
bool signal_thread_is_libcs(const ucontext_t *context);

/* Gives the signal its default action, and raises it again: it is pending until the handler
 * returns. */
void signal_thread_end_by_default(int number);

/* The sampling handler where the thread's variables are not libc's: drops and counts an expiry,
 * passes any other signal on. */
void signal_thread_pass_foreign(int number, siginfo_t *info, void *context);

#endif
