#include "sampler.h"

#include "arch_context.h"
#include "bare_syscall.h"
#include "clock.h"
#include "helper_heap/memory_guard.h"
#include "masked_threads.h"
#include "pending_signal.h"
#include "record/own_time.h"
#include "signal_stacks.h"
#include "symbols/next.h"
#include "tracer.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct sampler sampler;

/* A sample's own cost is looked at in one of this many, and may be this share of the period. */
enum { COST_EVERY = 16, COST_SHARE = 4, COST_SHARE_TO_RECOVER = 32 };
/* Said once where, after so much CPU time, fewer than this share of the possible signals came. */
enum { LATE_SHARE = 4, LATE_AFTER_SECONDS = 1 };
/* Changing the signal takes some microseconds for each thread. On a busy machine the thread that
 * does it may have to wait for its turn meanwhile, and yielding gives it none where the waiting
 * thread has a higher priority. */
enum { SETTLE_YIELDS = 100, SETTLE_SLEEP_NANO = 50000 };
static const uint64_t SETTLE_NANO = NANO_PER_SECOND;
/* Of the program's, on the stack while the signal changes hands. A standard signal is pending once
 * for the thread and once for the process; timers of the program's add one each. */
enum { MOST_PENDING = 8 };

/* --- a sample ---
 *
 * The kernel delivers CPU timers on its scheduler tick, late and never early, so a signal is not
 * worth one period: the handler reads the thread's CPU clock and records all time since the
 * thread's last recorded sample. Totals therefore equal the clock's whatever the tick, and a sample
 * that had to be given up loses its stack but not its time. */

static struct stack_range signal_stack_of(const ucontext_t *context) {
    const struct stack_range stack = signal_stack_range(&context->uc_stack);
    return stack.high ? stack : (struct stack_range){0, 1}; /* known to be none */
}

/* Where handlers cost more than a quarter of the period, the period is doubled, and halved again
 * when they have become cheap: the program goes on, with fewer samples of more worth. */
static void watch_cost(struct thread_state *thread, uint64_t start) {
    const uint64_t cost = thread_cpu_nano() - start;
    const uint64_t period = thread->period_nano;
    if (cost > period / COST_SHARE) {
        thread->period_nano = period * 2;
        atomic_fetch_add_explicit(&sampler.timers.slowed_down, 1, memory_order_relaxed);
    } else if (period > sampler.period_nano && cost < period / COST_SHARE_TO_RECOVER)
        thread->period_nano = period / 2;
    if (thread->period_nano != period)
        cpu_timers_set_period(thread);
}

static bool record_where(struct thread_state *thread, const uint64_t registers[REGISTER_COUNT],
                         const ucontext_t *context, struct sample *sample) {
    enum unwind_end end;
    if (is_own_time(registers[REGISTER_PC]))
        return record_own_time(sampler.recorder, thread, sample);
    return record_stack(sampler.recorder, thread, registers, signal_stack_of(context), sample,
                        &end);
}

static void take_sample(struct thread_state *thread, const ucontext_t *context) {
    const uint64_t now = thread_cpu_nano();
    if (now <= thread->last_cpu_nano)
        return;
    uint64_t registers[REGISTER_COUNT];
    registers_from_context(registers, context);
    struct sample sample = {
        .kind = SAMPLE_CPU,
        .values = {[MEASURED_NANO] = (double)(int64_t)(now - thread->last_cpu_nano)}};
    if (record_where(thread, registers, context, &sample))
        thread->last_cpu_nano = now;
    if (++thread->samples % COST_EVERY == 0) /* not the first: it is dear, and comes once */
        watch_cost(thread, now);
}

/* A forked child has no helper until it shows that it lives: have its next malloc ask for one. An
 * ask that has not been answered may have been overwritten by the malloc that it came into. */
static void ask_for_helper(struct thread_state *thread) {
    if (thread->asked || atomic_load_explicit(sampler.want_helper, memory_order_relaxed))
        thread_ask(thread);
}

static void count_overrun(struct thread_state *thread, const siginfo_t *info) {
    if (info->si_code == SI_TIMER && info->si_overrun > 0)
        thread_count_drops(thread, DROP_OVERRUN, (uint64_t)info->si_overrun);
}

