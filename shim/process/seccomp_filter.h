/* Predicts the effect of a seccomp filter on the profiler's system calls.
 *
 * A program that restricts itself does not know the profiler's calls: a filter that kills for
 * unknown calls would kill the program because of the profiler. So each filter is evaluated before
 * it is installed: a filter is a program of classic BPF over a call's number and arguments, and
 * runs here for each of the profiler's calls. A call that only fails does no harm, except the
 * return from a signal handler, which must succeed. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_SECCOMP_FILTER_H
#define OTELPROF_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the filter's SECCOMP_RET_ value for a call. `program` and its instructions must be
 * readable; for a filter that the kernel would refuse the value is arbitrary. */
uint32_t seccomp_filter_result(const struct sock_fprog *program, const struct seccomp_data *call);

/* Lists the abilities that the profiler can keep under a filter, a bit each. */
enum seccomp_verdict {
    /* an application's thread can be profiled */
    SECCOMP_SPARES_THREAD = 1 << 0,
    /* a thread that blocks the profiler's signal can get another timer (masked_threads.h) */
    SECCOMP_SPARES_TIMERS = 1 << 1,
    /* a thread can take pending signals, and queue them again (pending_signal.h) */
    SECCOMP_SPARES_PENDING = 1 << 2,
    /* a thread can query pending signals, and yield for them (signals_blocked.h) */
    SECCOMP_SPARES_GIVING_WAY = 1 << 3,
    /* the calling thread can try to create a helper, even in vain */
    SECCOMP_SPARES_HELPER_START = 1 << 4,
    /* a thread can write a line to the log */
    SECCOMP_SPARES_LOGGING = 1 << 5,
    /* the helper can export */
    SECCOMP_SPARES_HELPER = 1 << 6,
    /* the helper can also serve requests to the process */
    SECCOMP_SPARES_SERVING = 1 << 7,
    /* the helper can also send its lines to the system's log */
    SECCOMP_SPARES_SYSLOG = 1 << 8,
    /* the calling thread can create a helper that works: every call that the helper needs is
     * allowed, and no call kills */
    SECCOMP_LETS_HELPER_FOLLOW = 1 << 9,
    /* the filter may kill only the calling thread: one of its returns does so */
    SECCOMP_KILLS_THREADS = 1 << 10,
};

/* Returns the bits of enum seccomp_verdict that hold. Runs the filter once for each call of the
 * profiler. */
unsigned seccomp_filter_verdicts(const struct sock_fprog *program);

#endif
