/* Tests the life of the profiler in a process: its ends, its forks and its leaving, each once and
 * in order. The helper does nothing by itself (idle_helper.h). */
#include "unit.h"

#include "idle_helper.h"
#include "process/lifecycle.h"
#include "process/quiesce_lock.h"
#include "process/state.h"
#include "symbols/next.h"

#include <sys/prctl.h>
#include <sys/time.h>

/* --- replacements of libc's functions, for all that is linked to this test --- */

static struct {
    void (*prepare)(void);
    void (*in_parent)(void);
    void (*in_child)(void);
} fork_handlers;

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *object); /* NOLINT(bugprone-reserved-identifier) */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *object) {
    (void)object;
    fork_handlers.prepare = prepare;
    fork_handlers.in_parent = parent;
    fork_handlers.in_child = child;
    return 0;
}

/* Registers nothing: the tests call the end themselves. */
int atexit(void (*function)(void)) {
    (void)function;
    return 0;
}

static struct {
    struct itimerval left;
    int calls;
} interval_timer;

static int fake_setitimer(__itimer_which_t which, const struct itimerval *new,
                          struct itimerval *old) {
    interval_timer.calls++;
    if (which != ITIMER_PROF)
        return 0;
    if (old)
        *old = interval_timer.left;
    interval_timer.left = *new;
    return 0;
}

static int fake_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    (void)number, (void)action;
    if (old)
        memset(old, 0, sizeof *old);
    return 0;
}

static const struct next_calls calls = {
    .pthread_create = create_idle_thread, .setitimer = fake_setitimer, .sigaction = fake_sigaction};

const struct next_calls *next_calls(void) {
    return &calls;
}

const struct next_calls *next_library_calls(void) {
    return &calls;
}

/* --- a process that is profiled --- */

static int start(void **state) {
    (void)state;
    begin_without_helper();
    lifecycle_begin(&config, &quiet, prctl(PR_GET_SECCOMP));
    return state_now(&process_state) == STATE_ARMED ? 0 : -1;
}

/* Calls the handlers as fork() does in the child. */
static void become_a_child(void) {
    fork_handlers.prepare();
    fork_handlers.in_child();
}

static int begin(void **state) {
    (void)state;
    atomic_store(&process_state.now, STATE_LEFT); /* no end has begun in its child */
    fork_handlers.in_child();
    begin_without_helper();
    memset(&interval_timer, 0, sizeof interval_timer);
    memset(&capture.recorder.dropped, 0, sizeof capture.recorder.dropped);
    atomic_store(&capture.want_helper, NULL);
    atomic_store(&capture.uses_interval_timers, false);
    atomic_store(&capture.live_threads, 1);
    atomic_store(&process_state.now, STATE_ARMED);
    process_state.owner = getpid();
    return 0;
}

static int begin_at_work(void **state) {
    begin(state);
    start_working_helper();
    return 0;
}

static bool lock_is_open(void) {
    const bool open = quiesce_lock_close(0);
    if (open)
        quiesce_lock_leave();
    return open;
}

/* --- the end --- */

static void an_end_requests_a_last_cycle_and_stops_capture(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_done;
    lifecycle_end();
    assert_int_equal(requested(), REQUEST_STOP);
    assert_int_equal(fake_sleep.sleeps, 1);
    assert_int_equal(state_now(&process_state), STATE_ENDED);
    assert_true(atomic_load(&capture_is_off));
}

static void a_process_ends_once(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_done;
    lifecycle_end();
    atomic_store(&helper.request, REQUEST_TIMEOUT);
    atomic_store(&helper.state, HELPER_WORKS);
    lifecycle_end();
    lifecycle_end_at_once();
    assert_int_equal(requested(), REQUEST_TIMEOUT);
    assert_int_equal(fake_sleep.sleeps, 1);
}

static void an_end_waits_no_longer_than_the_setting(void **state) {
    (void)state;
    lifecycle_end_at_once();
    assert_int_equal(milliseconds_slept_at_work(), TIMEOUT_MS);
    assert_int_equal(requested(), REQUEST_ABANDON);
    assert_int_equal(state_now(&process_state), STATE_ENDED);
}

/* --- other calls that end the process, while the first makes its last export --- */

