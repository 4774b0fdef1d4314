/* Burns so many milliseconds of CPU and allocates so many MiB: the ordinary program of a test.
 *
 * usage: burn MILLISECONDS MEBIBYTES
 */
#include "noipa.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;
static void *volatile object;

static uint64_t cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

NOIPA static void burns_cpu(uint64_t milliseconds) {
    const uint64_t end = cpu_now() + milliseconds * 1000000;
    uint64_t x = 1;
    while (cpu_now() < end)
        for (int i = 0; i < 10000; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
}

NOIPA static void allocates(int mebibytes) {
    for (int i = 0; i < mebibytes; i++) {
        void *volatile gone = malloc(1 << 20);
        free(gone);
    }
    object = malloc(3000);
}

int main(int argc, char **argv) {
    allocates(argc > 2 ? atoi(argv[2]) : 64);
    burns_cpu(argc > 1 ? strtoull(argv[1], NULL, 10) : 500);
    puts("burnt");
    return 7;
}
