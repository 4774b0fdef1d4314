/* Tests the requests of the application's threads to the helper: to suspend, and to end. No helper
 * works here; the test does a helper's work while the other threads sleep. */
#include "unit.h"

#include "idle_helper.h"
#include "process/quiesce.h"
#include "process/quiesce_lock.h"
#include "symbols/next.h"

/* Replaces the code that finds the C library's functions. */
static const struct next_calls calls = {.pthread_create = create_idle_thread};

const struct next_calls *next_calls(void) {
    return &calls;
}

const struct next_calls *next_library_calls(void) {
    return &calls;
}

static int begin(void **state) {
    (void)state;
    begin_without_helper();
    return 0;
}

static int begin_with_helper(void **state) {
    begin(state);
    start_idle_helper();
    return 0;
}

static int begin_at_work(void **state) {
    begin(state);
    start_working_helper();
    return 0;
}

/* Ends the helper as the life of the process does (lifecycle.c). */
static void finish(void) {
    atomic_store(&process_state.now, STATE_ENDED);
    helper_finish(TIMEOUT_MS);
}

/* --- start --- */

static void one_helper_is_started(void **state) {
    (void)state;
    assert_true(helper_start());
    assert_true(helper_start());
    assert_int_equal(helper_threads.created, 1);
    assert_int_equal(atomic_load(&helper.state), HELPER_WAITS);
    assert_true(helper_suspend_waiting());
}

static void without_a_thread_nothing_waits_for_it(void **state) {
    (void)state;
    helper_threads.refused = true;
    assert_false(helper_start());
    assert_int_equal(atomic_load(&helper.state), HELPER_DONE);
    finish();
    assert_int_equal(fake_sleep.sleeps, 0);
    assert_false(helper_join());
}

static void none_is_started_at_the_end(void **state) {
    (void)state;
    finish();
    assert_true(helper_start());
    assert_int_equal(helper_threads.created, 0);
    assert_int_equal(atomic_load(&helper.state), HELPER_DONE);
}

/* --- a helper that has loaded nothing --- */

static void before_it_loads_it_ends_and_another_begins(void **state) {
    (void)state;
    assert_true(helper_suspend_waiting());
    assert_int_equal(requested(), REQUEST_ABANDON);
    assert_int_equal(atomic_load(&helper.state), HELPER_SUSPENDED);
    assert_false(helper_suspend_waiting());
    helper_replace();
    assert_int_equal(helper_threads.created, 2);
    assert_int_equal(atomic_load(&helper.state), HELPER_WAITS);
    assert_int_equal(requested(), REQUEST_TIMEOUT);
    assert_true(helper_suspend_waiting());
}

static void one_thread_alone_joins_it(void **state) {
    (void)state;
    assert_false(atomic_exchange(&helper.joined, true)); /* joined by another thread */
    assert_false(helper_suspend_waiting());
    pthread_join(helper.thread, NULL);
}

/* --- a helper at work --- */

static void answer_suspend(void) {
    assert_int_equal(requested(), REQUEST_SUSPEND);
    atomic_store(&helper.request, REQUEST_TIMEOUT);
    atomic_store(&helper.state, HELPER_SUSPENDED);
}

static void a_working_helper_is_asked_to_suspend_and_awaited(void **state) {
    (void)state;
    assert_false(helper_suspend_waiting());
    fake_sleep.while_asleep = answer_suspend;
    assert_true(helper_suspend_working(TIMEOUT_MS));
    assert_int_equal(fake_sleep.sleeps, 1);
    assert_int_equal(atomic_load(&helper.state), HELPER_SUSPENDED);
}

static void a_helper_that_does_not_respond_stays(void **state) {
    (void)state;
    assert_false(helper_suspend_working(TIMEOUT_MS));
    assert_int_equal(milliseconds_slept_at_work(), TIMEOUT_MS);
    assert_int_equal(requested(), REQUEST_TIMEOUT); /* no further request is made */
    assert_int_equal(atomic_load(&helper.state), HELPER_WORKS);
}

/* Acts as another thread that calls exit() while this one waits. */
static void exit_meanwhile(void) {
    atomic_store(&helper.request, REQUEST_STOP);
    atomic_store(&helper.state, HELPER_DONE);
}

static void an_exit_goes_before_a_suspension(void **state) {
    (void)state;
    fake_sleep.while_asleep = exit_meanwhile;
    assert_false(helper_suspend_working(TIMEOUT_MS));
    assert_int_equal(requested(), REQUEST_STOP);
}

/* --- suspend and resume --- */

static void a_suspended_helper_is_resumed(void **state) {
    (void)state;
    assert_true(helper_quiesce(QUIESCE_GONE, TIMEOUT_MS));
    helper_resume(QUIESCE_GONE);
    assert_int_equal(helper_threads.created, 2);
    atomic_store(&helper.tid, ENDED);
    atomic_store(&helper.state, HELPER_WORKS);
    fake_sleep.while_asleep = answer_suspend;
    assert_true(helper_quiesce(QUIESCE_GONE, TIMEOUT_MS));
    helper_resume(QUIESCE_GONE);
    assert_int_equal(helper_threads.created, 3);
    helper_resume(QUIESCE_GONE); /* the helper runs */
    assert_int_equal(helper_threads.created, 3);
}