bool sampler_on_signal(int number, siginfo_t *info, const void *context) {
    struct thread_state *const thread = own_tls.thread;
    (void)number;
    if (!cpu_timers_sent(&sampler.timers, info))
        return false;
    const int saved = errno;
    if (own_tls.inside)
        thread_count_drop(thread, DROP_BUSY);
    else if (atomic_load_explicit(sampler.armed, memory_order_relaxed)) {
        own_tls.inside++;
        count_overrun(thread, info);
        take_sample(thread, context);
        masked_threads_after_sample(thread, context);
        own_tls.inside--;
        ask_for_helper(thread);
    }
    errno = saved;
    return true;
}

static bool has_timer(const struct thread_state *thread) {
    return (own_tls.is_ours && atomic_load(&sampler.timers.helper)) ||
           (thread && atomic_load_explicit(&thread->timer, memory_order_relaxed) >= 0) ||
           atomic_load_explicit(&sampler.timers.process, memory_order_relaxed) != PROCESS_TIMER_OFF;
}

/* An expiry of ours that a tracer held back (tracer.h). What another process sends has that
 * process's id, and the kernel sends none by itself: a program that sets ITIMER_PROF has had the
 * signal given to it. The time is in the next sample. */
static bool was_held_back(const siginfo_t *info) {
    struct thread_state *const thread = own_tls.thread;
    if ((info->si_code != SI_USER && info->si_code != SI_KERNEL) || !has_timer(thread))
        return false;
    const pid_t tracer = tracer_of_this_thread();
    if (tracer == 0 || (info->si_code == SI_USER && info->si_pid != tracer))
        return false;
    if (thread)
        thread_count_drop(thread, DROP_OVERRUN);
    return true;
}

/* The helper opens the signal for itself. One that is not ours is the process's, and would wait for
 * a thread of the program's: it waits on, and the helper blocks it until its piece of work is done.
 */
static void give_back(int number, siginfo_t *info, ucontext_t *context) {
    sigaddset(&context->uc_sigmask, number);
    pending_signal_put_back(info);
}

void sampler_pass_on(int number, siginfo_t *info, void *context) {
    const int saved = errno;
    const bool ours = cpu_timers_sent(&sampler.timers, info) || was_held_back(info);
    if (ours && own_tls.is_ours)
        memory_guard_on_signal(context);
    else if (!ours && own_tls.is_ours && sampler_uses(number))
        give_back(number, info, context);
    else if (!ours && !libc_signal_pass_on(&sampler.libcs, number, info, context)) {
        const struct sigaction standard = {.sa_handler = SIG_DFL};
        next_sigaction(number, &standard, NULL);
        raise(number); /* pending until this handler returns, then fatal, as it was meant */
    }
    errno = saved;
}

/* --- the signal --- */

/* Whether the calling thread may change the signal: one does at a time. */
static bool begin_move(struct sampler *s) {
    if (atomic_exchange(&s->moving, true))
        return false;
    own_tls.moves_signal = true;
    return true;
}

static void end_move(struct sampler *s) {
    own_tls.moves_signal = false;
    atomic_store(&s->moving, false);
}

void sampler_settle(void) {
    const struct timespec pause = {0, SETTLE_SLEEP_NANO};
    uint64_t start = 0;
    for (int i = 0; atomic_load(&sampler.moving) && !own_tls.moves_signal; i++) {
        if (i < SETTLE_YIELDS) {
            sched_yield();
            continue;
        }
        if (start && monotonic_nano() - start > SETTLE_NANO)
            return;
        start = start ? start : monotonic_nano();
        bare_syscall(SYS_nanosleep, (long)(uintptr_t)&pause, 0, 0, 0, 0, 0);
    }
}

bool sampler_uses(int number) {
    return number != 0 && number == atomic_load(&sampler.timers.signal);
}

/* What was read while somebody began to change it does not count. */
bool sampler_uses_settled(int number) {
    const _Atomic bool *const moving = &sampler.moving;
    bool uses;
    sampler_settle();
    uses = sampler_uses(number);
    if (!uses && atomic_load(moving)) {
        sampler_settle();
        uses = sampler_uses(number);
    }
    return uses;
}

struct sigaction sampler_action_seen(const struct sigaction *action) {
    return action->sa_sigaction == signal_entry ? sampler.believed : *action;
}

static bool is_free(int number) {
    struct sigaction present;
    return next_sigaction(number, NULL, &present) == 0 && !(present.sa_flags & SA_SIGINFO) &&
           present.sa_handler == SIG_DFL;
}

/* From above: programs that use real-time signals count from SIGRTMIN. The last ones are left to
 * debuggers and valgrind. 0: none. */
static int free_real_time_signal(int except) {
    for (int number = SIGRTMAX - 3; number >= SIGRTMIN; number--)
        if (number != except && is_free(number))
            return number;
    return 0;
}

