/* Tests the sampling signal against a kernel of our own: it is taken, given away, and never left
 * behind with the wrong action. */
#include "unit.h"

#include "cpu/masked_threads.h"
#include "cpu/sampler_parts.h"
#include "record/countdown.h"
#include "sampler_fixture.h"

#include <semaphore.h>

enum { LAST_FREE = 64 - 3 }; /* the last real-time signals are left to debuggers */

static bool is_handled_by_us(int number) {
    return kernel.actions[number].sa_sigaction == signal_entry;
}

static bool is_default(int number) {
    return kernel.actions[number].sa_handler == SIG_DFL;
}

static void of_the_program(int number) {
    (void)number;
}

static void use(int number) {
    kernel.actions[number] = (struct sigaction){.sa_handler = of_the_program};
}

static void use_every_real_time_signal(void) {
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        use(number);
}

/* --- taking a signal --- */

static void the_signal_of_the_settings_is_taken(void **state) {
    (void)state;
    assert_true(sampler_install());
    assert_true(sampler.on);
    assert_true(sampler_uses(SIGPROF));
    assert_true(is_handled_by_us(SIGPROF));
    assert_true(kernel.actions[SIGPROF].sa_flags & SA_ONSTACK);
    for (int number = 1; number <= 64; number++) /* including libc's own */
        assert_int_equal(((unsigned char *)&kernel.actions[SIGPROF].sa_mask)[(number - 1) / 8],
                         0xff);
}

static void a_signal_in_use_is_not_taken(void **state) {
    (void)state;
    use(SIGPROF);
    use(LAST_FREE);
    assert_true(sampler_install());
    assert_true(sampler_uses(LAST_FREE - 1));
    assert_false(is_handled_by_us(SIGPROF));
    assert_false(is_handled_by_us(LAST_FREE));
}

static void without_a_free_signal_nothing_is_sampled(void **state) {
    (void)state;
    use(SIGPROF);
    use_every_real_time_signal();
    assert_false(sampler_install());
    assert_false(sampler.on);
    assert_false(sampler_uses(SIGPROF));
    sampler_start_thread(thread);
    assert_int_equal(kernel.created, 0);
}

/* --- giving it away --- */

static void a_signal_that_the_program_takes_is_as_it_was(void **state) {
    (void)state;
    sampler.believed.sa_handler = SIG_DFL;
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_true(is_default(SIGPROF));
    assert_true(sampler_uses(LAST_FREE));
    assert_true(is_handled_by_us(LAST_FREE));
    assert_int_equal(timers_of(SIGPROF), 0);
    assert_int_equal(timers_of(LAST_FREE), ALL_TIMERS);
    assert_false(atomic_load(&sampler.moving));
}

static void where_no_other_is_free_sampling_ends(void **state) {
    (void)state;
    use_every_real_time_signal();
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_true(is_default(SIGPROF));
    assert_false(sampler_uses(SIGPROF));
    assert_int_equal(masked_threads_signal(), 0);
    assert_int_equal(timers_of(SIGPROF), 0);
    assert_true(sampler_give_signal_away(SIGPROF)); /* there is no signal to give */
}

static void one_thread_moves_the_signal_at_a_time(void **state) {
    (void)state;
    atomic_store(&sampler.moving, true);
    sampler_choose_unnamed_signal();
    use(SIGPROF);
    sampler_check_signal();
    assert_true(sampler_uses(SIGPROF));
    assert_int_equal(timers_of(SIGPROF), ALL_TIMERS);
    assert_true(sampler_uses_when_stable(SIGPROF));
    assert_true(atomic_load(&sampler.wait_timed_out)); /* no thread waits again */
}

/* Other threads stop and start sampling all the time: at each attempt of the thread that takes the
 * signal, one of them is changing the timers. */
enum { CHANGES = 100 };

static int changes;

static void another_change_begins(long number, const long a[6]) {
    (void)a;
    if (number == SYS_nanosleep && ++changes == CHANGES)
        atomic_store(&sampler.moving, false);
}

static void the_program_takes_the_signal_behind_any_number_of_changes(void **state) {
    (void)state;
    changes = 0;
    atomic_store(&sampler.moving, true);
    kernel.meanwhile = another_change_begins;
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_int_equal(changes, CHANGES);
    assert_true(is_default(SIGPROF));
    assert_true(sampler_uses(LAST_FREE));
    assert_int_equal(timers_of(SIGPROF), 0);
    assert_false(atomic_load(&sampler.moving));
}

