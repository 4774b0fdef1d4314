/* A library whose constructor, which runs before the profiler's, starts a thread that burns CPU. */
#include "noipa.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;
static pthread_t thread;

NOIPA static void burn_early(void) {
    struct timespec t;
    uint64_t x = 1;
    do {
        for (int i = 0; i < 10000; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_sec == 0 && t.tv_nsec < 500000000);
    sink = x;
}

static void *start_early(void *unused) {
    burn_early();
    return unused;
}

__attribute__((constructor)) static void begin(void) {
    pthread_create(&thread, NULL, start_early, NULL);
}

void early_join(void);
void early_join(void) {
    pthread_join(thread, NULL);
}
