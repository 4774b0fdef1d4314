/* Burns so many milliseconds of CPU and allocates so many MiB: the ordinary program of a test.
 *
 * usage: burn MILLISECONDS MEBIBYTES
 */
#include "cpu_work.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile object;

NOIPA static void burns_cpu(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
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