/* Gives the signal away twice, as if two threads had taken it: the sampler keeps the signal that it
 * moved to. */
static void a_signal_that_was_taken_meanwhile_is_given_away_once(void **state) {
    (void)state;
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_true(sampler_uses(LAST_FREE));
    assert_int_equal(atomic_load(&sampler.taken), 1);
}

/* The end of the process moves all timers: a thread that starts sampling must not arm one then. */
static void the_end_waits_for_a_change(void **state) {
    (void)state;
    changes = 0;
    atomic_store(&sampler.moving, true);
    kernel.meanwhile = another_change_begins;
    sampler_stop();
    assert_int_equal(changes, CHANGES);
    assert_true(is_default(SIGPROF));
    assert_int_equal(timers_of(SIGPROF), 0);
}

/* A handler that leaves by siglongjmp(), or takes the signal itself, would interrupt the move. */
static void no_handler_runs_while_the_signal_is_moved(void **state) {
    (void)state;
    sigset_t mask;
    assert_true(sampler_begin_move());
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_true(sigismember(&mask, SIGALRM) && sigismember(&mask, SIGPROF));
    sampler_end_move();
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGALRM) || sigismember(&mask, SIGPROF));
}

/* Acts as a child whose moving thread exists in the parent alone. */
static void a_child_without_the_moving_thread_does_not_wait(void **state) {
    (void)state;
    atomic_store(&sampler.moving, true);
    sampler.pid = getpid() + 1;
    sampler_wait_stable();
    assert_false(atomic_load(&sampler.wait_timed_out));
    assert_false(sampler_give_signal_away(SIGPROF));
    assert_true(sampler_uses(SIGPROF));
}

static void code_that_we_do_not_see_meets_an_unnamed_signal(void **state) {
    (void)state;
    sampler_choose_unnamed_signal();
    assert_true(is_default(SIGPROF));
    assert_true(sampler_uses(LAST_FREE));
    assert_int_equal(atomic_load(&sampler.taken), 0);
    sampler_choose_unnamed_signal(); /* the sampler has a signal already */
    assert_true(sampler_uses(LAST_FREE));
}

/* Sets a handler that the hooks do not see, as by a bare system call or within libc. */
static void a_handler_set_past_us_stays(void **state) {
    (void)state;
    sampler_check_signal();
    assert_true(sampler_uses(SIGPROF));
    use(SIGPROF);
    sampler_check_signal();
    assert_ptr_equal(kernel.actions[SIGPROF].sa_handler, of_the_program);
    assert_true(sampler_uses(LAST_FREE));
    assert_int_equal(atomic_load(&sampler.taken), 1);
}

static void the_program_sees_its_own_action(void **state) {
    (void)state;
    sampler.believed.sa_handler = SIG_IGN;
    assert_ptr_equal(sampler_action_seen(&kernel.actions[SIGPROF]).sa_handler, SIG_IGN);
    use(SIGUSR1);
    assert_ptr_equal(sampler_action_seen(&kernel.actions[SIGUSR1]).sa_handler, of_the_program);
}

/* --- the end, and fork --- */

static void at_the_end_nothing_is_left(void **state) {
    (void)state;
    sampler_stop();
    assert_true(is_default(SIGPROF));
    assert_int_equal(timers_of(SIGPROF), 0);
    sampler_stop();
    assert_true(is_default(SIGPROF));
}

/* Without the handler the timer's signal would end the process. */
static void while_a_timer_goes_on_the_handler_stays(void **state) {
    (void)state;
    kernel.keeps_timers = true;
    sampler_stop();
    assert_true(is_handled_by_us(SIGPROF));
    assert_false(sampler_uses(SIGPROF));
}

static void a_child_is_not_in_the_middle_of_a_move(void **state) {
    (void)state;
    atomic_store(&sampler.moving, true);
    sampler.pid = 0;
    memset(kernel.timers, 0, sizeof kernel.timers); /* timers are not inherited */
    sampler_after_fork();
    assert_false(atomic_load(&sampler.moving));
    assert_int_equal(sampler.pid, getpid());
    assert_int_equal(timers_of(SIGPROF), 1);
}