static void only_a_helper_of_this_process_is_suspended(void **state) {
    (void)state;
    capture.pid = getppid(); /* as in a child of vfork() */
    assert_false(helper_quiesce(QUIESCE_GONE, TIMEOUT_MS));
    atomic_store(&helper.state, HELPER_WORKS);
    assert_false(helper_quiesce(QUIESCE_GONE, TIMEOUT_MS));
    atomic_store(&helper.state, HELPER_WAITS);
    capture.pid = getpid();
    profiler_tls.is_profiler_thread = true; /* on the helper itself */
    assert_false(helper_quiesce(QUIESCE_GONE, TIMEOUT_MS));
    profiler_tls.is_profiler_thread = false;
    assert_int_equal(requested(), REQUEST_TIMEOUT);
    atomic_store(&helper.state, HELPER_NONE);
    assert_false(helper_quiesce(QUIESCE_GONE, TIMEOUT_MS));
    assert_int_equal(fake_sleep.sleeps, 0);
}

/* Suspends a helper at rest, whose thread still exists. */
static void a_helper_at_rest_ends_and_is_not_resumed(void **state) {
    (void)state;
    is_done();
    assert_true(helper_quiesce(QUIESCE_GONE, TIMEOUT_MS));
    helper_resume(QUIESCE_GONE);
    assert_int_equal(helper_threads.created, 1);
    assert_int_equal(atomic_load(&helper.state), HELPER_DONE);
}

/* --- loading early --- */

static void is_loaded(void) {
    if (fake_sleep.sleeps == 1)
        atomic_store(&helper.early, EARLY_DONE);
}

static void the_helper_is_asked_to_load_once_and_awaited(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_loaded;
    helper_load_early();
    assert_int_equal(fake_sleep.sleeps, 1);
    helper_load_early();
    assert_int_equal(fake_sleep.sleeps, 1);
}

static void loading_is_waited_for_half_a_second(void **state) {
    (void)state;
    helper_load_early();
    assert_int_equal(milliseconds_slept(), 500);
    assert_int_equal(atomic_load(&helper.early), EARLY_ASKED); /* the library may still be loaded */
}

static void before_paths_lead_elsewhere_it_loads_and_is_gone(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_loaded;
    assert_true(helper_quiesce(QUIESCE_LOADED, TIMEOUT_MS));
    assert_int_equal(fake_sleep.sleeps, 1);
    assert_int_equal(atomic_load(&helper.state), HELPER_SUSPENDED);
    helper_resume(QUIESCE_LOADED);
    assert_int_equal(helper_threads.created, 2);
}

static void where_paths_lead_elsewhere_a_busy_helper_ends(void **state) {
    (void)state;
    assert_false(helper_quiesce(QUIESCE_GONE, TIMEOUT_MS));
    assert_int_equal(atomic_load(&helper.leave_at), 0); /* the helper is not ordered to leave */
    atomic_store(&helper.early, EARLY_DONE);
    assert_false(helper_quiesce(QUIESCE_LOADED, TIMEOUT_MS));
    assert_int_not_equal(atomic_load(&helper.leave_at), 0);
}

/* --- the end --- */

static void before_its_time_it_is_not_even_woken(void **state) {
    (void)state;
    finish();
    assert_int_equal(requested(), REQUEST_TIMEOUT);
    assert_int_equal(fake_sleep.sleeps, 0);
    assert_int_equal(atomic_load(&helper.state), HELPER_LEAVES);
}

static void a_last_cycle_is_waited_for(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_done;
    finish();
    assert_int_equal(requested(), REQUEST_STOP);
    assert_int_equal(milliseconds_slept_at_work(), 0);
}

static bool is_open(void) {
    const bool open = quiesce_lock_close(0);
    if (open)
        quiesce_lock_leave();
    return open;
}

static void an_idle_helper_stays_and_is_kept_out(void **state) {
    (void)state;
    atomic_store(&helper.waits, true);
    assert_true(helper_quiesce(QUIESCE_IDLE, TIMEOUT_MS));
    assert_false(is_open());
    assert_int_equal(requested(), REQUEST_TIMEOUT);
    helper_resume(QUIESCE_IDLE);
    assert_true(is_open());
}

static void a_late_helper_is_abandoned_and_kept_out(void **state) {
    (void)state;
    finish();
    assert_int_equal(requested(), REQUEST_ABANDON);
    assert_int_equal(milliseconds_slept_at_work(), TIMEOUT_MS);
    assert_false(is_open());
}

static void a_late_helper_in_a_library_is_waited_for(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    finish();
    assert_int_equal(milliseconds_slept_at_work(), TIMEOUT_MS + 1000);
}

