/* Nanoseconds per malloc+free pair, one line a case: "CASE THREADS NS".
 *
 * Cases: a fixed size of 16, 64 and 1024 B, and mixed sizes (16 B to 4 KiB, small ones more often)
 * with 8,000 objects live, freed in random order. With several threads each does the same; NS is
 * then the CPU time per pair on one thread. The best of several short turns is kept: what disturbs
 * a turn only ever adds.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 8000, TURNS = 7, PAIRS = 1000000, MIXED_PAIRS = 300000, MAX_THREADS = 4 };

struct job {
    size_t size; /* 0: mixed */
    double best;
};

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static double time_fixed(size_t size) {
    const double start = cpu_now();
    for (int i = 0; i < PAIRS; i++) {
        void *p = malloc(size);
        __asm__ volatile("" : "+r"(p) : : "memory");
        free(p);
    }
    return (cpu_now() - start) / PAIRS;
}

static size_t mixed_size(uint64_t random) {
    return (random >> 32) % (UINT64_C(16) << (random % 9)) + 1;
}

static double time_mixed(void) {
    void **const live = calloc(LIVE, sizeof *live);
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < LIVE; i++)
        live[i] = malloc(mixed_size(next(&random)));
    const double start = cpu_now();
    for (int i = 0; i < MIXED_PAIRS; i++) {
        const uint64_t r = next(&random);
        const size_t at = (size_t)((r >> 11) % LIVE);
        free(live[at]);
        live[at] = malloc(mixed_size(r));
    }
    const double time = (cpu_now() - start) / MIXED_PAIRS;
    for (int i = 0; i < LIVE; i++)
        free(live[i]);
    free(live);
    return time;
}

static void *run(void *arg) {
    struct job *const job = arg;
    job->best = 1e18;
    for (int i = 0; i < TURNS; i++) {
        const double time = job->size ? time_fixed(job->size) : time_mixed();
        if (time < job->best)
            job->best = time;
    }
    return NULL;
}

static double run_on(int threads, size_t size) {
    struct job jobs[MAX_THREADS];
    pthread_t ids[MAX_THREADS];
    double sum = 0;
    for (int i = 0; i < threads; i++)
        jobs[i] = (struct job){size, 0};
    if (threads == 1)
        run(&jobs[0]);
    for (int i = 0; threads > 1 && i < threads; i++)
        pthread_create(&ids[i], NULL, run, &jobs[i]);
    for (int i = 0; threads > 1 && i < threads; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < threads; i++)
        sum += jobs[i].best;
    return sum / threads;
}

int main(void) {
    static const int threads[] = {1, 2, 4};
    static const struct {
        const char *name;
        size_t size;
    } cases[] = {{"16B", 16}, {"64B", 64}, {"1KiB", 1024}, {"mixed", 0}};
    for (int t = 0; t < 3; t++)
        for (int c = 0; c < 4; c++)
            printf("%s %d %.3f\n", cases[c].name, threads[t], run_on(threads[t], cases[c].size));
    return 0;
}
