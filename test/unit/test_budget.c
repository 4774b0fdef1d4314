/* Tests the limit on the cost of profiling (OTEL_PROFILER_MAX_OVERHEAD): the rates that keep the
 * budget, step by step, in programs whose costs follow a model. */
#include "unit.h"

#include "clock.h"
#include "control/budget.h"

#include <math.h>

static const uint64_t SECOND = NANO_PER_SECOND;
enum { PERCENT = 10000 }; /* in millionths */

/* Models a program: its work in a second, and the prices of profiling that work, in ns of CPU time
 * for each sample. `delay` is in ns. */
struct program {
    double processors;
    double helper; /* share of a processor */
    double tick;   /* the most CPU samples in a second of CPU time */
    double cpu_price;
    double objects; /* objects allocated in a second, of two sizes in equal numbers */
    double sizes[2];
    double alloc_price;
    double contentions;
    double delay;
    double lock_price;
};

static const struct program busy = {.processors = 1,
                                    .tick = 250,
                                    .cpu_price = 4000,
                                    .objects = 300000,
                                    .sizes = {16, 4096},
                                    .alloc_price = 1000};

static struct settings_values settings(uint64_t frequency, uint64_t interval) {
    return (struct settings_values){.on = true,
                                    .types = PROFILE_CPU | PROFILE_ALLOC,
                                    .cpu_frequency = frequency,
                                    .alloc_interval = interval,
                                    .wait_frequency = 49,
                                    .lock_interval = 1,
                                    .max_stack_depth = 128};
}

static struct sampling_cost cost_of(double samples, double price, double objects, double amount) {
    return (struct sampling_cost){(uint64_t)(samples * price), (uint64_t)samples, (uint64_t)objects,
                                  (uint64_t)amount};
}

static struct sampling_cost cost_of_allocations(const struct program *p, double seconds,
                                                double interval) {
    const double each = p->objects * seconds / 2;
    const double samples =
        each * -expm1(-p->sizes[0] / interval) + each * -expm1(-p->sizes[1] / interval);
    return cost_of(samples, p->alloc_price, 2 * each, each * (p->sizes[0] + p->sizes[1]));
}

/* Returns the overhead that profiling has in `nano` ns at these settings. */
static struct overhead run(const struct program *p, uint64_t nano,
                           const struct settings_values *at) {
    const double seconds = (double)nano / 1e9;
    const double used = p->processors * seconds;
    const double frequency = fmin((double)at->cpu_frequency, p->tick);
    const double contended = fmin(1, p->delay / (double)at->lock_interval) * p->contentions;
    return (struct overhead){
        .nano = nano,
        .program_nano = (uint64_t)(used * 1e9),
        .helper_nano = (uint64_t)(p->helper * seconds * 1e9),
        .of = {[SAMPLING_CPU] = cost_of(used * frequency, p->cpu_price, 0, 0),
               [SAMPLING_ALLOCATIONS] = cost_of_allocations(p, seconds, (double)at->alloc_interval),
               [SAMPLING_LOCKS] =
                   cost_of(contended * seconds, p->lock_price, p->contentions * seconds,
                           p->contentions * p->delay * seconds)}};
}

/* Returns the overhead in percent of the program's CPU time. */
static double share(const struct overhead *seen) {
    double cost = (double)seen->helper_nano;
    for (int i = 0; i < SAMPLINGS; i++)
        cost += (double)seen->of[i].cpu_nano;
    return 100 * cost / (double)seen->program_nano;
}

struct state {
    struct budget budget;
    struct settings_values set;
    struct settings_values now;
    struct overhead seen;
    enum budget_change change;
};

static struct state begin(uint64_t limit, struct settings_values set) {
    return (struct state){.budget = budget_open(limit), .set = set, .now = set};
}

static void pass(struct state *s, const struct program *p, uint64_t nano, bool interval_ends) {
    s->seen = run(p, nano, &s->now);
    s->change = budget_step(&s->budget, &s->seen, &s->set, &s->now, interval_ends);
    s->now = budget_lower(&s->budget, &s->set);
}

static bool is_as_set(const struct state *s) {
    return s->now.cpu_frequency == s->set.cpu_frequency &&
           s->now.alloc_interval == s->set.alloc_interval &&
           s->now.lock_interval == s->set.lock_interval;
}

