#include "arch_syscall.h"
#include "clock.h"
#include "kernel/signals_blocked.h"
#include "kernel/wait.h"
#include "pending_signal.h"
#include "record/thread_files.h"
#include "sampler_parts.h"
#include "signal_thread.h"
#include "symbols/next.h"
#include "tracer.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Changing the signal takes some microseconds for each thread. On a busy machine the changing
 * thread may be waiting for a CPU; a waiter of higher priority must sleep, because its yields give
 * that thread no CPU. */
enum { STABLE_YIELDS = 100, STABLE_SLEEP_NANO = 50000 };
static const uint64_t STABLE_TIMEOUT_NANO = NANO_PER_SECOND;
/* Bounds the wait of a thread that must change the signal: so many rounds of wait.h, of 50 us at
 * least. The thread counts rounds, not time, because on a busy machine a second may pass before the
 * other thread runs again. */
enum { MOVE_ROUNDS = 10000 };
/* Bounds the wait for handlers: a thread that has blocked every signal by a call of its own seems
 * to be in a handler. */
enum { HANDLER_ROUNDS = 2000 };
/* Bounds the program's signals that are kept on the stack while the signal changes owners. A
 * standard signal is pending at most once for the thread and once for the process; each timer of
 * the program adds one. If more are pending, which a real-time signal can be, the rest are queued
 * behind them. */
enum { MOST_PENDING = 8 };

/* Blocks signals, so that no handler of the program's runs during the change: such a handler could
 * wait for its own thread, set an action that is then overwritten, or leave by siglongjmp(). */
bool sampler_begin_move(void) {
    signal_mask before = 0;
    const int saved = errno;
    const bool blocked = signals_block(&before);
    const bool may = !atomic_exchange(&sampler.moving, true);
    if (may) {
        sampler.blocked_for_move = blocked;
        sampler.mask_before_move = before;
    } else if (blocked)
        signals_restore(&before);
    errno = saved;
    return may;
}

void sampler_end_move(void) {
    const bool blocked = sampler.blocked_for_move;
    const signal_mask before = sampler.mask_before_move;
    const int saved = errno;
    atomic_store(&sampler.wait_timed_out, false);
    atomic_store(&sampler.moving, false);
    if (blocked)
        signals_restore(&before);
    errno = saved;
}

/* Returns true if a wait may end. Returns false in a child that no fork handler has seen (a bare
 * clone): the thread that was changing the signal does not exist there. Returns false, too, after a
 * wait has timed out, until that change or a later one ends. */
static bool is_worth_waiting(void) {
    return !atomic_load(&sampler.wait_timed_out) &&
           arch_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0) == sampler.pid;
}

static bool begin_move(void *unused) {
    (void)unused;
    return sampler_begin_move();
}

bool sampler_begin_move_in_turn(void) {
    if (sampler_begin_move())
        return true;
    return arch_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0) == sampler.pid &&
           wait_for_rounds(begin_move, NULL, MOVE_ROUNDS);
}

void sampler_wait_stable(void) {
    const struct timespec pause = {0, STABLE_SLEEP_NANO};
    uint64_t deadline = 0;
    for (int i = 0; atomic_load(&sampler.moving); i++) {
        if (i < STABLE_YIELDS) {
            (void)arch_system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
            continue;
        }
        if (!deadline && !is_worth_waiting())
            return;
        deadline = deadline ? deadline : monotonic_nano() + STABLE_TIMEOUT_NANO;
        if (monotonic_nano() > deadline) {
            atomic_store(&sampler.wait_timed_out, true);
            return;
        }
        (void)arch_system_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
    }
}

bool sampler_uses(int number) {
    return number != 0 && number == atomic_load(&sampler.timers.signal);
}

/* Discards the value if another thread has begun a change while it was read. */
bool sampler_uses_when_stable(int number) {
    const _Atomic bool *const moving = &sampler.moving;
    bool uses;
    sampler_wait_stable();
    uses = sampler_uses(number);
    if (!uses && atomic_load(moving)) {
        sampler_wait_stable();
        uses = sampler_uses(number);
    }
    return uses;
}

struct sigaction sampler_action_seen(const struct sigaction *action) {
    return action->sa_sigaction == signal_entry ? sampler.believed : *action;
}

static bool signal_is_free(int number) {
    struct sigaction present;
    return next_sigaction(number, NULL, &present) == 0 && !(present.sa_flags & SA_SIGINFO) &&
           present.sa_handler == SIG_DFL;
}

/* Searches downwards, because programs that use real-time signals count from SIGRTMIN. Leaves the
 * last ones to debuggers and valgrind. Returns 0 if none is free. */
