/* Has many threads that each burn a little CPU and end, a few at a time; prints their true CPU
 * time.
 *
 * usage: short_threads THREADS [MICROSECONDS]   (2,000 each)
 */
#include "cpu_work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 4 };

static uint64_t burn_ns = 2000000;

static _Atomic uint64_t total_ns;

NOIPA static void burn_short(void) {
    WORK_UNTIL(burn_ns);
}

static void *run(void *unused) {
    (void)unused;
    burn_short();
    atomic_fetch_add(&total_ns, cpu_now());
    return NULL;
}

int main(int argc, char **argv) {
    const int count = argc > 1 ? atoi(argv[1]) : 10000;
    if (argc > 2)
        burn_ns = strtoull(argv[2], NULL, 10) * NS_PER_US;
    for (int done = 0; done < count; done += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_create(&threads[i], NULL, run, NULL) != 0)
                return 1;
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
    }
    printf("{\"threads\": %d, \"ns\": %lu, \"main_ns\": %lu}\n", count, atomic_load(&total_ns),
           cpu_now());
    return 0;
}