enum { MOMENT_MS = TIMEOUT_MS + 1000 }; /* LAST_MOMENT_MS */

static uint64_t slept_by_others; /* milliseconds, since the first end began */

static void *end_in_thread(void *unused) {
    lifecycle_end_at_once();
    return unused;
}

static void end_on_another_thread(void) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    slept_by_others = milliseconds_slept_at_work();
}

static void two_ends_come(void) {
    atomic_store(&fake_sleep.while_asleep, NULL); /* no further end comes while they sleep */
    end_on_another_thread();
    assert_int_equal(slept_by_others, MOMENT_MS);
    end_on_another_thread();
}

static void other_ends_wait_until_one_moment(void **state) {
    (void)state;
    fake_sleep.while_asleep = two_ends_come;
    lifecycle_end();
    assert_int_equal(slept_by_others, MOMENT_MS);
    assert_int_equal(state_now(&process_state), STATE_ENDED);
}

/* Ends the process again on the thread that is ending it, as a signal handler or an exit handler
 * may. */
static void ends_come_on_the_same_thread(void) {
    atomic_store(&fake_sleep.while_asleep, NULL);
    lifecycle_end_at_once();
    lifecycle_end();
    is_done();
}

static void a_thread_does_not_wait_for_its_own_end(void **state) {
    (void)state;
    fake_sleep.while_asleep = ends_come_on_the_same_thread;
    lifecycle_end();
    lifecycle_end();
    lifecycle_end_at_once();
    assert_int_equal(milliseconds_slept_at_work(), 0);
    assert_int_equal(requested(), REQUEST_STOP);
}

static void nothing_is_waited_for_behind_a_process_that_is_left(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_done;
    lifecycle_leave_process();
    const uint64_t slept = milliseconds_slept_at_work();
    end_on_another_thread();
    assert_int_equal(slept_by_others, slept);
}

static int cancellation_at_work;

static void note_cancellation(void) {
    int none;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation_at_work);
    pthread_setcancelstate(cancellation_at_work, &none);
    is_done();
}

static void an_end_is_no_cancellation_point(void **state) {
    int before;
    (void)state;
    fake_sleep.while_asleep = note_cancellation;
    lifecycle_end();
    assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before), 0);
    assert_int_equal(before, PTHREAD_CANCEL_ENABLE);
    assert_int_equal(cancellation_at_work, PTHREAD_CANCEL_DISABLE);
}

static void a_child_of_vfork_ends_without_us(void **state) {
    (void)state;
    process_state.owner = getppid();
    lifecycle_end();
    lifecycle_end_at_once();
    assert_int_equal(requested(), REQUEST_TIMEOUT);
    assert_int_equal(state_now(&process_state), STATE_ARMED);
}

/* Stops the interval timer for the last export: it has no handler any more, and may expire. */
static void an_interval_timer_rests_meanwhile(void **state) {
    (void)state;
    interval_timer.left.it_value.tv_sec = 5;
    fake_sleep.while_asleep = is_done;
    lifecycle_end();
    assert_int_equal(interval_timer.calls, 0); /* the program uses none */
    begin_at_work(state);
    interval_timer.left.it_value.tv_sec = 5;
    atomic_store(&capture.uses_interval_timers, true);
    fake_sleep.while_asleep = is_done;
    lifecycle_end();
    assert_int_equal(interval_timer.calls, 3); /* stopped twice, started again once */
    assert_int_equal(interval_timer.left.it_value.tv_sec, 5);
}

static void behind_the_last_thread_a_last_cycle_is_made(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_done;
    capture.on_last_thread();
    assert_int_equal(requested(), REQUEST_STOP);
    assert_int_equal(state_now(&process_state), STATE_DRAINING);
    lifecycle_end(); /* that thread calls exit */
    assert_int_equal(state_now(&process_state), STATE_ENDED);
}

static void only_a_process_that_lived_long_enough_sends(void **state) {
    (void)state;
    assert_false(lifecycle_may_send());
    become_due();
    assert_true(lifecycle_may_send());
    atomic_store(&process_state.now, STATE_OFF);
    assert_false(lifecycle_may_send());
}

/* --- fork --- */

