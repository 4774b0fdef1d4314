/* The quiesce lock: between the helper's work and a copy, or the end, of the process.
 *
 * The helper works under it only; who forks, or ends the process, closes it: so that no child
 * inherits half a library, and no library is used while it is torn down. It never keeps an
 * application's thread for long: then the fork goes on, and the child does without what is not
 * whole.
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
    _Atomic uint32_t state;      /* LOCK_*; a futex */
    _Atomic uint32_t awaited;    /* threads that wait to close it */
    _Atomic bool helper_waits;   /* the helper waits for it to be opened */
    _Atomic bool stuck;          /* a fork has waited for it in vain; none does again */
    _Atomic bool is_whole;       /* while a fork has it closed: so is what the helper keeps */
    _Atomic bool for_good;       /* the end of the process has closed it */
    _Atomic pthread_t closed_by; /* the thread that has closed it for its fork; 0: none */
};

/* --- for the helper --- */

/* Waits as long as it is closed. false: the helper is to do nothing any more. */
bool quiesce_lock_enter(void);
void quiesce_lock_leave(void);

/* Whether somebody waits to close it, or for the helper's end: it is to be left soon. */
bool quiesce_lock_is_awaited(void);

/* --- for others --- */

/* Closes it, when the helper has left, within `timeout_ms`. false: it has not. Context: any. */
bool quiesce_lock_close(uint64_t timeout_ms);

/* Around fork(): closes and opens it. `has_helper`: false in a process that a bare clone(2)
 * has made, which has the helper's variables and no helper. Waits at most 20 ms, once, until the
 * helper has left it; while libraries are being loaded, which takes some 10 ms once in a process,
 * until that is done. false: the helper is inside. Context: calm. */
bool quiesce_lock_close_to_fork(bool has_helper);

/* The same where the helper was seen inside the loader, on a machine that has no time for it: waits
 * up to ten seconds. Context: calm. */
bool quiesce_lock_close_behind_loader(bool has_helper);
void quiesce_lock_open(void);

/* Around a call that makes a child which no fork handler sees: waits until the helper is no new
 * thread any more and does nothing, at most `timeout_ms` or until libraries are loaded, and closes
 * it as for a fork. true: it is to be opened again, in this process. Context: any. */
bool quiesce_lock_close_to_copy(uint64_t timeout_ms);

/* Around fork(), before libc's handlers close it, which then is: the same where the fork may
 * wait for ever for what it has interrupted unless the helper does nothing. Its rest is waited for,
 * at most ten seconds. false: it is at work still, or another thread forks. Async-signal-safe: yes.
 */
bool quiesce_lock_close_at_rest(void);

/* The process is past helpers. Where the helper waits for its time, as it then does to the end:
 * closes the lock, and no fork opens it again. Waits at most one second for a helper that is
 * inside, and as long for one that has just begun to run, or has not begun yet if `begins`. false:
 * it is inside still. Async-signal-safe: yes. */
bool quiesce_lock_close_for_good(bool begins);

/* Whether the kernel has the helper's thread, and that sleeps and cannot go on: in its last sleep,
 * or behind the lock that this thread, or the end of the process, has closed. A helper that is
 * asked to end, or that ends, is not at rest: libc takes locks for it until the kernel counts it no
 * more. Async-signal-safe: yes. */
bool helper_is_at_rest(void);

/* In a forked child: open, and what the helper kept is kept if it was whole. false: the helper was
 * inside of a library when the copy was made, so that nobody should use that here. */
bool quiesce_lock_after_fork(void);

#endif
