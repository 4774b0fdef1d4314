/* Is a library whose constructor sets a handler with SA_ONSTACK, before the profiler's constructor
 * runs. The handler prints whether SIGUSR2 is blocked in it. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void report_mask(int number) {
    static const char *const lines[] = {"open\n", "blocked\n"};
    sigset_t mask;
    (void)number;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    const char *const line = lines[sigismember(&mask, SIGUSR2) == 1];
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        return;
}

__attribute__((constructor)) static void set_handler(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = report_mask;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
}
