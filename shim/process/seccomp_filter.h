/* What a seccomp filter would do to the system calls that we make.
 *
 * A program that locks itself up knows its own calls, not ours: a filter that kills for the others
 * would kill it for our sake. So the filter is tried before it is installed: it is a program of
 * classic BPF over a call's number and arguments, and we run it over each of ours.
 * A call that fails is no harm, with one exception: the return from a signal handler must succeed.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_SECCOMP_FILTER_H
#define OTELPROF_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* What the filter returns for a call: a SECCOMP_RET_ value. `program` and its instructions must be
 * readable; of one that the kernel would not take the answer is worth nothing. */
uint32_t seccomp_filter_answer(const struct sock_fprog *program, const struct seccomp_data *call);

/* Whether a thread of the application can go on being profiled behind the filter. */
bool seccomp_filter_spares_thread(const struct sock_fprog *program);

/* Whether a thread that blocks our signal can be given another timer (masked_threads.h). */
bool seccomp_filter_spares_timers(const struct sock_fprog *program);

/* Whether a thread can take signals that are pending, and queue them again (pending_signal.h). */
bool seccomp_filter_spares_pending(const struct sock_fprog *program);

/* Whether a thread can ask what is pending, and give way for it (signals_blocked.h). */
bool seccomp_filter_spares_giving_way(const struct sock_fprog *program);

/* Whether the helper thread can go on exporting behind it. */
bool seccomp_filter_spares_helper(const struct sock_fprog *program);

/* Whether it can go on answering those who ask the process, beside that. */
bool seccomp_filter_spares_answers(const struct sock_fprog *program);

/* Whether the calling thread can make a helper that is behind it, too, and works there: every call
 * that it cannot do without passes, and none kills. */
bool seccomp_filter_lets_helper_follow(const struct sock_fprog *program);

/* Whether it may kill the thread that makes a call, and no other: some answer of its does. */
bool seccomp_filter_kills_threads(const struct sock_fprog *program);

#endif