static int free_real_time_signal(int except) {
    for (int number = SIGRTMAX - 3; number >= SIGRTMIN; number--)
        if (number != except && signal_is_free(number))
            return number;
    return 0;
}

bool sampler_set_action(int number) {
    struct sigaction action = {.sa_sigaction = signal_entry,
                               .sa_flags = SA_RESTART | SA_SIGINFO | SA_ONSTACK};
    /* All signals are blocked, by hand, because sigfillset() leaves out the signals by which libc
     * interrupts threads (setuid, pthread_cancel). */
    memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
    return next_sigaction(number, &action, NULL) == 0;
}

/* Returns the signal to use; 0 if no signal is free. */
static int choose_signal(void) {
    const int wanted = sampler.wanted;
    const int number = signal_is_free(wanted) ? wanted : free_real_time_signal(0);
    if (!number || !sampler_set_action(number))
        return 0;
    sampler.timers.period_nano = sampler.period_nano;
    sampler.timers.mark = &sampler;
    sampler.timers.deadly = cpu_timers_are_deadly();
    atomic_store(&sampler.timers.signal, number);
    cpu_timers_reserve(&sampler.timers);
    return number;
}

void sampler_prepare(const struct config *config, const struct log *log, struct recorder *recorder,
                     const _Atomic bool *armed, _Atomic(void (*)(bool calm)) const *want_helper) {
    signal_thread_prepare();
    sampler.pid = getpid();
    sampler.wanted = (int)config->signal;
    sampler.period_nano = NANO_PER_SECOND / config->cpu_frequency;
    sampler.log = log;
    sampler.recorder = recorder;
    sampler.armed = armed;
    sampler.want_helper = want_helper;
}

bool sampler_install(void) {
    const int wanted = sampler.wanted;
    const int number = choose_signal();
    if (!number) {
        log_debug(sampler.log, "no signal is free for sampling; CPU time is not profiled");
        return false;
    }
    if (number != wanted)
        log_debug(sampler.log, "signal %d is in use; CPU time is sampled by signal %d", wanted,
                  number);
    sampler.on = true;
    return true;
}

/* Tries once: a process without a signal gets none later. */
static void install_for_helper(void) {
    if (sampler.on || sampler.helper_asked || !sampler_begin_move())
        return;
    sampler.helper_asked = true;
    sampler.timers.helper_only = true;
    (void)choose_signal();
    sampler_end_move();
}

/* Returns true under a tracer. A tracer that steps over breakpoints may lose its place where the
 * signal comes to the helper (ltrace: the program ends with SIGILL). */
static bool is_traced(void) {
    if (!sampler.tracer_checked)
        sampler.traced = tracer_of_this_thread() != 0;
    sampler.tracer_checked = true;
    return sampler.traced;
}

bool sampler_watch_helper(void) {
    if (is_traced())
        return false;
    install_for_helper();
    return cpu_timers_watch_helper(&sampler.timers);
}

static void signal_move(void) {
    int number = free_real_time_signal(atomic_load(&sampler.timers.signal));
    if (number && !sampler_set_action(number))
        number = 0;
    (void)cpu_timers_move(&sampler.timers, sampler.recorder->threads, number);
}

/* --- pending signals when the signal is given up --- */

/* Returns whether the helper has a timer, and may have unblocked the signal. Called before the
 * timers are moved. */
static bool helper_has_timer(void) {
    return atomic_load(&sampler.timers.helper) != 0;
}

/* Takes all signals that are pending for the calling thread and the process, and keeps the
 * program's, up to MOST_PENDING. Returns the number kept. */
static unsigned take_pending(int number, struct pending_signal programs[static MOST_PENDING]) {
    unsigned count = 0;
    while (!atomic_load(&sampler.queries_kill) && count < MOST_PENDING &&
           pending_signal_take(number, &programs[count]))
        count += !sampler_sent(&programs[count].info);
    return count;
}

static void put_back(struct pending_signal programs[static MOST_PENDING], unsigned count) {
    for (unsigned i = 0; i < count; i++)
        pending_signal_put_back(&programs[i]);
}

static void drop_expiries(int number) {
    struct pending_signal programs[MOST_PENDING];
    put_back(programs, take_pending(number, programs));
}

void sampler_drop_expiries(void) {
    const int number = atomic_load(&sampler.timers.signal);
    if (number)
        drop_expiries(number);
}

