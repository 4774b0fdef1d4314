#include "quiesce_lock.h"
#include "capture/kernel/wait.h"
#include "capture/symbols/loader_state.h"
#include "harvest.h"
#include "helper.h"
#include "helper_table.h"

#include <sys/syscall.h>
#include <unistd.h>

enum {
    /* timeout of a fork in ms; after it the child does not use the helper's libraries */
    FORK_TIMEOUT_MS = 20,
    /* time between checks of the helper's request while the lock is closed */
    ENTER_ROUND_MS = 500,
    /* timeout of a fork during loading, so that no child inherits a half-loaded library */
    LOAD_TIMEOUT_MS = 10000,
    REST_TIMEOUT_MS = 10000, /* timeout of a fork that would otherwise wait for ever */
    BEGIN_TIMEOUT_MS = 5000, /* timeout for a new thread to run, on a busy machine */
    END_TIMEOUT_MS = 1000,   /* timeout of the process's end; after it libc keeps its locks */
    /* a fork waits so many times FORK_TIMEOUT_MS while other threads keep the helper waiting */
    MOST_ROUNDS_IN_VAIN = 5,
};

static bool try_change(uint32_t to) {
    uint32_t open = LOCK_OPEN;
    return atomic_compare_exchange_strong(&helper.lock.state, &open, to);
}

/* Returns true if the lock will stay closed, and another thread waits for the helper's end.
 * helper_leave() sets `leave_at`, quiesce_lock_close_for_good() sets `for_good`. */
static bool stays_closed(void) {
    return atomic_load(&helper.request) == REQUEST_ABANDON ||
           (atomic_load(&helper.lock.for_good) && atomic_load(&helper.leave_at));
}

bool quiesce_lock_enter(void) {
    bool entered;
    /* lets the waiting thread, which is about to run, close the lock itself */
    if (atomic_load(&helper.lock.awaited))
        futex_wait(&helper.lock.state, LOCK_OPEN, in_milliseconds(FORK_TIMEOUT_MS));
    while (!(entered = try_change(LOCK_HELD)) && !stays_closed()) {
        atomic_store(&helper.lock.helper_waits, true);
        futex_wait(&helper.lock.state, LOCK_CLOSED, in_milliseconds(ENTER_ROUND_MS));
    }
    atomic_store(&helper.lock.helper_waits, false);
    if (entered && !helper_table_holds()) {
        quiesce_lock_leave();
        return false;
    }
    return entered;
}

void quiesce_lock_leave(void) {
    atomic_store(&helper.lock.stuck, false);
    atomic_store(&helper.lock.state, LOCK_OPEN);
    futex_wake(&helper.lock.state);
}

bool quiesce_lock_is_awaited(void) {
    return atomic_load(&helper.lock.awaited) || atomic_load(&helper.request) == REQUEST_ABANDON;
}

bool quiesce_lock_close(uint64_t timeout_ms) {
    const uint64_t deadline = in_milliseconds(timeout_ms);
    bool closed = try_change(LOCK_CLOSED);
    if (closed)
        return true;
    atomic_fetch_add(&helper.lock.awaited, 1); /* pairs with quiesce_lock_is_awaited() */
    while (!closed && monotonic_nano() < deadline) {
        futex_wait(&helper.lock.state,
                   atomic_load(&helper.lock.state) == LOCK_HELD ? LOCK_HELD : LOCK_CLOSED,
                   deadline);
        closed = try_change(LOCK_CLOSED);
    }
    atomic_fetch_sub(&helper.lock.awaited, 1);
    return closed;
}

/* Returns true if no thread uses the kept state. While the lock is closed no thread can begin to
 * use it, because libraries are loaded under the lock, too. */
static bool kept_is_unused(void) {
    const uint32_t state = atomic_load(&helper.state);
    return atomic_load(&helper.waits) || state == HELPER_NONE || state == HELPER_SUSPENDED;
}

/* Returns true if the helper is in no library and in none of libc's functions, or is done; called
 * with the lock closed. A helper that is done needs no further wait. */
static bool helper_is_quiesced(void *unused) {
    (void)unused;
    return kept_is_unused() || atomic_load(&helper.lock.helper_waits) ||
           atomic_load(&helper.state) == HELPER_DONE;
}

static uint64_t timeout_of_fork(void) {
    if (atomic_load(&helper.lock.stuck) || atomic_load(&helper.lock.for_good))
        return 0;
    return atomic_load(&helper.loading) ? LOAD_TIMEOUT_MS : FORK_TIMEOUT_MS;
}

static bool closed_by_this_thread(void) {
    return atomic_load(&helper.lock.closed_by) == pthread_self();
}

/* Closes the lock in time, or gives up early on a helper that waits, in the loader, for a thread of
 * the program: the thread that forks, or a thread that spends long in a callback. */
static bool close_in_time(uint64_t timeout_ms) {
    const uint64_t deadline = in_milliseconds(timeout_ms);
    unsigned in_vain = 0;
    bool closed = quiesce_lock_close(timeout_ms < FORK_TIMEOUT_MS ? timeout_ms : FORK_TIMEOUT_MS);
    while (!closed && in_vain < MOST_ROUNDS_IN_VAIN && monotonic_nano() < deadline) {
        closed = quiesce_lock_close(FORK_TIMEOUT_MS);
        in_vain = loader_state_is_used_beside(atomic_load(&helper.tid)) ? in_vain + 1 : 0;
    }
    return closed;
}

