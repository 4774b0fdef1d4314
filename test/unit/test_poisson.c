/* Tests the arithmetic of sampling against libm and against its own promises. */
#include "unit.h"

#include "poisson.h"

#include <math.h>

static void logarithm(void **state) {
    (void)state;
    for (double x = 1e-16; x < 1e6; x *= 1.37)
        assert_true(fabs(natural_log(x) - log(x)) < 1e-11 * (1 + fabs(log(x))));
}

static void one_minus_exponential(void **state) {
    (void)state;
    for (double x = 1e-9; x < 100; x *= 1.21)
        assert_true(fabs(one_minus_exp(x) / -expm1(-x) - 1) < 1e-11);
    assert_true(one_minus_exp(0) == 0);
}

static void an_interval_of_one_takes_everything(void **state) {
    (void)state;
    uint64_t random = 1;
    assert_int_equal(poisson_gap(&random, 1), 0);
    assert_true(poisson_weight(1, 1) == 1);
}

/* Draws a million gaps: their mean is within five standard errors of the requested one. */
static void mean_gap(void **state) {
    (void)state;
    uint64_t random = 12345;
    const int count = 1000000;
    const double mean = 524288;
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)poisson_gap(&random, (uint64_t)mean);
    /* the gap is rounded up to whole bytes: half a byte more on average */
    assert_true(fabs(sum / count - mean - 0.5) < 5 * mean / sqrt(count));
}

/* Draws as the hook does, for sizes far below, near and far above the interval: the estimate of
 * objects is within five standard errors of the truth. */
static void weights_are_unbiased(void **state) {
    (void)state;
    static const uint64_t sizes[] = {16, 4096, 524288, 4 << 20};
    const uint64_t interval = 524288;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const uint64_t size = sizes[s];
        const double weight = poisson_weight(size, interval);
        const int count = size < 1000 ? 50000000 : 1000000;
        uint64_t random = 99;
        uint64_t left = poisson_gap(&random, interval);
        double estimate = 0;
        for (int i = 0; i < count; i++) {
            if (size < left) {
                left -= size;
                continue;
            }
            estimate += weight;
            left = poisson_gap(&random, interval);
        }
        const double deviation = sqrt(count * (weight - 1));
        assert_true(fabs(estimate - count) <= 5 * deviation + 1e-6 * count);
    }
}

/* Draws the first number of threads that begin at the same moment with neighbouring ids: the
 * numbers of two neighbours differ in half of their bits, as chance has it. */
static void neighbours_draw_different_numbers(void **state) {
    (void)state;
    const int count = 1000;
    uint64_t before = 0;
    double sum = 0;
    int bits = 0;
    for (int i = 0; i < count; i++) {
        uint64_t random = random_first(1000000000, 4711, 0x7f0000000000u + (unsigned)i);
        assert_int_not_equal(random, 0);
        const uint64_t drawn = random_next(&random);
        bits += __builtin_popcountll(drawn ^ before);
        before = drawn;
        sum += random_unit(&random);
    }
    assert_true(fabs(bits / (double)count - 32) < 5 * 4 / sqrt(count));
    assert_true(fabs(sum / count - 0.5) < 5 / sqrt(12.0 * count));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithm),
        cmocka_unit_test(one_minus_exponential),
        cmocka_unit_test(an_interval_of_one_takes_everything),
        cmocka_unit_test(mean_gap),
        cmocka_unit_test(weights_are_unbiased),
        cmocka_unit_test(neighbours_draw_different_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
