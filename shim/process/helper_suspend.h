/* Suspending the helper around a call of the program's, at any age.
 *
 * The kernel lets a process of one thread alone enter a user namespace; libc ends a process in
 * which one thread may change its ids and another may not. So around such a call the helper's
 * thread ends, with all it knows kept, and afterwards the calling thread makes another, which goes
 * on where the first was. A thread inherits ids, capabilities, filters, namespaces and the root of
 * the one that makes it: the helper has what the program has, and no more.
 *
 * A helper at work is waited for, within a bound; one that cannot be had by then stays, and the
 * call has the outcome that it has beside any other thread.
 */
#ifndef OTELPROF_HELPER_SUSPEND_H
#define OTELPROF_HELPER_SUSPEND_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SUSPEND_TIMEOUT_MS = 500,  /* where the call would fail, as beside any thread */
    SUSPEND_OR_DIE_MS = 10000, /* where libc would end the process */
};

/* Before a call that the helper must not be there for. true: helper_resume() is to be called after
 * it. Context: any; false in a signal handler. */
bool helper_suspend(uint64_t timeout_ms);
void helper_resume(void);

/* Before a call after which paths lead elsewhere: what the helper will need is loaded and
 * initialised, and no file is being opened while the call is made. A helper that cannot be had
 * within SUSPEND_OR_DIE_MS ends for good. As helper_suspend(). */
bool helper_suspend_for_root(void);

/* Whether there is a helper, and the calling thread is the program's only one: what it gives up,
 * the process gives up. Among several the others have it still. Async-signal-safe: yes. */
bool helper_must_follow(void);

/* After that thread has given up what threads inherit: the helper has it no more, either. One that
 * cannot be had within SUSPEND_TIMEOUT_MS ends for good, as soon as it can. Context: any. */
void helper_follow(void);

#endif
