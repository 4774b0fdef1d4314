/* Is a library that takes turns at one address with another of the same shape. */
/* flags: -Wl,-Ttext-segment=0x300000000000 */
#include "cpu_sample.h"

#include <stdint.h>
#include <stdlib.h>

#ifndef WORK
#define WORK work_of_a
#endif

/* Burns so much CPU time and returns a list of `blocks` blocks that stay. */
__attribute__((visibility("default"), noinline)) void *WORK(int milliseconds, int blocks) {
    void **list = NULL;
    WORK_FOR((uint64_t)milliseconds * NS_PER_MS);
    TAKE_CPU_SAMPLE();
    for (int i = 0; i < blocks; i++) {
        void **const block = malloc(1024);
        *block = list;
        list = block;
    }
    return list;
}
