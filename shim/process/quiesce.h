/* Keeps the helper out of the way of a call of the program's. One function is called before that
 * call, with a strength, and one after it.
 *
 * The kernel lets only a single-threaded process enter a user namespace; libc ends a process in
 * which one thread may change its ids and another may not. So the helper's thread ends around such
 * a call, with all its state kept, and afterwards the calling thread makes another, which continues
 * the work. A thread inherits ids, capabilities, filters, namespaces and the root of its creator:
 * so the helper has the program's rights, and no more.
 *
 * The call waits for a helper at work, within a bound. A helper that does not stop by then stays,
 * and the call has the outcome that it has beside any other thread.
 *
 * fork() has handlers of its own: lifecycle.c.
 */
#ifndef OTELPROF_QUIESCE_H
#define OTELPROF_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

enum quiesce_strength {
    /* The helper has begun, and is outside of every library: for a call that copies the process (a
     * bare clone). Waits for libraries that are being loaded, however short the timeout. */
    QUIESCE_IDLE,
    /* The helper's thread has ended, with all its state kept: for a call that needs a
     * single-threaded process, or that changes what threads inherit. */
    QUIESCE_GONE,
    /* The same, and its libraries are loaded and initialised: for a call after which paths lead
     * elsewhere. A helper that does not stop in time ends for good. */
    QUIESCE_LOADED,
};

enum {
    QUIESCE_TIMEOUT_MS = 500,  /* for a call that would then fail, as beside any thread */
    QUIESCE_OR_DIE_MS = 10000, /* for a call that else ends the process, or the helper */
};

/* Stops the helper before a call that it must not run beside. If it returns true, helper_resume()
 * must be called after it, on the same thread, with the same strength (QUIESCE_GONE and
 * QUIESCE_LOADED are resumed alike). Context: any. In a signal handler only QUIESCE_IDLE can
 * succeed. */
bool helper_quiesce(enum quiesce_strength strength, uint64_t timeout_ms);
void helper_resume(enum quiesce_strength strength);

/* Returns true if there is a helper, and the calling thread is the program's only one: rights that
 * it gives up, the process gives up. Among several threads the others keep them. Async-signal-safe:
 * yes. */
bool helper_must_follow(void);

/* Returns true if the helper serves requests to the process. Async-signal-safe: yes. */
bool helper_serves_requests(void);

/* Has the helper give up the inherited rights that this thread has just given up. A helper that
 * does not stop within QUIESCE_TIMEOUT_MS ends for good, as soon as it can. Context: any. */
void helper_follow(void);

#endif
