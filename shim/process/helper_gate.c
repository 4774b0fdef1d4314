#include "helper_gate.h"
#include "capture/kernel/wait.h"
#include "harvest.h"
#include "helper.h"

#include <pthread.h>

enum {
    GATE_OPEN,
    GATE_HELD,   /* by the helper */
    GATE_CLOSED, /* by fork or exit */
};
enum {
    FORK_TIMEOUT_MS = 20,    /* or the child does without what the helper is in */
    ENTER_ROUND_MS = 500,    /* of the helper, while it is closed: until it looks at its request */
    LOAD_TIMEOUT_MS = 10000, /* of a fork: a child must not inherit half a library */
    REST_TIMEOUT_MS = 10000, /* of a fork that would wait for ever otherwise */
    BEGIN_TIMEOUT_MS = 5000, /* of a new thread to come to run, on a busy machine */
};

static bool gate_try(uint32_t to) {
    uint32_t open = GATE_OPEN;
    return atomic_compare_exchange_strong(&helper.gate, &open, to);
}

/* Who waits for it while it is open is about to run. */
static void let_others_first(void) {
    if (atomic_load(&helper.awaited))
        futex_wait(&helper.gate, GATE_OPEN, in_milliseconds(FORK_TIMEOUT_MS));
}

bool helper_gate_enter(void) {
    bool entered;
    let_others_first();
    while (!(entered = gate_try(GATE_HELD)) && atomic_load(&helper.request) != WAIT_ABANDON) {
        atomic_store(&helper.at_gate, true);
        futex_wait(&helper.gate, GATE_CLOSED, in_milliseconds(ENTER_ROUND_MS));
    }
    atomic_store(&helper.at_gate, false);
    return entered;
}

void helper_gate_leave(void) {
    atomic_store(&helper.stuck, false);
    atomic_store(&helper.gate, GATE_OPEN);
    futex_wake(&helper.gate);
}

bool helper_gate_is_awaited(void) {
    return atomic_load(&helper.awaited) || atomic_load(&helper.request) == WAIT_ABANDON;
}

bool helper_gate_close(uint64_t timeout_ms) {
    const uint64_t deadline = in_milliseconds(timeout_ms);
    bool closed = gate_try(GATE_CLOSED);
    if (closed)
        return true;
    atomic_fetch_add(&helper.awaited, 1); /* pairs with helper_gate_is_awaited() */
    while (!closed && monotonic_nano() < deadline) {
        futex_wait(&helper.gate, atomic_load(&helper.gate) == GATE_HELD ? GATE_HELD : GATE_CLOSED,
                   deadline);
        closed = gate_try(GATE_CLOSED);
    }
    atomic_fetch_sub(&helper.awaited, 1);
    return closed;
}

/* Nobody works with what is kept, or can begin to while the gate is closed: libraries are loaded
 * under it, too. */
static bool nobody_works(void) {
    const uint32_t state = atomic_load(&helper.state);
    return atomic_load(&helper.waits) || state == HELPER_NONE || state == HELPER_SUSPENDED;
}

/* It is in none of libc's functions, nor in a library, while the gate is closed. */
static bool stands_still(void *unused) {
    (void)unused;
    return nobody_works() || atomic_load(&helper.at_gate);
}

static uint64_t timeout_of_fork(void) {
    if (atomic_load(&helper.stuck))
        return 0;
    return atomic_load(&helper.loading) ? LOAD_TIMEOUT_MS : FORK_TIMEOUT_MS;
}

static bool this_thread_forks(void) {
    return atomic_load(&helper.forking) == pthread_self();
}

static void close_gate(bool has_helper, uint64_t timeout_ms) {
    if (this_thread_forks())
        return;
    if (!helper_gate_close(timeout_ms)) {
        if (atomic_load(&helper.gate) == GATE_HELD)
            atomic_store(&helper.stuck, true);
        return;
    }
    atomic_store(&helper.forking, pthread_self());
    atomic_store(&helper.whole, has_helper && nobody_works());
}

bool helper_close_gate(bool has_helper) {
    close_gate(has_helper, timeout_of_fork());
    return this_thread_forks() || atomic_load(&helper.gate) != GATE_HELD;
}

/* A thread that had no patience left forks beside another, whose gate it is. */
void helper_open_gate(void) {
    if (!this_thread_forks())
        return;
    atomic_store(&helper.whole, false);
    atomic_store(&helper.forking, 0);
    helper_gate_leave();
}

/* libc's setgroups() and its like wait for threads that have not begun: in a copy of the process,
 * for ever. */
static bool has_begun(void *unused) {
    (void)unused;
    return !helper_state_is_running(atomic_load(&helper.state)) || atomic_load(&helper.tid);
}

/* What it does outside of the gate ends there, or in its sleep. */
static void close_gate_and_wait(bool has_helper, uint64_t timeout_ms) {
    const uint64_t deadline = in_milliseconds(timeout_ms);
    close_gate(has_helper, timeout_ms);
    if (this_thread_forks()) {
        (void)wait_until_ms(stands_still, NULL, milliseconds_until(deadline));
        atomic_store(&helper.whole, has_helper && nobody_works());
    }
}

bool helper_close_gate_at_rest(void) {
    if (this_thread_forks())
        return false; /* a handler, in the middle of a fork */
    close_gate_and_wait(true, REST_TIMEOUT_MS);
    return this_thread_forks() && stands_still(NULL);
}

bool helper_is_at_rest(void) {
    if (atomic_load(&helper.rests))
        return true;
    const uint32_t state = atomic_load(&helper.state);
    if (state_is_past_helpers(&process_state))
        return state == HELPER_LEAVES;
    return helper_state_is_running(state) && this_thread_forks() && stands_still(NULL);
}

bool helper_close_gate_to_copy(uint64_t timeout_ms) {
    const int saved = errno;
    (void)wait_until_ms(has_begun, NULL, BEGIN_TIMEOUT_MS);
    const bool closes = !this_thread_forks() && !state_is_past_helpers(&process_state) &&
                        helper_state_is_running(atomic_load(&helper.state));
    /* in the copy the child's own fork() would wait for the lock of the helper's malloc */
    if (closes)
        close_gate_and_wait(false, atomic_load(&helper.loading) ? LOAD_TIMEOUT_MS : timeout_ms);
    errno = saved;
    return closes;
}

bool helper_gate_after_fork(void) {
    const bool outside = atomic_load(&helper.gate) != GATE_HELD;
    if (!atomic_load(&helper.whole) || !this_thread_forks())
        helper.kept = NULL;
    atomic_store(&helper.whole, false);
    atomic_store(&helper.waits, false);
    atomic_store(&helper.at_gate, false);
    atomic_store(&helper.rests, false);
    atomic_store(&helper.forking, 0);
    atomic_store(&helper.stuck, false);
    atomic_store(&helper.awaited, 0);
    atomic_store(&helper.gate, GATE_OPEN);
    return outside;
}
