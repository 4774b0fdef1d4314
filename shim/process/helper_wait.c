#include "helper_wait.h"

#include "capture/bound_calls.h"
#include "capture/capture.h"
#include "capture/kernel/futex.h"
#include "clock.h"
#include "cpp_programs.h"
#include "crash_guard.h"
#include "harvest.h"
#include "helper.h"
#include "helper_parts.h"
#include "main_watch.h"
#include "quiesce_lock.h"
#include "served_descriptors.h"
#include "wanted_export.h"

#include <stdatomic.h>

/* A request beside those of harvest.h: WAIT_SUSPEND was handed over. */
enum { SUSPENDING = 100 };

static struct served_descriptors served;
static bool is_enough; /* helper_wait_end() */

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* To be read before all that a sleep depends on: a wake that comes later ends that sleep, also
 * where the sleep has not begun. */
static uint32_t wakes_so_far(void) {
    return atomic_load(&helper.wakes);
}

/* Sleeps unless there were more wakes than `wakes`, and looks after the main thread and the crash
 * guard. */
static void sleep_until(uint32_t wakes, uint64_t deadline) {
    const uint64_t next_look = earlier(main_watch_next_look(), crash_guard_next_look());
    futex_wait(&helper.wakes, wakes, earlier(next_look, deadline));
    main_watch_look();
    crash_guard_look();
}

void helper_wait_begin(void) {
    served_clear(&served);
    heap_peak_set_alarm(&capture.heap.peak, helper_wake);
}

bool helper_wait_serve(const struct served_descriptor *added) {
    return served_add(&served, added);
}

void helper_wait_serve_no_more(int descriptor) {
    served_remove(&served, descriptor);
}

void helper_wait_end(void) {
    is_enough = true;
}

/* A request goes first. Under the quiesce lock, as all that may be in a library. */
static void serve_ready(void) {
    if (atomic_load(&helper.request) != WAIT_TIMEOUT || !served_look(&served) ||
        !quiesce_lock_enter())
        return;
    served_serve(&served);
    quiesce_lock_leave();
}

void helper_wake(void) {
    atomic_fetch_add(&helper.wakes, 1);
    futex_wake(&helper.wakes);
}

/* Likewise: the loader's lock is taken. */
static void look_at_loaded(void) {
    const uint64_t now = monotonic_nano();
    const bool for_contexts = now >= context_next_look(&capture.contexts);
    if (atomic_load(&helper.request) != WAIT_TIMEOUT ||
        (!for_contexts && now < bound_calls_next_look()) || !quiesce_lock_enter())
        return;
    atomic_store(&helper.loading, true);
    bound_calls_look();
    if (for_contexts) {
        /* first: it may load what publishes a context. What is skipped here is done when the
         * exporter is loaded. */
        if (helper_constructors_are_over())
            cpp_programs_look();
        context_look(&capture.contexts);
        python_look(&capture.python);
    }
    atomic_store(&helper.loading, false);
    quiesce_lock_leave();
}

static uint64_t next_duty(void) {
    const uint64_t waits =
        earlier(earlier(wait_sampler_next_look(&capture.waits), heap_next_look(&capture.heap)),
                bound_calls_next_look());
    return earlier(waits, earlier(served_next_look(&served), context_next_look(&capture.contexts)));
}

int helper_wait_for_request(uint64_t deadline, bool (*enough)(void)) {
    is_enough = false;
    for (;;) {
        const uint32_t wakes = wakes_so_far();
        const uint32_t request = atomic_load(&helper.request);
        if (request != WAIT_TIMEOUT || monotonic_nano() >= deadline || is_enough || enough())
            return (int)request;
        sleep_until(wakes, earlier(next_duty(), deadline));
        heap_look(&capture.heap);
        wait_sampler_look(&capture.waits);
        serve_ready();
        look_at_loaded();
    }
}

/* Before an export, which reads the process context. A child forked meanwhile would inherit the
 * file that is read. */
static void give_way(void) {
    if (!quiesce_lock_enter())
        return;
    cpp_programs_give_way();
    quiesce_lock_leave();
}

/* Who asked may have given up just now: then there is nothing to be done. */
int helper_answer_suspend(void) {
    uint32_t asked = WAIT_SUSPEND;
    helper.suspends = atomic_compare_exchange_strong(&helper.request, &asked, SUSPENDING);
    return helper.suspends ? WAIT_SUSPEND : (int)asked;
}

/* Once WAIT_STOP has been handed over, only WAIT_ABANDON ends a sleep early. It may have come while
 * the flush side was busy, so it is not enough that it was there before the sleep. After
 * WAIT_SUSPEND each sleep is as long as was asked. */
static int wait_until(uint64_t deadline) {
    const uint32_t wakes = wakes_so_far();
    const uint64_t leave_at = atomic_load(&helper.leave_at);
    if (leave_at && monotonic_nano() >= leave_at)
        atomic_store(&helper.request, WAIT_ABANDON);
    if (leave_at && deadline > leave_at)
        deadline = leave_at;
    if (helper.stop_handed_over || helper.suspends) {
        if (atomic_load(&helper.request) == (helper.suspends ? SUSPENDING : WAIT_STOP))
            sleep_until(wakes, deadline);
        return (int)atomic_load(&helper.request);
    }
    const int request = helper_wait_for_request(deadline, wanted_export_is_asked);
    if (request == WAIT_SUSPEND)
        return helper_answer_suspend();
    if (request == WAIT_TIMEOUT)
        give_way();
    helper.stop_handed_over = request == WAIT_STOP;
    atomic_store(&capture.last_harvest, helper.stop_handed_over);
    return request;
}

/* A fork that finds the flush side here finds it here to its end. Where the lock stays closed the
 * process is past saving, and the flush side does nothing any more. */
int helper_wait_outside(uint64_t deadline) {
    atomic_store(&helper.waits, true);
    const int request = wait_until(deadline);
    const bool entered = quiesce_lock_enter();
    atomic_store(&helper.waits, false);
    if (entered)
        quiesce_lock_leave();
    return request;
}

/* A thread that ends runs the destructors of every library that it has used (OpenSSL has one),
 * while the application's exit may be tearing those libraries down. So the thread does not end;
 * with all signals blocked it sleeps until the process is gone, or is to end with its last
 * thread. */
void helper_rest(void) {
    for (;;) {
        const uint32_t wakes = wakes_so_far();
        if (atomic_load(&helper.leave_at))
            return;
        sleep_until(wakes, UINT64_MAX);
    }
}
