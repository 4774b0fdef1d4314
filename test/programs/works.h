/* Has the work of a child that a test judges: CPU time, and allocations. */
#ifndef TEST_WORKS_H
#define TEST_WORKS_H

#include "cpu_work.h"

#include <stdint.h>
#include <stdlib.h>

NOIPA static void works(uint64_t milliseconds) {
    const uint64_t end = cpu_now() + milliseconds * NS_PER_MS;
    while (cpu_now() < end) {
        WORK_FOR(10 * NS_PER_US);
        void *volatile gone = malloc(4000);
        free(gone);
    }
}

#endif