/* --- rates fall --- */

static void costly_rates_fall_at_once_to_the_budget(void **state) {
    (void)state;
    static const uint64_t limits[] = {PERCENT / 2, PERCENT, 2 * PERCENT, 5 * PERCENT};
    static const uint64_t intervals[] = {1, 64, 1024, 16384};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            struct state s = begin(limits[i], settings(4000, intervals[j]));
            pass(&s, &busy, SECOND, false);
            const bool was_over = share(&s.seen) > 1.1 * (double)limits[i] / PERCENT;
            assert_int_equal(s.change == BUDGET_FALLS, was_over);
            pass(&s, &busy, SECOND, false);
            pass(&s, &busy, SECOND, false);
            assert_true(share(&s.seen) < 1.06 * (double)limits[i] / PERCENT);
            assert_true(!was_over || share(&s.seen) > 0.7 * (double)limits[i] / PERCENT);
        }
}

static void a_tenth_is_within_a_third_of_a_point_after_one_step(void **state) {
    (void)state;
    struct program heavy = busy;
    heavy.objects = 100000;
    struct state s = begin(PERCENT, settings(4000, 1));
    pass(&s, &heavy, SECOND, false);
    assert_true(share(&s.seen) > 10);
    pass(&s, &heavy, SECOND, false);
    assert_true(fabs(share(&s.seen) - 1) < 0.3);
    const struct settings_values reached = s.now;
    for (int i = 0; i < 20; i++)
        pass(&s, &heavy, 10 * SECOND, true);
    assert_true(fabs(share(&s.seen) - 1) < 0.3);
    assert_true(s.now.alloc_interval <= reached.alloc_interval);
}

static void a_fiftieth_over_it_is_tolerated_and_a_tenth_is_not(void **state) {
    (void)state;
    static const double shares[] = {1.02, 1.1};
    for (int i = 0; i < 2; i++) {
        struct program p = {.processors = 1, .tick = 250};
        p.cpu_price = shares[i] / 100 * 1e9 / p.tick;
        struct state s = begin(PERCENT, settings(99, 524288));
        s.set.cpu_frequency = s.now.cpu_frequency = 250;
        for (int step = 0; step < 50; step++)
            pass(&s, &p, SECOND, true);
        assert_int_equal(is_as_set(&s), i == 0);
    }
}

/* Timers expire on the tick, so a fall from 4000 Hz to 2000 would change nothing. */
static void a_frequency_above_the_tick_falls_below_it(void **state) {
    (void)state;
    struct program dear = {.processors = 2, .tick = 250, .cpu_price = 100000};
    struct state s = begin(PERCENT, settings(4000, 524288));
    pass(&s, &dear, SECOND, false);
    assert_true(share(&s.seen) > 2);
    pass(&s, &dear, SECOND, false);
    assert_true(share(&s.seen) < 1.05 && share(&s.seen) > 0.7);
    assert_in_range(s.now.cpu_frequency, 70, 105);
}

static void cheap_rates_are_left_alone(void **state) {
    (void)state;
    struct program p = busy;
    p.contentions = 1000000;
    p.delay = 100;
    p.lock_price = 1000;
    struct state s = begin(PERCENT, settings(99, 524288));
    pass(&s, &p, SECOND, false);
    assert_int_equal(s.change, BUDGET_FALLS);
    assert_int_equal(s.now.cpu_frequency, 99);
    assert_int_equal(s.now.alloc_interval, 524288);
    assert_true(s.now.lock_interval > 1000);
    pass(&s, &p, SECOND, false);
    assert_true(fabs(share(&s.seen) - 1) < 0.3);
}

static void costly_types_share_the_rest_of_the_budget(void **state) {
    (void)state;
    struct program p = {.processors = 1,
                        .tick = 4000,
                        .cpu_price = 5000,
                        .objects = 30000,
                        .sizes = {100, 100},
                        .alloc_price = 1000};
    struct state s = begin(PERCENT, settings(4000, 1));
    pass(&s, &p, SECOND, false);
    pass(&s, &p, SECOND, false);
    const double cpu = (double)s.seen.of[SAMPLING_CPU].cpu_nano;
    const double allocations = (double)s.seen.of[SAMPLING_ALLOCATIONS].cpu_nano;
    assert_true(fabs(cpu / allocations - 1) < 0.1);
    assert_true(fabs(share(&s.seen) - 1) < 0.3);
}

