/* Tests whether libc takes the process for single-threaded beside the helper (libc_threads.h). libc
 * may do so only while the kernel counts no other thread, or only the helper's, and the helper
 * sleeps and stays asleep. Otherwise libc would take and release its locks, and the loader's,
 * without waking a waiter, which would then wait for ever. The test provides the kernel's count. */
#include "unit.h"

#include "idle_helper.h"
#include "process/lifecycle.h"
#include "process/quiesce_lock.h"
#include "symbols/libc_threads.h"
#include "symbols/next.h"

#include <sys/prctl.h>

/* --- replacements of libc's functions and our own, for all that is linked to this test --- */

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

static void *(*helper_main)(void *);

static int create_thread(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *),
                         void *argument) {
    helper_main = run;
    return create_idle_thread(id, attributes, run, argument);
}

static int fake_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    (void)number, (void)action;
    if (old)
        memset(old, 0, sizeof *old);
    return 0;
}

static const struct next_calls calls = {.pthread_create = create_thread,
                                        .sigaction = fake_sigaction};

const struct next_calls *next_calls(void) {
    return &calls;
}

const struct next_calls *next_library_calls(void) {
    return &calls;
}

/* Counts the helper's calls of malloc, by the helper's state during the call. */
void *__libc_malloc(size_t size); /* NOLINT(bugprone-reserved-identifier) */
static _Atomic int calls_while_it_waits, calls_while_it_works;

void *malloc(size_t size) {
    if (profiler_tls.is_profiler_thread)
        atomic_fetch_add(atomic_load(&helper.waits) ? &calls_while_it_waits : &calls_while_it_works,
                         1);
    return __libc_malloc(size);
}

static struct {
    unsigned counted; /* threads that the kernel counts */
    bool single;      /* libc takes the process for single-threaded */
} threads;

void libc_threads_finish_init(void) {
}

unsigned libc_threads_count(void) {
    return threads.counted;
}

void libc_set_single_threaded(bool single) {
    threads.single = single;
}

/* --- a program with signal handlers, of one thread, and the helper --- */

static int start(void **state) {
    (void)state;
    begin_without_helper();
    lifecycle_begin(&config, &quiet, prctl(PR_GET_SECCOMP));
    return state_now(&process_state) == STATE_ARMED ? 0 : -1;
}

static int begin(void **state) {
    (void)state;
    atomic_store(&process_state.now, STATE_LEFT); /* no end has begun in its child */
    fork_handlers.in_child();
    begin_without_helper();
    atomic_store(&capture.has_handlers, true);
    atomic_store(&capture.live_threads, 1);
    threads.counted = 2;
    threads.single = false;
    return 0;
}

/* Gives the helper the id of this thread, which exists for the kernel. */
static void helper_is_there(void) {
    atomic_store(&helper.tid, (uint32_t)gettid());
}

static int begin_at_work(void **state) {
    begin(state);
    start_working_helper();
    helper_is_there();
    return 0;
}

/* Begins a wait for a time that does not come before the end. */
static int begin_waiting(void **state) {
    begin(state);
    start_idle_helper();
    helper_is_there();
    atomic_store(&helper.waits, true);
    return 0;
}

static void come_to_rest(void) {
    atomic_store(&helper.rests, true);
    is_done();
}

/* --- a helper that has made its last export --- */

static void libc_is_single_threaded_beside_a_helper_in_its_last_sleep(void **state) {
    (void)state;
    fake_sleep.while_asleep = come_to_rest;
    lifecycle_end();
    assert_true(threads.single);
}

static void come_to_rest_and_leave(void) {
    come_to_rest();
    atomic_store(&helper.leave_at, 1);
}

/* The kernel still counts the helper, which may be anywhere in libc. */
static void libc_stays_threaded_while_the_helper_leaves(void **state) {
    (void)state;
    fake_sleep.while_asleep = come_to_rest_and_leave;
    lifecycle_end();
    assert_false(threads.single);
}

/* Adds a thread of the program's, or of a library that the helper has used. */
static void libc_stays_threaded_beside_another_thread(void **state) {
    (void)state;
    atomic_store(&helper.tid, ENDED);
    fake_sleep.while_asleep = come_to_rest;
    lifecycle_end();
    assert_false(threads.single);
    begin_at_work(state);
    threads.counted = 3;
    fake_sleep.while_asleep = come_to_rest;
    lifecycle_end();
    assert_false(threads.single);
}

static void libc_is_single_threaded_if_the_kernel_counts_one_thread(void **state) {
    (void)state;
    threads.counted = 1;
    fake_sleep.while_asleep = come_to_rest_and_leave;
    lifecycle_end();
    assert_true(threads.single);
}

static void libc_stays_threaded_with_a_late_helper(void **state) {
    (void)state;
    lifecycle_end();
    assert_int_equal(milliseconds_slept_at_work(), TIMEOUT_MS);
    assert_int_equal(requested(), REQUEST_ABANDON);
    assert_false(threads.single);
}

/* Ends the last thread in an exit handler. The helper ends as well, and calls libc meanwhile, so
 * libc must count it. */
static bool believed_while_it_ends;

static void end_for_good(void) {
    believed_while_it_ends = threads.single;
    is_done();
}

static void libc_knows_of_a_helper_that_ends_behind_the_last_thread(void **state) {
    (void)state;
    lifecycle_end();
    assert_true(threads.single);
    believed_while_it_ends = true;
    fake_sleep.while_asleep = end_for_good;
    capture.on_last_thread();
    assert_int_equal(requested(), REQUEST_STOP);
    assert_false(believed_while_it_ends);
}

