/* Works for so much CPU time of its thread, in C and C++. The work is in macros, because a profile
 * names inlined functions, too: so the function that uses a macro burns the time, and tests find
 * its name.
 *
 * Times are in nanoseconds. A round between two reads of the clock takes some 5 us, by which the
 * work may last too long. A thread's clock starts at 0, also in a forked child. */
#ifndef TEST_CPU_WORK_H
#define TEST_CPU_WORK_H

#include "noipa.h"

#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)

static inline __attribute__((always_inline)) uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns the CPU time that the calling thread has used so far. */
static inline __attribute__((always_inline)) uint64_t cpu_now(void) {
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Works until cpu_now() reaches `end`. */
#define WORK_UNTIL(end)                                                                            \
    do {                                                                                           \
        const uint64_t work_end = (end);                                                           \
        uint64_t work_x = 1;                                                                       \
        while (cpu_now() < work_end) {                                                             \
            for (int work_i = 0; work_i < 4000; work_i++) /* Knuth's generator of MMIX */          \
                work_x = work_x * 6364136223846793005u + 1442695040888963407u;                     \
            __asm__ volatile("" : : "r"(work_x)); /* keeps the compiler from removing the loop */  \
        }                                                                                          \
    } while (0)

#define WORK_FOR(nanoseconds) WORK_UNTIL(cpu_now() + (nanoseconds))

/* Defines name(), a function of its own that burns so many milliseconds. */
#define BURNER(name, milliseconds)                                                                 \
    NOIPA static void name(void) {                                                                 \
        WORK_FOR((milliseconds)*NS_PER_MS);                                                        \
    }

#endif
