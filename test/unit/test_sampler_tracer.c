/* Tests a tracer that holds an expiry back and delivers it as a signal of its own: whenever that
 * comes, it does not end the process. */
#include "unit.h"

#include "cpu/sampler_parts.h"
#include "cpu/tracer.h"
#include "sampler_fixture.h"

enum { TRACER = 4711 };

static pid_t tracer;

/* Replaces the function that reads /proc. */
pid_t tracer_of_this_thread(void) {
    return tracer;
}

static int begin_traced(void **state) {
    tracer = TRACER;
    return begin_sampled(state);
}

static bool is_ours(int code, pid_t sender) {
    siginfo_t info = {.si_signo = SIGPROF, .si_code = code};
    info.si_pid = sender;
    return sampler_sent(&info);
}

static bool is_handled_by_us(void) {
    return kernel.actions[SIGPROF].sa_sigaction == signal_entry;
}

static void a_signal_that_the_tracer_sends_is_a_delayed_one(void **state) {
    (void)state;
    assert_true(is_ours(SI_USER, TRACER));
    assert_true(is_ours(SI_KERNEL, 0));
    assert_false(is_ours(SI_USER, getpid()));
    assert_false(is_ours(SI_QUEUE, TRACER));
    assert_int_equal(thread->dropped[DROP_OVERRUN], 2);
    tracer = 0;
    assert_false(is_ours(SI_KERNEL, 0));
    assert_false(is_ours(SI_USER, 0));
}

static void it_may_have_been_held_back_since_before_the_timer_went(void **state) {
    (void)state;
    sampler_stop_thread(thread);
    assert_true(is_ours(SI_USER, TRACER));
    sampler_stop();
    assert_int_equal(timers_of(SIGPROF), 0);
    assert_true(is_ours(SI_KERNEL, 0));
}

/* The tracer may still deliver another thread's signal. The program still sees the action that it
 * believes is set. */
static void under_a_tracer_the_handler_stays_to_the_end(void **state) {
    (void)state;
    sampler_stop();
    assert_true(is_handled_by_us());
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(seen.samples, 1);
    const struct sigaction seen_by_program = sampler_action_seen(&kernel.actions[SIGPROF]);
    assert_ptr_equal(seen_by_program.sa_handler, SIG_DFL);
}

static void without_one_it_does_not(void **state) {
    (void)state;
    tracer = 0;
    sampler_stop();
    assert_false(is_handled_by_us());
}

/* Finding the tracer takes system calls for which the filter may kill. */
static void nor_behind_a_filter_that_may_kill(void **state) {
    (void)state;
    sampler_leave_pending();
    sampler_stop();
    assert_false(is_handled_by_us());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_signal_that_the_tracer_sends_is_a_delayed_one, begin_traced),
        cmocka_unit_test_setup(it_may_have_been_held_back_since_before_the_timer_went,
                               begin_traced),
        cmocka_unit_test_setup(under_a_tracer_the_handler_stays_to_the_end, begin_traced),
        cmocka_unit_test_setup(without_one_it_does_not, begin_traced),
        cmocka_unit_test_setup(nor_behind_a_filter_that_may_kill, begin_traced),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
