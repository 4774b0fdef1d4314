/* A library that takes turns at one address with another of the same shape. */
/* flags: -Wl,-Ttext-segment=0x300000000000 */
#include <stdlib.h>
#include <time.h>

#ifndef WORK
#define WORK work_of_a
#endif

/* Burns so much CPU time and returns a list of `blocks` blocks that stay. */
__attribute__((visibility("default"), noinline)) void *WORK(int milliseconds, int blocks) {
    struct timespec now;
    long spent;
    void **list = NULL;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const long start = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    do {
        for (volatile int i = 0; i < 20000; i++)
            ;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        spent = now.tv_sec * 1000 + now.tv_nsec / 1000000 - start;
    } while (spent < milliseconds);
    for (int i = 0; i < blocks; i++) {
        void **const block = malloc(1024);
        *block = list;
        list = block;
    }
    return list;
}
