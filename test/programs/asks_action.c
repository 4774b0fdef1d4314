/* Asks for SIGPROF's action all the time, and prints how often it was not the default.
 *
 * usage: asks_action MILLISECONDS
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int main(int argc, char **argv) {
    const uint64_t end = now_ms() + (argc > 1 ? strtoull(argv[1], NULL, 10) : 300);
    long wrong = 0;
    long asked = 0;
    for (; asked % 64 != 0 || now_ms() < end; asked++) {
        struct sigaction present;
        if (sigaction(SIGPROF, NULL, &present) != 0)
            return 1;
        wrong += present.sa_handler != SIG_DFL;
    }
    printf("asked %s, wrong %ld\n", asked > 1000 ? "often" : "seldom", wrong);
    return 7;
}