/* Returns whether an expiry of ours may be pending where it cannot be taken: for another thread. */
static bool may_be_pending_elsewhere(bool of_helper) {
    if (atomic_load(&sampler.queries_kill) || of_helper)
        return true;
    for (uint32_t i = 0;
         !sampler.timers.helper_only && i < thread_table_count(sampler.recorder->threads); i++) {
        const struct thread_state *const thread = thread_table_at(sampler.recorder->threads, i);
        if (thread && thread != profiler_tls.thread && atomic_load(&thread->tid))
            return true;
    }
    return false;
}

/* Gives the signal the action that the program believes in, so that no signal of ours reaches the
 * program. If some may be pending for another thread, ignores the signal for a moment: that
 * discards it wherever it is pending, the program's own signals, too. */
static void put_action_back(int number, bool of_helper) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct pending_signal programs[MOST_PENDING];
    const int saved = errno;
    const unsigned count = take_pending(number, programs);
    if (may_be_pending_elsewhere(of_helper))
        next_sigaction(number, &ignore, NULL);
    next_sigaction(number, &sampler.believed, NULL);
    put_back(programs, count);
    errno = saved;
}

static void give_away(int old) {
    const bool of_helper = helper_has_timer();
    signal_move();
    put_action_back(old, of_helper);
    memset(&sampler.believed, 0, sizeof sampler.believed);
}

bool sampler_give_signal_away(int number) {
    if (!sampler_begin_move_in_turn())
        return false;
    if (sampler_uses(number)) {
        give_away(number);
        atomic_fetch_add(&sampler.taken, 1);
    }
    sampler_end_move();
    return true;
}

void sampler_choose_unnamed_signal(void) {
    if (!sampler_begin_move())
        return;
    const int old = atomic_load(&sampler.timers.signal);
    if (old && old < SIGRTMIN && free_real_time_signal(old))
        give_away(old);
    sampler_end_move();
}

void sampler_check_signal(void) {
    struct sigaction present;
    const int number = atomic_load(&sampler.timers.signal);
    if (!number || next_sigaction(number, NULL, &present) != 0 ||
        present.sa_sigaction == signal_entry || !sampler_begin_move())
        return;
    if (atomic_load(&sampler.timers.signal) == number) {
        signal_move();
        atomic_fetch_add(&sampler.taken, 1);
    }
    sampler_end_move();
}

void sampler_after_fork(void) {
    atomic_store(&sampler.moving, false);
    atomic_store(&sampler.wait_timed_out, false);
    sampler.pid = getpid();
    cpu_timers_reserve(&sampler.timers);
    /* finishes a change that another thread had begun, because that thread does not exist in a
     * child */
    sampler_follow_settings();
}

/* Returns true if a tracer may hold an expiry back, for any thread that it has stopped: if the
 * signal had its default action by then, it would end the process. Returns false, without a query,
 * if a filter of system calls would kill for the query. */
static bool may_be_held_back(void) {
    return !atomic_load(&sampler.queries_kill) && tracer_of_this_thread() != 0;
}

/* Keeps the handler while a timer still runs, or a tracer may deliver late: without it the signal
 * would end the process. */
void sampler_stop(void) {
    const bool mine = sampler_begin_move_in_turn();
    const int number = atomic_load(&sampler.timers.signal);
    const bool of_helper = helper_has_timer();
    const bool gone = cpu_timers_move(&sampler.timers, sampler.recorder->threads, 0);
    if (gone && number && may_be_held_back())
        drop_expiries(number);
    else if (gone && number)
        put_action_back(number, of_helper);
    if (mine)
        sampler_end_move();
}

/* Returns true if the thread blocks all signals but SIGKILL and SIGSTOP. The kernel sets this mask
 * when the handler begins, and removes it when the handler returns. Otherwise a thread has it only
 * for a moment, while libc creates or ends a thread, because masks set by libc's functions leave
 * out 32 and 33. */
static bool is_in_handler(const struct thread_state *thread) {
    const uint32_t tid = atomic_load(&thread->tid);
    uint64_t mask = 0;
    return tid && thread != profiler_tls.thread &&
           thread_status_read(tid, "\nSigBlk:\t", 16, &mask) &&
           !~(mask | signal_bit(SIGKILL) | signal_bit(SIGSTOP));
}

static bool no_thread_is_in_handler(void *threads) {
    for (uint32_t i = 0; i < thread_table_count(threads); i++)
        if (is_in_handler(thread_table_at(threads, i)))
            return false;
    return true;
}

void sampler_wait_for_handlers(void) {
    if (sampler.on)
        (void)wait_for_rounds(no_thread_is_in_handler, sampler.recorder->threads, HANDLER_ROUNDS);
}

bool sampler_may_open(void) {
    return !atomic_load(&sampler.queries_kill);
}

void sampler_leave_pending(void) {
    atomic_store(&sampler.queries_kill, true);
}
