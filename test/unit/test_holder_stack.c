/* Tests which thread is reported as the holder of a mutex in the course of a wait. The test acts as
 * the helper, and writes owners into the mutex as glibc would. */
#include "unit.h"

#include "waiting_thread.h"

enum { DEPTH = 64, ANOTHER = 1 << 21 };

static const struct config config = {.types = PROFILE_OFF_CPU, .wait_frequency = 49};
static struct log logged;
static pthread_mutex_t mutex;

static struct {
    uint32_t samples;
    uint32_t by_another; /* samples of a wait whose reported holder is the thread ANOTHER */
    uint32_t by_itself;
    uint32_t without_holder;
    uint32_t without_stack; /* samples of a wait whose holder's stack is not recorded */
} told;

static void see(void *arg, const struct sample *sample) {
    (void)arg;
    if (sample->kind != SAMPLE_OFF_CPU || !sample->wait)
        return;
    assert_int_equal(sample->wait->kind, WAIT_LOCK);
    told.samples++;
    told.by_another += sample->wait->holder == ANOTHER;
    told.by_itself += sample->wait->holder == sample->tid;
    told.without_holder += sample->wait->holder == 0;
    told.without_stack += sample->wait->holder_frame_count == 0;
}

static void look(void) {
    waits.next_poll_ns = 0;
    wait_sampler_poll(&waits);
}

static void harvest(void) {
    memset(&told, 0, sizeof told);
    wait_sampler_harvest(&waits, false, see, NULL);
}

static uint32_t waiter(void) {
    return atomic_load(&waiting.state->tid);
}

static int begin(void **state) {
    (void)state;
    thread_table_reset(&threads);
    memset(&waits, 0, sizeof waits);
    memset(&mutex, 0, sizeof mutex);
    logged.separate_thread = gettid();
    waiting.in_hook = true;
    waiting.mutex = &mutex;
    wait_sampler_start(&waits, &config, &recorder, &logged);
    begin_waiting();
    return 0;
}

static int end(void **state) {
    (void)state;
    end_waiting();
    thread_table_give_back(&threads, waiting.state);
    return 0;
}

static int start(void **state) {
    (void)state;
    return recorder_is_ready(DEPTH) ? 0 : -1;
}

/* Gives the mutex to the waiter, whose slot shows a wait until its hook has returned. */
static void a_thread_that_got_the_mutex_did_not_wait_for_itself(void **state) {
    (void)state;
    mutex.__data.__owner = ANOTHER;
    look();
    mutex.__data.__owner = (int)waiter();
    look();
    look();
    harvest();
    assert_true(told.by_another > 0);
    assert_int_equal(told.by_itself, 0);
}

static void a_wait_for_the_threads_own_mutex_is_recorded_so(void **state) {
    (void)state;
    mutex.__data.__owner = (int)waiter();
    look();
    look();
    harvest();
    assert_true(told.by_itself > 0);
    assert_int_equal(told.by_another + told.without_holder, 0);
}

static void a_mutex_that_changes_hands_is_recorded_with_both_holders(void **state) {
    (void)state;
    mutex.__data.__owner = ANOTHER;
    look();
    mutex.__data.__owner = 0;
    look();
    harvest();
    assert_true(told.by_another > 0 && told.without_holder > 0);
}

/* Begins a second thread; each of the two holds the mutex that the other waits for. */
static void begin_deadlock(struct waiting *second, pthread_mutex_t *second_mutex) {
    second->in_hook = true;
    second->mutex = second_mutex;
    begin_waiting_of(second);
    mutex.__data.__owner = (int)atomic_load(&second->state->tid);
    second_mutex->__data.__owner = (int)waiter();
}

static void end_deadlock(struct waiting *second) {
    end_waiting_of(second);
    thread_table_give_back(&threads, second->state);
}

static void a_deadlock_that_a_harvest_sees_first_is_recorded_with_both_stacks(void **state) {
    static pthread_mutex_t second_mutex;
    static struct waiting second;
    (void)state;
    begin_deadlock(&second, &second_mutex);
    harvest();
    assert_true(told.samples >= 2);
    assert_int_equal(told.without_stack, 0);
    end_deadlock(&second);
}

static void a_deadlock_that_a_poll_sees_first_is_recorded_with_both_stacks(void **state) {
    static pthread_mutex_t second_mutex;
    static struct waiting second;
    (void)state;
    begin_deadlock(&second, &second_mutex);
    look();
    harvest();
    assert_true(told.samples >= 2);
    assert_int_equal(told.without_stack, 0);
    end_deadlock(&second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_thread_that_got_the_mutex_did_not_wait_for_itself, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_wait_for_the_threads_own_mutex_is_recorded_so, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_mutex_that_changes_hands_is_recorded_with_both_holders,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            a_deadlock_that_a_harvest_sees_first_is_recorded_with_both_stacks, begin, end),
        cmocka_unit_test_setup_teardown(
            a_deadlock_that_a_poll_sees_first_is_recorded_with_both_stacks, begin, end),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
