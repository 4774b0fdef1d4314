/* Keeps the application's signal handlers from running on this thread during a stretch of code.
 *
 * The profiler blocks signals around the few hundred nanoseconds in which a sampled allocation is
 * recorded: a handler that allocates finds consistent data, and neither a handler that leaves by
 * siglongjmp nor an asynchronous cancellation leaves a lock held. Signals that the code itself
 * could raise (SIGSEGV and its like) stay unblocked, because such a signal, if blocked, kills the
 * process without running its handler. Costs two system calls, on the sampled path only, and a
 * third where the program has several threads. A pending signal is delivered in signals_restore()
 * (profiler_time.h).
 *
 * For a signal to the whole process (kill(), alarm()) the kernel chooses and wakes one thread. But
 * the signal stays in the process's queue until that thread runs, and a thread that changes its
 * mask meanwhile takes all signals in the queue (recalc_sigpending(), kernel/signal.c): a pause()
 * of the chosen thread would then continue to sleep. So a thread that unblocks signals first
 * queries the pending ones, and yields to the chosen thread, within a bound. Context: any.
 * Async-signal-safe: yes. errno may change. */
#ifndef OTELPROF_SIGNALS_BLOCKED_H
#define OTELPROF_SIGNALS_BLOCKED_H

#include "bare_syscall.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Holds a mask in the kernel's form; libc's form leaves out libc's internal signals. */
typedef uint64_t signal_mask;

static inline signal_mask signal_bit(int number) {
    return UINT64_C(1) << (number - 1);
}

/* Makes a bare system call, because the profiler hooks libc's function (hooks/mask.c), which must
 * see only the program's calls. */
static inline bool signals_change(int how, const signal_mask *mask, signal_mask *before) {
    return bare_syscall(SYS_rt_sigprocmask, how, (long)mask, (long)before, sizeof *mask, 0, 0) == 0;
}

/* Blocks the signals, and stores the former mask in `*before`. Returns false, without a change, if
 * the kernel or a seccomp filter refused the call. */
static inline bool signals_block(signal_mask *before) {
    const signal_mask all = ~(signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) |
                              signal_bit(SIGILL) | signal_bit(SIGTRAP) | signal_bit(SIGSYS));
    *before = 0;
    return signals_change(SIG_BLOCK, &all, before);
}

/* --- giving way --- */

/* Holds pointers to the state on which the query depends. NULL: no thread queries. */
struct signals_shared {
    const _Atomic int32_t *threads; /* the number of the program's threads, as far as it is known */
    const _Atomic int *sampling_signal; /* the signal of our timers; 0: there is none */
    _Atomic bool unasked;               /* set by signals_ask_no_more(): no thread queries */
    _Atomic int32_t giving_way;         /* threads that are giving way now */
};

extern struct signals_shared signals_shared;

/* Makes each thread that unblocks signals first check for signals of other threads. Context: calm,
 * at start.
 */
void signals_give_way_to(const _Atomic int32_t *threads, const _Atomic int *sampling_signal);

/* Ends the checks that signals_give_way_to() began, because a filter of system calls would kill for
 * the query, or for the calls that follow. Waits, for some milliseconds at most, until no thread
 * gives way any more. Context: any. errno is preserved. */
void signals_ask_no_more(void);

/* Lets other threads run, by some yields and then by sleeps of about a millisecond in all, until no
 * signal is pending that `before` unblocks. If no other thread takes a signal (it was sent to this
 * one alone, or the others block it), the sleeps for it become rare. Context: any.
 * Async-signal-safe: yes. errno is preserved. */
void signals_give_way(signal_mask before);

/* Returns the pending signals that `before` unblocks, and for which another thread may have been
 * chosen: not our timers' signal, and not libc's own, which libc sends to one thread. Returns 0 if
 * the query is refused, too. */
static inline signal_mask signals_to_give_way(signal_mask before) {
    const signal_mask libcs = signal_bit(32) | signal_bit(33);
    const int sampling_signal =
        atomic_load_explicit(signals_shared.sampling_signal, memory_order_relaxed);
    signal_mask pending = 0;
    if (arch_system_call(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0) != 0)
        return 0;
    return pending & ~(before | libcs | (sampling_signal ? signal_bit(sampling_signal) : 0));
}

/* Lets other threads take pending signals first. Call this right before a thread that blocks more
 * signals sets the mask `before`. */
static inline void signals_leave_to_others(signal_mask before) {
    const struct signals_shared *const shared = &signals_shared;
    if (shared->threads && atomic_load_explicit(shared->threads, memory_order_relaxed) > 1 &&
        !atomic_load_explicit(&shared->unasked, memory_order_relaxed) &&
        signals_to_give_way(before))
        signals_give_way(before);
}

/* Restores the mask from before signals_block(). The signal of a timer that has expired meanwhile
 * is delivered in this function, as the profiler's own time. */
void signals_restore(const signal_mask *before);

/* --- one signal --- */

/* Blocks one signal, and stores the whole previous mask in `*before`. Returns false, without a
 * change, if the call is refused. */
static inline bool signal_block(int number, signal_mask *before) {
    const signal_mask one = signal_bit(number);
    return signals_change(SIG_BLOCK, &one, before);
}

static inline void signal_unblock(int number) {
    const signal_mask one = signal_bit(number);
    (void)signals_change(SIG_UNBLOCK, &one, NULL);
}

#endif
