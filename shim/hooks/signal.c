/* Hooks signal calls, to hide the sampling signal from the program.
 *
 * Queries of the signal's action, and setting the default action, are emulated here. Any other use
 * means that the program needs the signal, so sampling moves to another (sampler.h). Calls for
 * every other number go straight to libc. No hook calls another hook by its name, because the
 * program may define that name and forward to us (Erlang's sigaction). */
#include "by_number.h"

#include "arch_machine.h"
#include "bare_syscall.h"
#include "capture/capture.h"
#include "capture/cpu/program_handlers.h"
#include "capture/cpu/program_stack.h"
#include "capture/kernel/first_page.h"
#include "capture/kernel/signals_blocked.h"
#include "capture/symbols/next.h"
#include "capture/thread_life.h"
#include "capture/unwind/stack_memory.h"
#include "clock.h"
#include "entry.h"
#include "process/termination.h"
#include "seccomp_state.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* Declare functions that libc's headers declare only for programs of other standards. */
sighandler_t bsd_signal(int number, sighandler_t handler);
int __sigaction(int number, const struct sigaction *action, struct sigaction *old);

/* Returns true if this thread, the only one, has left the profiler: its timer is disarmed, and any
 * system call may be fatal. */
static bool has_left_alone(void) {
    return capture_has_left() && atomic_load(&capture.live_threads) <= 1;
}

/* Returns true for the sampling signal; false in a child of vfork, which has its own signal
 * actions, but shares our memory with its parent. */
static bool is_sampling_signal(int number) {
    return sampler_uses_when_stable(number) && atomic_load(&capture.armed) && !has_left_alone() &&
           getpid() == capture.pid;
}

/* Gives the signal to the program; call this before the program changes the action of `number`. */
static void signal_give_away(int number) {
    if (is_sampling_signal(number))
        (void)sampler_give_signal_away(number);
}

/* --- setting an action --- */

/* Has a bit for each signal that has had a handler of the program's. */
IN_FIRST_PAGE static _Atomic signal_mask handled;

static void note_handler(int number, sighandler_t handler) {
    if (handler == SIG_DFL || handler == SIG_IGN)
        return;
    atomic_store_explicit(&capture.has_handlers, true, memory_order_relaxed);
    if (number > 0 && number < NSIG && !(atomic_load(&handled) & signal_bit(number)))
        atomic_fetch_or(&handled, signal_bit(number));
}

/* True once the program has set a handler that its own signal may interrupt. */
static _Atomic bool some_handler_nests;

/* Returns true for a default action. Ignores the flags, because PHP's default action has
 * SA_SIGINFO. */
static bool is_default(const struct sigaction *action) {
    return action->sa_handler == SIG_DFL;
}

/* Returns the action that the program believes to be set where the kernel has `old`. A signal that
 * ends the process by default has a handler of ours (termination.h), which the program sees as that
 * default. The sampling signal may also have changed in the meantime. */
static struct sigaction as_believed(int number, const struct sigaction *old) {
    static const struct sigaction by_default = {.sa_handler = SIG_DFL};
    const struct sigaction seen =
        termination_is_profiler_action(old) ? by_default : sampler_action_seen(old);
    return program_handlers_seen(number, &seen);
}

/* Returns true in a child of vfork(), which shares our memory but is none of our threads. A child
 * that was forked without our hooks has a copy of the memory. */
static bool is_child_of_vfork(void) {
    return getpid() != capture.pid && profiler_tls.thread && !thread_is_wiped(profiler_tls.thread);
}

/* Returns the action for the kernel. Wraps a handler if threads may have signal stacks of ours:
 * they keep these after sampling has ended. If CPU time is not sampled, threads never get such a
 * stack; until that is decided, they may. */
static struct sigaction as_given(int number, const struct sigaction *action) {
    if (is_default(action))
        return *termination_in_place_of(action, number);
    if (!sampler.on && (atomic_load(&capture_is_off) || atomic_load(&capture.armed)))
        return *action;
    return program_handlers_wrap(number, action, is_child_of_vfork());
}

/* Gives an entry to the handler that libc has just set for the signal, if it needs one. */
static void give_entry(int number) {
    if (program_handlers_may_give_entries() && !is_child_of_vfork())
        program_handlers_give_entries(number, number);
}

static int set_other(int number, const struct sigaction *action, struct sigaction *old) {
    struct sigaction given;
    if (action)
        given = as_given(number, action);
    const int result = next_sigaction(number, action ? &given : NULL, old);
    if (action)
        sampler_wait_stable(); /* program_handlers_give_entries() may put an older action back */
    if (result == 0 && old)
        *old = as_believed(number, old);
    return result;
}

/* Installs the program's handler even if the profiler could not give the signal away: otherwise the
 * program would end when it raises the signal and expects its handler to run. */
