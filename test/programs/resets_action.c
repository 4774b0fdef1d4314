/* Works, prints the CPU time that it has used, in nanoseconds, and sends itself SIGTERM. The
 * handler sets the default action and sends the signal again, as servers do to end by the signal
 * that they have received.
 *
 * usage: resets_action sigaction|siginfo|signal
 */
#define _GNU_SOURCE
#include "cpu_sample.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *how;

/* Sets the default action in the way `how`. Returns whether the call returned `handler` as the
 * former action. */
static int sets_default(int number, void (*handler)(int)) {
    const struct sigaction by_default = {.sa_handler = SIG_DFL,
                                         .sa_flags = strcmp(how, "siginfo") == 0 ? SA_SIGINFO : 0};
    struct sigaction old;
    if (strcmp(how, "signal") == 0)
        return signal(number, SIG_DFL) == handler;
    return sigaction(number, &by_default, &old) == 0 && old.sa_handler == handler;
}

static void on_signal(int number) {
    struct sigaction present;
    sigset_t set;
    if (!sets_default(number, on_signal) || sigaction(number, NULL, &present) != 0 ||
        present.sa_handler != SIG_DFL)
        _exit(1);
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    kill(getpid(), number);
    _exit(2);
}

NOIPA static void works(void) {
    WORK_FOR(50 * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "";
    signal(SIGTERM, on_signal);
    works();
    printf("%llu\n", (unsigned long long)cpu_now());
    fflush(stdout);
    kill(getpid(), SIGTERM);
    return 3;
}
