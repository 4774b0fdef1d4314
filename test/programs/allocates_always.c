/* Allocates and frees for two seconds of CPU time, with little work between. */
#include "cpu_work.h"

#include <stdio.h>
#include <stdlib.h>

static void *volatile kept;

NOIPA static void allocate(void) {
    for (int i = 0; i < 1000; i++) {
        kept = malloc(1000);
        free(kept);
    }
}

int main(void) {
    while (cpu_now() < 2000 * NS_PER_MS)
        allocate();
    puts("done");
    return 0;
}