static int set_action(int number, const struct sigaction *action, struct sigaction *old) {
    const bool takes = action && !is_default(action);
    if (action)
        note_handler(number, action->sa_handler);
    if (takes && action->sa_flags & SA_NODEFER)
        atomic_store(&some_handler_nests, true);
    if (takes)
        signal_give_away(number);
    if (takes || !is_sampling_signal(number))
        return set_other(number, action, old);
    const struct sigaction believed = sampler.believed;
    if (action)
        sampler.believed = *action;
    if (old)
        *old = believed;
    return 0;
}

HOOK int sigaction(int number, const struct sigaction *restrict action,
                   struct sigaction *restrict old) {
    return set_action(number, action, old);
}

HOOK int __sigaction(int number, const struct sigaction *restrict action,
                     struct sigaction *restrict old) {
    return set_action(number, action, old);
}

static sighandler_t handler_as_believed(int number, sighandler_t old) {
    const struct sigaction action = {.sa_handler = old};
    return as_believed(number, &action).sa_handler;
}

typedef sighandler_t set_function(int number, sighandler_t handler);

static sighandler_t set_handler(int number, sighandler_t handler, set_function *next) {
    static const struct sigaction by_default = {.sa_handler = SIG_DFL};
    struct sigaction old;
    if (handler == SIG_DFL && is_sampling_signal(number))
        return SIG_DFL;
    if (handler == SIG_DFL && termination_in_place_of(&by_default, number) != &by_default)
        return set_other(number, &by_default, &old) == 0 ? old.sa_handler : SIG_ERR;
    note_handler(number, handler);
    signal_give_away(number);
    const sighandler_t before = handler_as_believed(number, next(number, handler));
    give_entry(number);
    return before;
}

HOOK sighandler_t signal(int number, sighandler_t handler) {
    return set_handler(number, handler, next_calls()->signal);
}

HOOK sighandler_t bsd_signal(int number, sighandler_t handler) {
    return set_handler(number, handler, next_calls()->signal);
}

HOOK sighandler_t ssignal(int number, sighandler_t handler) {
    return set_handler(number, handler, next_calls()->signal);
}

HOOK sighandler_t sysv_signal(int number, sighandler_t handler) {
    atomic_store(&some_handler_nests, true);
    return set_handler(number, handler, next_calls()->sysv_signal);
}

HOOK sighandler_t __sysv_signal(int number, sighandler_t handler) {
    atomic_store(&some_handler_nests, true);
    return set_handler(number, handler, next_calls()->sysv_signal);
}

/* Hooks sigset(), which may change the mask, too, with any handler. */
HOOK sighandler_t sigset(int number, sighandler_t handler) {
    note_handler(number, handler);
    signal_give_away(number);
    const sighandler_t before = handler_as_believed(number, next_calls()->sigset(number, handler));
    give_entry(number);
    return before;
}

HOOK int sigignore(int number) {
    signal_give_away(number);
    const int result = next_calls()->sigignore(number);
    sampler_wait_stable(); /* as in set_other() */
    return result;
}

HOOK int siginterrupt(int number, int interrupt) {
    signal_give_away(number);
    const int result = next_calls()->siginterrupt(number, interrupt);
    sampler_wait_stable(); /* as in set_other() */
    return result;
}

/* Hooks setitimer(). Moves the sampling signal, because the last fallback of cpu_timers.h uses, or
 * has used, this interval timer. */
HOOK int setitimer(__itimer_which_t which, const struct itimerval *restrict value,
                   struct itimerval *restrict old) {
    if (which == ITIMER_PROF && atomic_load(&sampler.timers.interval_ran))
        signal_give_away(SIGPROF);
    if (which != ITIMER_REAL)
        atomic_store(&capture.uses_interval_timers, true);
    /* a worker that limits each piece of work by a timer (PHP) gets its helper here */
    capture_offer_helper();
    return next_calls()->setitimer((int)which, value, old);
}

/* Returns true if `pointer` can be read. The kernel reports a bad pointer as an error, so the hook
 * must not crash on such a pointer. */
static bool is_readable_pointer(const void *pointer) {
    return memory_is_readable((uintptr_t)pointer);
}

/* Handles a bare system call. Relies on the kernel's struct: it begins with the handler, as libc's
 * does. */
enum then before_rt_sigaction(unsigned long number, unsigned long action, unsigned long old,
                              unsigned long size) {
    const sighandler_t *const handler = (const void *)action;
    const int saved = errno;
    (void)old, (void)size;
    if (handler && is_readable_pointer(handler)) {
        note_handler((int)number, *handler);
        signal_give_away((int)number);
    }
    errno = saved;
    return THEN_NOTHING;
}

/* --- waiting for signals --- */

/* Returns true if the thread waits for the profiler's signal, too: a program may block all signals
 * and wait for all. */
static bool waits_for_profiler_signal(const sigset_t *set) {
    const int number = atomic_load(&sampler.timers.signal);
    return number != 0 && is_readable_pointer(set) && sigismember(set, number) == 1;
}

static bool is_profiler_sample(int number, const siginfo_t *info) {
    return sampler_uses(number) && sampler_sent(info);
}

