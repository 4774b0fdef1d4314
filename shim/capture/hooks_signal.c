/* sigaction and signal, for SIGPROF alone: a program that wants the signal for itself gets it.
 *
 * Asking for the present action, or setting SIG_DFL or SIG_IGN (as runtimes do with every signal at
 * start), answers and is remembered as if we were not there. A handler of the program's own ends
 * our CPU sampling: no timer of ours may fire into it.
 */
#include "capture.h"
#include "next.h"
#include "otelprof.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static bool is_handler(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static bool is_ours_to_answer(int number) {
    return number == SIGPROF && atomic_load(&capture.armed) && atomic_load(&capture.cpu_on);
}

OTELPROF_EXPORT int sigaction(int number, const struct sigaction *restrict action,
                              struct sigaction *restrict old) {
    if (!is_ours_to_answer(number))
        return next_sigaction(number, action, old);
    const struct sigaction previous = capture.previous_sigprof;
    if (action && is_handler(action)) {
        sampler_stand_down();
        log_info(capture.log, "the program handles SIGPROF itself; CPU time is not profiled");
        return next_sigaction(number, action, old);
    }
    if (action)
        capture.previous_sigprof = *action;
    if (old)
        *old = previous;
    return 0;
}

OTELPROF_EXPORT sighandler_t signal(int number, sighandler_t handler) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;
    if (!is_ours_to_answer(number)) {
        static _Atomic(void *) found;
        void *next = atomic_load_explicit(&found, memory_order_relaxed);
        if (!next) {
            next = dlsym(RTLD_NEXT, "signal");
            atomic_store_explicit(&found, next, memory_order_relaxed);
        }
        sighandler_t (*call)(int, sighandler_t);
        memcpy(&call, &next, sizeof next);
        return call(number, handler);
    }
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, number);
    return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

int next_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    static _Atomic(void *) found;
    void *next = atomic_load_explicit(&found, memory_order_relaxed);
    if (!next) {
        next = dlsym(RTLD_NEXT, "sigaction");
        atomic_store_explicit(&found, next, memory_order_relaxed);
    }
    int (*call)(int, const struct sigaction *, struct sigaction *);
    memcpy(&call, &next, sizeof next);
    return call(number, action, old);
}