static void a_fork_keeps_the_helper_and_the_modules_still(void **state) {
    (void)state;
    fork_handlers.prepare();
    assert_false(lock_is_open());
    assert_int_equal(pthread_mutex_trylock(&capture.modules.lock), EBUSY);
    fork_handlers.in_parent();
    assert_true(lock_is_open());
    assert_int_equal(pthread_mutex_trylock(&capture.modules.lock), 0);
    pthread_mutex_unlock(&capture.modules.lock);
    assert_int_equal(capture.recorder.dropped[DROP_CHILD], 0);
}

static void a_child_gets_a_helper_when_it_has_lived(void **state) {
    (void)state;
    become_a_child();
    assert_int_equal(state_now(&process_state), STATE_CHILD);
    void (*const want_helper)(bool) = atomic_load(&capture.want_helper);
    assert_non_null(want_helper);
    want_helper(true);
    assert_int_equal(helper_threads.created, 1); /* the parent's helper */
    become_due();
    want_helper(true);
    assert_int_equal(helper_threads.created, 2);
    assert_int_equal(state_now(&process_state), STATE_ARMED);
    assert_null(atomic_load(&capture.want_helper));
}

static void vfork_children_and_ending_processes_get_no_helper(void **state) {
    (void)state;
    become_a_child();
    become_due();
    void (*const want_helper)(bool) = atomic_load(&capture.want_helper);
    process_state.owner = getppid(); /* in a child of vfork() */
    want_helper(true);
    process_state.owner = getpid();
    atomic_store(&process_state.now, STATE_DRAINING);
    want_helper(true);
    atomic_store(&process_state.now, STATE_ENDING);
    want_helper(true);
    assert_int_equal(helper_threads.created, 1);
}

static void a_child_that_ends_first_gets_one_for_its_last_export(void **state) {
    (void)state;
    become_a_child();
    lifecycle_end();
    assert_int_equal(helper_threads.created, 1); /* the child has not lived long enough */
    begin_at_work(state);
    become_a_child();
    become_due();
    fake_sleep.while_asleep = is_done;
    lifecycle_end();
    assert_int_equal(helper_threads.created, 2);
    assert_int_equal(requested(), REQUEST_STOP);
}

/* Ends a child at once: it may be in the middle of anything, so no helper is started. */
static void a_child_that_ends_at_once_gets_none(void **state) {
    (void)state;
    become_a_child();
    become_due();
    lifecycle_end_at_once();
    assert_int_equal(helper_threads.created, 1);
    assert_int_equal(state_now(&process_state), STATE_ENDED);
}

static void a_child_of_a_process_that_ends_lives(void **state) {
    (void)state;
    atomic_store(&process_state.now, STATE_ENDING);
    become_a_child();
    assert_int_equal(state_now(&process_state), STATE_CHILD);
    fake_sleep.while_asleep = is_done;
    lifecycle_end();
    assert_int_equal(state_now(&process_state), STATE_ENDED);
}

static void a_child_waits_for_no_end_of_its_parents(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_done;
    lifecycle_end();
    become_a_child();
    const uint64_t slept = milliseconds_slept_at_work();
    end_on_another_thread(); /* the child has no helper */
    assert_int_equal(slept_by_others, slept);
    assert_int_equal(state_now(&process_state), STATE_ENDED);
}

static void a_child_of_a_helper_inside_a_library_is_not_profiled(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    become_a_child();
    assert_int_equal(state_now(&process_state), STATE_LEFT);
    assert_true(lifecycle_is_out());
    assert_true(atomic_load(&capture_is_off));
    assert_null(atomic_load(&capture.want_helper));
}

static void the_parent_counts_a_child_that_is_not_profiled(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    fork_handlers.prepare();
    fork_handlers.in_parent();
    assert_int_equal(capture.recorder.dropped[DROP_CHILD], 1);
    assert_false(profiler_tls.loader_in_use);
    quiesce_lock_leave();
}

static void a_bare_copy_is_made_beside_a_helper_kept_out(void **state) {
    (void)state;
    atomic_store(&helper.waits, true);
    assert_true(lifecycle_before_bare_child());
    assert_false(lock_is_open());
    lifecycle_after_bare_child();
    assert_true(lock_is_open());
    process_state.owner = getppid();
    assert_false(lifecycle_before_bare_child());
    process_state.owner = getpid();
    atomic_store(&process_state.now, STATE_ENDING);
    assert_false(lifecycle_before_bare_child());
}

