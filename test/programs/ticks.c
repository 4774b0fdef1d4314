/* Does next to nothing for ever: every so many milliseconds it allocates on so many different
 * stacks, so that every export has samples. SIGUSR1 ends it after the present round; then it prints
 * how many rounds there were.
 *
 * usage: ticks MILLISECONDS [STACKS]
 */
#include "noipa.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned sink;
static volatile sig_atomic_t is_to_end;

static void end(int number) {
    (void)number;
    is_to_end = 1;
}

/* Descends by the bits of `path`, which choose between two call sites. */
NOIPA static void descend(unsigned path) {
    if (path <= 1) {
        void *volatile object = malloc(100);
        free(object);
    } else if (path & 1) {
        descend(path >> 1);
        sink = path;
    } else {
        descend(path >> 1);
        sink = path + 1;
    }
}

int main(int argc, char **argv) {
    const long milliseconds = argc > 1 ? atol(argv[1]) : 20;
    const unsigned stacks = argc > 2 ? (unsigned)atol(argv[2]) : 1;
    const struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    unsigned long rounds = 0;
    signal(SIGUSR1, end);
    for (; !is_to_end; rounds++) {
        for (unsigned i = 1; i <= stacks; i++)
            descend(i);
        nanosleep(&pause, NULL);
    }
    printf("%lu\n", rounds);
    return 0;
}
