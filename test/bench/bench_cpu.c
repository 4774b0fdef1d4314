/* Is a CPU-bound program: a sieve, a sort and matrix products; a round is about 0.2 s.
 *
 * usage: bench_cpu [ROUNDS]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIEVE = 4000000, NUMBERS = 1000000, SIDE = 256, STANDARD_ROUNDS = 5 };

static volatile uint64_t sink;

__attribute__((noinline)) static void sieve(unsigned char *flags) {
    memset(flags, 1, SIEVE);
    for (uint64_t i = 2; i * i < SIEVE; i++)
        for (uint64_t j = i * i; flags[i] && j < SIEVE; j += i)
            flags[j] = 0;
    sink += flags[SIEVE - 1];
}

static int compare(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

__attribute__((noinline)) static void sort(uint32_t *numbers) {
    uint32_t x = 1;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = x = x * 1664525 + 1013904223;
    qsort(numbers, NUMBERS, sizeof *numbers, compare);
    sink += numbers[0];
}

__attribute__((noinline)) static void multiply(double *c, const double *a, const double *b) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; k < SIDE; k++)
                c[i * SIDE + j] += a[i * SIDE + k] * b[k * SIDE + j];
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : STANDARD_ROUNDS;
    unsigned char *const flags = malloc(SIEVE);
    uint32_t *const numbers = malloc(NUMBERS * sizeof *numbers);
    double *const matrices = calloc(3 * SIDE * SIDE, sizeof *matrices);
    for (int i = 0; i < rounds; i++) {
        sieve(flags);
        sort(numbers);
        for (int k = 0; k < 4; k++)
            multiply(matrices, matrices + SIDE * SIDE, matrices + 2 * SIDE * SIDE);
    }
    return 0;
}
