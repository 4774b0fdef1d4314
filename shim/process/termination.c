#include "termination.h"

#include "arch_entry.h"
#include "capture/cpu/sampler.h"
#include "capture/cpu/signal_thread.h"
#include "capture/kernel/first_page.h"
#include "capture/symbols/loader_state.h"
#include "capture/symbols/next.h"
#include "clock.h"
#include "helper.h"
#include "seccomp_state.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
/* size of the kernel's frame on this processor (Linux, uapi/linux/auxvec.h) */
#define AT_MINSIGSTKSZ 51
#endif

/* States the stack, in bytes, that two handlers need beside the kernel's two frames: the program's,
 * which calls abort(), and the profiler's. Measured: 3,600 bytes are enough for all four if a frame
 * may take 1,776.
 */
enum { HANDLERS_BYTES = 4096 };

enum { AGAIN_MS = 1 }; /* time in ms after which a postponed signal is sent again */

static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGABRT};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

IN_FIRST_PAGE static struct termination {
    /* This member and the next are written once, before there is a second thread. */
    bool (*end_profiler)(int number);
    struct sigaction profiler_action;
    _Atomic bool installed;
    _Atomic bool takes_abort;
    _Atomic bool is_cramped; /* a thread has a small alternate stack */
    /* End of the time in which signals are postponed (CLOCK_MONOTONIC, ns); 0: no signal was
     * postponed yet. The address of this member marks the signals of the profiler's timers. */
    _Atomic uint64_t postponed_until_nano;
} termination;

/* --- a signal that comes to a thread inside the dynamic loader ---
 *
 * The last export may need the loader, whose lock the interrupted thread holds: the signal's
 * handler would wait for the helper, and the helper for the lock. So the thread continues, and the
 * signal is sent again later. A program that does not leave the loader ends after
 * OTEL_PROFILER_SHUTDOWN_TIMEOUT. */

static void termination_delete_timer(const siginfo_t *info) {
    if (info->si_code == SI_TIMER &&
        info->si_value.sival_ptr == (void *)(uintptr_t)&termination.postponed_until_nano)
        (void)syscall(SYS_timer_delete, info->si_timerid);
}

static bool termination_send_later(int number) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    const struct itimerspec once = {.it_value = timespec_of(AGAIN_MS * NANO_PER_MILLI)};
    int id = -1;
    event.sigev_value.sival_ptr = (void *)(uintptr_t)&termination.postponed_until_nano;
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) != 0)
        return false;
    if (syscall(SYS_timer_settime, id, 0, &once, NULL) == 0)
        return true;
    (void)syscall(SYS_timer_delete, id);
    return false;
}

static bool termination_may_postpone(void) {
    const uint64_t now = monotonic_nano();
    const uint64_t last = now + helper.config->shutdown_timeout_ms * NANO_PER_MILLI;
    uint64_t none = 0;
    (void)atomic_compare_exchange_strong(&termination.postponed_until_nano, &none, last);
    return now < atomic_load(&termination.postponed_until_nano);
}

/* Returns true if this thread is inside the loader, or if the loader's user is unknown, because a
 * lock is taken a moment before its owner's id is written. */
static bool may_be_inside_loader(void) {
    return loader_state_is_used_by((uint32_t)syscall(SYS_gettid)) ||
           (loader_state_is_known() && loader_state_user() == LOADER_USER_UNKNOWN);
}

/* Postpones a fatal signal that has come to a thread inside the dynamic loader. Returns true if the
 * signal will be sent again, to a thread of the process that the kernel chooses: then the handler
 * must return. Returns false if the thread is not inside the loader, or has been there for too
 * long, or if the signal could not be sent again. */
static bool termination_postpone(int number, const siginfo_t *info) {
    termination_delete_timer(info);
    return may_be_inside_loader() && helper_is_of_this_process() && !seccomp_is_filtered() &&
           termination_may_postpone() && termination_send_later(number);
}

/* --- the handler --- */

/* Sends the signal again with its default action. The signal stays blocked until the handler
 * returns. This is a separate function, because errno is read at its beginning. */
__attribute__((noinline)) static void termination_end(int number, const siginfo_t *info) {
    const int saved = errno;
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    if ((number == SIGABRT || !termination_postpone(number, info)) &&
        termination.end_profiler(number)) {
        next_sigaction(number, &by_default, NULL);
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    }
    errno = saved;
}

ARCH_ANY_STACK static void on_signal(int number, siginfo_t *info, void *context) {
    if (signal_thread_is_libcs(context))
        termination_end(number, info);
    else
        signal_thread_end_by_default(number);
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
        return atomic_load(&termination.takes_abort) && !atomic_load(&termination.is_cramped);
    return number == SIGTERM || number == SIGINT || number == SIGHUP;
}

const struct sigaction *termination_in_place_of(const struct sigaction *action, int number) {
    return termination_takes(number) && atomic_load(&termination.installed)
               ? &termination.profiler_action
               : action;
}

static void termination_take(int number) {
    struct sigaction present;
    if (next_sigaction(number, NULL, &present) != 0 || (present.sa_flags & SA_SIGINFO) ||
        present.sa_handler != SIG_DFL)
        return;
    next_sigaction(number, &termination.profiler_action, NULL);
}

static void termination_give_back(int number) {
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    if (termination_holds(number))
        next_sigaction(number, &by_default, NULL);
}

void termination_install(bool (*end)(int number), bool aborts) {
    termination.end_profiler = end;
    if (getpid() == 1)
        return;
    termination.profiler_action =
        (struct sigaction){.sa_sigaction = on_signal,
                           .sa_flags = SA_SIGINFO | SA_RESTART | (sampler.on ? SA_ONSTACK : 0)};
    sigfillset(&termination.profiler_action.sa_mask);
    atomic_store(&termination.takes_abort, aborts);
    atomic_store(&termination.installed, true);
    for (int i = 0; i < NUMBERS; i++)
        if (termination_takes(numbers[i]))
            termination_take(numbers[i]);
}

void termination_remove(void) {
    atomic_store(&termination.installed, false);
    for (int i = 0; i < NUMBERS; i++)
        termination_give_back(numbers[i]);
}

void termination_spare_first_process(void) {
    if (getpid() == 1)
        termination_remove();
}

/* Restores SIGABRT's action for ever if the stack is too small for the handler, because the handler
 * serves all threads, each with a signal stack of its own. */
void termination_note_signal_stack(size_t bytes) {
    if (bytes >= 2 * getauxval(AT_MINSIGSTKSZ) + HANDLERS_BYTES ||
        atomic_exchange(&termination.is_cramped, true) || !atomic_load(&termination.takes_abort))
        return;
    const int saved = errno;
    termination_give_back(SIGABRT);
    errno = saved;
}