static int take_signal(const sigset_t *set, siginfo_t *info) {
    siginfo_t found;
    int number;
    if (!waits_for_profiler_signal(set))
        return next_calls()->sigwaitinfo(set, info);
    do
        number = next_calls()->sigwaitinfo(set, &found);
    while (number > 0 && is_profiler_sample(number, &found));
    if (info && number > 0)
        *info = found;
    return number;
}

HOOK int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info) {
    return take_signal(set, info);
}

/* Converts a time to nanoseconds; a longer time than 64 bits hold becomes the largest value. */
static uint64_t nano_of(const struct timespec *time) {
    uint64_t nano;
    if (__builtin_mul_overflow((uint64_t)time->tv_sec, NANO_PER_SECOND, &nano) ||
        __builtin_add_overflow(nano, (uint64_t)time->tv_nsec, &nano))
        return UINT64_MAX;
    return nano;
}

HOOK int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                      const struct timespec *restrict timeout) {
    if (!timeout)
        return take_signal(set, info);
    if (!waits_for_profiler_signal(set) || !is_readable_pointer(timeout))
        return next_calls()->sigtimedwait(set, info, timeout);
    const uint64_t start = monotonic_nano();
    const uint64_t allowed = nano_of(timeout);
    struct timespec left = *timeout;
    siginfo_t found;
    int number;
    while ((number = next_calls()->sigtimedwait(set, &found, &left)) > 0 &&
           is_profiler_sample(number, &found)) {
        const uint64_t used = monotonic_nano() - start;
        left = timespec_of(used < allowed ? allowed - used : 0);
    }
    if (info && number > 0)
        *info = found;
    return number;
}

/* Hooks sigwait(). Follows POSIX: the error is returned, and EINTR is not an error. */
HOOK int sigwait(const sigset_t *restrict set, int *restrict number) {
    const int saved = errno;
    int found;
    do
        found = take_signal(set, NULL);
    while (found < 0 && errno == EINTR);
    const int error = found < 0 ? errno : 0;
    errno = saved;
    if (!error)
        *number = found;
    return error;
}

/* Hooks signalfd(). If the mask names our signal among others, the descriptor must report the
 * program's own signals, but not ours. So sampling moves to a signal that programs do not name, and
 * this signal is removed from the mask. */
HOOK int signalfd(int descriptor, const sigset_t *mask, int flags) {
    sigset_t without;
    if (is_readable_pointer(mask) && sigismember(mask, SIGPROF) == 1)
        signal_give_away(SIGPROF);
    if (!waits_for_profiler_signal(mask))
        return next_calls()->signalfd(descriptor, mask, flags);
    without = *mask;
    sigdelset(&without, atomic_load(&sampler.timers.signal));
    return next_calls()->signalfd(descriptor, &without, flags);
}

/* --- alternate stacks --- */

/* Returns true if profiler_tls describes the calling thread, or if this is another process: a bare
 * clone() may share profiler_tls. */
static bool is_of_this_thread(void) {
    const struct thread_state *const thread = profiler_tls.thread;
    const uint32_t tid = thread ? atomic_load(&thread->tid) : 0;
    return tid == 0 || tid == (uint32_t)bare_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0) ||
           getpid() != capture.pid;
}

/* Returns true if the calling code may be a handler's that the kernel has entered: a handler blocks
 * its signal, unless some handler has SA_NODEFER. Blocked signals without a handler, such as those
 * that a process is started with, do not count. */
static bool may_be_in_handler(void) {
    signal_mask blocked = 0;
    (void)signals_change(SIG_BLOCK, NULL, &blocked);
    return blocked & atomic_load(&handled) || atomic_load(&some_handler_nests);
}

/* Returns true if handlers without SA_ONSTACK need entries of ours, which show when a handler
 * begins and returns: the kernel disables our stack as a handler begins, because the program's has
 * SS_AUTODISARM, or the program sets its first stack in a handler, whose return cannot remove that
 * stack. */
static bool needs_entries(const stack_t *stack) {
    const struct profiler_signal_stack *const own = profiler_tls.signal_stack;
    return stack->ss_flags & STACK_DISARMS ||
           (own && program_stack_is_first(own) && may_be_in_handler());
}

HOOK int sigaltstack(const stack_t *restrict stack, stack_t *restrict old) {
    if (stack && !seccomp_is_filtered() && !program_handlers_all_have_entries() &&
        memory_range_is_readable((uintptr_t)stack, sizeof *stack) && !is_child_of_vfork() &&
        needs_entries(stack))
        program_handlers_include_plain();
    if (profiler_tls.signal_stack && is_of_this_thread())
        return program_stack_exchange(stack, old, arch_entry_sp(), is_child_of_vfork());
    if (stack && memory_range_is_readable((uintptr_t)stack, sizeof *stack) &&
        !(stack->ss_flags & SS_DISABLE))
        termination_note_signal_stack(stack->ss_size);
    return next_calls()->sigaltstack(stack, old);
}
