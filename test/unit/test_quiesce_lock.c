/* Tests that a thread that copies or ends the process keeps the helper out meanwhile, and never
 * waits for it for long. The test mostly has one thread: while one of the two sleeps, it acts as
 * the other. */
#include "unit.h"

#include "capture/symbols/loader_state.h"
#include "fake_sleep.h"
#include "process/helper.h"
#include "process/helper_load.h"
#include "process/quiesce_lock.h"

#include <link.h>
#include <pthread.h>
#include <semaphore.h>

enum { SOME_MS = 7, OF_A_FORK_MS = 20, OF_A_COPY_MS = 500, LONG_MS = 10000 };
enum { NO_THREAD = 1 << 24 }; /* beyond the ids that the kernel gives (PID_MAX_LIMIT) */

static int kept; /* memory of the flush side */

static int begin(void **state) {
    (void)state;
    (void)quiesce_lock_after_fork(); /* the lock is open, and no thread waits */
    fake_sleep_reset();
    atomic_store(&helper.state, HELPER_WORKS);
    atomic_store(&process_state.now, STATE_ARMED);
    atomic_store(&helper.request, REQUEST_TIMEOUT);
    atomic_store(&helper.loading, false);
    atomic_store(&helper.tid, 1);
    atomic_store(&helper.leave_at, 0);
    helper.kept = &kept;
    return 0;
}

static bool is_open(void) {
    const bool open = quiesce_lock_close(0);
    if (open)
        quiesce_lock_leave();
    return open;
}

/* --- the helper --- */

static void open_it(void) {
    quiesce_lock_leave();
}

static void open_to_who_is_at_it(void) {
    assert_true(atomic_load(&helper.lock.helper_waits));
    quiesce_lock_leave();
}

static void abandon(void) {
    atomic_store(&helper.request, REQUEST_ABANDON);
}

static void the_helper_is_inside_alone(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    assert_int_equal(fake_sleep.sleeps, 0);
    assert_false(quiesce_lock_close(SOME_MS));
    quiesce_lock_leave();
    assert_true(quiesce_lock_close(SOME_MS));
}

static void the_helper_waits_until_it_is_opened(void **state) {
    (void)state;
    assert_true(quiesce_lock_close(0));
    fake_sleep.while_asleep = open_to_who_is_at_it;
    assert_true(quiesce_lock_enter());
    assert_int_equal(fake_sleep.sleeps, 1);
    assert_false(atomic_load(&helper.lock.helper_waits));
    assert_false(is_open());
}

static void a_helper_that_is_abandoned_enters_no_more(void **state) {
    (void)state;
    assert_true(quiesce_lock_close(0));
    fake_sleep.while_asleep = abandon;
    assert_false(quiesce_lock_enter());
    assert_int_equal(fake_sleep.sleeps, 1);
    assert_false(quiesce_lock_enter());
    assert_int_equal(fake_sleep.sleeps, 1); /* the helper does not wait again */
}

static void close_then_open(void) {
    if (fake_sleep.sleeps == 1)
        assert_true(quiesce_lock_close(0)); /* the helper has not taken the lock */
    else
        quiesce_lock_leave();
}

/* Keeps the helper out while a thread waits: otherwise a busy helper would be inside again before
 * that thread has woken up. */
static void a_waiting_thread_goes_before_the_helper(void **state) {
    (void)state;
    atomic_store(&helper.lock.awaited, 1);
    fake_sleep.while_asleep = close_then_open;
    assert_true(quiesce_lock_enter());
    assert_int_equal(fake_sleep.sleeps, 2);
}

static void leave_when_awaited(void) {
    assert_true(quiesce_lock_is_awaited());
    quiesce_lock_leave();
}

static void the_helper_sees_that_a_thread_waits(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    assert_false(quiesce_lock_is_awaited());
    fake_sleep.while_asleep = leave_when_awaited;
    assert_true(quiesce_lock_close(SOME_MS));
    assert_int_equal(fake_sleep.sleeps, 1);
    assert_false(quiesce_lock_is_awaited());
    abandon();
    assert_true(quiesce_lock_is_awaited());
}

/* --- closing it --- */

static void a_helper_inside_is_waited_for_within_the_time(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    assert_false(quiesce_lock_close(SOME_MS));
    assert_int_equal(milliseconds_slept(), SOME_MS);
    assert_false(quiesce_lock_is_awaited());
    fake_sleep.while_asleep = open_it;
    assert_true(quiesce_lock_close(SOME_MS));
    assert_int_equal(milliseconds_slept(), SOME_MS); /* no longer than the helper takes */
}