static void a_late_helper_that_loads_is_waited_for_longer(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    atomic_store(&helper.loading, true);
    finish();
    assert_int_equal(milliseconds_slept_at_work(), TIMEOUT_MS + 10000);
}

static void libraries_that_outlive_the_exit_are_not_waited_for(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    atomic_store(&helper.libraries_outlive_exit, true);
    finish();
    assert_int_equal(milliseconds_slept_at_work(), TIMEOUT_MS);
    quiesce_lock_leave();
    assert_true(is_open());
}

static void a_helper_at_rest_is_joined_once(void **state) {
    (void)state;
    assert_false(helper_join()); /* the helper is at work */
    is_done();
    assert_true(helper_join());
    assert_int_equal(requested(), REQUEST_ABANDON);
    assert_int_not_equal(atomic_load(&helper.leave_at), 0);
    assert_false(helper_join());
}

static void behind_the_last_thread_the_helper_ends(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_done;
    helper_leave(TIMEOUT_MS);
    assert_int_equal(requested(), REQUEST_STOP);
    assert_int_equal(helper_threads.created, 1);
    assert_false(helper_join()); /* the helper has ended */
}

static void a_late_helper_is_outlived_by_another_thread(void **state) {
    (void)state;
    helper_leave(TIMEOUT_MS);
    assert_int_equal(milliseconds_slept_at_work(), TIMEOUT_MS);
    assert_int_equal(helper_threads.created, 2);
    assert_false(helper_join());
}

static void a_helper_that_must_not_go_on_is_ended_once(void **state) {
    (void)state;
    helper_end("a test ends it");
    const uint64_t first = atomic_load(&helper.leave_at);
    assert_int_not_equal(first, 0);
    assert_int_equal(requested(), REQUEST_ABANDON);
    assert_true(atomic_load(&capture_is_off));
    atomic_store(&helper.request, REQUEST_TIMEOUT);
    fake_sleep.now_nano++;
    helper_end("a test ends it again");
    assert_int_equal(atomic_load(&helper.leave_at), first);
    assert_int_equal(requested(), REQUEST_TIMEOUT);
}

/* --- fork --- */

static void a_child_has_no_helper_and_may_have_one(void **state) {
    (void)state;
    finish();
    helper.suspended = &helper_threads;
    atomic_store(&capture.last_harvest, true);
    assert_true(helper_after_fork());
    atomic_store(&process_state.now, STATE_CHILD);
    assert_int_equal(atomic_load(&helper.state), HELPER_NONE);
    assert_int_equal(requested(), REQUEST_TIMEOUT);
    assert_null(helper.suspended); /* samples of the parent */
    assert_false(atomic_load(&capture.last_harvest));
    assert_false(helper_is_due()); /* the child's life begins */
    assert_true(helper_start());
    assert_int_equal(helper_threads.created, 2);
}

int main(void) {
#define TEST(name, begin) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(one_helper_is_started, begin),
        TEST(without_a_thread_nothing_waits_for_it, begin),
        TEST(none_is_started_at_the_end, begin),
        TEST(before_it_loads_it_ends_and_another_begins, begin_with_helper),
        TEST(one_thread_alone_joins_it, begin_with_helper),
        TEST(a_working_helper_is_asked_to_suspend_and_awaited, begin_at_work),
        TEST(a_helper_that_does_not_respond_stays, begin_at_work),
        TEST(an_exit_goes_before_a_suspension, begin_at_work),
        TEST(a_suspended_helper_is_resumed, begin_with_helper),
        TEST(only_a_helper_of_this_process_is_suspended, begin_with_helper),
        TEST(a_helper_at_rest_ends_and_is_not_resumed, begin_at_work),
        TEST(the_helper_is_asked_to_load_once_and_awaited, begin_with_helper),
        TEST(loading_is_waited_for_half_a_second, begin_with_helper),
        TEST(before_paths_lead_elsewhere_it_loads_and_is_gone, begin_with_helper),
        TEST(where_paths_lead_elsewhere_a_busy_helper_ends, begin_at_work),
        TEST(before_its_time_it_is_not_even_woken, begin_with_helper),
        TEST(a_last_cycle_is_waited_for, begin_at_work),
        TEST(an_idle_helper_stays_and_is_kept_out, begin_at_work),
        TEST(a_late_helper_is_abandoned_and_kept_out, begin_at_work),
        TEST(a_late_helper_in_a_library_is_waited_for, begin_at_work),
        TEST(a_late_helper_that_loads_is_waited_for_longer, begin_at_work),
        TEST(libraries_that_outlive_the_exit_are_not_waited_for, begin_at_work),
        TEST(a_helper_at_rest_is_joined_once, begin_at_work),
        TEST(behind_the_last_thread_the_helper_ends, begin_at_work),
        TEST(a_late_helper_is_outlived_by_another_thread, begin_at_work),
        TEST(a_helper_that_must_not_go_on_is_ended_once, begin_at_work),
        TEST(a_child_has_no_helper_and_may_have_one, begin_at_work),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
