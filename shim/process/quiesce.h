/* Having the helper out of the way of a call of the program's: one call before it, with a strength,
 * and one after it.
 *
 * The kernel lets a process of one thread alone enter a user namespace; libc ends a process in
 * which one thread may change its ids and another may not. So around such a call the helper's
 * thread ends, with all it knows kept, and afterwards the calling thread makes another, which goes
 * on where the first was. A thread inherits ids, capabilities, filters, namespaces and the root of
 * the one that makes it: the helper has what the program has, and no more.
 *
 * A helper at work is waited for, within a bound; one that cannot be had by then stays, and the
 * call has the outcome that it has beside any other thread.
 *
 * fork() has handlers of its own: lifecycle.c.
 */
#ifndef OTELPROF_QUIESCE_H
#define OTELPROF_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

enum quiesce_strength {
    /* Outside of every library, and begun: for a call that copies the process (a bare clone). While
     * libraries are being loaded that is waited for, however short the time. */
    QUIESCE_IDLE,
    /* Its thread has ended, with all it knows kept: for a call that the kernel, or libc, lets a
     * process of one thread make, or one that changes what threads inherit. */
    QUIESCE_GONE,
    /* The same, and what it will need is loaded and initialised: for a call after which paths lead
     * elsewhere. A helper that cannot be had in time ends for good. */
    QUIESCE_LOADED,
};

enum {
    QUIESCE_TIMEOUT_MS = 500,  /* where the call would fail, as beside any thread */
    QUIESCE_OR_DIE_MS = 10000, /* where libc would end the process, or the helper ends */
};

/* Before such a call. true: helper_resume() is to be called after it, on the same thread, with the
 * same strength (QUIESCE_GONE and QUIESCE_LOADED are resumed alike). Context: any. In a signal
 * handler only QUIESCE_IDLE is not false. */
bool helper_quiesce(enum quiesce_strength strength, uint64_t timeout_ms);
void helper_resume(enum quiesce_strength strength);

/* Whether there is a helper, and the calling thread is the program's only one: what it gives up,
 * the process gives up. Among several the others have it still. Async-signal-safe: yes. */
bool helper_must_follow(void);

/* Whether it is to answer those who ask the process. Async-signal-safe: yes. */
bool helper_answers(void);

/* After that thread has given up what threads inherit: the helper has it no more, either. One that
 * cannot be had within QUIESCE_TIMEOUT_MS ends for good, as soon as it can. Context: any. */
void helper_follow(void);

#endif
