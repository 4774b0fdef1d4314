/* Works for so many milliseconds in a library that it loads, and as many in a function of its own.
 * usage: uses_library LIBRARY MILLISECONDS */
#include "noipa.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile unsigned sink;

NOIPA static void works_by_itself(long milliseconds) {
    struct timespec now;
    long spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const long start = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    do {
        for (unsigned i = 0; i < 20000; i++)
            sink += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        spent = now.tv_sec * 1000 + now.tv_nsec / 1000000 - start;
    } while (spent < milliseconds);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    void *const library = dlopen(argv[1], RTLD_NOW);
    void *const found = library ? dlsym(library, "work_of_a") : NULL;
    void *(*work)(int, int);
    if (!found)
        return 1;
    memcpy(&work, &found, sizeof work);
    puts("loaded");
    fflush(stdout);
    works_by_itself(atol(argv[2]));
    (void)work((int)atol(argv[2]), 0);
    return 0;
}
