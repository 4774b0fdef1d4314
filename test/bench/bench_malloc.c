/* Nanoseconds per malloc+free pair, one line a case: "CASE THREADS LIVE NS".
 * usage: bench_malloc LIVE_SAMPLES MILLISECONDS [BYTES]
 *
 * Cases: a fixed size of 16, 64 and 1024 B, and mixed sizes (16 B to 4 KiB, small ones more often)
 * with 8,000 objects live, freed in random order; on 1, 2 and 4 threads, each doing the same. NS is
 * the CPU time per pair on one thread. A turn is as many pairs as take MILLISECONDS; the best of
 * several is kept: what disturbs a turn only ever adds.
 *
 * Before that, a first phase makes LIVE_SAMPLES live samples. Every profiler that samples by bytes,
 * every 512 KiB in the mean, takes an object of 4 MiB with a probability of 0.9997; so that many
 * are allocated and kept. Only their first page is touched, and their sizes are odd, so that their
 * addresses are spread as samples in a large heap would be. The measured phase is then sampled no
 * more often than it would be anyway. Profilers that record every allocation need no large ones:
 * BYTES instead of 4 MiB. MILLISECONDS 0: the first phase alone.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIVE = 8000, TURNS = 5, TRIAL_PAIRS = 2000, MAX_THREADS = 4, SAMPLE_BYTES = 4 << 20 };

struct job {
    size_t size; /* 0: mixed */
    double nanoseconds;
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

static double time_fixed(size_t size, long pairs) {
    const double start = cpu_now();
    for (long i = 0; i < pairs; i++) {
        void *p = malloc(size);
        __asm__ volatile("" : "+r"(p) : : "memory");
        free(p);
    }
    return (cpu_now() - start) / (double)pairs;
}

static size_t mixed_size(uint64_t random) {
    return (random >> 32) % (UINT64_C(16) << (random % 9)) + 1;
}

static double time_mixed(long pairs) {
    void **const live = calloc(LIVE, sizeof *live);
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < LIVE; i++)
        live[i] = malloc(mixed_size(next(&random)));
    const double start = cpu_now();
    for (long i = 0; i < pairs; i++) {
        const uint64_t r = next(&random);
        const size_t at = (size_t)((r >> 11) % LIVE);
        free(live[at]);
        live[at] = malloc(mixed_size(r));
    }
    const double time = (cpu_now() - start) / (double)pairs;
    for (int i = 0; i < LIVE; i++)
        free(live[i]);
    free(live);
    return time;
}

static double time_case(size_t size, long pairs) {
    return size ? time_fixed(size, pairs) : time_mixed(pairs);
}

static void *run(void *arg) {
    struct job *const job = arg;
    const double trial = time_case(job->size, TRIAL_PAIRS);
    const long pairs = (long)(job->nanoseconds / trial) + TRIAL_PAIRS;
    job->best = 1e18;
    for (int i = 0; i < TURNS; i++) {
        const double time = time_case(job->size, pairs);
        if (time < job->best)
            job->best = time;
    }
    return NULL;
}

static double run_on(int threads, size_t size, double nanoseconds) {
    struct job jobs[MAX_THREADS];
    pthread_t ids[MAX_THREADS];
    double sum = 0;
    for (int i = 0; i < threads; i++)
        jobs[i] = (struct job){size, nanoseconds, 0};
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

static void make_live_samples(long count, size_t bytes) {
    uint64_t random = 88172645463325252u;
    mallopt(M_MMAP_MAX, 0); /* the kernel allows 65,530 mappings only */
    for (long i = 0; i < count; i++) {
        char *const p = malloc(bytes + next(&random) % (bytes / 64));
        if (!p)
            abort();
        *(char *volatile *)p = p;
    }
}

int main(int argc, char **argv) {
    static const int threads[] = {1, 2, 4};
    static const struct {
        const char *name;
        size_t size;
    } cases[] = {{"16B", 16}, {"64B", 64}, {"1KiB", 1024}, {"mixed", 0}};
    const long live = argc > 1 ? atol(argv[1]) : 0;
    const double milliseconds = argc > 2 ? atof(argv[2]) : 8;
    make_live_samples(live, argc > 3 ? (size_t)atol(argv[3]) : SAMPLE_BYTES);
    for (int t = 0; milliseconds > 0 && t < 3; t++)
        for (int c = 0; c < 4; c++)
            printf("%s %d %ld %.3f\n", cases[c].name, threads[t], live,
                   run_on(threads[t], cases[c].size, milliseconds * 1e6));
    return 0;
}
