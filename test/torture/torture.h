/* Holds the common parts of the torture programs: a budget of CPU time, a watchdog, checks, and
 * named work whose true cost is printed for comparison with the profile.
 *
 * usage of each: PROGRAM [SECONDS]   (of CPU time, of the whole process; default 2)
 * Prints "share FUNCTION NANOSECONDS" for each work function, then "ok". A failed check is printed
 * and ends the process with status 1.
 */
#ifndef TORTURE_H
#define TORTURE_H

#include "../programs/cpu_work.h"

#include <stdint.h>

#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint64_t> atomic_nanoseconds;
#define NOTHING nullptr
#else
#include <stdatomic.h>
typedef _Atomic uint64_t atomic_nanoseconds;
#define NOTHING NULL
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, WATCHDOG_FACTOR = 12, WATCHDOG_SECONDS = 60 };

static uint64_t cpu_budget;

static inline int time_left(void) {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) < cpu_budget;
}

static inline void check(int holds, const char *what) {
    if (holds)
        return;
    printf("wrong: %s\n", what);
    fflush(stdout);
    _exit(1);
}

/* WORK(name) defines name(microseconds), which is never inlined and keeps account of itself. */
#define WORK(name)                                                                                 \
    static atomic_nanoseconds name##_ns;                                                           \
    NOIPA static void name(uint64_t microseconds) {                                                \
        const uint64_t start = cpu_now();                                                          \
        WORK_FOR(microseconds *NS_PER_US);                                                         \
        name##_ns += cpu_now() - start;                                                            \
    }
#define SHARE(name) printf("share " #name " %llu\n", (unsigned long long)name##_ns)

static inline void torture_begin(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    cpu_budget = (uint64_t)(seconds * 1e9);
    alarm((unsigned)seconds * WATCHDOG_FACTOR + WATCHDOG_SECONDS);
}

static inline void run_threads(void *(*routine)(void *), int count) {
    pthread_t threads[64];
    for (intptr_t i = 0; i < count; i++)
        check(pthread_create(&threads[i], NOTHING, routine, (void *)i) == 0, "pthread_create");
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NOTHING);
}

static inline int torture_end(void) {
    puts("ok");
    return 0;
}

#endif
