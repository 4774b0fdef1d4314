/* Tests how the profiler finds that a handler of the program has left its work by a jump. */
#include "unit.h"

#include "record/own_work.h"

#include <signal.h>

enum { BELOW_BYTES = 1 << 16 };

static struct thread_state thread;

static uintptr_t here(void) {
    return (uintptr_t)__builtin_frame_address(0);
}

/* Begins work in a frame of its own, and does not end it. */
__attribute__((noinline)) static uintptr_t leave_work(uint32_t inside) {
    profiler_tls.inside = 0;
    own_work_begin(&thread);
    profiler_tls.inside += inside;
    return thread.work_frame;
}

/* Begins work, and asks within it, as a handler would that runs at `sp`. */
__attribute__((noinline)) static bool goes_on_during(uintptr_t sp) {
    profiler_tls.inside = 0;
    own_work_begin(&thread);
    return own_work_goes_on(&thread, sp);
}

static int begin(void **state) {
    (void)state;
    memset(&thread, 0, sizeof thread);
    thread.stack = (struct stack_range){here() - BELOW_BYTES, here() + BELOW_BYTES};
    return 0;
}

static int end(void **state) {
    (void)state;
    profiler_tls.inside = 0;
    return 0;
}

static void work_that_a_jump_has_left_ends(void **state) {
    (void)state;
    _Atomic uint32_t users = 3;
    (void)leave_work(0);
    thread.entered_users = &users;
    atomic_store(&thread.samples_now, true);
    atomic_store(&thread.using, 1);
    assert_false(own_work_goes_on(&thread, here()));
    assert_int_equal(profiler_tls.inside, 0);
    assert_int_equal(users, 2);
    assert_null(thread.entered_users);
    assert_false(thread.samples_now);
    assert_int_equal(thread.using, 0);
    own_work_begin(&thread);
    assert_int_equal(profiler_tls.inside, 1);
}

static void next_work_ends_what_a_jump_has_left(void **state) {
    (void)state;
    (void)leave_work(0);
    own_work_begin(&thread);
    assert_int_equal(profiler_tls.inside, 1);
    own_work_end();
    assert_int_equal(profiler_tls.inside, 0);
}

/* Ends work in a child that a handler has forked within it: the fork has cleared the mark. */
static void the_end_of_cleared_work_marks_nothing(void **state) {
    (void)state;
    own_work_begin(&thread);
    profiler_tls.inside = 0;
    own_work_end();
    assert_int_equal(profiler_tls.inside, 0);
}

/* Overwrites the frame of leave_work(), which had the same depth, and runs below it. */
__attribute__((noinline)) static bool goes_on_below(uintptr_t frame) {
    volatile uintptr_t words[64];
    for (int i = 0; i < 64; i++)
        words[i] = (uintptr_t)i;
    assert_true((uintptr_t)words < frame);
    return own_work_goes_on(&thread, (uintptr_t)words) || words[1] != 1;
}

static void work_whose_frame_is_overwritten_has_ended(void **state) {
    (void)state;
    assert_false(goes_on_below(leave_work(0)));
    assert_int_equal(profiler_tls.inside, 0);
}

static void work_below_a_handler_goes_on(void **state) {
    (void)state;
    assert_true(goes_on_during(here() - 1000));
    assert_true(goes_on_during(thread.stack.high + 1000)); /* another stack */
    assert_int_equal(profiler_tls.inside, 1);
}

static void a_handler_on_an_alternate_stack_above_leaves_nothing(void **state) {
    (void)state;
    char room[1 << 14];
    const stack_t alternate = {.ss_sp = room, .ss_size = sizeof room};
    const stack_t none = {.ss_flags = SS_DISABLE};
    assert_int_equal(sigaltstack(&alternate, NULL), 0);
    assert_true(goes_on_during((uintptr_t)room + sizeof room / 2));
    assert_true(thread.work_frame < (uintptr_t)room);
    assert_int_equal(sigaltstack(&none, NULL), 0);
    assert_false(goes_on_during((uintptr_t)room + sizeof room / 2));
}

static void work_in_a_fibre_or_of_another_sort_is_not_judged(void **state) {
    (void)state;
    (void)leave_work(OWN_WORK);
    assert_true(own_work_goes_on(&thread, here()));
    (void)leave_work(0);
    thread.stack = (struct stack_range){thread.work_frame + 1, thread.stack.high};
    assert_true(own_work_goes_on(&thread, here()));
    profiler_tls.inside = 0;
    own_work_begin_unjudged(&thread);
    assert_true(own_work_goes_on(&thread, thread.stack.high - 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_that_a_jump_has_left_ends, begin, end),
        cmocka_unit_test_setup_teardown(next_work_ends_what_a_jump_has_left, begin, end),
        cmocka_unit_test_setup_teardown(the_end_of_cleared_work_marks_nothing, begin, end),
        cmocka_unit_test_setup_teardown(work_whose_frame_is_overwritten_has_ended, begin, end),
        cmocka_unit_test_setup_teardown(work_below_a_handler_goes_on, begin, end),
        cmocka_unit_test_setup_teardown(a_handler_on_an_alternate_stack_above_leaves_nothing, begin,
                                        end),
        cmocka_unit_test_setup_teardown(work_in_a_fibre_or_of_another_sort_is_not_judged, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
