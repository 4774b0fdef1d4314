#include "quiesce.h"

#include "capture/capture.h"
#include "capture/kernel/wait.h"
#include "capture/symbols/libc_threads.h"
#include "capture/thread_life.h"
#include "helper.h"
#include "lifecycle.h"
#include "quiesce_lock.h"

#include <errno.h>

/* Returns true if libcurl's resolver thread, which cannot be stopped, has ended. Returns true, too,
 * if /proc is hidden, because then threads cannot be counted. */
static bool resolver_is_gone(void *unused) {
    (void)unused;
    return libc_threads_count() <= 1;
}

static bool has_one_thread(void) {
    return atomic_load(&capture.live_threads) <= 1;
}

static bool quiesce_suspend(uint64_t timeout_ms) {
    if (atomic_load(&helper.state) == HELPER_NONE || profiler_tls.is_profiler_thread ||
        atomic_load(&helper.irreplaceable) || capture_has_left() || thread_may_be_in_handler())
        return false;
    const int saved = errno;
    const uint64_t deadline = in_milliseconds(timeout_ms);
    const bool gone = helper_suspend_waiting() || helper_suspend_working(timeout_ms) ||
                      (!state_is_past_helpers(&process_state) && helper_is_of_this_process() &&
                       helper_join()); /* the helper is done, and its thread still exists */
    if (gone && has_one_thread())
        (void)wait_until_ms(resolver_is_gone, NULL, milliseconds_until(deadline));
    errno = saved;
    return gone;
}

static bool load_and_suspend(uint64_t timeout_ms) {
    const int saved = errno;
    lifecycle_load_early();
    const bool suspended = quiesce_suspend(timeout_ms);
    if (!suspended && !profiler_tls.is_profiler_thread && !capture_has_left())
        helper_end("the exporter was too busy while the program changed its root or its mounts");
    errno = saved;
    return suspended;
}

bool helper_quiesce(enum quiesce_strength strength, uint64_t timeout_ms) {
    switch (strength) {
    case QUIESCE_IDLE:
        return quiesce_lock_close_to_copy(timeout_ms);
    case QUIESCE_LOADED:
        return load_and_suspend(timeout_ms);
    default:
        return quiesce_suspend(timeout_ms);
    }
}

void helper_resume(enum quiesce_strength strength) {
    if (strength == QUIESCE_IDLE)
        quiesce_lock_open();
    else if (atomic_load(&helper.state) == HELPER_SUSPENDED)
        helper_replace();
}

bool helper_must_follow(void) {
    return atomic_load(&helper.state) != HELPER_NONE && !profiler_tls.is_profiler_thread &&
           has_one_thread() && capture_is_of_this_thread();
}

void helper_keep(void) {
    atomic_fetch_add(&helper.irreplaceable, 1);
}

void helper_keep_no_more(void) {
    atomic_fetch_sub(&helper.irreplaceable, 1);
}

bool helper_serves_requests(void) {
    return helper.config && *helper.config->listen;
}

bool helper_writes_to_syslog(void) {
    return helper.log && helper.log->syslog;
}

void helper_follow(void) {
    if (!helper_must_follow())
        return;
    if (quiesce_suspend(QUIESCE_TIMEOUT_MS))
        helper_resume(QUIESCE_GONE);
    else
        helper_end("the exporter was too busy to give up what the program has given up");
}