static bool install(int number, bool in_place) {
    struct sigaction action = {.sa_sigaction = signal_entry,
                               .sa_flags = SA_RESTART | SA_SIGINFO | (in_place ? 0 : SA_ONSTACK)};
    /* Nothing else may run on the slot's stack, which has no room for a second signal frame: by
     * hand, because sigfillset() leaves out what libc interrupts threads by (setuid,
     * pthread_cancel). */
    memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
    return next_sigaction(number, &action, NULL) == 0;
}

/* 0: none is free. */
static int choose_signal(void) {
    struct sampler *const s = &sampler;
    const int wanted = sampler.wanted;
    const int number = is_free(wanted) ? wanted : free_real_time_signal(0);
    if (!number || !install(number, false))
        return 0;
    s->timers.period_nano = sampler.period_nano;
    s->timers.mark = s;
    s->timers.deadly = cpu_timers_are_deadly();
    atomic_store(&s->timers.signal, number);
    cpu_timers_reserve(&s->timers);
    return number;
}

void sampler_prepare(const struct config *config, const struct log *log,
                     const struct recorder *recorder, const _Atomic bool *armed,
                     _Atomic(void (*)(bool calm)) const *want_helper) {
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

/* Once: what has no signal then gets none. */
static void install_for_helper(void) {
    struct sampler *const s = &sampler;
    if (sampler.on || s->helper_asked || !begin_move(s))
        return;
    s->helper_asked = true;
    s->timers.helper_only = true;
    (void)choose_signal();
    end_move(s);
}

/* A tracer that steps over breakpoints may lose its place where the signal comes to the helper
 * (ltrace: the program ends with SIGILL). */
static bool is_traced(void) {
    struct sampler *const s = &sampler;
    if (!s->tracer_looked_for)
        s->traced = tracer_of_this_thread() != 0;
    s->tracer_looked_for = true;
    return s->traced;
}

bool sampler_watch_helper(void) {
    if (is_traced())
        return false;
    install_for_helper();
    return cpu_timers_watch_helper(&sampler.timers);
}

static void move(void) {
    struct sampler *const s = &sampler;
    int number = free_real_time_signal(atomic_load(&s->timers.signal));
    if (number && !install(number, atomic_load(&s->in_place)))
        number = 0;
    (void)cpu_timers_move(&s->timers, sampler.recorder->threads, number);
}

/* --- what is pending when the signal is given up --- */

/* What ran before the timers were moved, and may have left an expiry pending. */
struct timers_before {
    bool interval; /* ITIMER_PROF was ours */
    bool helper;   /* the helper had a timer; it may have opened the signal */
};

static struct timers_before timers_now(const struct sampler *s) {
    return (struct timers_before){
        .interval = atomic_load(&s->timers.process) == PROCESS_TIMER_ITIMER,
        .helper = atomic_load(&s->timers.helper) != 0,
    };
}

static bool is_expiry_of_ours(const siginfo_t *info, struct timers_before before) {
    return cpu_timers_sent(&sampler.timers, info) ||
           (before.interval && info->si_code == SI_KERNEL) || was_held_back(info);
}

/* Takes all that is pending for the calling thread and the process, as far as there is room for
 * what is the program's. Returns how many of these there are. */
static unsigned take_pending(int number, struct timers_before before,
                             siginfo_t programs[static MOST_PENDING]) {
    unsigned count = 0;
    while (!atomic_load(&sampler.pending_stay) && count < MOST_PENDING &&
           pending_signal_take(number, &programs[count]))
        count += !is_expiry_of_ours(&programs[count], before);
    return count;
}

static void put_back(siginfo_t programs[static MOST_PENDING], unsigned count) {
    for (unsigned i = 0; i < count; i++)
        pending_signal_put_back(&programs[i]);
}

void sampler_drop_expiries(void) {
    const int number = atomic_load(&sampler.timers.signal);
    siginfo_t programs[MOST_PENDING];
    if (number)
        put_back(programs, take_pending(number, timers_now(&sampler), programs));
}

/* Whether an expiry of ours may be pending where it cannot be taken: for another thread. */
static bool may_be_pending_elsewhere(const struct sampler *s, struct timers_before before) {
    if (atomic_load(&s->pending_stay) || before.helper)
        return true;
    for (uint32_t i = 0;
         !s->timers.helper_only && i < thread_table_count(sampler.recorder->threads); i++) {
        const struct thread_state *const thread = thread_table_at(sampler.recorder->threads, i);
        if (thread && thread != own_tls.thread && atomic_load(&thread->tid))
            return true;
    }
    return false;
}

/* The signal gets the action that the program believes in, and none of ours reaches it. Ignoring a
 * signal discards it wherever it is pending, the program's too, if it was sent to another thread
 * that blocks it. */
static void put_action_back(int number, struct timers_before before) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    siginfo_t programs[MOST_PENDING];
    const int saved = errno;
    const unsigned count = take_pending(number, before, programs);
    if (may_be_pending_elsewhere(&sampler, before))
        next_sigaction(number, &ignore, NULL);
    next_sigaction(number, &sampler.believed, NULL);
    put_back(programs, count);
    errno = saved;
}

