/* Makes a stack of known depth: four functions in turn, of differing frames and saved registers.
 * The file that includes it defines BOTTOM(), which the innermost of them calls. */
#ifndef BENCH_RECURSION_H
#define BENCH_RECURSION_H

#include <stdint.h>

#define RECURSION(name, words, next)                                                               \
    static uint64_t next(int left, uint64_t a, uint64_t b);                                        \
    __attribute__((noinline)) static uint64_t name(int left, uint64_t a, uint64_t b) {             \
        volatile uint64_t room[words];                                                             \
        const uint64_t c = a * 31 + (uint64_t)left;                                                \
        uint64_t below = 0;                                                                        \
        room[left % (words)] = c;                                                                  \
        if (left > 1)                                                                              \
            below = next(left - 1, c, a ^ b);                                                      \
        else                                                                                       \
            BOTTOM();                                                                              \
        return below * b + (a ^ room[left % (words)]) + c % 7;                                     \
    }
RECURSION(recursion, 3, second_function)
RECURSION(second_function, 25, third_function)
RECURSION(third_function, 7, fourth_function)
RECURSION(fourth_function, 75, recursion)

#endif
