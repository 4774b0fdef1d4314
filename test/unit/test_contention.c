/* Tests contentions: samples stand for all contentions, are bounded, and name the lock. */
#include "unit.h"

#include "clock.h"
#include "poisson.h"
#include "recorder_fixture.h"
#include "wait/contention.h"
#include "wait/wait_sampler.h"

#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>

enum { DEPTH = 32, TID = 4711, HOLDER = 4712, INTERVAL = 10000 };

static struct thread_state *thread;

static void set_lock_interval(uint64_t interval) {
    struct settings_values values = set_most(DEPTH);
    values.lock_interval = interval;
    settings_publish(&settings, &values);
}

static void turn_off(unsigned types) {
    struct settings_values values = set_most(DEPTH);
    values.types &= ~types;
    settings_publish(&settings, &values);
}

/* --- what was recorded --- */

static struct {
    int samples;
    double contentions;
    double nano;
    struct sample last;
    struct wait_detail wait;
} seen;

static void see(void *arg, const struct sample *sample) {
    (void)arg;
    seen.samples++;
    seen.contentions += sample->values[MEASURED_OBJECTS];
    seen.nano += sample->values[MEASURED_DELAY];
    seen.last = *sample;
    memset(&seen.wait, 0, sizeof seen.wait);
    if (sample->wait)
        memcpy(&seen.wait, sample->wait, wait_words(sample->wait) * sizeof(uint64_t));
}

static void harvest(void) {
    memset(&seen, 0, sizeof seen);
    thread_table_harvest(&threads, see, NULL);
}

static int begin(void **state) {
    (void)state;
    set_lock_interval(INTERVAL);
    thread = begin_thread(TID);
    if (!thread)
        return -1;
    profiler_tls.thread = thread;
    profiler_tls.inside = 0;
    atomic_store(&wait_slots_on, false);
    harvest();
    return 0;
}

static int end(void **state) {
    (void)state;
    profiler_tls.thread = NULL;
    thread_table_reset(&threads);
    return 0;
}

static const struct hook_caller caller = {.stack_pointer = 16, .frame_pointer = 32, .pc = 48};
static pthread_mutex_t lock;

/* Makes a contention whose lock was held by HOLDER. */
__attribute__((noinline)) static void contend(void) {
    lock.__data.__owner = HOLDER;
    const struct contention contention = contention_begin(&recorder, &caller, WAIT_LOCK, &lock);
    contention_end(&recorder, &contention);
}

/* --- the rate of samples --- */

/* Makes `count` contentions of `delay` ns, one each `gap` ns from `*now` on. Returns the number of
 * contentions that the samples stand for. */
static double sampled(uint64_t *now, int count, uint64_t delay, uint64_t gap) {
    double stands_for = 0;
    for (int i = 0; i < count; i++, *now += gap)
        if (contention_is_sampled(thread, &settings, *now, delay))
            stands_for += contention_weight(thread->contention.interval, delay);
    return stands_for;
}

static void samples_stand_for_all_whatever_their_delay(void **state) {
    (void)state;
    static const uint64_t delays[] = {100, 1000, 9999, 10000, 10001, 1000000};
    uint64_t now = NANO_PER_SECOND;
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        const int count = 400000;
        /* the rate is low enough for the interval to stay */
        const double expected = sampled(&now, count, delays[i], 100 * NANO_PER_MILLI);
        const double p = delays[i] < INTERVAL ? (double)delays[i] / INTERVAL : 1;
        const double deviation = sqrt(count * (1 - p) / p);
        assert_int_equal(thread->contention.interval, INTERVAL);
        assert_true(fabs(expected - count) <= 5 * deviation);
    }
}

static void an_interval_of_1_samples_each(void **state) {
    (void)state;
    set_lock_interval(1);
    uint64_t now = NANO_PER_SECOND;
    int samples = 0;
    for (int i = 0; i < 1000; i++, now += NANO_PER_SECOND)
        samples += contention_is_sampled(thread, &settings, now, 1);
    assert_int_equal(samples, 1000);
}