/* --- the handler --- */

static void a_sample_stands_for_all_time_since_the_last(void **state) {
    (void)state;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(seen.samples, 1);
    assert_int_equal((uint64_t)seen.nano, thread->last_cpu_nano);
    const uint64_t first = thread->last_cpu_nano;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal((uint64_t)seen.nano, thread->last_cpu_nano - first);
}

static void time_of_ours_is_not_the_programs(void **state) {
    (void)state;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_false(seen.flags & SAMPLE_FLAG_OWN_TIME);
    assert_true(deliver_at(in_work_of_ours, SI_TIMER, sampler.timers.mark));
    assert_int_equal(seen.samples, 1);
    assert_true(seen.flags & SAMPLE_FLAG_OWN_TIME);
}

static void a_signal_that_is_not_ours_is_passed_on(void **state) {
    (void)state;
    assert_false(deliver(SI_TIMER, &kernel));
    assert_false(deliver(SI_USER, NULL));
    /* a signal that was sent, with our timers' value */
    assert_false(deliver(SI_QUEUE, sampler.timers.mark));
    assert_false(deliver(SI_KERNEL, NULL));
    assert_int_equal(seen.samples, 0);
}

static void no_sample_is_taken_within_ours_or_at_the_end(void **state) {
    (void)state;
    profiler_tls.inside = 1;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    profiler_tls.inside = 0;
    assert_int_equal(thread->dropped[DROP_BUSY], 1);
    armed = false;
    /* a late signal; without the handler it would end the process */
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(seen.samples, 0);
    assert_int_equal(thread->last_cpu_nano, 0);
}

static void start_helper(bool calm) {
    (void)calm;
}

static void a_sample_makes_the_next_malloc_request_a_helper(void **state) {
    (void)state;
    profiler_tls.alloc_left = UINT64_MAX;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(profiler_tls.alloc_left, UINT64_MAX);
    want_helper = start_helper;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(profiler_tls.alloc_left, 0);
    assert_int_equal(thread->events, COUNTDOWN_HELPER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_signal_of_the_settings_is_taken, begin),
        cmocka_unit_test_setup(a_signal_in_use_is_not_taken, begin),
        cmocka_unit_test_setup(without_a_free_signal_nothing_is_sampled, begin),
        cmocka_unit_test_setup(a_signal_that_the_program_takes_is_as_it_was, begin_sampled),
        cmocka_unit_test_setup(where_no_other_is_free_sampling_ends, begin_sampled),
        cmocka_unit_test_setup(one_thread_moves_the_signal_at_a_time, begin_sampled),
        cmocka_unit_test_setup(the_program_takes_the_signal_behind_any_number_of_changes,
                               begin_sampled),
        cmocka_unit_test_setup(a_signal_that_was_taken_meanwhile_is_given_away_once, begin_sampled),
        cmocka_unit_test_setup(the_end_waits_for_a_change, begin_sampled),
        cmocka_unit_test_setup(no_handler_runs_while_the_signal_is_moved, begin_sampled),
        cmocka_unit_test_setup(a_child_without_the_moving_thread_does_not_wait, begin_sampled),
        cmocka_unit_test_setup(code_that_we_do_not_see_meets_an_unnamed_signal, begin_sampled),
        cmocka_unit_test_setup(a_handler_set_past_us_stays, begin_sampled),
        cmocka_unit_test_setup(the_program_sees_its_own_action, begin_sampled),
        cmocka_unit_test_setup(at_the_end_nothing_is_left, begin_sampled),
        cmocka_unit_test_setup(while_a_timer_goes_on_the_handler_stays, begin_sampled),
        cmocka_unit_test_setup(a_child_is_not_in_the_middle_of_a_move, begin_sampled),
        cmocka_unit_test_setup(a_sample_stands_for_all_time_since_the_last, begin_sampled),
        cmocka_unit_test_setup(time_of_ours_is_not_the_programs, begin_sampled),
        cmocka_unit_test_setup(a_signal_that_is_not_ours_is_passed_on, begin_sampled),
        cmocka_unit_test_setup(no_sample_is_taken_within_ours_or_at_the_end, begin_sampled),
        cmocka_unit_test_setup(a_sample_makes_the_next_malloc_request_a_helper, begin_sampled),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
