/* The quiesce lock excludes the helper's work while the process is copied, or ends.
 *
 * The helper works under it only. A thread that forks or ends the process closes it, so that no
 * child inherits a half-loaded library, and no library is used while it is torn down. It never
 * blocks an application's thread for long: then the fork proceeds, and the child goes without state
 * that is not whole.
 */
#ifndef OTELPROF_QUIESCE_LOCK_H
#define OTELPROF_QUIESCE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LOCK_OPEN,
    LOCK_HELD,   /* by the helper */
    LOCK_CLOSED, /* by fork or exit */
};

/* A part of struct helper. */
struct quiesce_lock {
    _Atomic uint32_t state;    /* LOCK_*; a futex */
    _Atomic uint32_t awaited;  /* number of threads that wait to close it */
    _Atomic bool helper_waits; /* the helper waits until it is opened */
    _Atomic bool stuck;        /* a fork has timed out on it; later ones do not wait */
    _Atomic bool is_whole; /* the helper's kept state is whole: while a fork has closed the lock */
    _Atomic bool for_good; /* closed by the end of the process */
    _Atomic pthread_t closed_by; /* the thread that has closed it for its fork; 0: none */
};

/* --- for the helper --- */

/* Waits while the lock is closed. Returns false if the helper must do nothing any more. */
bool quiesce_lock_enter(void);
void quiesce_lock_leave(void);

/* Returns true if a thread waits to close the lock, or for the helper's end: then the helper must
 * leave it soon. */
bool quiesce_lock_is_awaited(void);

/* --- for other threads --- */

/* Closes the lock once the helper has left it, within `timeout_ms`. Returns false on timeout.
 * Context: any. */
bool quiesce_lock_close(uint64_t timeout_ms);

/* Closes the lock before fork(); quiesce_lock_open() opens it afterwards. `has_helper` is false in
 * a process that a bare clone(2) has made: it has a copy of the helper's variables, but no helper.
 * Waits for a helper that is inside: at most 20 ms, and not again while a helper that was late is
 * still inside. If the helper is loading its libraries, it waits until that is done (some 10 ms,
 * once in a process). Returns false if the helper is inside. Context: calm. */
bool quiesce_lock_close_to_fork(bool has_helper);

/* Does the same after the helper was seen inside the loader, on a machine too busy to run it: waits
 * up to ten seconds. Context: calm. */
bool quiesce_lock_close_behind_loader(bool has_helper);
void quiesce_lock_open(void);

/* Called before a call that makes a child which no fork handler sees. Waits until the helper has
 * begun and is idle, at most `timeout_ms` or until libraries are loaded, and closes the lock as for
 * a fork. Returns true if the lock must be opened again, in this process. Context: any. */
bool quiesce_lock_close_to_copy(uint64_t timeout_ms);

/* Called before fork() in a signal handler, where fork() may wait for ever for the interrupted call
 * unless the helper is idle. Closes the lock before libc's handlers do, and waits at most ten
 * seconds until the helper is idle. Returns false if the helper still works, or another thread
 * forks. Async-signal-safe: yes. */
bool quiesce_lock_close_at_rest(void);

/* Closes the lock for good if the helper still waits for its time to start; the state of the
 * process permits no helper any more. Waits at most one second for a helper that is inside, and as
 * long for one that has just begun to run, or, if `begins`, has not begun yet. Returns false if the
 * helper is still inside. Async-signal-safe: yes. */
bool quiesce_lock_close_for_good(bool begins);

/* Returns true if the helper's thread exists, sleeps, and cannot continue: it sleeps for ever, or
 * at the lock that this thread, or the end of the process, has closed. A helper that has a request
 * to end, or ends, is not at rest: libc takes locks for it until the kernel counts it no more.
 * Async-signal-safe: yes. */
bool helper_is_at_rest(void);

/* Opens the lock in a forked child, and keeps the helper's kept state if it was whole. Returns
 * false if the helper was inside a library at the fork: then that library must not be used here. */
bool quiesce_lock_after_fork(void);

#endif