static void many_contentions_take_few_samples_and_are_all_recorded(void **state) {
    (void)state;
    enum { DELAY = 50000, GAP = 100000, SECONDS = 60 };
    const int a_second = NANO_PER_SECOND / GAP;
    uint64_t now = NANO_PER_SECOND;
    double stands_for = 0;
    int after_ten = 0;
    for (int i = 0; i < SECONDS * a_second; i++, now += GAP)
        if (contention_is_sampled(thread, &settings, now, DELAY)) {
            stands_for += contention_weight(thread->contention.interval, DELAY);
            after_ten += i >= 10 * a_second;
        }
    assert_true(after_ten <= (SECONDS - 10) * CONTENTION_MOST_SAMPLES);
    assert_true(after_ten >= (SECONDS - 10) * CONTENTION_MOST_SAMPLES / 5);
    assert_true(fabs(stands_for / (SECONDS * a_second) - 1) < 0.1);
}

static void the_interval_comes_back_when_they_are_few_again(void **state) {
    (void)state;
    uint64_t now = NANO_PER_SECOND;
    (void)sampled(&now, 10000, 1000000, 1000);
    assert_true(thread->contention.interval > INTERVAL);
    (void)sampled(&now, 60, 1, 2 * NANO_PER_SECOND);
    assert_int_equal(thread->contention.interval, INTERVAL);
}

/* Makes contentions for two seconds; `changes`: turns the type off and on again after each of them.
 * Returns the number of samples. */
static int samples_in_two_seconds(bool changes) {
    enum { DELAY = 1000000, GAP = 10000 };
    uint64_t now = NANO_PER_SECOND;
    int samples = 0;
    set_lock_interval(INTERVAL);
    thread->contention = (struct contention_rate){.interval = 0};
    thread->random = 1;
    for (int i = 0; i < 2 * (int)(NANO_PER_SECOND / GAP); i++, now += GAP) {
        samples += contention_is_sampled(thread, &settings, now, DELAY);
        if (!changes)
            continue;
        turn_off(PROFILE_LOCK);
        set_lock_interval(INTERVAL);
    }
    return samples;
}

static void pauses_do_not_restart_the_bound(void **state) {
    (void)state;
    const int samples = samples_in_two_seconds(false);
    assert_true(samples > CONTENTION_MOST_SAMPLES);
    assert_int_equal(samples_in_two_seconds(true), samples);
}

/* Acts as a client that sets two intervals in turns, 16 times a second. */
static void other_intervals_do_not_restart_the_bound(void **state) {
    (void)state;
    enum { DELAY = 50000, GAP = 10000, SECONDS = 20, TURN = 6000 };
    const int a_second = NANO_PER_SECOND / GAP;
    uint64_t now = NANO_PER_SECOND;
    int after_ten = 0;
    for (int i = 0; i < SECONDS * a_second; i++, now += GAP) {
        if (i % TURN == 0)
            set_lock_interval(i / TURN % 2 ? 1 : INTERVAL);
        after_ten += contention_is_sampled(thread, &settings, now, DELAY) && i >= 10 * a_second;
    }
    assert_in_range(after_ten, 1, (SECONDS - 10) * CONTENTION_MOST_SAMPLES);
}

static void a_new_interval_is_followed_at_once(void **state) {
    (void)state;
    uint64_t now = NANO_PER_SECOND;
    (void)sampled(&now, 1, 1, 1);
    set_lock_interval(77);
    (void)sampled(&now, 1, 1, 1);
    assert_int_equal(thread->contention.interval, 77);
}

/* --- what is recorded --- */

static void a_contention_is_recorded_with_lock_and_holder(void **state) {
    (void)state;
    set_lock_interval(1);
    contend();
    harvest();
    assert_int_equal(seen.samples, 1);
    assert_int_equal(seen.last.kind, SAMPLE_LOCK);
    assert_int_equal(seen.last.tid, TID);
    assert_true(seen.contentions == 1);
    assert_true(seen.nano >= 1);
    assert_true(seen.last.frame_count >= 3);
    assert_int_equal(seen.wait.kind, WAIT_LOCK);
    assert_int_equal(seen.wait.object, (uintptr_t)&lock);
    assert_int_equal(seen.wait.holder, HOLDER);
}

static void the_wait_slot_has_the_wait_while_slots_are_on(void **state) {
    (void)state;
    contend();
    assert_int_equal(atomic_load(&thread->wait_slot.sequence), 0);
    atomic_store(&wait_slots_on, true);
    const struct contention contention = contention_begin(&recorder, &caller, WAIT_LOCK, &lock);
    assert_int_equal(atomic_load(&thread->wait_slot.sequence) % 2, 1);
    assert_int_equal(wait_slot_kind(atomic_load(&thread->wait_slot.kind)), WAIT_LOCK);
    assert_int_equal(atomic_load(&thread->wait_slot.object), (uintptr_t)&lock);
    assert_int_equal(atomic_load(&thread->wait_slot.pc), caller.pc);
    contention_end(&recorder, &contention);
    assert_int_equal(atomic_load(&thread->wait_slot.sequence) % 2, 0);
}

