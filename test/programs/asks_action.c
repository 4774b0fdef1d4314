/* Queries SIGPROF's action all the time, and prints how often it was wrong: right is the default
 * action, or the one that was set last.
 *
 * usage: asks_action MILLISECONDS [AFTER_MS]
 * AFTER_MS: from then on it sets another action each time, too.
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

static void handle(int number) {
    (void)number;
}

/* Sets SIG_IGN and a handler in turn. */
static sighandler_t set_another(sighandler_t present) {
    const struct sigaction action = {.sa_handler = present == SIG_IGN ? handle : SIG_IGN};
    sigaction(SIGPROF, &action, NULL);
    return action.sa_handler;
}

int main(int argc, char **argv) {
    const uint64_t start = now_ms();
    const uint64_t end = start + (argc > 1 ? strtoull(argv[1], NULL, 10) : 300);
    const uint64_t sets = argc > 2 ? start + strtoull(argv[2], NULL, 10) : UINT64_MAX;
    sighandler_t expected = SIG_DFL;
    long wrong = 0;
    long asked = 0;
    for (; now_ms() < end; asked++) {
        struct sigaction present;
        if (now_ms() >= sets)
            expected = set_another(expected);
        if (sigaction(SIGPROF, NULL, &present) != 0)
            return 1;
        wrong += present.sa_handler != expected;
    }
    printf("asked %s, wrong %ld\n", asked > 1000 ? "often" : "seldom", wrong);
    return 7;
}