static void a_fork_waits_20_ms_and_once_in_vain(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    assert_false(quiesce_lock_close_to_fork(true));
    assert_int_equal(milliseconds_slept(), OF_A_FORK_MS);
    quiesce_lock_open(); /* the thread has no lock to open */
    assert_false(quiesce_lock_close_to_fork(true));
    assert_int_equal(milliseconds_slept(), OF_A_FORK_MS);
    quiesce_lock_leave();
    assert_true(quiesce_lock_enter());
    assert_false(quiesce_lock_close_to_fork(true)); /* the helper had left: it may enter again */
    assert_int_equal(milliseconds_slept(), 2 * OF_A_FORK_MS);
}

static void a_fork_waits_for_libraries_that_are_being_loaded(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    atomic_store(&helper.loading, true);
    assert_false(quiesce_lock_close_to_fork(true));
    assert_int_equal(milliseconds_slept(), LONG_MS);
}

static int opened;
static bool said_while_opening;

/* Replaces libc's function: there is no such library. */
void *dlopen(const char *path, int flags) {
    (void)path, (void)flags;
    opened++;
    said_while_opening = atomic_load(&helper.loading);
    return NULL;
}

/* Opens a library without and within a scan of the loaded objects: helper.loading is set while the
 * library is opened, and stays set for the rest of the scan. */
static void a_library_that_opens_while_modules_are_listed_leaves_a_fork_waiting(void **state) {
    (void)state;
    const char *why;
    helper.release_path = helper.flush_path = "/proc/self/exe";
    opened = 0;
    for (int in_look = 0; in_look < 2; in_look++) {
        atomic_store(&helper.loading, in_look);
        assert_null(helper_load_beside("exe", "", &why));
        assert_int_equal(opened, in_look + 1);
        assert_true(said_while_opening);
        assert_int_equal(atomic_load(&helper.loading), in_look);
    }
}

static int fork_from_within(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info;
    (void)size;
    (void)unused;
    assert_false(quiesce_lock_close_to_fork(true));
    return 1;
}

/* A helper that loads a library waits for the thread that reads the loader's list: here, for the
 * forking thread. */
static void a_fork_waits_for_no_helper_that_waits_for_it(void **state) {
    (void)state;
    loader_state_learn();
    assert_true(loader_state_is_known());
    assert_true(quiesce_lock_enter());
    atomic_store(&helper.loading, true);
    dl_iterate_phdr(fork_from_within, NULL);
    assert_int_equal(milliseconds_slept(), 6 * OF_A_FORK_MS);
}

static void a_fork_keeps_the_helper_out_until_it_is_over(void **state) {
    (void)state;
    assert_true(quiesce_lock_close_to_fork(true));
    assert_false(is_open());
    quiesce_lock_open();
    assert_true(is_open());
}

/* Acts as a fork in a handler, in the middle of a fork of the thread that the handler
 * interrupts. */
static void a_fork_within_a_fork_waits_for_nothing(void **state) {
    (void)state;
    assert_true(quiesce_lock_close_to_fork(true));
    assert_true(quiesce_lock_close_to_fork(true));
    assert_false(quiesce_lock_close_at_rest());
    assert_false(quiesce_lock_close_to_copy(OF_A_COPY_MS));
    assert_int_equal(fake_sleep.sleeps, 0);
    assert_false(is_open());
}

/* --- two at once --- */

static sem_t sleeps_now, may_wake;

static void let_the_other_act(void) {
    sem_post(&sleeps_now);
    sem_wait(&may_wake);
}

static void *fork_beside(void *result) {
    *(bool *)result = quiesce_lock_close_to_fork(true);
    return NULL;
}

static pthread_t begin_fork_beside(bool *outside) {
    pthread_t other;
    sem_init(&sleeps_now, 0, 0);
    sem_init(&may_wake, 0, 0);
    fake_sleep.while_asleep = let_the_other_act;
    assert_int_equal(pthread_create(&other, NULL, fork_beside, outside), 0);
    sem_wait(&sleeps_now);
    return other;
}

static void the_second_to_fork_has_it_after_the_first(void **state) {
    (void)state;
    bool outside = false;
    assert_true(quiesce_lock_close_to_fork(true));
    const pthread_t other = begin_fork_beside(&outside);
    quiesce_lock_open();
    sem_post(&may_wake);
    pthread_join(other, NULL);
    assert_true(outside);
    quiesce_lock_open(); /* the lock is not ours any more */
    assert_false(is_open());
}

/* The helper is outside all the same: the first thread has closed the lock. */
static void the_second_to_fork_goes_on_when_its_time_is_up(void **state) {
    (void)state;
    bool outside = false;
    assert_true(quiesce_lock_close_to_fork(true));
    const pthread_t other = begin_fork_beside(&outside);
    sem_post(&may_wake);
    pthread_join(other, NULL);
    assert_true(outside);
    assert_int_equal(milliseconds_slept(), OF_A_FORK_MS);
    assert_false(is_open());
    quiesce_lock_open(); /* the lock is ours still */
    assert_true(is_open());
}

