// flags: -rdynamic
/* Defines functions with names of libc's in front of libc's, and calls those by the other name that
 * each has there, as Erlang does for sigaction. Prints "ok".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int calls;

static void *next(const char *name) {
    void *const found = dlsym(RTLD_NEXT, name);
    if (!found || ++calls > 100)
        abort();
    return found;
}

#define FORWARD(result, name, other, parameters, ...)                                              \
    result name parameters {                                                                       \
        void *const found = next(other);                                                           \
        result(*call) parameters;                                                                  \
        memcpy(&call, &found, sizeof found);                                                       \
        return call(__VA_ARGS__);                                                                  \
    }

FORWARD(int, sigaction, "__sigaction",
        (int number, const struct sigaction *restrict action, struct sigaction *restrict old),
        number, action, old)
FORWARD(sighandler_t, signal, "bsd_signal", (int number, sighandler_t handler), number, handler)
FORWARD(sighandler_t, sysv_signal, "__sysv_signal", (int number, sighandler_t handler), number,
        handler)
FORWARD(int, sigwaitinfo, "sigwait", (const sigset_t *restrict set, siginfo_t *restrict info), set,
        info)

__attribute__((noreturn)) void _exit(int status) {
    void *const found = next("_Exit");
    void (*call)(int);
    memcpy(&call, &found, sizeof found);
    call(status);
    abort();
}

static volatile sig_atomic_t seen;

static void on_signal(int number) {
    seen += number == SIGUSR1 || number == SIGPROF;
}

/* Calls sigwaitinfo(), which this program replaces by sigwait(): it stores an int. */
static int waits(void) {
    sigset_t set;
    siginfo_t info = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR2);
    return sigwaitinfo(&set, &info) == 0 && info.si_signo == SIGUSR2;
}

int main(void) {
    const struct sigaction action = {.sa_handler = on_signal};
    if (sigaction(SIGUSR1, &action, NULL) != 0 || raise(SIGUSR1) != 0 ||
        signal(SIGPROF, on_signal) != SIG_DFL || raise(SIGPROF) != 0 ||
        sysv_signal(SIGUSR1, on_signal) != on_signal || raise(SIGUSR1) != 0)
        return 1;
    if (seen != 3 || !waits())
        return 2;
    puts("ok");
    fflush(stdout);
    _exit(7);
}
