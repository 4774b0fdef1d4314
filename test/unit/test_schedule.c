/* Tests when exports are due: spread evenly, at most one interval after the start, always in phase.
 */
#include "unit.h"

#include "export/random_seed.h"
#include "export/schedule.h"
#include "poisson.h"

enum { BINS = 20, PROCESSES = 20000 };

static const uint64_t start = UINT64_C(123456789012345);
static const uint64_t interval = UINT64_C(10000000000);

static struct schedule begin(uint64_t late, uint64_t seed) {
    uint64_t random = seed;
    return schedule_begin(start, start + late, interval, false, &random);
}

/* Returns the state of random numbers of one of many processes that were started together
 * (random_seed.h). */
static uint64_t seed_of(int process) {
    uint64_t random = (uint64_t)process * 2 + 1;
    (void)random_next(&random);
    return random_next(&random) | 1;
}

static double chi_square(const int *counts) {
    const double expected = (double)PROCESSES / BINS;
    double sum = 0;
    for (int i = 0; i < BINS; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

/* 43.8 is the 0.1 % bound for 19 degrees of freedom. The seeds are fixed, and so is the outcome. */
static void phases_fill_the_interval(void **state) {
    (void)state;
    for (uint64_t late = 0; late <= interval; late += interval / 4) {
        int regular[BINS] = {0};
        for (int i = 0; i < PROCESSES; i++) {
            struct schedule s = begin(late, seed_of(i));
            schedule_advance(&s, s.next);
            regular[(s.next - start - 1) % interval / (interval / BINS)]++;
        }
        assert_true(chi_square(regular) < 43.8);
    }
}

/* Processes that missed their phase while loading fill the remaining time, evenly as well. */
static void the_first_is_within_one_interval(void **state) {
    (void)state;
    const uint64_t late = interval / 2;
    int first[BINS] = {0};
    for (int i = 0; i < PROCESSES; i++) {
        const struct schedule s = begin(late, seed_of(i));
        assert_true(s.next >= start + late && s.next <= start + interval);
        const uint64_t at = s.next - start - late;
        first[at < late ? at / (late / BINS) : BINS - 1]++;
    }
    assert_true(chi_square(first) < 43.8);
}

static void too_late_for_the_first_it_is_due_at_once(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(begin(3 * interval + 5, seed_of(i)).next, start + 3 * interval + 5);
}

static void a_phase_is_kept(void **state) {
    (void)state;
    struct schedule s = begin(interval / 3, 4711);
    uint64_t random = 7;
    uint64_t last = s.next;
    schedule_advance(&s, last);
    for (int i = 0; i < 100000; i++) {
        assert_int_equal((s.next - s.phase) % interval, 0);
        assert_true(s.next > last && s.next - last <= interval);
        last = s.next + random_next(&random) % (3 * interval); /* late, and still later */
        schedule_advance(&s, last);
    }
}

/* The last export of a process may come before the first deadline. */
static void an_early_export_moves_nothing(void **state) {
    (void)state;
    struct schedule s = begin(0, 4711);
    const uint64_t next = s.next;
    schedule_advance(&s, start);
    assert_int_equal(s.next, next);
}

/* Adds early exports to those at regular moments, so that a process that ends without exit loses a
 * fifth of its time at most, whenever it ends. */
static void an_end_without_exit_loses_a_fifth_at_most(void **state) {
    (void)state;
    const uint64_t loaded = start + UINT64_C(1020000000);
    uint64_t random = 4711;
    struct schedule s = schedule_begin(start, loaded, interval, true, &random);
    assert_int_equal(s.next, loaded);
    uint64_t regular = s.phase > loaded ? s.phase : s.phase + interval;
    for (int i = 0; i < 200; i++) {
        const uint64_t last = s.next;
        schedule_advance(&s, last);
        assert_true(s.next > last && s.next - last <= interval);
        assert_true((s.next - last) * 5 <= s.next - start);
        assert_true(s.next <= regular);
        regular += s.next == regular ? interval : 0;
    }
    assert_true(regular > start + 100 * interval);
}

static void the_shortest_interval_works(void **state) {
    (void)state;
    uint64_t random = 1;
    struct schedule s = schedule_begin(start, start, 1, false, &random);
    assert_int_equal(s.next, start + 1);
    schedule_advance(&s, start + 5);
    assert_int_equal(s.next, start + 6);
}

static void seeds_differ(void **state) {
    (void)state;
    const uint64_t one = random_seed();
    assert_int_not_equal(one, 0);
    assert_int_not_equal(one, random_seed());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_fill_the_interval),
        cmocka_unit_test(the_first_is_within_one_interval),
        cmocka_unit_test(too_late_for_the_first_it_is_due_at_once),
        cmocka_unit_test(a_phase_is_kept),
        cmocka_unit_test(an_early_export_moves_nothing),
        cmocka_unit_test(an_end_without_exit_loses_a_fifth_at_most),
        cmocka_unit_test(the_shortest_interval_works),
        cmocka_unit_test(seeds_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