/* --- a helper at rest --- */

static void the_kernel_has_it(void) {
    atomic_store(&helper.tid, (uint32_t)syscall(SYS_gettid));
}

static void come_to_rest(void) {
    if (fake_sleep.sleeps == 5)
        atomic_store(&helper.waits, true);
}

static void its_rest_is_waited_for(void **state) {
    (void)state;
    the_kernel_has_it();
    fake_sleep.while_asleep = come_to_rest;
    assert_true(quiesce_lock_close_at_rest());
    assert_int_equal(fake_sleep.sleeps, 5);
    assert_true(helper_is_at_rest());
    quiesce_lock_open();
    assert_false(helper_is_at_rest()); /* nothing keeps the helper there */
}

static void a_helper_at_work_is_not_waited_for_for_ever(void **state) {
    (void)state;
    assert_false(quiesce_lock_close_at_rest());
    assert_int_equal(milliseconds_slept(), LONG_MS);
    assert_false(helper_is_at_rest());
    quiesce_lock_open();
    assert_true(is_open());
}

/* Acts as a process that goes on after the exporter was switched off, or was found to be of another
 * build. */
static void a_helper_that_is_done_is_not_waited_for(void **state) {
    (void)state;
    the_kernel_has_it();
    atomic_store(&helper.state, HELPER_DONE);
    assert_true(quiesce_lock_close_at_rest());
    assert_int_equal(fake_sleep.sleeps, 0);
    assert_false(helper_is_at_rest()); /* the helper's thread ends */
    atomic_store(&helper.rests, true);
    assert_true(helper_is_at_rest());
}

static void a_helper_that_waits_for_it_to_open_is_at_rest(void **state) {
    (void)state;
    assert_true(quiesce_lock_close_to_fork(true));
    the_kernel_has_it();
    assert_false(helper_is_at_rest());
    atomic_store(&helper.lock.helper_waits, true);
    assert_true(helper_is_at_rest());
}

/* A helper that waits may be requested to end, even without the lock; or it has ended. */
static void a_helper_that_leaves_is_not_at_rest(void **state) {
    (void)state;
    the_kernel_has_it();
    atomic_store(&helper.waits, true);
    assert_true(quiesce_lock_close_to_fork(true));
    assert_true(helper_is_at_rest());
    atomic_store(&helper.request, REQUEST_SUSPEND);
    assert_false(helper_is_at_rest());
    atomic_store(&helper.request, REQUEST_TIMEOUT);
    atomic_store(&helper.state, HELPER_LEAVES);
    assert_false(helper_is_at_rest());
    atomic_store(&helper.state, HELPER_WAITS);
    atomic_store(&helper.leave_at, 1);
    assert_false(helper_is_at_rest());
    atomic_store(&helper.leave_at, 0);
    assert_true(helper_is_at_rest());
    atomic_store(&helper.tid, NO_THREAD);
    assert_false(helper_is_at_rest());
    atomic_store(&helper.tid, 0); /* the helper has not begun */
    assert_false(helper_is_at_rest());
}

static void a_helper_that_has_ended_is_at_rest(void **state) {
    (void)state;
    the_kernel_has_it();
    atomic_store(&process_state.now, STATE_ENDED);
    assert_false(helper_is_at_rest()); /* the helper is requested to end, and at work */
    atomic_store(&helper.rests, true);
    assert_true(helper_is_at_rest());
    atomic_store(&helper.leave_at, 1); /* the helper wakes up and ends its thread */
    assert_false(helper_is_at_rest());
}

/* --- a copy that no fork handler sees --- */

static void begin_to_run(void) {
    if (fake_sleep.sleeps == 3)
        atomic_store(&helper.tid, 1);
}

static void a_copy_is_made_beside_a_helper_that_has_begun_and_waits(void **state) {
    (void)state;
    atomic_store(&helper.tid, 0);
    atomic_store(&helper.waits, true);
    fake_sleep.while_asleep = begin_to_run;
    errno = EDOM;
    assert_true(quiesce_lock_close_to_copy(OF_A_COPY_MS));
    assert_int_equal(errno, EDOM);
    assert_int_equal(fake_sleep.sleeps, 3);
    assert_false(is_open());
    quiesce_lock_open();
    assert_true(is_open());
}

static void a_copy_waits_half_a_second(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    assert_true(quiesce_lock_close_to_copy(OF_A_COPY_MS));
    assert_int_equal(milliseconds_slept(), OF_A_COPY_MS);
    quiesce_lock_open(); /* the lock could not be closed, and stays the helper's */
    assert_false(is_open());
}

