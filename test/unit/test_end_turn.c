/* Tests the turn of the first end of the process: its thread, the signal held for it, and a
 * child. */
#include "unit.h"

#include "process/end_turn.h"

#include <pthread.h>
#include <signal.h>

enum { TIMEOUT_MS = 600000 };

static volatile sig_atomic_t raised;

static void count(int number) {
    (void)number;
    raised++;
}

static void *hold_from_elsewhere(void *turn) {
    return end_turn_hold(turn, SIGTERM) ? turn : NULL;
}

static bool another_thread_holds(struct end_turn *turn) {
    pthread_t thread;
    void *held;
    assert_int_equal(pthread_create(&thread, NULL, hold_from_elsewhere, turn), 0);
    assert_int_equal(pthread_join(thread, &held), 0);
    return held != NULL;
}

static void only_the_first_end_takes_it(void **state) {
    (void)state;
    struct end_turn turn = {0};
    assert_true(end_turn_take(&turn, TIMEOUT_MS));
    assert_false(end_turn_take(&turn, TIMEOUT_MS));
}

static void a_signal_is_held_for_the_thread_that_exports(void **state) {
    (void)state;
    struct end_turn turn = {0};
    assert_false(end_turn_hold(&turn, SIGTERM)); /* no end has begun */
    assert_true(end_turn_take(&turn, TIMEOUT_MS));
    assert_false(another_thread_holds(&turn));
    assert_int_equal(turn.held, 0);
    assert_true(end_turn_hold(&turn, SIGTERM));
    end_turn_enter(&turn, END_TURN_ENDS);
    assert_false(end_turn_hold(&turn, SIGINT)); /* the export is over */
    assert_int_equal(turn.held, SIGTERM);
}

static void a_held_signal_comes_once(void **state) {
    (void)state;
    struct end_turn turn = {0};
    raised = 0;
    assert_true(signal(SIGTERM, count) != SIG_ERR);
    end_turn_raise(&turn);
    assert_int_equal(raised, 0);
    assert_true(end_turn_take(&turn, TIMEOUT_MS));
    assert_true(end_turn_hold(&turn, SIGTERM));
    end_turn_raise(&turn);
    end_turn_raise(&turn);
    assert_int_equal(raised, 1);
    signal(SIGTERM, SIG_DFL);
}

static void a_child_has_none_of_it(void **state) {
    (void)state;
    struct end_turn turn = {0};
    assert_true(end_turn_take(&turn, TIMEOUT_MS));
    assert_true(end_turn_hold(&turn, SIGTERM));
    end_turn_enter(&turn, END_TURN_ENDS);
    end_turn_after_fork(&turn);
    assert_int_equal(turn.held, 0);
    assert_int_equal(turn.stage, END_TURN_EXPORTS);
    assert_true(end_turn_take(&turn, TIMEOUT_MS));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_first_end_takes_it),
        cmocka_unit_test(a_signal_is_held_for_the_thread_that_exports),
        cmocka_unit_test(a_held_signal_comes_once),
        cmocka_unit_test(a_child_has_none_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
