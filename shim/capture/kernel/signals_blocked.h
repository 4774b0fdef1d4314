/* A stretch of code in which no signal handler of the application runs on this thread.
 *
 * Around the few hundred nanoseconds in which a sampled allocation is recorded: a handler that
 * allocates finds nothing half-done, and one that leaves by siglongjmp, or a thread that is
 * cancelled asynchronously, leaves nothing behind. Signals that the
 * code itself would raise (SIGSEGV and its like) are let through: blocked, they would kill without
 * their handler. Costs two system calls, on the sampled path only. They are made in place: what was
 * held back is delivered in the function that lets it through (own_time.h).
 * Context: any. Async-signal-safe: yes. errno may change.
 */
#ifndef OTELPROF_SIGNALS_BLOCKED_H
#define OTELPROF_SIGNALS_BLOCKED_H

#include "bare_syscall.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

/* The kernel's own form of a mask; libc's leaves out its internal signals. */
typedef uint64_t signal_mask;

static inline signal_mask signal_bit(int number) {
    return UINT64_C(1) << (number - 1);
}

/* Not by a function that has a hook of ours (hooks/mask.c): it is not the program that asks. */
static inline bool signals_change(int how, const signal_mask *mask, signal_mask *before) {
    return bare_syscall(SYS_rt_sigprocmask, how, (long)mask, (long)before, sizeof *mask, 0, 0) == 0;
}

/* false: refused (a seccomp filter); nothing has changed. */
static inline bool signals_block(signal_mask *before) {
    const signal_mask all = ~(signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) |
                              signal_bit(SIGILL) | signal_bit(SIGTRAP) | signal_bit(SIGSYS));
    return signals_change(SIG_BLOCK, &all, before);
}

static inline void signals_restore(const signal_mask *before) {
    (void)signals_change(SIG_SETMASK, before, NULL);
}

/* One signal alone. `*before`: the whole mask. */
static inline bool signal_block(int number, signal_mask *before) {
    const signal_mask one = signal_bit(number);
    return signals_change(SIG_BLOCK, &one, before);
}

static inline void signal_unblock(int number) {
    const signal_mask one = signal_bit(number);
    (void)signals_change(SIG_UNBLOCK, &one, NULL);
}

#endif