/* Subtracts the helper's cost from the budget, but leaves a half to sampling. */
static void the_helper_goes_first(void **state) {
    (void)state;
    static const double helpers[][2] = {{0.004, 0.6}, {0.02, 0.5}};
    for (int i = 0; i < 2; i++) {
        struct program p = busy;
        p.helper = helpers[i][0];
        struct state s = begin(PERCENT, settings(99, 1));
        for (int step = 0; step < 4; step++)
            pass(&s, &p, SECOND, false);
        const double sampling = share(&s.seen) - 100 * p.helper;
        assert_true(fabs(sampling - helpers[i][1]) < 0.1);
    }
}

static void rates_keep_their_bounds(void **state) {
    (void)state;
    struct program p = {.processors = 1,
                        .tick = 4000,
                        .cpu_price = 1e8,
                        .objects = 1e6,
                        .sizes = {1e6, 1e6},
                        .alloc_price = 1e6,
                        .contentions = 1e5,
                        .delay = 1e6,
                        .lock_price = 1e7};
    struct state s = begin(PERCENT / 100, settings(4000, 1));
    for (int i = 0; i < 10; i++)
        pass(&s, &p, SECOND, false);
    assert_int_equal(s.now.cpu_frequency, BUDGET_LEAST_FREQUENCY);
    assert_int_equal(s.now.alloc_interval, BUDGET_LONGEST_INTERVAL);
    assert_int_equal(s.now.lock_interval, BUDGET_LONGEST_LOCK_INTERVAL);
    s = begin(PERCENT / 100, settings(3, UINT64_C(1) << 30)); /* rates set beyond their limits */
    s.set.lock_interval = s.now.lock_interval = UINT64_C(3000000000);
    for (int i = 0; i < 10; i++)
        pass(&s, &p, SECOND, false);
    assert_true(is_as_set(&s));
}

static void without_a_limit_nothing_is_lowered(void **state) {
    (void)state;
    struct state s = begin(BUDGET_NONE, settings(4000, 1));
    pass(&s, &busy, SECOND, false);
    assert_true(is_as_set(&s));
    assert_int_equal(s.change, BUDGET_STAYS);
    budget_limit(&s.budget, PERCENT);
    pass(&s, &busy, SECOND, false);
    assert_false(is_as_set(&s));
    budget_limit(&s.budget, BUDGET_NONE);
    s.now = budget_lower(&s.budget, &s.set);
    assert_true(is_as_set(&s));
}

/* --- costs that lower no rate --- */

static void default_rates_are_not_lowered(void **state) {
    (void)state;
    static const double processors[] = {0.001, 0.05, 0.3, 1, 16};
    for (int i = 0; i < 5; i++) {
        struct program p = busy;
        p.processors = processors[i];
        p.helper = 0.001;
        p.cpu_price = 20000; /* the price for python3 with deep stacks */
        p.objects = 1e6 * processors[i];
        struct state s = begin(PERCENT, settings(99, 524288));
        for (int step = 0; step < 50; step++)
            pass(&s, &p, 10 * SECOND, true);
        assert_true(is_as_set(&s));
    }
}

/* Takes samples that are dear at first: a cost of less than 5 ms in all (BUDGET_BURST_NANO) is no
 * reason to lower rates. */
static void a_burst_is_no_reason(void **state) {
    (void)state;
    struct program p = {
        .processors = 0.1, .tick = 250, .objects = 4000, .sizes = {1e6, 1e6}, .alloc_price = 1000};
    struct state s = begin(PERCENT, settings(99, 524288));
    pass(&s, &p, SECOND, false);
    assert_true(share(&s.seen) > 3);
    assert_true(is_as_set(&s));
    pass(&s, &p, SECOND, false); /* a burst that goes on is a reason */
    pass(&s, &p, SECOND, false);
    assert_false(is_as_set(&s));
}

/* --- rates rise --- */

