/* Holds so many MiB of memory, with every page in use, and burns so many milliseconds of CPU
 * meanwhile.
 *
 * usage: holds_memory MEBIBYTES MILLISECONDS
 */
#include "cpu_work.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *volatile held;

NOIPA static void burns_cpu(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

int main(int argc, char **argv) {
    const size_t size = (size_t)(argc > 1 ? atoi(argv[1]) : 0) << 20;
    held = malloc(size);
    memset(held, 1, size);
    burns_cpu(argc > 2 ? strtoull(argv[2], NULL, 10) : 500);
    puts("held");
    return 0;
}
