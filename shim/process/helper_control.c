/* Sends requests of the application's threads to the helper: suspend, load early, end. */
#include "cancellation.h"
#include "capture/capture.h"
#include "capture/kernel/wait.h"
#include "capture/symbols/loader_state.h"
#include "capture/thread_life.h"
#include "clock.h"
#include "helper.h"
#include "helper_parts.h"
#include "process_tree.h"
#include "quiesce_lock.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    GONE_TIMEOUT_MS = 10000, /* bounds the wait for a thread that has ended, on a busy machine */
    EARLY_TIMEOUT_MS = 500,
    /* polls at this interval, because the helper's reply does not change its state */
    SUSPEND_ROUND_MS = 2,
    EXIT_TIMEOUT_MS = 10000, /* bounds exit's wait for libraries that are being loaded */
    /* exit waits for a step in a library that the program uses, too, because exit tears the library
     * down */
    TEAR_DOWN_TIMEOUT_MS = 1000,
    /* if the helper needs the loader while exit holds it, exit waits only so many rounds */
    INSIDE_ROUND_MS = 10,
    INSIDE_ROUNDS = 10,
};

/* --- suspending --- */

static bool helper_is_running(void) {
    return helper_state_is_running(atomic_load(&helper.state));
}

/* Waits until the helper does not run, and returns its state. The helper's end wakes this thread; a
 * move between two running states does not. */
static enum helper_state wait_while_running(uint64_t deadline) {
    uint32_t now;
    while (helper_state_is_running(now = atomic_load(&helper.state)) && monotonic_nano() < deadline)
        futex_wait(&helper.state, now, deadline);
    return (enum helper_state)now;
}

static void helper_request(uint32_t what) {
    atomic_store(&helper.request, what);
    helper_wake();
}

/* Returns true once the kernel no longer counts the thread, which is a little after
 * pthread_join(). */
static bool helper_thread_is_gone(void *tid) {
    return syscall(SYS_tgkill, getpid(), *(uint32_t *)tid, 0) != 0;
}

/* Returns true if the helper's state describes this process: a child of vfork() or of a bare
 * clone(2) has the profiler's variables, but not the helper thread. */
bool helper_is_of_this_process(void) {
    return getpid() == capture.pid;
}

static void join_uncancelled(void) {
    const int before = cancellation_disable();
    (void)pthread_join(helper.thread, NULL);
    cancellation_restore(before);
}

static void join_until_gone(void) {
    join_uncancelled();
    uint32_t tid = atomic_load(&helper.tid); /* not known before the thread has begun */
    (void)wait_until_ms(helper_thread_is_gone, &tid, GONE_TIMEOUT_MS);
}

bool helper_suspend_waiting(void) {
    const int saved = errno;
    /* fails while another thread creates the helper: its id is not known yet */
    if (!helper_is_of_this_process() ||
        !helper_state_move_from(&helper.state, HELPER_WAITS, HELPER_LEAVES, IN_CALM))
        return false;
    const bool joins = !atomic_exchange(&helper.joined, true);
    helper_request(REQUEST_ABANDON);
    if (joins) {
        join_until_gone();
        (void)helper_state_move(&helper.state, HELPER_SUSPENDED, IN_CALM);
    }
    errno = saved;
    return joins;
}

static bool change_request(uint32_t from, uint32_t to) {
    return atomic_compare_exchange_strong(&helper.request, &from, to);
}

/* Returns true if the helper did not reply in time; then the request is removed, unless an exit
 * on another thread has replaced it by its own. */
static bool request_timed_out(uint64_t timeout_ms) {
    if (!change_request(REQUEST_TIMEOUT, REQUEST_SUSPEND))
        return true;
    const uint64_t deadline = in_milliseconds(timeout_ms);
    helper_wake();
    while (atomic_load(&helper.request) == REQUEST_SUSPEND && monotonic_nano() < deadline)
        (void)wait_while_running(in_milliseconds(SUSPEND_ROUND_MS));
    return change_request(REQUEST_SUSPEND, REQUEST_TIMEOUT);
}

bool helper_suspend_working(uint64_t timeout_ms) {
    const int saved = errno;
    if (atomic_load(&helper.state) != HELPER_WORKS || !helper_is_of_this_process() ||
        request_timed_out(timeout_ms))
        return false;
    const bool joins = wait_while_running(in_milliseconds(EXIT_TIMEOUT_MS)) == HELPER_SUSPENDED &&
                       !atomic_exchange(&helper.joined, true);
    if (joins)
        join_until_gone();
    errno = saved;
    return joins;
}

void helper_replace(void) {
    const int saved = errno;
    helper.suspends = false;
    atomic_store(&helper.request, REQUEST_TIMEOUT);
    atomic_store(&helper.early, EARLY_NOT_ASKED);
    atomic_store(&helper.log->separate_thread, 0);
    (void)helper_state_move(&helper.state, HELPER_NONE, IN_CALM);
    (void)helper_start();
    errno = saved;
}