/* Ends the process in the middle of a fork, as a handler may: the helper would wait for the fork's
 * locks. */
static void an_end_within_a_fork_lets_the_helper_in(void **state) {
    (void)state;
    fork_handlers.prepare();
    fake_sleep.while_asleep = is_done;
    lifecycle_end_at_once();
    assert_true(lock_is_open());
    assert_false(profiler_tls.modules_locked);
}

/* --- leaving --- */

static void a_process_that_leaves_has_nothing_of_ours(void **state) {
    (void)state;
    fake_sleep.while_asleep = is_done;
    lifecycle_leave_process();
    assert_int_equal(state_now(&process_state), STATE_LEFT);
    assert_true(lifecycle_is_out());
    assert_true(atomic_load(&capture_is_off));
    assert_false(helper_join()); /* the helper has ended */
    const int sleeps = fake_sleep.sleeps;
    lifecycle_end();
    fork_handlers.prepare(); /* the process forks as without a profiler */
    assert_true(lock_is_open());
    assert_int_equal(fake_sleep.sleeps, sleeps);
}

static void a_helper_that_has_loaded_nothing_is_gone_at_once(void **state) {
    (void)state;
    start_idle_helper();
    lifecycle_leave_process();
    assert_int_equal(atomic_load(&helper.state), HELPER_SUSPENDED);
    assert_int_equal(state_now(&process_state), STATE_LEFT);
}

static void a_process_that_was_declined_stays_as_it_is(void **state) {
    (void)state;
    atomic_store(&process_state.now, STATE_STARTING);
    lifecycle_decline();
    assert_int_equal(state_now(&process_state), STATE_OFF);
    assert_true(atomic_load(&capture_is_off));
    lifecycle_end();
    assert_int_equal(state_now(&process_state), STATE_OFF);
}

int main(void) {
#define TEST(name, begin) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(an_end_requests_a_last_cycle_and_stops_capture, begin_at_work),
        TEST(a_process_ends_once, begin_at_work),
        TEST(an_end_waits_no_longer_than_the_setting, begin_at_work),
        TEST(other_ends_wait_until_one_moment, begin_at_work),
        TEST(a_thread_does_not_wait_for_its_own_end, begin_at_work),
        TEST(nothing_is_waited_for_behind_a_process_that_is_left, begin_at_work),
        TEST(an_end_is_no_cancellation_point, begin_at_work),
        TEST(a_child_of_vfork_ends_without_us, begin_at_work),
        TEST(an_interval_timer_rests_meanwhile, begin_at_work),
        TEST(behind_the_last_thread_a_last_cycle_is_made, begin_at_work),
        TEST(only_a_process_that_lived_long_enough_sends, begin),
        TEST(a_fork_keeps_the_helper_and_the_modules_still, begin_at_work),
        TEST(a_child_gets_a_helper_when_it_has_lived, begin_at_work),
        TEST(vfork_children_and_ending_processes_get_no_helper, begin_at_work),
        TEST(a_child_that_ends_first_gets_one_for_its_last_export, begin_at_work),
        TEST(a_child_that_ends_at_once_gets_none, begin_at_work),
        TEST(a_child_of_a_process_that_ends_lives, begin_at_work),
        TEST(a_child_waits_for_no_end_of_its_parents, begin_at_work),
        TEST(a_child_of_a_helper_inside_a_library_is_not_profiled, begin_at_work),
        TEST(the_parent_counts_a_child_that_is_not_profiled, begin_at_work),
        TEST(a_bare_copy_is_made_beside_a_helper_kept_out, begin_at_work),
        TEST(an_end_within_a_fork_lets_the_helper_in, begin_at_work),
        TEST(a_process_that_leaves_has_nothing_of_ours, begin_at_work),
        TEST(a_helper_that_has_loaded_nothing_is_gone_at_once, begin),
        TEST(a_process_that_was_declined_stays_as_it_is, begin),
    };
#undef TEST
    return cmocka_run_group_tests(tests, start, NULL);
}
