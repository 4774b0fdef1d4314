/* Hooks exit, so that the profiler ends before any exit handler runs, as it does when main returns
 * (main.c).
 *
 * Libraries that the helper uses register handlers of their own (OpenSSL's cleanup, for one) at
 * times that the profiler does not control, perhaps at this very moment; once these handlers have
 * run, no thread may use the libraries. So the helper is stopped before all handlers. Newer libcs
 * hold a lock while handlers run, at quick_exit, too: a thread that waited there for another
 * thread's end (process/end_turn.h) would block it. Calls of exit inside libc (the end of the last
 * thread) still reach the handler that lifecycle.c registers. _exit runs no handlers, but is
 * hooked, too, by name and by number, because it is the last occasion for an export. */
#include "by_number.h"

#include "bare_syscall.h"
#include "capture/capture.h"
#include "capture/symbols/next.h"
#include "capture/thread_life.h"
#include "entry.h"
#include "process/crash_guard.h"
#include "process/lifecycle.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends the profiler before _exit(), by which most children of fork() end (Python's
 * multiprocessing): otherwise their records would be lost. In a signal handler, or on a stack that
 * is not known to its end, the process may be in any state: then no helper is started, but a
 * running helper makes its last export. In a child of vfork() neither happens. */
static void end_before_exit_at_once(void) {
    if (!atomic_load(&capture.armed) || !profiler_tls.thread || profiler_tls.inside ||
        !capture_is_of_this_thread() || !lifecycle_may_send())
        return;
    if (thread_is_calm())
        lifecycle_end_without_handlers();
    else
        lifecycle_end_at_once();
}

static __attribute__((noreturn)) void exit_at_once(int status) {
    end_before_exit_at_once();
    crash_guard_mark_started();
    for (;;)
        bare_syscall(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

HOOK __attribute__((noreturn)) void _exit(int status) {
    exit_at_once(status);
}

HOOK __attribute__((noreturn)) void _Exit(int status) {
    exit_at_once(status);
}

HOOK __attribute__((noreturn)) void exit(int status) {
    lifecycle_end();
    /* next_calls() was resolved before this call, because a child of a bare clone(2) must not
     * search */
    next_calls()->exit(status);
    __builtin_unreachable();
}

HOOK __attribute__((noreturn)) void quick_exit(int status) {
    lifecycle_end();
    next_calls()->quick_exit(status);
    __builtin_unreachable();
}

enum then before_exit_group(unsigned long status, unsigned long b, unsigned long c,
                            unsigned long d) {
    (void)status, (void)b, (void)c, (void)d;
    end_before_exit_at_once();
    crash_guard_mark_started();
    return THEN_NOTHING;
}

enum then before_exit(unsigned long status, unsigned long b, unsigned long c, unsigned long d) {
    (void)b, (void)c, (void)d;
    lifecycle_may_end_unseen(W_EXITCODE((int)status & 0xff, 0), false);
    return THEN_NOTHING;
}