void helper_end(const char *why) {
    uint64_t stays = 0;
    if (!helper_is_running() || !helper_is_of_this_process() ||
        !atomic_compare_exchange_strong(&helper.leave_at, &stays, monotonic_nano()))
        return;
    log_debug(helper.log, "%s; nothing is profiled any more", why);
    helper_request(REQUEST_ABANDON);
    capture_stop();
}

void helper_load_early(void) {
    uint32_t not_asked = EARLY_NOT_ASKED;
    const uint64_t deadline = in_milliseconds(EARLY_TIMEOUT_MS);
    if (!helper_is_of_this_process() || !helper_is_running() ||
        !atomic_compare_exchange_strong(&helper.early, &not_asked, EARLY_ASKED))
        return;
    helper_wake();
    while (helper_is_asked_early() && monotonic_nano() < deadline)
        futex_wait(&helper.early, EARLY_ASKED, deadline);
}

/* --- ending --- */

static bool is_done_by(uint64_t deadline) {
    return wait_while_running(deadline) == HELPER_DONE;
}

/* Returns true if the caller is inside the loader: it is a constructor that ends the process, or
 * the handler of a signal that could not be postponed (abort). */
static bool caller_is_inside_loader(void) {
    return loader_state_is_used_by((uint32_t)syscall(SYS_gettid));
}

/* Returns true if the helper is blocked in the loader, which the caller holds, until the process
 * ends. */
static bool waits_for_caller(void) {
    return atomic_load(&helper.loading) && caller_is_inside_loader();
}

/* Waits as is_done_by() does, but for fewer rounds if the helper waits for the loader, which the
 * caller holds. */
static bool is_done_before(uint64_t deadline) {
    unsigned in_vain = 0;
    if (!caller_is_inside_loader())
        return is_done_by(deadline);
    while (helper_is_running() && in_vain < INSIDE_ROUNDS && monotonic_nano() < deadline) {
        (void)wait_while_running(in_milliseconds(INSIDE_ROUND_MS));
        in_vain = atomic_load(&helper.loading) ? in_vain + 1 : 0;
    }
    return atomic_load(&helper.state) == HELPER_DONE;
}

/* Logs that samples are lost, unless the receiver is known to be unreachable. The reason may be a
 * busy machine, on which the helper gets too little CPU time to load or to encode.
 * Async-signal-safe: yes. */
static void report_unfinished(uint64_t timeout_ms) {
    const bool reported = atomic_load(&helper.endpoint_away);
    const bool matters = !reported && config_names_destination(helper.config);
    const enum log_level level =
        matters ? log_level_in_tree(helper.log, LOG_UNFINISHED, LOG_WARN) : LOG_DEBUG;
    if (waits_for_caller())
        log_write(helper.log, level,
                  "the process ends inside the dynamic loader, which the last export needs: what "
                  "was recorded since the one before is lost");
    else
        log_write(helper.log, level,
                  "the last export was not done within %llu ms (OTEL_PROFILER_SHUTDOWN_TIMEOUT): "
                  "what was recorded since the one before is lost",
                  (unsigned long long)timeout_ms);
}

/* Ends the helper. The calling thread must stay the last thread for libc, too, which then calls
 * exit on that thread: there its thread-local objects are destroyed, and handlers have its signal
 * mask. */
void helper_leave(uint64_t timeout_ms) {
    if (atomic_load(&helper.state) == HELPER_NONE)
        return; /* a forked child without a helper: exit starts a helper for the last export */
    const uint64_t deadline = in_milliseconds(timeout_ms);
    const bool joins = !atomic_exchange(&helper.joined, true);
    atomic_store(&helper.leave_at, deadline);
    helper_request(REQUEST_STOP);
    if (!joins)
        return;
    if (is_done_by(deadline)) {
        join_uncancelled();
        return;
    }
    report_unfinished(timeout_ms);
    helper_spawn_reaper();
}

void helper_block_libraries(void) {
    /* the end of the process has closed the lock for ever */
    if (!atomic_load(&helper.libraries_outlive_exit) && !waits_for_caller())
        (void)quiesce_lock_close(atomic_load(&helper.loading) ? EXIT_TIMEOUT_MS
                                                              : TEAR_DOWN_TIMEOUT_MS);
}

void helper_finish(uint64_t timeout_ms) {
    /* The process's state was changed before this check of the helper's state. So a helper that
     * another thread had suspended either was started again before the check, or will never be
     * started (helper_start). */
    if (!helper_is_running())
        return;
    /* a helper that is not due has no sample to send, so it is not even woken */
    if (!helper_is_due() && helper_state_move(&helper.state, HELPER_LEAVES, IN_SIGNAL))
        return;
    capture_await_end();
    helper_request(REQUEST_STOP);
    if (is_done_before(in_milliseconds(timeout_ms)))
        return;
    report_unfinished(timeout_ms);
    helper_request(REQUEST_ABANDON);
    helper_block_libraries();
}

bool helper_join(void) {
    if (atomic_load(&helper.state) != HELPER_DONE || atomic_exchange(&helper.joined, true))
        return false;
    atomic_store(&helper.leave_at, monotonic_nano());
    helper_request(REQUEST_ABANDON);
    join_until_gone();
    return true;
}