/* --- a helper that waits for its time --- */

static void it_is_kept_out_to_the_end(void **state) {
    (void)state;
    lifecycle_end();
    assert_true(threads.single);
    assert_int_equal(fake_sleep.sleeps, 0);
    assert_int_equal(requested(), REQUEST_TIMEOUT);
    fork_handlers.prepare(); /* fork in an exit handler */
    fork_handlers.in_parent();
    assert_int_equal(fake_sleep.sleeps, 0);
    assert_false(quiesce_lock_close(0));
    assert_true(helper_is_at_rest());
    fork_handlers.prepare();
    fork_handlers.in_child(); /* the child has a life of its own */
    assert_true(quiesce_lock_close(0));
}

static void leave_at_once(void) {
    atomic_store(&helper.leave_at, 1);
}

static void behind_the_closed_lock_it_ends_when_it_is_to_leave(void **state) {
    (void)state;
    lifecycle_end();
    fake_sleep.while_asleep = leave_at_once;
    assert_false(quiesce_lock_enter());
    assert_int_equal(fake_sleep.sleeps, 1);
}

/* The helper may hold the loader's lock, which exit() needs. */
static void libc_stays_threaded_while_the_helper_is_in_a_library(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    lifecycle_end();
    assert_false(threads.single);
    assert_int_equal(milliseconds_slept(), 1000);
}

static void libc_is_single_threaded_once_the_helper_left_the_library(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    fake_sleep.while_asleep = quiesce_lock_leave;
    lifecycle_end();
    assert_true(threads.single);
    assert_int_equal(fake_sleep.sleeps, 1);
}

static void libc_stays_threaded_before_the_helper_begins(void **state) {
    (void)state;
    atomic_store(&helper.tid, 0);
    atomic_store(&helper.waits, false);
    lifecycle_end();
    assert_false(threads.single);
    assert_int_equal(fake_sleep.sleeps, 0);
}

static void begin_to_wait(void) {
    atomic_store(&helper.waits, true);
}

static void a_helper_that_has_just_begun_is_waited_for(void **state) {
    (void)state;
    atomic_store(&helper.waits, false);
    fake_sleep.while_asleep = begin_to_wait;
    lifecycle_end();
    assert_true(threads.single);
    assert_int_equal(fake_sleep.sleeps, 1);
}

/* --- the helper's thread, when the process has ended around it --- */

static void the_process_ends_and_its_time_comes(void) {
    if (fake_sleep.sleeps > 1) {
        atomic_store(&helper.request, REQUEST_ABANDON);
        return;
    }
    atomic_store(&process_state.now, STATE_ENDED);
    atomic_store(&helper.state, HELPER_LEAVES); /* helper_finish() leaves this state */
    become_due();
}

static void its_thread_does_not_end_by_itself(void **state) {
    (void)state;
    pthread_t thread;
    helper_main_begins();
    atomic_store(&helper.joined, true); /* this test has joined */
    fake_sleep.while_asleep = the_process_ends_and_its_time_comes;
    assert_int_equal(pthread_create(&thread, NULL, helper_main, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(fake_sleep.sleeps, 2); /* the helper has slept on when its time had come */
    assert_int_equal(atomic_load(&helper.state), HELPER_DONE);
}

/* Lets the helper load outside of the quiesce lock, which calls malloc. The helper must not count
 * as waiting then: a fork that has closed the lock would find it at rest. */
static void it_calls_malloc_when_it_waits_no_more(void **state) {
    (void)state;
    pthread_t thread;
    helper.release_path = helper.flush_path = "/nowhere/libotelprof-flush.so";
    atomic_store(&helper.initialised, true); /* a parent has initialised it */
    atomic_store(&helper.joined, true);
    atomic_store(&calls_while_it_waits, 0);
    atomic_store(&calls_while_it_works, 0);
    helper_main_begins();
    become_due();
    assert_int_equal(pthread_create(&thread, NULL, helper_main, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    atomic_store(&helper.initialised, false);
    assert_int_equal(calls_while_it_waits, 0);
    assert_true(calls_while_it_works > 0);
    assert_int_equal(atomic_load(&helper.state), HELPER_DONE);
}

int main(void) {
#define TEST(name, begin) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(libc_is_single_threaded_beside_a_helper_in_its_last_sleep, begin_at_work),
        TEST(libc_stays_threaded_while_the_helper_leaves, begin_at_work),
        TEST(libc_stays_threaded_beside_another_thread, begin_at_work),
        TEST(libc_is_single_threaded_if_the_kernel_counts_one_thread, begin_at_work),
        TEST(libc_stays_threaded_with_a_late_helper, begin_at_work),
        TEST(libc_knows_of_a_helper_that_ends_behind_the_last_thread, begin_waiting),
        TEST(it_is_kept_out_to_the_end, begin_waiting),
        TEST(behind_the_closed_lock_it_ends_when_it_is_to_leave, begin_waiting),
        TEST(libc_stays_threaded_while_the_helper_is_in_a_library, begin_waiting),
        TEST(libc_is_single_threaded_once_the_helper_left_the_library, begin_waiting),
        TEST(libc_stays_threaded_before_the_helper_begins, begin_waiting),
        TEST(a_helper_that_has_just_begun_is_waited_for, begin_waiting),
        TEST(its_thread_does_not_end_by_itself, begin_waiting),
        TEST(it_calls_malloc_when_it_waits_no_more, begin_waiting),
    };
#undef TEST
    return cmocka_run_group_tests(tests, start, NULL);
}
