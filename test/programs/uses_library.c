/* Works for so many milliseconds in a library that it loads, and as many in a function of its own.
 * usage: uses_library LIBRARY MILLISECONDS */
#include "cpu_work.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

NOIPA static void works_by_itself(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
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
    works_by_itself(strtoull(argv[2], NULL, 10));
    (void)work(atoi(argv[2]), 0);
    return 0;
}
