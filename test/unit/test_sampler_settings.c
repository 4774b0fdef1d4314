/* Tests that the sampler follows settings that change: off and on again, and another frequency. */
#include "unit.h"

#include "clock.h"
#include "kernel/signals_blocked.h"
#include "record/charged_time.h"
#include "record/countdown.h"
#include "sampler_fixture.h"

static void write_settings(bool on, uint64_t frequency) {
    const struct settings_values values = {.on = on,
                                           .types = PROFILE_CPU,
                                           .cpu_frequency = frequency,
                                           .alloc_interval = 1,
                                           .wait_frequency = 49,
                                           .lock_interval = 10000,
                                           .max_stack_depth = DEPTH};
    settings_publish(&settings, &values);
}

static void change_settings(bool on, uint64_t frequency) {
    write_settings(on, frequency);
    sampler_follow_settings();
}

static void off_nothing_is_sampled_and_on_again_it_is(void **state) {
    (void)state;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    const uint64_t before = thread->last_cpu_nano;
    change_settings(false, 100);
    assert_false(sampler_is_on());
    assert_int_equal(timers_of(SIGPROF), 1);             /* the timer in reserve */
    assert_true(deliver(SI_TIMER, sampler.timers.mark)); /* a late signal */
    assert_int_equal(seen.samples, 0);
    assert_int_equal(thread->last_cpu_nano, before);
    const uint64_t charged = charged_nano(thread, thread_cpu_nano());
    assert_int_equal(charged_nano(thread, UINT32_MAX), charged);
    change_settings(true, 100);
    assert_int_equal(timers_of(SIGPROF), ALL_TIMERS);
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(seen.samples, 1);
    assert_true(thread->last_cpu_nano > charged);
}

static void who_begins_while_it_is_off_is_sampled_later(void **state) {
    (void)state;
    change_settings(false, 100);
    sampler_stop_thread(other);
    atomic_store(&other->charge, 0);
    sampler_start_thread(other);
    assert_int_equal(timers_of(SIGPROF), 1);
    assert_true(other->charge & CHARGE_PAUSED);
    assert_int_equal(charged_nano(other, UINT32_MAX), 0); /* also not with its own start */
    change_settings(true, 100);
    assert_int_equal(timers_of(SIGPROF), ALL_TIMERS);
    assert_false(other->charge & CHARGE_PAUSED);
}

/* Starts a thread that has used CPU time before the profiler's start. */
static void time_before_the_start_is_charged_as_it_was_while_it_is_off(void **state) {
    (void)state;
    change_settings(false, 100);
    sampler_stop_thread(other);
    atomic_store(&other->charge, 0);
    other->last_cpu_nano = 1000;
    sampler_start_thread(other);
    assert_int_equal(charged_nano(other, UINT32_MAX), 1000);
    charge_resume(other, 5000);
    assert_int_equal(charged_nano(other, 5100), 1100);
}

static struct thread_state *reused;

/* Ends the thread whose clock is just read, and gives its slot to the next thread. */
static void reuse(long number, const long a[6]) {
    if (number != SYS_clock_gettime || (clockid_t)a[0] != cpu_clock_of((uint32_t)gettid()) ||
        reused)
        return;
    thread_table_give_back(&threads, thread);
    reused = thread_table_take(&threads);
}

static void a_pause_charges_no_thread_with_the_time_of_the_one_before_in_its_slot(void **state) {
    (void)state;
    reused = NULL;
    kernel.meanwhile = reuse;
    change_settings(false, 100);
    assert_ptr_equal(reused, thread);
    assert_int_equal(charged_nano(reused, 0), 0);
    assert_false(reused->charge & CHARGE_PAUSED); /* the thread itself does that as it begins: */
    atomic_store(&reused->tid, (uint32_t)gettid());
    sampler_start_thread(reused);
    assert_true(reused->charge & CHARGE_PAUSED);
}

/* Turns sampling on for a thread that has given up signals, because there was no memory for a
 * signal stack. */
static void who_has_given_up_signals_gets_none_by_being_turned_on(void **state) {
    (void)state;
    sampler_stop_thread(other);
    atomic_store(&other->timer, TIMER_NONE); /* a thread begins so */
    other->signals_given_up = true;
    sampler_start_thread(other);
    change_settings(false, 100);
    change_settings(true, 100);
    assert_int_equal(timers_of(SIGPROF), ALL_TIMERS - 1);
}