static void rates_rise_slowly_after_an_interval_without_a_fall(void **state) {
    (void)state;
    struct state s = begin(PERCENT, settings(99, 1));
    struct program p = busy;
    pass(&s, &p, SECOND, false);
    pass(&s, &p, SECOND, false);
    const uint64_t lowered = s.now.alloc_interval;
    assert_true(lowered > 4096);
    p.objects = 0;
    pass(&s, &p, SECOND, false); /* no interval ends here */
    assert_int_equal(s.now.alloc_interval, lowered);
    pass(&s, &p, 10 * SECOND, true); /* the rate fell in this interval */
    assert_int_equal(s.now.alloc_interval, lowered);
    for (uint64_t before = lowered; !is_as_set(&s); before = s.now.alloc_interval) {
        pass(&s, &p, 10 * SECOND, true);
        assert_int_equal(s.change, BUDGET_RISES);
        assert_int_equal(s.now.alloc_interval, before / 2 > 1 ? before / 2 : 1);
    }
}

static void a_rise_causes_no_fall(void **state) {
    (void)state;
    struct program p = busy;
    struct state s = begin(PERCENT, settings(99, 1));
    pass(&s, &p, SECOND, false);
    p.objects /= 5;
    for (int i = 0; i < 20; i++) {
        pass(&s, &p, 10 * SECOND, true);
        assert_int_not_equal(s.change, BUDGET_FALLS);
    }
    assert_true(share(&s.seen) > 0.6 && share(&s.seen) < 1.05);
}

static void rates_return_where_the_program_does_four_times_as_much(void **state) {
    (void)state;
    struct program p = busy;
    p.processors = 0.05;
    struct state s = begin(PERCENT, settings(99, 1));
    for (int i = 0; i < 3; i++)
        pass(&s, &p, 10 * SECOND, true);
    assert_false(is_as_set(&s));
    p.objects = 100;
    /* the program uses three times the tenth of a processor that the budget was for */
    p.processors = 0.3;
    pass(&s, &p, SECOND, false);
    assert_int_not_equal(s.change, BUDGET_RETURNS);
    p.processors = 0.5;
    pass(&s, &p, SECOND, false);
    assert_int_equal(s.change, BUDGET_RETURNS);
    assert_true(is_as_set(&s));
}

/* Runs a program on its own processor, then starves it, so that each sample costs more and rates
 * are lowered, and then gives the processor back before the budget has forgotten the time of full
 * use. At full use the costs had lowered no rate, so all rates return. */
static void rates_return_where_a_starved_program_has_its_processor_back(void **state) {
    (void)state;
    const struct program whole = {.processors = 1, .tick = 250, .cpu_price = 40000};
    struct program starved = whole;
    starved.processors = 0.05;
    starved.cpu_price = 2000000;
    for (int seconds = 10; seconds < 600; seconds += 60) {
        struct state s = begin(PERCENT, settings(99, 524288));
        for (int i = 0; i < 60; i++)
            pass(&s, &whole, SECOND, i % 10 == 9);
        assert_true(is_as_set(&s));
        for (int i = 0; i < seconds; i++)
            pass(&s, &starved, SECOND, i % 10 == 9);
        assert_false(is_as_set(&s));
        pass(&s, &whole, SECOND, false);
        assert_int_equal(s.change, BUDGET_RETURNS);
        for (int i = 0; i < 60; i++) {
            pass(&s, &whole, SECOND, i % 10 == 9);
            assert_true(is_as_set(&s));
        }
    }
}

/* Runs a program that loses its processor and gets it back, again and again. The configured rates
 * are too costly at its full use. They return with the processor the first time, when this is not
 * known yet, and never again. */
static void rates_stay_lowered_where_they_were_too_costly(void **state) {
    (void)state;
    struct program starved = busy;
    starved.processors = 0.05;
    starved.objects *= 0.05;
    starved.alloc_price *= 50;
    struct state s = begin(PERCENT, settings(99, 1));
    int returned = 0;
    for (int turn = 0; turn < 10; turn++)
        for (int i = 0; i < 40; i++) {
            pass(&s, i < 20 ? &starved : &busy, SECOND, i % 10 == 9);
            returned += s.change == BUDGET_RETURNS;
        }
    assert_int_equal(returned, 1);
    assert_true(share(&s.seen) < 1.06);
}

/* --- the program's own CPU time --- */