static void a_copy_waits_for_no_helper_where_there_is_none(void **state) {
    (void)state;
    atomic_store(&helper.state, HELPER_SUSPENDED);
    assert_false(quiesce_lock_close_to_copy(OF_A_COPY_MS));
    atomic_store(&helper.state, HELPER_WORKS);
    atomic_store(&process_state.now, STATE_ENDED);
    assert_false(quiesce_lock_close_to_copy(OF_A_COPY_MS));
    assert_int_equal(fake_sleep.sleeps, 0);
    assert_true(is_open());
}

/* --- in the child --- */

static void a_child_of_a_helper_outside_is_recognised(void **state) {
    (void)state;
    assert_true(quiesce_lock_close_to_fork(true));
    assert_true(quiesce_lock_after_fork());
    assert_true(is_open());
}

static void a_child_of_a_helper_inside_is_recognised(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    assert_false(quiesce_lock_close_to_fork(true));
    assert_false(quiesce_lock_after_fork());
    assert_true(is_open());
    assert_null(helper.kept);
}

static void a_child_keeps_whole_libraries(void **state) {
    (void)state;
    atomic_store(&helper.waits, true);
    assert_true(quiesce_lock_close_to_fork(true));
    assert_true(quiesce_lock_after_fork());
    assert_ptr_equal(helper.kept, &kept);
}

static void a_child_keeps_nothing_of_a_helper_at_work(void **state) {
    (void)state;
    assert_true(quiesce_lock_close_to_fork(true));
    assert_true(quiesce_lock_after_fork());
    assert_null(helper.kept);
}

/* Acts as a child that a bare clone(2) has made without the helper's thread: its copy of the
 * libraries may not be whole. */
static void a_child_keeps_nothing_of_a_process_without_its_helper(void **state) {
    (void)state;
    atomic_store(&helper.waits, true);
    assert_true(quiesce_lock_close_to_fork(false));
    assert_true(quiesce_lock_after_fork());
    assert_null(helper.kept);
}

static void a_child_begins_without_waiting_threads(void **state) {
    (void)state;
    assert_true(quiesce_lock_enter());
    assert_false(quiesce_lock_close_to_fork(true));
    atomic_store(&helper.lock.awaited, 2); /* threads of the parent */
    atomic_store(&helper.rests, true);
    atomic_store(&helper.lock.helper_waits, true);
    atomic_store(&helper.waits, true);
    (void)quiesce_lock_after_fork();
    atomic_store(&helper.request, REQUEST_TIMEOUT);
    assert_false(quiesce_lock_is_awaited());
    assert_false(helper_is_at_rest());
    fake_sleep_reset();
    assert_true(quiesce_lock_enter());
    assert_int_equal(fake_sleep.sleeps, 0);
    assert_false(quiesce_lock_close_to_fork(true));
    assert_int_equal(milliseconds_slept(), OF_A_FORK_MS); /* the child's own first attempt fails */
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(the_helper_is_inside_alone),
        TEST(the_helper_waits_until_it_is_opened),
        TEST(a_helper_that_is_abandoned_enters_no_more),
        TEST(a_waiting_thread_goes_before_the_helper),
        TEST(the_helper_sees_that_a_thread_waits),
        TEST(a_helper_inside_is_waited_for_within_the_time),
        TEST(a_fork_waits_20_ms_and_once_in_vain),
        TEST(a_fork_waits_for_libraries_that_are_being_loaded),
        TEST(a_library_that_opens_while_modules_are_listed_leaves_a_fork_waiting),
        TEST(a_fork_waits_for_no_helper_that_waits_for_it),
        TEST(a_fork_keeps_the_helper_out_until_it_is_over),
        TEST(a_fork_within_a_fork_waits_for_nothing),
        TEST(the_second_to_fork_has_it_after_the_first),
        TEST(the_second_to_fork_goes_on_when_its_time_is_up),
        TEST(its_rest_is_waited_for),
        TEST(a_helper_at_work_is_not_waited_for_for_ever),
        TEST(a_helper_that_is_done_is_not_waited_for),
        TEST(a_helper_that_waits_for_it_to_open_is_at_rest),
        TEST(a_helper_that_leaves_is_not_at_rest),
        TEST(a_helper_that_has_ended_is_at_rest),
        TEST(a_copy_is_made_beside_a_helper_that_has_begun_and_waits),
        TEST(a_copy_waits_half_a_second),
        TEST(a_copy_waits_for_no_helper_where_there_is_none),
        TEST(a_child_of_a_helper_outside_is_recognised),
        TEST(a_child_of_a_helper_inside_is_recognised),
        TEST(a_child_keeps_whole_libraries),
        TEST(a_child_keeps_nothing_of_a_helper_at_work),
        TEST(a_child_keeps_nothing_of_a_process_without_its_helper),
        TEST(a_child_begins_without_waiting_threads),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