static void a_thread_follows_a_new_frequency_at_its_next_sample(void **state) {
    (void)state;
    thread->alloc_settings = settings_version(&settings);
    profiler_tls.alloc_left = UINT64_MAX;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(profiler_tls.alloc_left, UINT64_MAX);
    change_settings(true, 1000);
    assert_int_equal(thread->period_nano, 10000000);
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(thread->period_nano, 1000000);
    assert_int_equal(thread->cpu_settings, settings_version(&settings));
    assert_int_equal(thread->events, COUNTDOWN_SETTINGS); /* its next malloc follows them */
    assert_int_equal(profiler_tls.alloc_left, 0);
    sampler_start_thread(other);
    assert_int_equal(other->period_nano, 1000000);
}

/* Starts a thread during a change: its first timer has the old period, because the thread that
 * changes the settings has only written them. */
static void who_begins_during_a_change_follows_it_at_its_first_sample(void **state) {
    (void)state;
    sampler_stop_thread(thread);
    write_settings(true, 1000);
    sampler_start_thread(thread);
    assert_int_equal(thread->period_nano, 10000000);
    sampler_follow_settings();
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(thread->period_nano, 1000000);
}

/* Forks after a thread has written settings, and before it turns the timers off, or on: that thread
 * is not in the child. */
static void a_child_forked_during_a_change_follows_the_written_settings(void **state) {
    (void)state;
    write_settings(false, 100);
    thread_table_reset(&threads);
    sampler_after_fork();
    assert_false(sampler_is_on());
    write_settings(true, 1000);
    sampler_after_fork();
    assert_true(sampler_is_on());
    thread = begin_thread((uint32_t)gettid());
    sampler_start_thread(thread);
    assert_int_equal(thread->period_nano, 1000000);
    assert_true(thread->timer >= 0);
}

static void expiries_that_were_merged_are_counted(void **state) {
    (void)state;
    siginfo_t info = {.si_signo = SIGPROF, .si_code = SI_TIMER};
    ucontext_t context;
    here(&context);
    info.si_value.sival_ptr = (void *)(uintptr_t)sampler.timers.mark;
    info.si_overrun = 3;
    assert_true(sampler_on_signal(SIGPROF, &info, &context));
    assert_int_equal(thread->dropped[DROP_OVERRUN], 3);
}

/* --- signals of other threads --- */

static int slept;

static void another_thread_takes_it(long number, const long a[6]) {
    const signal_mask set = signal_bit(SIGUSR1);
    (void)a;
    if (number != SYS_nanosleep)
        return;
    slept++;
    assert_int_equal(bare_syscall(SYS_rt_sigtimedwait, (long)&set, 0, 0, sizeof set, 0, 0),
                     SIGUSR1);
}

static void where_nothing_is_blocked(ucontext_t *context) {
    getcontext(context);
    sigemptyset(&context->uc_sigmask);
}

static void a_sample_leaves_a_signal_to_the_thread_that_it_is_for(void **state) {
    (void)state;
    static const _Atomic int32_t two = 2;
    const signal_mask usr1 = signal_bit(SIGUSR1);
    signal_mask before;
    slept = 0;
    assert_true(signal_block(SIGUSR1, &before));
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    signals_give_way_to(&two, &sampler.timers.signal);
    kernel.meanwhile = another_thread_takes_it;
    assert_true(deliver(SI_TIMER, sampler.timers.mark)); /* the program blocks this signal */
    profiler_tls.inside = OWN_WORK;                      /* a thread that has left makes no call */
    assert_true(deliver_at(where_nothing_is_blocked, SI_TIMER, sampler.timers.mark));
    profiler_tls.inside = 0;
    assert_int_equal(slept, 0);
    assert_true(deliver_at(where_nothing_is_blocked, SI_TIMER, sampler.timers.mark));
    assert_int_equal(slept, 1);
    signals_give_way_to(NULL, NULL);
    assert_true(signals_change(SIG_UNBLOCK, &usr1, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_sample_leaves_a_signal_to_the_thread_that_it_is_for,
                               begin_sampled),
        cmocka_unit_test_setup(off_nothing_is_sampled_and_on_again_it_is, begin_sampled),
        cmocka_unit_test_setup(expiries_that_were_merged_are_counted, begin_sampled),
        cmocka_unit_test_setup(who_begins_while_it_is_off_is_sampled_later, begin_sampled),
        cmocka_unit_test_setup(time_before_the_start_is_charged_as_it_was_while_it_is_off,
                               begin_sampled),
        cmocka_unit_test_setup(
            a_pause_charges_no_thread_with_the_time_of_the_one_before_in_its_slot, begin_sampled),
        cmocka_unit_test_setup(who_has_given_up_signals_gets_none_by_being_turned_on,
                               begin_sampled),
        cmocka_unit_test_setup(a_thread_follows_a_new_frequency_at_its_next_sample, begin_sampled),
        cmocka_unit_test_setup(who_begins_during_a_change_follows_it_at_its_first_sample,
                               begin_sampled),
        cmocka_unit_test_setup(a_child_forked_during_a_change_follows_the_written_settings,
                               begin_sampled),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