static void give_away(int old) {
    const struct timers_before before = timers_now(&sampler);
    move();
    put_action_back(old, before);
    memset(&sampler.believed, 0, sizeof sampler.believed);
}

bool sampler_give_signal_away(void) {
    struct sampler *const s = &sampler;
    if (!begin_move(s))
        return false;
    const int old = atomic_load(&s->timers.signal);
    if (old) {
        give_away(old);
        atomic_fetch_add(&s->taken, 1);
    }
    end_move(s);
    return true;
}

void sampler_choose_unnamed_signal(void) {
    struct sampler *const s = &sampler;
    if (!begin_move(s))
        return;
    const int old = atomic_load(&s->timers.signal);
    if (old && old < SIGRTMIN && free_real_time_signal(old))
        give_away(old);
    end_move(s);
}

void sampler_check_signal(void) {
    struct sampler *const s = &sampler;
    struct sigaction present;
    const int number = atomic_load(&s->timers.signal);
    if (!number || next_sigaction(number, NULL, &present) != 0 ||
        present.sa_sigaction == signal_entry || !begin_move(s))
        return;
    if (atomic_load(&s->timers.signal) == number) {
        move();
        atomic_fetch_add(&s->taken, 1);
    }
    end_move(s);
}

void sampler_after_fork(void) {
    end_move(&sampler);
    cpu_timers_reserve(&sampler.timers);
}

void sampler_stop(void) {
    struct sampler *const s = &sampler;
    sampler_settle();
    const bool mine = begin_move(s);
    const int number = atomic_load(&s->timers.signal);
    const struct timers_before before = timers_now(s);
    /* while a timer goes on the handler stays: without it the signal would end the process */
    if (cpu_timers_move(&s->timers, sampler.recorder->threads, 0) && number)
        put_action_back(number, before);
    if (mine)
        end_move(s);
}

void sampler_leave_pending(void) {
    atomic_store(&sampler.pending_stay, true);
}

/* --- telling --- */

static void tell_taken(const struct sampler *s) {
    const int number = atomic_load(&s->timers.signal);
    if (number)
        log_debug(sampler.log,
                  "the program handles the profiling signal itself; CPU time is sampled "
                  "by signal %d from now on",
                  number);
    else
        log_debug(sampler.log, "the program handles every signal that could be used for sampling; "
                               "CPU time is accounted for without stacks");
}

static void tell_refused(const struct sampler *s) {
    if (s->timers.deadly) {
        log_debug(sampler.log,
                  "RLIMIT_RTTIME is 0: the kernel would end the program for a CPU timer; "
                  "its CPU time is accounted for without stacks");
        return;
    }
    const bool process = atomic_load(&s->timers.process) != PROCESS_TIMER_OFF;
    log_debug(sampler.log, "the kernel refused a CPU timer for %u threads so far; %s",
              atomic_load(&s->timers.refused),
              process ? "one timer of the whole process samples them"
                      : "their CPU time is accounted for without stacks");
}

/* The kernel looks at CPU timers on its tick. Where it switches threads between ticks (a busy
 * machine, HRTICK), the tick can fall into the rivals' turns for seconds. At most one signal is
 * possible in a tick, and CLOCK_MONOTONIC_COARSE's resolution is the tick. */