static void close_lock(bool has_helper, uint64_t timeout_ms) {
    if (closed_by_this_thread())
        return;
    if (!close_in_time(timeout_ms)) {
        if (atomic_load(&helper.lock.state) == LOCK_HELD)
            atomic_store(&helper.lock.stuck, true);
        return;
    }
    atomic_store(&helper.lock.closed_by, pthread_self());
    atomic_store(&helper.lock.is_whole, has_helper && kept_is_unused());
}

static bool helper_is_out(void) {
    return closed_by_this_thread() || atomic_load(&helper.lock.state) != LOCK_HELD;
}

bool quiesce_lock_close_to_fork(bool has_helper) {
    close_lock(has_helper, timeout_of_fork());
    return helper_is_out();
}

bool quiesce_lock_close_behind_loader(bool has_helper) {
    close_lock(has_helper, LOAD_TIMEOUT_MS);
    return helper_is_out();
}

/* Opens the lock. Does nothing on a thread that forked without the lock because another thread had
 * closed it for too long. */
void quiesce_lock_open(void) {
    if (!closed_by_this_thread())
        return;
    atomic_store(&helper.lock.is_whole, false);
    atomic_store(&helper.lock.closed_by, 0);
    quiesce_lock_leave();
}

/* Returns true if the helper has begun, or does not run. A copy of the process is made only then:
 * otherwise libc's setgroups() and its like would wait in the copy for ever, for a thread that has
 * not begun. */
static bool has_begun(void *unused) {
    (void)unused;
    return !helper_state_is_running(atomic_load(&helper.state)) || atomic_load(&helper.tid);
}

/* Returns true if the helper has begun and waits: its next step is to enter the lock. */
static bool waits_for_its_time(void *unused) {
    (void)unused;
    return atomic_load(&helper.tid) && atomic_load(&helper.waits);
}

/* Closes the lock, and waits until the helper's work outside of the lock ends at the lock, or in a
 * sleep.
 */
static void close_and_wait(bool has_helper, uint64_t timeout_ms) {
    const uint64_t deadline = in_milliseconds(timeout_ms);
    close_lock(has_helper, timeout_ms);
    if (closed_by_this_thread()) {
        (void)wait_until_ms(helper_is_quiesced, NULL, milliseconds_until(deadline));
        atomic_store(&helper.lock.is_whole, has_helper && kept_is_unused());
    }
}

bool quiesce_lock_close_at_rest(void) {
    if (closed_by_this_thread())
        return false; /* the calling handler has interrupted a fork */
    close_and_wait(true, REST_TIMEOUT_MS);
    return closed_by_this_thread() && helper_is_quiesced(NULL);
}

bool quiesce_lock_close_for_good(bool begins) {
    if (atomic_load(&helper.state) != HELPER_LEAVES || atomic_load(&helper.lock.for_good))
        return true;
    if (begins || atomic_load(&helper.tid))
        (void)wait_until_ms(waits_for_its_time, NULL, END_TIMEOUT_MS);
    const bool closed = close_in_time(END_TIMEOUT_MS);
    atomic_store(&helper.lock.for_good, closed);
    return closed;
}

/* Returns true if the helper cannot continue. A pending request may end the helper's thread, which
 * then calls libc. In the state LEAVES the thread ends at once, unless the helper was not yet due
 * when the process ended: then it stays. */
bool helper_is_at_rest(void) {
    const uint32_t state = atomic_load(&helper.state);
    const uint32_t tid = atomic_load(&helper.tid);
    if (!tid || atomic_load(&helper.leave_at) || syscall(SYS_tgkill, getpid(), tid, 0) != 0)
        return false;
    if (atomic_load(&helper.rests))
        return true;
    if (atomic_load(&helper.request) != REQUEST_TIMEOUT || !helper_state_is_running(state))
        return false;
    if (state_is_past_helpers(&process_state))
        return state == HELPER_LEAVES && atomic_load(&helper.lock.for_good) &&
               helper_is_quiesced(NULL);
    return state != HELPER_LEAVES && closed_by_this_thread() && helper_is_quiesced(NULL);
}

bool quiesce_lock_close_to_copy(uint64_t timeout_ms) {
    const int saved = errno;
    (void)wait_until_ms(has_begun, NULL, BEGIN_TIMEOUT_MS);
    const bool closes = !closed_by_this_thread() && !state_is_past_helpers(&process_state) &&
                        helper_state_is_running(atomic_load(&helper.state));
    /* closes the lock, so that the child's own fork() does not wait for a malloc lock that the
     * helper held */
    if (closes)
        close_and_wait(false, atomic_load(&helper.loading) ? LOAD_TIMEOUT_MS : timeout_ms);
    errno = saved;
    return closes;
}

bool quiesce_lock_after_fork(void) {
    const bool outside = atomic_load(&helper.lock.state) != LOCK_HELD;
    if (!atomic_load(&helper.lock.is_whole) || !closed_by_this_thread())
        helper.kept = NULL;
    atomic_store(&helper.lock.is_whole, false);
    atomic_store(&helper.waits, false);
    atomic_store(&helper.lock.helper_waits, false);
    atomic_store(&helper.rests, false);
    atomic_store(&helper.lock.closed_by, 0);
    atomic_store(&helper.lock.stuck, false);
    atomic_store(&helper.lock.for_good, false);
    atomic_store(&helper.lock.awaited, 0);
    atomic_store(&helper.lock.state, LOCK_OPEN);
    return outside;
}
