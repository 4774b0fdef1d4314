#include "termination.h"

#include "capture/cpu/sampler.h"
#include "capture/kernel/first_page.h"
#include "capture/symbols/next.h"
#include "postponed_signal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 /* Linux, uapi/linux/auxvec.h: the kernel's frame on this processor */
#endif

/* Stack that a handler of the program's that calls abort(), and the profiler's, need beside the
 * kernel's two frames. Measured: 3,600 bytes are enough for all four where a frame may take 1,776.
 */
enum { HANDLERS_BYTES = 4096 };

static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGABRT};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Written once, before there is a second thread. */
IN_FIRST_PAGE static bool (*end_profiler)(int number);
IN_FIRST_PAGE static _Atomic bool installed;
IN_FIRST_PAGE static _Atomic bool takes_abort;
IN_FIRST_PAGE static _Atomic bool is_cramped; /* there is a small alternate stack */
IN_FIRST_PAGE static struct sigaction profiler_action;

/* Sends the signal again with its default action. It stays blocked until the handler returns. */
static void on_signal(int number, siginfo_t *info, void *context) {
    const int saved = errno;
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    (void)context;
    if ((number == SIGABRT || !postponed_signal_comes_again(number, info)) &&
        end_profiler(number)) {
        next_sigaction(number, &by_default, NULL);
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    }
    errno = saved;
}

bool termination_is_profiler_action(const struct sigaction *action) {
    return action->sa_sigaction == on_signal;
}

static bool termination_holds(int number) {
    struct sigaction present;
    return next_sigaction(number, NULL, &present) == 0 && termination_is_profiler_action(&present);
}

static bool termination_takes(int number) {
    if (number == SIGABRT)
        return atomic_load(&takes_abort) && !atomic_load(&is_cramped);
    return number == SIGTERM || number == SIGINT || number == SIGHUP;
}

const struct sigaction *termination_in_place_of(const struct sigaction *action, int number) {
    return termination_takes(number) && atomic_load(&installed) ? &profiler_action : action;
}

static void termination_take(int number) {
    struct sigaction present;
    if (next_sigaction(number, NULL, &present) != 0 || (present.sa_flags & SA_SIGINFO) ||
        present.sa_handler != SIG_DFL)
        return;
    next_sigaction(number, &profiler_action, NULL);
}

static void termination_give_back(int number) {
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    if (termination_holds(number))
        next_sigaction(number, &by_default, NULL);
}

void termination_install(bool (*end)(int number), bool aborts) {
    end_profiler = end;
    if (getpid() == 1)
        return;
    profiler_action =
        (struct sigaction){.sa_sigaction = on_signal,
                           .sa_flags = SA_SIGINFO | SA_RESTART | (sampler.on ? SA_ONSTACK : 0)};
    sigfillset(&profiler_action.sa_mask);
    atomic_store(&takes_abort, aborts);
    atomic_store(&installed, true);
    for (int i = 0; i < NUMBERS; i++)
        if (termination_takes(numbers[i]))
            termination_take(numbers[i]);
}

void termination_remove(void) {
    atomic_store(&installed, false);
    for (int i = 0; i < NUMBERS; i++)
        termination_give_back(numbers[i]);
}

void termination_spare_first_process(void) {
    if (getpid() == 1)
        termination_remove();
}

/* Gives SIGABRT back once: handlers are the process's, stacks are threads'. */
void termination_note_signal_stack(size_t bytes) {
    if (bytes >= 2 * getauxval(AT_MINSIGSTKSZ) + HANDLERS_BYTES ||
        atomic_exchange(&is_cramped, true) || !atomic_load(&takes_abort))
        return;
    const int saved = errno;
    termination_give_back(SIGABRT);
    errno = saved;
}
