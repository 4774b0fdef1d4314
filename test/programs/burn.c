/* Allocates so many MiB and burns so many milliseconds of CPU: the ordinary program of a test. It
 * takes a CPU sample at the end, or every so many milliseconds.
 *
 * usage: burn MILLISECONDS MEBIBYTES [EVERY_MS]
 */
#include "cpu_sample.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile object;

NOIPA static void burns_cpu(uint64_t milliseconds, uint64_t every) {
    for (uint64_t left = milliseconds; left; left -= left < every ? left : every) {
        WORK_FOR((left < every ? left : every) * NS_PER_MS);
        TAKE_CPU_SAMPLE();
    }
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
    const uint64_t milliseconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 500;
    burns_cpu(milliseconds, argc > 3 ? strtoull(argv[3], NULL, 10) : milliseconds);
    puts("burnt");
    return 7;
}
