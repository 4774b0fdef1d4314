/* Tests the cost of sampling: counts of each thread, and the price of the measured samples. */
#include "unit.h"

#include "record/sampling_cost.h"
#include "record/thread_table.h"

static struct thread_table table;
static struct thread_state *thread;
static struct sampling_costs costs;
static struct sampling_cost now[SAMPLINGS];

enum { MANY = 32000, PID = 4711 };

static int begin(void **state) {
    (void)state;
    memset(&table, 0, sizeof table);
    thread_table_init(&table, 16);
    thread = thread_table_take(&table);
    assert_non_null(thread);
    memset(thread->costs, 0, sizeof thread->costs);
    thread->random = 88172645463325252u;
    costs = (struct sampling_costs){.pid = 0};
    sampling_costs_update(&costs, &table, PID, now);
    costs.clock_nano = 0; /* as if reading the clock were free */
    return 0;
}

static void look(void) {
    sampling_costs_update(&costs, &table, PID, now);
}

/* Counts `count` pieces of work, and every tenth as measured at `price` ns. */
static void work(enum sampling_work work, int count, uint64_t price) {
    for (int i = 0; i < count; i++) {
        sampling_add(&thread->costs[work].done, 1);
        if (i % 10 == 0)
            sampling_measured(&thread->costs[work], price);
    }
}

static bool is_about(uint64_t nano, double expected) {
    return (double)nano > 0.97 * expected && (double)nano < 1.03 * expected;
}

static void cost_is_the_count_times_the_measured_price(void **state) {
    (void)state;
    work(WORK_ALLOCATION, MANY, 5000);
    work(WORK_CPU_SAMPLE, MANY, 8000);
    work(WORK_CONTENTION, MANY, 700);
    look();
    assert_true(is_about(now[SAMPLING_ALLOCATIONS].cpu_nano, MANY * 5300.0));
    assert_true(is_about(now[SAMPLING_CPU].cpu_nano, MANY * 10000.0));
    assert_true(is_about(now[SAMPLING_LOCKS].cpu_nano, MANY * 1000.0));
    assert_int_equal(now[SAMPLING_ALLOCATIONS].samples, MANY);
}

/* Counts work at the price that was valid when it was done. */
static void a_price_may_change(void **state) {
    (void)state;
    work(WORK_ALLOCATION, MANY, 1000);
    look();
    const uint64_t before = now[SAMPLING_ALLOCATIONS].cpu_nano;
    look();
    assert_int_equal(now[SAMPLING_ALLOCATIONS].cpu_nano, before);
    work(WORK_ALLOCATION, MANY, 9000);
    look();
    assert_true(is_about(now[SAMPLING_ALLOCATIONS].cpu_nano - before, MANY * 9300.0));
}

static void frees_belong_to_allocations_and_are_no_samples(void **state) {
    (void)state;
    work(WORK_ALLOCATION, 1000, 1000);
    look();
    const uint64_t before = now[SAMPLING_ALLOCATIONS].cpu_nano;
    work(WORK_FREE, MANY, 500);
    look();
    assert_true(is_about(now[SAMPLING_ALLOCATIONS].cpu_nano - before, MANY * 510.0));
    assert_int_equal(now[SAMPLING_ALLOCATIONS].samples, 1000);
}

static void the_clock_is_no_part_of_the_price(void **state) {
    (void)state;
    costs.clock_nano = 400;
    work(WORK_ALLOCATION, MANY, 2400);
    look();
    assert_true(is_about(now[SAMPLING_ALLOCATIONS].cpu_nano, MANY * (2300.0 + 800.0 / 10)));
}

static void the_weights_of_samples_are_reported(void **state) {
    (void)state;
    sampling_weigh(&thread->costs[WORK_ALLOCATION], 2.6, 1000.2);
    sampling_weigh(&thread->costs[WORK_ALLOCATION], 1, 24);
    look();
    assert_int_equal(now[SAMPLING_ALLOCATIONS].objects, 4);
    assert_int_equal(now[SAMPLING_ALLOCATIONS].amount, 1024);
}

static int measured_of(enum sampling_work work, int count) {
    int measured = 0;
    for (int i = 0; i < count; i++) {
        const uint64_t begun = sampling_begin(&thread->costs[work], work, &thread->random);
        measured += begun != 0;
        sampling_end(&thread->costs[work], begun);
    }
    return measured;
}

static void one_in_eight_is_measured_and_never_the_first(void **state) {
    (void)state;
    assert_int_equal(measured_of(WORK_ALLOCATION, 1), 0);
    assert_in_range(measured_of(WORK_ALLOCATION, MANY), 3800, 4200);
    const struct sampling_count *const count = &thread->costs[WORK_ALLOCATION];
    assert_int_equal(count->done, MANY + 1);
    assert_in_range(count->measured, 3800, 4200);
    assert_true(count->nano > 0);
}

/* Does work in a rhythm of eight pieces: the choice of measured samples does not follow it. */
static void measured_samples_follow_no_rhythm(void **state) {
    (void)state;
    int even = 0;
    int all = 0;
    for (int i = 0; i < 10 * MANY; i++) {
        const int measured = measured_of(WORK_CONTENTION, 1);
        even += measured && i % 8 < 4;
        all += measured;
    }
    assert_in_range(even, all * 45 / 100, all * 55 / 100);
}

static void a_forked_child_begins_anew(void **state) {
    (void)state;
    work(WORK_ALLOCATION, MANY, 5000);
    look();
    memset(thread->costs, 0, sizeof thread->costs); /* the kernel leaves it so */
    sampling_costs_update(&costs, &table, PID + 1, now);
    assert_int_equal(now[SAMPLING_ALLOCATIONS].cpu_nano, 0);
    work(WORK_ALLOCATION, 100, 5000);
    sampling_costs_update(&costs, &table, PID + 1, now);
    assert_int_equal(now[SAMPLING_ALLOCATIONS].samples, 100);
    assert_in_range(now[SAMPLING_ALLOCATIONS].cpu_nano, 1, 100 * 6000 - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(cost_is_the_count_times_the_measured_price, begin),
        cmocka_unit_test_setup(a_price_may_change, begin),
        cmocka_unit_test_setup(frees_belong_to_allocations_and_are_no_samples, begin),
        cmocka_unit_test_setup(the_clock_is_no_part_of_the_price, begin),
        cmocka_unit_test_setup(the_weights_of_samples_are_reported, begin),
        cmocka_unit_test_setup(one_in_eight_is_measured_and_never_the_first, begin),
        cmocka_unit_test_setup(measured_samples_follow_no_rhythm, begin),
        cmocka_unit_test_setup(a_forked_child_begins_anew, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
