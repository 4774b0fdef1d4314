/* Implements Poisson sampling by bytes: the gap to the next sample, and the weight of a sampled
 * allocation.
 *
 * Sample points lie on the axis of allocated bytes with exponentially distributed gaps of mean R.
 * An allocation of S bytes is sampled if at least one point falls into it, which has probability p
 * = 1 - e^(-S/R); it then stands for 1/p allocations and S/p bytes, which makes both sums unbiased.
 * (Each allocation has its own weight, because a correction of the sum afterwards would be wrong
 * for stacks that mix sizes.) log and exp are computed here, to about 1e-12, by textbook series,
 * because the preloaded object links libc alone. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_POISSON_H
#define OTELPROF_POISSON_H

#include "hash.h"

#include <stdint.h>
#include <string.h>

/* Draws by xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators",
 * 2016). `*state` must not be 0. */
static inline uint64_t random_next(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1Du;
}

/* Returns a first state for random_next(), never 0, from the clock and two ids. Mixes each word
 * twice, because neighbouring ids that begin at the same moment must draw different numbers. */
static inline uint64_t random_first(uint64_t nano, uint64_t process, uint64_t id) {
    const uint64_t words[] = {nano, process, id, nano, process, id};
    return hash_words(HASH_MULTIPLIER, words, sizeof words / sizeof *words) | 1;
}

/* Returns a number uniform in (0, 1]. */
static inline double random_unit(uint64_t *state) {
    return ((double)(random_next(state) >> 11) + 1.0) * 0x1p-53;
}

/* Computes ln(x) for a normal x > 0: x = m 2^e with m in [1/√2, √2), ln m = 2 artanh((m-1)/(m+1)).
 */
static inline double natural_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    const double s = (m - 1) / (m + 1);
    double term = s;
    double sum = 0;
    for (int k = 1; k <= 17; k += 2) {
        sum += term / k;
        term *= s * s;
    }
    return 2 * sum + exponent * 0.6931471805599453;
}

/* Computes 1 - e^(-x) for x >= 0: the power series, halved until it converges fast, then 1 -
 * e^(-2y) = q (2 - q) with q = 1 - e^(-y). */
static inline double one_minus_exp(double x) {
    if (x > 40)
        return 1;
    int halvings = 0;
    for (; x > 0.5; x *= 0.5)
        halvings++;
    double term = x;
    double q = 0;
    for (int k = 1; k <= 14; k++) {
        q += term;
        term *= -x / (k + 1);
    }
    for (; halvings > 0; halvings--)
        q *= 2 - q;
    return q;
}

/* Returns the bytes until the next sample point, at least 1. `mean` in bytes; if it is at most 1,
 * returns 0: every allocation is sampled. */
static inline uint64_t poisson_gap(uint64_t *random, uint64_t mean) {
    if (mean <= 1)
        return 0;
    return (uint64_t)(-natural_log(random_unit(random)) * (double)mean) + 1;
}

/* Returns the number of allocations of `size` bytes (> 0) that a sampled one represents. */
static inline double poisson_weight(uint64_t size, uint64_t mean) {
    if (mean <= 1)
        return 1;
    return 1 / one_minus_exp((double)size / (double)mean);
}

#endif
