/* Blocks SIGPROF in its only thread. A timer sends SIGPROF to the process, and the thread takes
 * each signal by sigwaitinfo(), while the profiler's helper works, too. */
#include <signal.h>
#include <stdio.h>
#include <time.h>

static void work(void) {
    volatile double sum = 0;
    for (int i = 0; i < 250000; i++)
        sum += i;
}

int main(void) {
    const struct itimerspec when = {{0, 1000000}, {0, 1000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    sigset_t prof;
    siginfo_t info;
    timer_t timer;
    int taken = 0;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    sigprocmask(SIG_BLOCK, &prof, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &when, NULL) != 0)
        return 1;
    for (int i = 0; i < 1000; i++) {
        work();
        taken += sigwaitinfo(&prof, &info) == SIGPROF && info.si_code == SI_TIMER;
    }
    printf("%d taken\n", taken);
    return 0;
}
