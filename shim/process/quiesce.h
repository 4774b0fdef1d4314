/* Stops the helper around a call of the program's. The hook calls helper_quiesce() before that
 * call, with a strength, and helper_resume() after it.
 *
 * The kernel lets only a single-threaded process enter a user namespace; libc ends a process in
 * which one thread may change its ids and another may not. So before such a call the helper's
 * thread ends, with all its state kept, and afterwards the calling thread creates another helper,
 * which continues the work. A thread inherits ids, capabilities, filters, namespaces and the root
 * of its creator: so the helper has the program's rights, and no more.
 *
 * The call waits for a helper at work, within a bound. If the helper does not stop in that time it
 * stays, and the call has the same result as beside any other thread.
 *
 * fork() has handlers of its own: lifecycle.c.
 */
#ifndef OTELPROF_QUIESCE_H
#define OTELPROF_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

enum quiesce_strength {
    /* used for a call that copies the process (a bare clone): the helper has begun, and is outside
     * of every library. Waits for libraries that are being loaded, even beyond the timeout. */
    QUIESCE_IDLE,
    /* used for a call that needs a single-threaded process, or that changes what threads inherit:
     * the helper's thread has ended, with all its state kept */
    QUIESCE_GONE,
    /* used for a call after which paths lead elsewhere: as QUIESCE_GONE, and the helper's libraries
     * are loaded and initialised. A helper that does not stop in time ends for ever */
    QUIESCE_LOADED,
};

enum {
    /* timeout for a call that would otherwise only fail, as beside any thread */
    QUIESCE_TIMEOUT_MS = 500,
    /* timeout for a call that would otherwise end the process, or the helper */
    QUIESCE_OR_DIE_MS = 10000,
};

/* Stops the helper before a call that must not run beside it. If helper_quiesce() returns true,
 * helper_resume() must be called after that call, on the same thread, with the same strength
 * (QUIESCE_GONE and QUIESCE_LOADED are interchangeable). Context: any. In a signal handler only
 * QUIESCE_IDLE can succeed. */
bool helper_quiesce(enum quiesce_strength strength, uint64_t timeout_ms);
void helper_resume(enum quiesce_strength strength);

/* Returns true if there is a helper, and the calling thread is the program's only thread: then
 * rights that this thread gives up are given up by the whole program, and the helper must give them
 * up, too. Async-signal-safe: yes. */
bool helper_must_follow(void);

/* Makes helper_quiesce() keep the helper's thread from now on, instead of ending it: a filter of
 * system calls would kill the thread that creates the next one. Async-signal-safe: yes. */
void helper_keep(void);

/* Undoes one call of helper_keep(), because the kernel has refused the filter. Context: any. */
void helper_keep_no_more(void);

/* Returns true if the helper serves requests to the process. Async-signal-safe: yes. */
bool helper_serves_requests(void);

/* Returns true if the helper sends lines to the system's log. Async-signal-safe: yes. */
bool helper_writes_to_syslog(void);

/* Makes the helper give up the inherited rights that this thread has just given up. A helper that
 * does not stop within QUIESCE_TIMEOUT_MS ends for ever, as soon as it can. Context: any. */
void helper_follow(void);

#endif
