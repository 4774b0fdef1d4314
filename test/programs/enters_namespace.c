/* Enters a user namespace, which only a process with one thread may, and works after that.
 *
 * usage: enters_namespace UNSHARED_MS
 * Prints what unshare said, or "alone", then the number of its threads as main sees them before. */
#define _GNU_SOURCE
#include "noipa.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile uint64_t sink;

NOIPA static void burns_in_namespace(long milliseconds) {
    struct timespec now;
    long spent;
    do {
        for (int i = 0; i < 10000; i++)
            sink += (uint64_t)i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        spent = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    } while (spent < milliseconds);
}

int main(int argc, char **argv) {
    puts(unshare(CLONE_NEWUSER) == 0 ? "alone" : strerror(errno));
    burns_in_namespace(argc > 1 ? atol(argv[1]) : 400);
    return 0;
}
