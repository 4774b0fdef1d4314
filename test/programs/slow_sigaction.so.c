/* Has a sigaction that is slow for SIGPROF on every thread but the main one, before it sets an
 * action and after. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void pause_beside_main(int number) {
    if (number == SIGPROF && syscall(SYS_gettid) != getpid())
        nanosleep(&(struct timespec){0, 100000000}, NULL);
}

int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    int (*next)(int, const struct sigaction *, struct sigaction *);
    void *const found = dlsym(RTLD_NEXT, "sigaction");
    memcpy(&next, &found, sizeof next);
    if (action)
        pause_beside_main(number);
    const int result = next(number, action, old);
    if (action)
        pause_beside_main(number);
    return result;
}