static void tell_late(struct sampler *s, uint64_t merged) {
    const uint64_t period = s->timers.period_nano;
    struct timespec tick = {0, 0};
    if (s->told_late || !period)
        return;
    const uint64_t used = clock_nano(CLOCK_PROCESS_CPUTIME_ID);
    if (used < (uint64_t)LATE_AFTER_SECONDS * NANO_PER_SECOND ||
        clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0)
        return;
    const uint64_t expiries = used / period;
    const uint64_t apart = period > (uint64_t)tick.tv_nsec ? period : (uint64_t)tick.tv_nsec;
    const uint64_t came = expiries > merged ? expiries - merged : 0;
    if (came * apart >= used / LATE_SHARE)
        return;
    s->told_late = true;
    log_debug(
        sampler.log,
        "%llu of %llu expiries of CPU timers came late, as one signal with others: the "
        "machine is busy, or threads block every signal; CPU time is right in sum, its stacks "
        "are few",
        (unsigned long long)merged, (unsigned long long)expiries);
}

void sampler_tell(uint64_t merged) {
    struct sampler *const s = &sampler;
    if (sampler.on && atomic_load(&s->taken) && !s->told_taken) {
        s->told_taken = true;
        tell_taken(s);
    }
    if (atomic_load(&s->timers.refused) && !s->told_refused) {
        s->told_refused = true;
        tell_refused(s);
    }
    if (atomic_load(&s->timers.slowed_down) && !s->told_slow) {
        s->told_slow = true;
        log_debug(sampler.log, "samples cost more than a quarter of their period; the rate of the "
                               "threads concerned is lowered");
    }
    tell_late(s, merged);
}

/* --- threads --- */

void sampler_start_thread(struct thread_state *thread) {
    masked_threads_begin(thread);
    if (!thread->signals_given_up)
        cpu_timers_start(&sampler.timers, thread);
}

void sampler_stop_thread(struct thread_state *thread) {
    cpu_timers_stop(thread);
}

/* --- alternate signal stacks --- */

static bool fits_on(size_t size) {
    size_t needed = atomic_load(&sampler.frame_bytes);
    if (!needed) { /* asking the processor is slow in a virtual machine */
        needed = signal_frame_bytes();
        atomic_store(&sampler.frame_bytes, needed);
    }
    return size >= needed;
}

/* true: no alternate stack is used by our signal any more. */
static bool stay_in_place(void) {
    struct sampler *const s = &sampler;
    struct sigaction present;
    sampler_settle();
    if (atomic_load(&s->in_place) || !begin_move(s))
        return atomic_load(&s->in_place);
    const int number = atomic_load(&s->timers.signal);
    const bool ours = number && next_sigaction(number, NULL, &present) == 0 &&
                      present.sa_sigaction == signal_entry;
    if (!ours || install(number, true)) {
        atomic_store(&s->in_place, true);
        libc_signal_place(&s->libcs, true);
    }
    end_move(s);
    return atomic_load(&s->in_place);
}

enum signal_stack_use sampler_judge_signal_stack(struct thread_state *thread,
                                                 struct stack_range stack) {
    const struct signal_stack_company company =
        signal_stacks_note(sampler.recorder->threads, thread, stack);
    if (!stack.high)
        return SIGNAL_STACK_FINE;
    if (!fits_on(stack.high - stack.low))
        return SIGNAL_STACK_SMALL;
    if (atomic_load(&thread->by_libc_signal) && libc_signal_is_in_place(&sampler.libcs))
        return SIGNAL_STACK_SHARED;
    if (company.shared && !company.others)
        return stay_in_place() ? SIGNAL_STACK_FINE : SIGNAL_STACK_SHARED;
    return company.shared == atomic_load(&sampler.in_place) ? SIGNAL_STACK_FINE
                                                            : SIGNAL_STACK_SHARED;
}

enum signal_stack_use sampler_judge_present_signal_stack(struct thread_state *thread) {
    stack_t stack;
    const int saved = errno;
    const bool told = syscall(SYS_sigaltstack, NULL, &stack) == 0;
    errno = saved;
    return told ? sampler_judge_signal_stack(thread, signal_stack_range(&stack))
                : SIGNAL_STACK_FINE;
}

void sampler_count_signal_stack(struct thread_state *thread, enum signal_stack_use use) {
    if (use != SIGNAL_STACK_FINE)
        thread_count_drop(thread, use == SIGNAL_STACK_SMALL ? DROP_SMALL_SIGNAL_STACK
                                                            : DROP_SHARED_SIGNAL_STACK);
}

void sampler_avoid_signal_stack(struct thread_state *thread, enum signal_stack_use use) {
    const bool avoid = use != SIGNAL_STACK_FINE;
    if (avoid == thread->signals_given_up)
        return;
    thread->signals_given_up = avoid;
    sampler_count_signal_stack(thread, use);
    if (avoid)
        cpu_timers_pause(thread);
    else
        cpu_timers_start(&sampler.timers, thread);
}
