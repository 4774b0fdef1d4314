/* Tests the wait for a condition of which no other thread notifies the waiting one. */
#include "unit.h"

#include "capture/kernel/wait.h"

#include <pthread.h>
#include <stdatomic.h>

static bool is_zero_after_count_down(void *context) {
    int *const left = context;
    return (*left)-- == 0;
}

static bool is_set(void *context) {
    return atomic_load((_Atomic bool *)context);
}

static void a_condition_that_holds_is_not_awaited(void **state) {
    (void)state;
    int left = 0;
    assert_true(wait_until_ms(is_zero_after_count_down, &left, 0));
    assert_int_equal(left, -1);
}

static void a_condition_is_checked_until_it_holds(void **state) {
    (void)state;
    int left = 3;
    assert_true(wait_until_ms(is_zero_after_count_down, &left, 1000 * 1000));
    assert_int_equal(left, -1);
}

static void turns_are_counted_and_not_timed(void **state) {
    (void)state;
    enum { ROUNDS = 3 };
    int left = ROUNDS;
    assert_true(wait_for_rounds(is_zero_after_count_down, &left, ROUNDS));
    left = ROUNDS + 1;
    assert_false(wait_for_rounds(is_zero_after_count_down, &left, ROUNDS));
    assert_int_equal(left, 0);
}

static void it_gives_up_past_its_time_and_not_before(void **state) {
    (void)state;
    enum { TIMEOUT_MS = 5 };
    _Atomic bool never = false;
    const uint64_t before = monotonic_nano();
    assert_false(wait_until_ms(is_set, &never, TIMEOUT_MS));
    assert_true(monotonic_nano() - before >= TIMEOUT_MS * NANO_PER_MILLI);
}

static void errno_is_unchanged(void **state) {
    (void)state;
    errno = ENOENT;
    assert_false(wait_until_ms(is_set, &(_Atomic bool){false}, 1));
    assert_int_equal(errno, ENOENT);
}

static void *set_it(void *flag) {
    atomic_store((_Atomic bool *)flag, true);
    return NULL;
}

static void another_thread_ends_it(void **state) {
    (void)state;
    _Atomic bool flag = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, set_it, &flag), 0);
    assert_true(wait_until_ms(is_set, &flag, 1000 * 1000));
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void the_remaining_time_is_rounded_up(void **state) {
    (void)state;
    assert_int_equal(milliseconds_until(0), 0);
    assert_int_equal(milliseconds_until(monotonic_nano()), 0);
    const uint64_t left = milliseconds_until(in_milliseconds(1000 * 1000));
    assert_true(left > 0 && left <= 1000 * 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition_that_holds_is_not_awaited),
        cmocka_unit_test(a_condition_is_checked_until_it_holds),
        cmocka_unit_test(turns_are_counted_and_not_timed),
        cmocka_unit_test(it_gives_up_past_its_time_and_not_before),
        cmocka_unit_test(errno_is_unchanged),
        cmocka_unit_test(another_thread_ends_it),
        cmocka_unit_test(the_remaining_time_is_rounded_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
