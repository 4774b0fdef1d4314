/* Tests the recognition of threads that wait for work and do hardly anything else. */
#include "unit.h"

#include "clock.h"
#include "wait/idle_waits.h"

#define SECOND ((uint64_t)NANO_PER_SECOND)

enum { QUEUE = 1, ELSEWHERE = 2 };

static const uint64_t born = 1000 * SECOND;
static struct idle_waits idle;

static bool waits(enum wait_kind kind, uint64_t stack, uint64_t seconds, uint64_t until) {
    return idle_waits_add(&idle, kind, stack, seconds * SECOND, born, born + until * SECOND);
}

static int begin(void **state) {
    (void)state;
    memset(&idle, 0, sizeof idle);
    return 0;
}

static void a_thread_that_waits_for_work_is_idle(void **state) {
    (void)state;
    assert_true(waits(WAIT_COND, QUEUE, 1, 1));
    assert_true(waits(WAIT_COND, QUEUE, 98, 100));
    assert_true(idle_waits_is(&idle, WAIT_COND, QUEUE, born + 100 * SECOND));
    assert_false(idle_waits_is(&idle, WAIT_COND, ELSEWHERE, born + 100 * SECOND));
    assert_false(idle_waits_is(&idle, WAIT_SEM, QUEUE, born + 100 * SECOND));
}

static void one_that_works_is_not(void **state) {
    (void)state;
    assert_false(waits(WAIT_COND, QUEUE, 9, 10));
    assert_false(waits(WAIT_COND, QUEUE, 9, 20));
}

static void nor_is_one_that_waits_for_data_or_a_lock(void **state) {
    (void)state;
    assert_false(waits(WAIT_LOCK, QUEUE, 10, 10));
    assert_false(waits(WAIT_NET, QUEUE, 10, 20));
}

static void short_waits_elsewhere_change_nothing(void **state) {
    (void)state;
    for (uint64_t i = 1; i <= 20; i++) {
        assert_true(waits(WAIT_POLL, QUEUE, 99, 100 * i - 1));
        assert_false(waits(WAIT_POLL, ELSEWHERE + i, 1, 100 * i));
    }
}

/* Forgets waits within two minutes, however long they were. */
static void waits_of_long_ago_count_no_more(void **state) {
    (void)state;
    uint64_t now = 0;
    for (int i = 0; i < 100; i++)
        assert_true(waits(WAIT_COND, QUEUE, 10, now += 10));
    assert_false(waits(WAIT_SLEEP, ELSEWHERE, 10, now += 10));
    now += 110; /* 110 s of work */
    assert_false(waits(WAIT_COND, QUEUE, 1, now += 1));
    bool is_idle = false;
    for (int i = 0; i < 60; i++)
        is_idle = waits(WAIT_COND, QUEUE, 10, now += 10);
    assert_true(is_idle);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_thread_that_waits_for_work_is_idle, begin),
        cmocka_unit_test_setup(one_that_works_is_not, begin),
        cmocka_unit_test_setup(nor_is_one_that_waits_for_data_or_a_lock, begin),
        cmocka_unit_test_setup(short_waits_elsewhere_change_nothing, begin),
        cmocka_unit_test_setup(waits_of_long_ago_count_no_more, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
