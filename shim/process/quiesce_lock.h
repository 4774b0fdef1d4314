/* The quiesce lock excludes the helper's work while the process is copied, or ends.
 *
 * The helper works only under the lock. A thread that forks or ends the process closes the lock, so
 * that no child inherits a half-loaded library, and no library is used while it is torn down. An
 * application's thread never waits long for the lock: after a timeout the fork proceeds, and the
 * child does without state that may be inconsistent.
 */
#ifndef OTELPROF_QUIESCE_LOCK_H
#define OTELPROF_QUIESCE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LOCK_OPEN,
    LOCK_HELD,   /* the helper holds the lock */
    LOCK_CLOSED, /* a fork or the end has closed the lock */
};

/* Holds the lock's state, as a part of struct helper. */
struct quiesce_lock {
    _Atomic uint32_t state;    /* LOCK_*; a futex */
    _Atomic uint32_t awaited;  /* number of threads that wait to close the lock */
    _Atomic bool helper_waits; /* the helper waits until the lock is opened */
    _Atomic bool stuck;        /* a fork has timed out at the lock; later forks do not wait */
    /* the helper's kept state is consistent; valid while a fork has closed the lock */
    _Atomic bool is_whole;
    _Atomic bool for_good;       /* the end of the process has closed the lock */
    _Atomic pthread_t closed_by; /* the thread that has closed the lock for its fork; 0: none */
};

/* --- for the helper --- */

/* Waits while the lock is closed. Returns false if the helper must not work any more. */
bool quiesce_lock_enter(void);
void quiesce_lock_leave(void);

/* Returns true if a thread waits to close the lock, or for the helper's end: then the helper must
 * leave the lock soon. */
bool quiesce_lock_is_awaited(void);

/* --- for other threads --- */

/* Closes the lock once the helper has left it, within `timeout_ms`. Returns false on timeout.
 * Context: any. */
bool quiesce_lock_close(uint64_t timeout_ms);

/* Closes the lock before fork(); quiesce_lock_open() opens it afterwards. `has_helper` is false in
 * a process that a bare clone(2) has made: such a process has a copy of the helper's variables, but
 * no helper. Waits at most 20 ms for a helper that holds the lock, and not at all if that helper
 * has already been late. If the helper is loading its libraries, waits until they are loaded, at
 * most ten seconds. Returns false if the helper holds the lock. Context: calm. */
bool quiesce_lock_close_to_fork(bool has_helper);

/* Closes the lock as quiesce_lock_close_to_fork() does, but waits up to ten seconds: for a helper
 * that was seen inside the loader, on a machine too busy to run the helper. Context: calm. */
bool quiesce_lock_close_behind_loader(bool has_helper);
void quiesce_lock_open(void);

/* Prepares a call that makes a child without fork handlers. Waits at most five seconds until the
 * helper has begun, and at most `timeout_ms`, or until libraries are loaded, until it is idle.
 * Closes the lock as for a fork. Returns true if the lock must be opened again, in this process.
 * Context: any. */
bool quiesce_lock_close_to_copy(uint64_t timeout_ms);

/* Prepares fork() in a signal handler, where fork() may wait for ever for the interrupted call
 * unless the helper is idle. Closes the lock before libc's fork handlers close it, and waits at
 * most ten seconds until the helper is idle. Returns false if the helper still works, or another
 * thread forks. Async-signal-safe: yes. */
bool quiesce_lock_close_at_rest(void);

/* Closes the lock for ever if the helper is not yet due; the state of the process permits no new
 * helper by now. Waits at most one second for a helper that holds the lock, that has just begun to
 * run, or, if `begins`, that has not begun yet. Returns false if the helper still holds the lock.
 * Async-signal-safe: yes. */
bool quiesce_lock_close_for_good(bool begins);

/* Returns true if the helper's thread exists, sleeps, and cannot continue: it sleeps for ever, or
 * at the lock that this thread, or the end of the process, has closed. A helper that has a request
 * to end, or is ending, is not at rest, because libc takes locks for it until the kernel no longer
 * counts it. Async-signal-safe: yes. */
bool helper_is_at_rest(void);

/* Opens the lock in a forked child, and keeps the helper's state if it was consistent. Returns
 * false if the helper was inside a library at the fork: then that library must not be used here. */
bool quiesce_lock_after_fork(void);

#endif