static void cpu_time_of_minutes_ago_counts(void **state) {
    (void)state;
    struct program idle = {
        .processors = 0.01, .tick = 250, .objects = 2000, .sizes = {1e6, 1e6}, .alloc_price = 1000};
    struct program worked = {.processors = 1, .tick = 250};
    struct state s = begin(PERCENT, settings(99, 1));
    pass(&s, &worked, 10 * SECOND, true);
    for (int i = 0; i < 24; i++) {
        pass(&s, &idle, 10 * SECOND, true); /* 2 ms a second: a percent of a fifth of a processor */
        assert_true(is_as_set(&s));
    }
    for (int i = 0; i < 10; i++)
        pass(&s, &idle, 10 * SECOND, true);
    assert_false(is_as_set(&s));
}

/* Halves the CPU time that the program uses, as other processes do that keep it from running. */
static void a_program_that_uses_half_of_what_it_used_has_half_of_the_budget(void **state) {
    (void)state;
    struct program p = busy;
    struct state s = begin(PERCENT, settings(99, 1));
    for (int i = 0; i < 12; i++)
        pass(&s, &p, 10 * SECOND, true);
    assert_true(fabs(share(&s.seen) - 1) < 0.3);
    p.processors /= 2;
    p.objects /= 2;
    for (int i = 0; i < 12; i++) {
        pass(&s, &p, 10 * SECOND, true);
        assert_true(fabs(share(&s.seen) - 1) < 0.3);
    }
}

/* Runs a program that begins on two processors and goes on with a third of one: the budget is a
 * share of what the program uses at the time. */
static void a_burst_of_the_program_enlarges_the_budget_of_its_own_time_alone(void **state) {
    (void)state;
    struct program p = busy;
    struct state s = begin(PERCENT, settings(99, 1));
    p.processors = 2;
    pass(&s, &p, SECOND / 4, false);
    assert_int_equal(s.change, BUDGET_FALLS);
    p.processors = 0.33;
    for (int i = 0; i < 20; i++) {
        pass(&s, &p, 10 * SECOND, true);
        assert_true(i < 2 || fabs(share(&s.seen) - 1) < 0.3);
    }
}

/* Runs intervals that are longer than the time for which the budget remembers CPU time. */
static void a_long_interval_forgets_earlier_cpu_time(void **state) {
    (void)state;
    struct program idle = {
        .processors = 0.01, .tick = 250, .objects = 8000, .sizes = {1e6, 1e6}, .alloc_price = 1000};
    struct program worked = {.processors = 1, .tick = 250};
    struct state s = begin(PERCENT, settings(99, 1));
    pass(&s, &worked, 86400 * SECOND, true);
    pass(&s, &idle, 86400 * SECOND, true);
    assert_int_equal(s.change, BUDGET_FALLS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costly_rates_fall_at_once_to_the_budget),
        cmocka_unit_test(a_tenth_is_within_a_third_of_a_point_after_one_step),
        cmocka_unit_test(a_fiftieth_over_it_is_tolerated_and_a_tenth_is_not),
        cmocka_unit_test(a_frequency_above_the_tick_falls_below_it),
        cmocka_unit_test(cheap_rates_are_left_alone),
        cmocka_unit_test(costly_types_share_the_rest_of_the_budget),
        cmocka_unit_test(the_helper_goes_first),
        cmocka_unit_test(rates_keep_their_bounds),
        cmocka_unit_test(without_a_limit_nothing_is_lowered),
        cmocka_unit_test(default_rates_are_not_lowered),
        cmocka_unit_test(a_burst_is_no_reason),
        cmocka_unit_test(rates_rise_slowly_after_an_interval_without_a_fall),
        cmocka_unit_test(a_rise_causes_no_fall),
        cmocka_unit_test(rates_return_where_the_program_does_four_times_as_much),
        cmocka_unit_test(rates_return_where_a_starved_program_has_its_processor_back),
        cmocka_unit_test(rates_stay_lowered_where_they_were_too_costly),
        cmocka_unit_test(cpu_time_of_minutes_ago_counts),
        cmocka_unit_test(a_program_that_uses_half_of_what_it_used_has_half_of_the_budget),
        cmocka_unit_test(a_burst_of_the_program_enlarges_the_budget_of_its_own_time_alone),
        cmocka_unit_test(a_long_interval_forgets_earlier_cpu_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
