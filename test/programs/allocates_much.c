/* Allocates, and does little else: to sample each object would cost a tenth of its CPU time.
 *
 * usage: allocates_much ROUNDS THREADS [FILE]
 *
 * Each thread makes so many rounds; ROUNDS 0: until FILE exists. Prints how many objects and bytes
 * were allocated under churns().
 */
#include "cpu_work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 100, KEPT = 64, MOST_THREADS = 64 };

static uint64_t rounds;
static const char *until;
static _Atomic uint64_t objects;
static _Atomic uint64_t bytes;

/* Works for some microseconds of the program's own for each object. */
NOIPA static unsigned works(unsigned seed) {
    for (int i = 0; i < 4000; i++)
        seed = seed * 1664525u + 1013904223u;
    return seed;
}

NOIPA static unsigned churns(void **kept, unsigned seed) {
    uint64_t size_sum = 0;
    for (int i = 0; i < BATCH; i++) {
        seed = works(seed);
        const size_t size = 16 + (seed >> 16) % 1000;
        void **const slot = &kept[(seed >> 8) % KEPT];
        free(*slot);
        *slot = malloc(size);
        memset(*slot, 1, size);
        size_sum += size;
    }
    atomic_fetch_add(&bytes, size_sum);
    atomic_fetch_add(&objects, BATCH);
    return seed;
}

static int is_over(uint64_t done) {
    return rounds ? done >= rounds : access(until, F_OK) == 0;
}

static void *run(void *arg) {
    unsigned seed = (unsigned)(uintptr_t)arg;
    void *kept[KEPT] = {NULL};
    for (uint64_t done = 0; !is_over(done); done += BATCH)
        seed = churns(kept, seed);
    for (int i = 0; i < KEPT; i++)
        free(kept[i]);
    return NULL;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    const int threads = argc > 2 ? atoi(argv[2]) : 1;
    until = argc > 3 ? argv[3] : "/dev/null";
    pthread_t ids[MOST_THREADS];
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, run, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    printf("{\"objects\": %llu, \"bytes\": %llu}\n", (unsigned long long)objects,
           (unsigned long long)bytes);
    return 7;
}