static void locks_that_are_not_profiled_are_not_timed(void **state) {
    (void)state;
    set_lock_interval(1);
    turn_off(PROFILE_LOCK);
    atomic_store(&wait_slots_on, true);
    contend();
    harvest();
    assert_int_equal(seen.samples, 0);
    assert_true(atomic_load(&thread->wait_slot.sequence) > 0);
}

static void work_of_the_profilers_own_is_not_measured(void **state) {
    (void)state;
    set_lock_interval(1);
    atomic_store(&wait_slots_on, true);
    profiler_tls.inside = 1;
    contend();
    profiler_tls.inside = OWN_WORK;
    contend();
    profiler_tls.inside = 0;
    profiler_tls.thread = NULL;
    contend();
    profiler_tls.thread = thread;
    atomic_store(&thread->tid, 0); /* as in a copy of the process that no fork handler has seen */
    contend();
    atomic_store(&thread->tid, TID);
    harvest();
    assert_int_equal(seen.samples, 0);
    assert_int_equal(atomic_load(&thread->wait_slot.sequence), 0);
}

/* Acts as a fork in a handler that runs during the wait: in the child this thread has another slot.
 */
static void another_slot_than_before_is_left_as_it_is(void **state) {
    (void)state;
    set_lock_interval(1);
    const struct contention contention = contention_begin(&recorder, &caller, WAIT_LOCK, &lock);
    struct thread_state *const other = begin_thread(TID + 1);
    profiler_tls.thread = other;
    contention_end(&recorder, &contention);
    harvest();
    assert_int_equal(seen.samples, 0);
}

/* Acts as a handler that runs during the wait and gives up the right to make system calls. */
static void a_thread_that_has_left_meanwhile_records_nothing(void **state) {
    (void)state;
    set_lock_interval(1);
    const struct contention contention = contention_begin(&recorder, &caller, WAIT_LOCK, &lock);
    profiler_tls.inside = OWN_WORK;
    contention_end(&recorder, &contention);
    profiler_tls.inside = 0;
    harvest();
    assert_int_equal(seen.samples, 0);
}

static void errno_and_floats_stay_as_they_were(void **state) {
    (void)state;
    set_lock_interval(1000000000);
    for (int i = 0; i < 10000; i++) {
        errno = 55;
        feclearexcept(FE_ALL_EXCEPT);
        contend();
        assert_int_equal(errno, 55);
        assert_int_equal(fetestexcept(FE_ALL_EXCEPT), 0);
    }
    set_lock_interval(100000); /* some are sampled, with weights that are not whole numbers */
    for (int i = 0; i < 10000; i++) {
        feclearexcept(FE_ALL_EXCEPT);
        contend();
        assert_int_equal(fetestexcept(FE_ALL_EXCEPT), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples_stand_for_all_whatever_their_delay, begin, end),
        cmocka_unit_test_setup_teardown(an_interval_of_1_samples_each, begin, end),
        cmocka_unit_test_setup_teardown(many_contentions_take_few_samples_and_are_all_recorded,
                                        begin, end),
        cmocka_unit_test_setup_teardown(the_interval_comes_back_when_they_are_few_again, begin,
                                        end),
        cmocka_unit_test_setup_teardown(pauses_do_not_restart_the_bound, begin, end),
        cmocka_unit_test_setup_teardown(other_intervals_do_not_restart_the_bound, begin, end),
        cmocka_unit_test_setup_teardown(a_new_interval_is_followed_at_once, begin, end),
        cmocka_unit_test_setup_teardown(a_contention_is_recorded_with_lock_and_holder, begin, end),
        cmocka_unit_test_setup_teardown(the_wait_slot_has_the_wait_while_slots_are_on, begin, end),
        cmocka_unit_test_setup_teardown(locks_that_are_not_profiled_are_not_timed, begin, end),
        cmocka_unit_test_setup_teardown(work_of_the_profilers_own_is_not_measured, begin, end),
        cmocka_unit_test_setup_teardown(another_slot_than_before_is_left_as_it_is, begin, end),
        cmocka_unit_test_setup_teardown(a_thread_that_has_left_meanwhile_records_nothing, begin,
                                        end),
        cmocka_unit_test_setup_teardown(errno_and_floats_stay_as_they_were, begin, end),
    };
    if (!recorder_is_ready(DEPTH))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
