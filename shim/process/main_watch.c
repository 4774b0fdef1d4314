#include "main_watch.h"
#include "capture/capture.h"
#include "capture/kernel/signals_blocked.h"
#include "capture/kernel/wait.h"
#include "capture/symbols/next.h"
#include "harvest.h"
#include "helper.h"
#include "process_stat.h"
#include "state.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum {
    NOTICED_TIMEOUT_MS = 20,
    WATCH_ROUND_MS = 200,
};

/* Returns true if the main thread has ended: the kernel clears the id of a thread that has ended,
 * for any reason. */
bool main_watch_main_has_ended(void) {
    clockid_t unused;
    return pthread_getcpuclockid(helper.watch.main, &unused) == ESRCH;
}

/* Returns true if the kernel counts no threads but the main thread and the helper. */
static bool main_watch_is_alone(void) {
    struct process_stat stat;
    if (!process_stat_read(&stat))
        return atomic_load(&capture.live_threads) <= 1;
    atomic_store(&helper.watch.expected_end, stat.exit_status);
    return stat.threads <= 2;
}

/* Ends the process with the status of the last application thread, which is the main thread or one
 * that has outlived it. The kernel takes this status since Linux 5.19; older kernels always take
 * the main thread's. */
void main_watch_end_process(void) {
    static const struct sigaction by_default = {.sa_handler = SIG_DFL};
    const int status =
        atomic_load(helper.watch.outlived ? &helper.watch.others_end : &helper.watch.expected_end);
    if (WIFSIGNALED(status)) {
        const int number = WTERMSIG(status);
        next_sigaction(number, &by_default, NULL);
        signal_unblock(number);
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    }
    syscall(SYS_exit, WEXITSTATUS(status));
}

/* Returns the time of the next poll. The first rounds are short, because an end that was announced
 * comes at once, or very late. */
uint64_t main_watch_next_poll(void) {
    uint32_t asked = WATCH_ASKED;
    if (atomic_compare_exchange_strong(&helper.watch.state, &asked, WATCH_MAIN))
        helper.watch.round_ms = 1;
    else if (helper.watch.round_ms < WATCH_ROUND_MS)
        helper.watch.round_ms *= 2;
    if (atomic_load(&helper.watch.state) != WATCH_MAIN)
        return UINT64_MAX;
    return in_milliseconds(helper.watch.round_ms);
}

void main_watch_poll(void) {
    if (atomic_load(&helper.leave_at) || atomic_load(&helper.watch.state) != WATCH_MAIN ||
        !main_watch_main_has_ended())
        return;
    if (!main_watch_is_alone()) {
        helper.watch.outlived = true;
        return;
    }
    helper.watch.alone = true;
    (void)state_move(&process_state, STATE_DRAINING, IN_HELPER);
    atomic_store(&helper.leave_at, in_milliseconds(helper.config->shutdown_timeout_ms));
    uint32_t nothing = REQUEST_TIMEOUT;
    (void)atomic_compare_exchange_strong(&helper.request, &nothing, REQUEST_STOP);
}

bool main_watch_is_main(void) {
    return pthread_self() == helper.watch.main;
}

bool main_watch_is_on(void) {
    return atomic_load(&helper.watch.state) != WATCH_NOTHING;
}

void main_watch_other_ends(int status) {
    if (helper_is_of_this_process())
        atomic_store(&helper.watch.others_end, status);
}

/* Returns true once the helper has noticed the request, which it does before its next sleep. */
static bool has_noticed(void *unused) {
    (void)unused;
    return !helper_state_is_running(atomic_load(&helper.state)) ||
           atomic_load(&helper.watch.state) != WATCH_ASKED;
}

void main_watch_begin(int expected) {
    const int saved = errno;
    if (!helper_is_of_this_process())
        return;
    atomic_store(&helper.watch.expected_end, expected);
    atomic_store(&helper.watch.state, WATCH_ASKED);
    helper_wake();
    (void)wait_until_ms(has_noticed, NULL, NOTICED_TIMEOUT_MS);
    errno = saved;
}

void main_watch_after_fork(void) {
    atomic_store(&helper.watch.state, WATCH_NOTHING);
    helper.watch.outlived = false;
    atomic_store(&helper.watch.others_end, 0);
    helper.watch.main = pthread_self();
}
