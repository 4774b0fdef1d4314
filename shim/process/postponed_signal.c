#include "postponed_signal.h"

#include "capture/kernel/first_page.h"
#include "capture/symbols/loader_state.h"
#include "clock.h"
#include "helper.h"
#include "seccomp_state.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { AGAIN_MS = 1 };

/* End of the time in which signals are postponed (CLOCK_MONOTONIC, ns); 0: none was postponed yet.
 * The address of this variable marks the signals of the profiler's timers. */
IN_FIRST_PAGE static _Atomic uint64_t until_nano;

static void delete_timer_of(const siginfo_t *info) {
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == (void *)(uintptr_t)&until_nano)
        (void)syscall(SYS_timer_delete, info->si_timerid);
}

static bool send_later(int number) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    const struct itimerspec once = {.it_value = timespec_of(AGAIN_MS * NANO_PER_MILLI)};
    int id = -1;
    event.sigev_value.sival_ptr = (void *)(uintptr_t)&until_nano;
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) != 0)
        return false;
    if (syscall(SYS_timer_settime, id, 0, &once, NULL) == 0)
        return true;
    (void)syscall(SYS_timer_delete, id);
    return false;
}

static bool may_be_postponed(void) {
    const uint64_t now = monotonic_nano();
    const uint64_t last = now + helper.config->shutdown_timeout_ms * NANO_PER_MILLI;
    uint64_t none = 0;
    (void)atomic_compare_exchange_strong(&until_nano, &none, last);
    return now < atomic_load(&until_nano);
}

/* Returns true also if the loader's user is unknown: a lock is taken a moment before its owner's id
 * is written. */
static bool may_be_inside_loader(void) {
    return loader_state_is_used_by((uint32_t)syscall(SYS_gettid)) ||
           (loader_state_is_known() && loader_state_user() == LOADER_USER_UNKNOWN);
}

bool postponed_signal_comes_again(int number, const siginfo_t *info) {
    delete_timer_of(info);
    return may_be_inside_loader() && helper_is_of_this_process() && !seccomp_is_filtered() &&
           may_be_postponed() && send_later(number);
}
