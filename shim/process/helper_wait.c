#include "helper_wait.h"

#include "capture/binding/bound_calls.h"
#include "capture/capture.h"
#include "capture/kernel/futex.h"
#include "child_ledger.h"
#include "clock.h"
#include "cpp_programs.h"
#include "crash_guard.h"
#include "harvest.h"
#include "helper.h"
#include "helper_parts.h"
#include "helper_table.h"
#include "main_watch.h"
#include "quiesce_lock.h"
#include "wanted_export.h"

#include <stdatomic.h>

/* Marks a REQUEST_SUSPEND that the helper has accepted; distinct from the requests of harvest.h. */
enum { SUSPENDING = 100 };

/* Returns the count of wakes. The caller must read it before the data that a sleep depends on: then
 * a later wake ends the sleep, even if the sleep has not begun. */
static uint32_t wakes_so_far(void) {
    return atomic_load(&helper.wakes);
}

/* Sleeps unless the count of wakes differs from `wakes`, then checks that the helper's descriptors
 * are still its own, and polls the main thread and the crash guard. */
static void helper_sleep_until(uint32_t wakes, uint64_t deadline) {
    const uint64_t next_poll = earlier(main_watch_next_poll(), crash_guard_next_poll());
    const uint64_t until = earlier(next_poll, deadline);
    wait_sampler_before_sleep(&capture.waits);
    futex_wait(&helper.wakes, wakes, until);
    if (!helper_table_holds())
        return;
    wait_sampler_after_sleep(&capture.waits, until);
    main_watch_poll();
    crash_guard_poll();
}

void helper_wait_begin(void) {
    watched_clear(&helper.watched);
    heap_peak_set_alarm(&capture.heap.peak, helper_wake);
}

bool helper_wait_watch_fd(const struct watched_descriptor *added) {
    return watched_add(&helper.watched, added);
}

void helper_wait_unwatch_fd(int descriptor) {
    watched_remove(&helper.watched, descriptor);
}

void helper_wait_wake(void) {
    helper.is_woken = true;
}

/* Calls the functions of ready descriptors unless a request is pending. Takes the quiesce lock,
 * because a callback may enter a library. */
static void helper_poll_descriptors(void) {
    if (atomic_load(&helper.request) != REQUEST_TIMEOUT || !watched_poll(&helper.watched) ||
        !quiesce_lock_enter())
        return;
    watched_call_ready(&helper.watched);
    quiesce_lock_leave();
}

void helper_wake(void) {
    atomic_fetch_add(&helper.wakes, 1);
    futex_wake(&helper.wakes);
}

/* Scans newly loaded objects, under the quiesce lock because it takes the loader's lock. */
static void helper_poll_objects(void) {
    const uint64_t now = monotonic_nano();
    const bool for_contexts = now >= context_next_poll(&capture.contexts);
    if (atomic_load(&helper.request) != REQUEST_TIMEOUT ||
        (!for_contexts && now < bound_calls_next_poll()) || !quiesce_lock_enter())
        return;
    atomic_store(&helper.loading, true);
    bound_calls_poll();
    if (for_contexts) {
        const uint64_t start = thread_cpu_nano();
        /* cpp_programs_poll() is first, because it may load the object that publishes a context. If
         * it is skipped here, the loading of the exporter calls it. */
        const bool done = !helper_constructors_are_over() || cpp_programs_poll();
        context_poll(&capture.contexts, done);
        python_poll(&capture.python);
        context_rest_after(&capture.contexts, thread_cpu_nano() - start);
    }
    atomic_store(&helper.loading, false);
    quiesce_lock_leave();
}

static uint64_t next_duty(void) {
    const uint64_t waits =
        earlier(earlier(wait_sampler_next_poll(&capture.waits), heap_next_poll(&capture.heap)),
                bound_calls_next_poll());
    return earlier(
        waits, earlier(watched_next_poll(&helper.watched), context_next_poll(&capture.contexts)));
}

int helper_wait_for_request(uint64_t deadline, bool (*enough)(void)) {
    helper.is_woken = false;
    for (;;) {
        const uint32_t wakes = wakes_so_far();
        const uint32_t request = atomic_load(&helper.request);
        if (request != REQUEST_TIMEOUT || monotonic_nano() >= deadline || helper.is_woken ||
            enough())
            return (int)request;
        helper_sleep_until(wakes, earlier(next_duty(), deadline));
        heap_poll(&capture.heap);
        wait_sampler_poll(&capture.waits);
        helper_poll_descriptors();
        helper_poll_objects();
    }
}

/* Unpublishes the profiler's process context if another context has appeared. Called before an
 * export, which reads that context. Takes the quiesce lock because a child forked meanwhile would
 * inherit the open file. */
static void helper_give_way(void) {
    if (!quiesce_lock_enter())
        return;
    cpp_programs_give_way();
    quiesce_lock_leave();
}

/* Accepts REQUEST_SUSPEND, unless the requesting thread has just given up. */
int helper_accept_suspend(void) {
    uint32_t asked = REQUEST_SUSPEND;
    helper.suspends = atomic_compare_exchange_strong(&helper.request, &asked, SUSPENDING);
    return helper.suspends ? REQUEST_SUSPEND : (int)asked;
}

/* Waits for a request until the deadline. After REQUEST_STOP was returned, only REQUEST_ABANDON
 * ends a sleep early. A request may have come while the flush side was busy, so it is checked
 * before each sleep. After REQUEST_SUSPEND each sleep lasts until its deadline. */
static int wait_until(uint64_t deadline) {
    const uint32_t wakes = wakes_so_far();
    const uint64_t leave_at = atomic_load(&helper.leave_at);
    if (leave_at && monotonic_nano() >= leave_at)
        atomic_store(&helper.request, REQUEST_ABANDON);
    if (leave_at && deadline > leave_at)
        deadline = leave_at;
    if (helper.stop_handed_over || helper.suspends) {
        if (atomic_load(&helper.request) == (helper.suspends ? SUSPENDING : REQUEST_STOP))
            helper_sleep_until(wakes, deadline);
        return (int)atomic_load(&helper.request);
    }
    const int request = helper_wait_for_request(deadline, wanted_export_is_asked);
    if (request == REQUEST_SUSPEND)
        return helper_accept_suspend();
    if (request == REQUEST_TIMEOUT)
        helper_give_way();
    child_ledger_poll();
    helper.stop_handed_over = request == REQUEST_STOP;
    atomic_store(&capture.last_harvest, helper.stop_handed_over);
    return request;
}

/* Waits for the flush side, and returns through the quiesce lock: so if a fork finds the flush side
 * in this wait, the flush side stays there until the fork is over. If the lock stays closed, the
 * process is about to end, and the flush side never continues. */
int helper_wait_outside(uint64_t deadline) {
    atomic_store(&helper.waits, true);
    const int request = wait_until(deadline);
    const bool entered = quiesce_lock_enter();
    atomic_store(&helper.waits, false);
    if (entered)
        quiesce_lock_leave();
    return request;
}

/* Sleeps instead of ending the thread. A thread that ends runs the destructors of every library
 * that it has used (OpenSSL has one), while the application's exit may be tearing those libraries
 * down. With all signals blocked the thread sleeps until the process has ended, or must end with
 * its last thread. */
void helper_park_forever(void) {
    for (;;) {
        const uint32_t wakes = wakes_so_far();
        if (atomic_load(&helper.leave_at))
            return;
        helper_sleep_until(wakes, UINT64_MAX);
    }
}
