/* Prints nanoseconds per malloc+free pair, in ten parts of PAIRS / 10 each, one line a part: this
 * shows whether recording gets slower with time. With OTEL_PROFILER_ALLOC_INTERVAL=1 each pair is a
 * sample.
 * usage: bench_sampled PAIRS
 * 4,000 objects of mixed sizes are live, and freed in random order, so that addresses change.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 4000, PARTS = 10 };

static void *live[LIVE];

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    const long pairs = (argc > 1 ? atol(argv[1]) : 10000000) / PARTS;
    uint64_t random = 88172645463325252u;
    for (int part = 0; part < PARTS; part++) {
        const double start = cpu_now();
        for (long i = 0; i < pairs; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            void **const at = &live[(random >> 11) % LIVE];
            free(*at);
            *at = malloc((random >> 40) % 500 + 1);
        }
        printf("%.2f\n", (cpu_now() - start) / (double)pairs);
    }
    return 0;
}
