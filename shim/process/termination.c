#include "termination.h"

#include "capture/kernel/first_page.h"
#include "capture/symbols/next.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Written once, before there is a second thread. */
IN_FIRST_PAGE static void (*end_profiler)(void);
IN_FIRST_PAGE static _Atomic bool installed;
IN_FIRST_PAGE static struct sigaction ours;

/* Blocked until the handler returns, the signal then finds its default action. */
static void on_signal(int number, siginfo_t *info, void *context) {
    const int saved = errno;
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    (void)info;
    (void)context;
    end_profiler();
    next_sigaction(number, &by_default, NULL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    errno = saved;
}

bool termination_is_ours(const struct sigaction *action) {
    return action->sa_sigaction == on_signal;
}

static bool holds(int number) {
    struct sigaction present;
    return next_sigaction(number, NULL, &present) == 0 && termination_is_ours(&present);
}

const struct sigaction *termination_in_place_of(const struct sigaction *action, int number) {
    const bool ends = number == SIGTERM || number == SIGINT || number == SIGHUP;
    return ends && atomic_load(&installed) ? &ours : action;
}

static void take(int number) {
    struct sigaction present;
    if (next_sigaction(number, NULL, &present) != 0 || (present.sa_flags & SA_SIGINFO) ||
        present.sa_handler != SIG_DFL)
        return;
    next_sigaction(number, &ours, NULL);
}

void termination_install(void (*end)(void)) {
    end_profiler = end;
    if (getpid() == 1)
        return;
    ours = (struct sigaction){.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&ours.sa_mask);
    atomic_store(&installed, true);
    take(SIGTERM);
    take(SIGINT);
    take(SIGHUP);
}

void termination_remove(void) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    atomic_store(&installed, false);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (holds(numbers[i]))
            next_sigaction(numbers[i], &by_default, NULL);
}

void termination_spare_first_process(void) {
    if (getpid() == 1)
        termination_remove();
}
