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

/* Returns true if an application's thread can still be profiled under the filter. */
bool seccomp_filter_spares_thread(const struct sock_fprog *program);

/* Returns true if a thread that blocks the profiler's signal can get another timer
 * (masked_threads.h). */
bool seccomp_filter_spares_timers(const struct sock_fprog *program);

/* Returns true if a thread can take pending signals, and queue them again (pending_signal.h). */
bool seccomp_filter_spares_pending(const struct sock_fprog *program);

/* Returns true if a thread can query pending signals, and yield for them (signals_blocked.h). */
bool seccomp_filter_spares_giving_way(const struct sock_fprog *program);

/* Returns true if the calling thread can try to create a helper, even in vain. */
bool seccomp_filter_spares_helper_start(const struct sock_fprog *program);

/* Returns true if a thread can write a line to the log. */
bool seccomp_filter_spares_logging(const struct sock_fprog *program);

/* Returns true if the helper can still export under the filter. */
bool seccomp_filter_spares_helper(const struct sock_fprog *program);

/* Returns true if the helper can also still serve requests to the process under the filter. */
bool seccomp_filter_spares_serving(const struct sock_fprog *program);

/* Returns true if the helper can also send its lines to the system's log under the filter. */
bool seccomp_filter_spares_syslog(const struct sock_fprog *program);

/* Returns true if the calling thread can create a helper that works under the filter: every call
 * that the helper needs is allowed, and no call kills. */
bool seccomp_filter_lets_helper_follow(const struct sock_fprog *program);

/* Returns true if the filter may kill only the calling thread: one of its returns does so. */
bool seccomp_filter_kills_threads(const struct sock_fprog *program);

#endif
