#include "sampler.h"

#include "arch_context.h"
#include "arch_signal_frame.h"
#include "clock.h"
#include "helper_heap/memory_guard.h"
#include "kernel/first_page.h"
#include "kernel/profiler_time.h"
#include "kernel/signals_blocked.h"
#include "masked_threads.h"
#include "pending_signal.h"
#include "program_stack.h"
#include "record/charged_time.h"
#include "record/countdown.h"
#include "record/own_work.h"
#include "sampler_parts.h"
#include "symbols/next.h"
#include "tracer.h"

#include <errno.h>
#include <string.h>

IN_FIRST_PAGE struct sampler sampler;

/* Says how often a sample measures its own cost (one in COST_EVERY), the share of the period that
 * it may cost (1 / COST_SHARE), and the share below which a period that was doubled is halved again
 * (1 / COST_SHARE_TO_RECOVER). */
enum { COST_EVERY = 16, COST_SHARE = 4, COST_SHARE_TO_RECOVER = 32 };

/* --- a sample ---
 *
 * The kernel delivers CPU timers on its scheduler tick, late and never early. So a signal does not
 * stand for exactly one period: the handler reads the thread's CPU clock and records all time since
 * the thread's last recorded sample. Totals therefore equal the clock's at any tick, and if a
 * sample is given up, the next one has its time. */

static struct stack_range signal_stack_of(const ucontext_t *context, uintptr_t sp) {
    const struct stack_range stack = profiler_signal_stacks_range(&context->uc_stack, sp);
    return stack.high ? stack : (struct stack_range){0, 1}; /* the thread has no alternate stack */
}

/* Doubles the period where handlers cost more than a quarter of it, and halves it again when they
 * have become cheap: the program then has fewer samples, each of which represents more time. */
static void watch_cost(struct thread_state *thread, uint64_t start) {
    const uint64_t cost = thread_cpu_nano() - start;
    const uint64_t period = thread->period_nano;
    sampling_measured(&thread->costs[WORK_CPU_SAMPLE], cost);
    if (cost > period / COST_SHARE) {
        thread->period_nano = period * 2;
        atomic_fetch_add_explicit(&sampler.timers.slowed_down, 1, memory_order_relaxed);
    } else if (period > settings_cpu_period_nano(sampler.recorder->settings) &&
               cost < period / COST_SHARE_TO_RECOVER)
        thread->period_nano = period / 2;
    if (thread->period_nano != period)
        cpu_timers_set_period(thread);
}

static bool record_where(struct thread_state *thread, const uint64_t registers[REGISTER_COUNT],
                         const ucontext_t *context, struct sample *sample) {
    enum unwind_end end;
    if (is_profiler_time(registers[REGISTER_PC]))
        return record_profiler_time(sampler.recorder, thread, sample);
    return record_stack(sampler.recorder, thread, registers,
                        signal_stack_of(context, registers[REGISTER_SP]), sample, &end);
}

static void take_sample(struct thread_state *thread, const ucontext_t *context) {
    const uint64_t used = thread_cpu_nano();
    const uint64_t now = charged_nano(thread, used);
    if (now <= thread->last_cpu_nano)
        return;
    uint64_t registers[REGISTER_COUNT];
    registers_from_context(registers, context);
    struct sample sample = {
        .kind = SAMPLE_CPU,
        .values = {[MEASURED_NANO] = (double)(int64_t)(now - thread->last_cpu_nano)}};
    if (record_where(thread, registers, context, &sample))
        thread->last_cpu_nano = now;
    if (++thread->samples % COST_EVERY ==
        0) /* the first sample is skipped: it is expensive, and happens once */
        watch_cost(thread, used);
}

/* Sets the events for the thread's next malloc. A forked child has no helper until it shows that it
 * runs on: then the malloc requests a helper. Sets pending events again, because the malloc that
 * the signal interrupted may have overwritten the countdown. */
static void set_events(struct thread_state *thread) {
    uint32_t events = atomic_load_explicit(&thread->events, memory_order_relaxed);
    if (atomic_load_explicit(sampler.want_helper, memory_order_relaxed))
        events |= COUNTDOWN_HELPER;
    if (thread->alloc_settings != settings_version(sampler.recorder->settings))
        events |= COUNTDOWN_SETTINGS;
    if (events)
        countdown_ask(thread, events);
}

void sampler_follow_period(struct thread_state *thread) {
    const uint32_t version = settings_version(sampler.recorder->settings);
    const uint64_t period = settings_cpu_period_nano(sampler.recorder->settings);
    if (thread->cpu_settings == version)
        return;
    thread->cpu_settings = version;
    if (thread->period_nano == period)
        return;
    thread->period_nano = period;
    cpu_timers_set_period(thread);
}

static void count_overrun(struct thread_state *thread, const siginfo_t *info) {
    if (info->si_code == SI_TIMER && info->si_overrun > 0)
        thread_count_drops(thread, DROP_OVERRUN, (uint64_t)info->si_overrun);
}

/* Lets other threads take pending signals of the process: when the handler returns, the kernel
 * restores the mask of the interrupted code, which may block these signals again. A thread that is
 * no longer profiled makes no system call here. */
static void leave_signals_to_others(const ucontext_t *context) {
    signal_mask before;
    memcpy(&before, &context->uc_sigmask, sizeof before);
    if (profiler_tls.inside < OWN_WORK)
        signals_leave_to_others(before);
}

bool sampler_on_signal(int number, siginfo_t *info, void *context) {
    struct thread_state *const thread = profiler_tls.thread;
    (void)number;
    if (!cpu_timers_sent(&sampler.timers, info))
        return false;
    const int saved = errno;
    program_stack_heal(context);
    sampling_add(&thread->costs[WORK_CPU_SAMPLE].done, 1);
    if (own_work_goes_on(thread, arch_interrupted_sp(context)))
        thread_count_drop(thread, DROP_BUSY);
    else if (atomic_load_explicit(sampler.armed, memory_order_relaxed) &&
             !atomic_load_explicit(&sampler.timers.off, memory_order_relaxed)) {
        own_work_begin_unjudged(thread);
        count_overrun(thread, info);
        if (thread_begin_sample(sampler.recorder->threads, thread)) {
            take_sample(thread, context);
            masked_threads_after_sample(thread, context);
            sampler_follow_period(thread);
        }
        thread_end_sample(thread);
        own_work_end();
        set_events(thread);
    }
    leave_signals_to_others(context);
    errno = saved;
    return true;
}

/* Returns whether the signal is an expiry that a tracer held back (tracer.h). Only a tracer can
 * make such a signal: one from another process has that process's id, and the kernel sends SIGPROF
 * only for ITIMER_PROF, whose user has been given the signal. The thread's timer is not checked,
 * because the tracer may have held the signal since before the timer was deleted. */
static bool was_held_back(const siginfo_t *info) {
    struct thread_state *const thread = profiler_tls.thread;
    if (info->si_code != SI_USER && info->si_code != SI_KERNEL)
        return false;
    const pid_t tracer = tracer_of_this_thread();
    if (tracer == 0 || (info->si_code == SI_USER && info->si_pid != tracer))
        return false;
    if (thread)
        thread_count_drop(thread, DROP_OVERRUN);
    return true;
}

bool sampler_sent(const siginfo_t *info) {
    return cpu_timers_sent(&sampler.timers, info) || was_held_back(info);
}

/* Puts back a signal that is not ours. If the helper has taken a signal of the program's, which it
 * does because it unblocks ours, the signal must become pending for the process again. The helper
 * then blocks it until its piece of work is done. */
static void signal_give_back(int number, siginfo_t *info, ucontext_t *context) {
    struct pending_signal processes = {.info = *info};
    sigaddset(&context->uc_sigmask, number);
    pending_signal_put_back(&processes);
}

void sampler_pass_on(int number, siginfo_t *info, void *context) {
    const int saved = errno;
    const bool is_expiry = sampler_sent(info);
    if (is_expiry && profiler_tls.is_profiler_thread)
        memory_guard_on_signal(context);
    else if (!is_expiry && profiler_tls.is_profiler_thread && sampler_uses(number))
        signal_give_back(number, info, context);
    else if (!is_expiry && !libc_signal_pass_on(&sampler.libcs, number, info, context)) {
        const struct sigaction standard = {.sa_handler = SIG_DFL};
        next_sigaction(number, &standard, NULL);
        /* pending until this handler returns; then it ends the process, as it should */
        raise(number);
    }
    errno = saved;
}

/* --- threads --- */

bool sampler_is_on(void) {
    return sampler.on && !atomic_load(&sampler.timers.off);
}

/* Follows Dekker: the thread that turns CPU time on or off stores that and then scans the threads;
 * a new thread publishes itself and then loads the setting. So at least one of the two sees the
 * other. While CPU time is off, the thread is charged with nothing but what it had used before. */
static void begin_charge(struct thread_state *thread) {
    /* pairs with the store of `off`, after which the threads of the table are scanned */
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load(&sampler.timers.off))
        return;
    charge_pause(thread, thread->last_cpu_nano);
    if (!atomic_load(&sampler.timers.off))
        charge_resume(thread, thread_cpu_nano());
}

/* Sets a signal stack of the profiler's for the thread. The thread of a forked child keeps the
 * parent thread's stack: it may be running on that stack, or in a handler whose return sets it
 * again. */
static bool hide_signal_stack(const struct thread_state *thread) {
    if (profiler_tls.signal_stack) {
        profiler_signal_stacks_exchange(thread->index, profiler_tls.signal_stack);
        return true;
    }
    struct profiler_signal_stack *const stack = profiler_signal_stacks_take(thread->index);
    const bool is_first = (pid_t)atomic_load(&thread->tid) == sampler.pid;
    return stack && program_stack_hide(stack, is_first);
}

/* Makes the first sample check the settings, which may be newer than the period that the thread
 * begins with. */
void sampler_start_thread(struct thread_state *thread) {
    if (sampler.on && !hide_signal_stack(thread)) {
        thread->signals_given_up = true;
        thread_count_drop(thread, DROP_NO_SIGNAL_STACK);
    }
    thread->cpu_settings = settings_version(sampler.recorder->settings) - 1;
    begin_charge(thread);
    masked_threads_begin(thread);
    if (thread->signals_given_up)
        cpu_timers_pause(thread);
    else
        cpu_timers_start(&sampler.timers, thread);
}

void sampler_stop_thread(struct thread_state *thread) {
    cpu_timers_stop(thread);
}

/* --- settings --- */

static void change_charge(bool on) {
    for (uint32_t i = 0; i < thread_table_count(sampler.recorder->threads); i++) {
        struct thread_state *const thread = thread_table_at(sampler.recorder->threads, i);
        const uint64_t before = charge_now(thread);
        const uint32_t tid = atomic_load(&thread->tid);
        const uint64_t used = tid ? clock_nano(cpu_clock_of(tid)) : 0;
        if (used)
            charge_change(thread, before, used, on);
    }
}

void sampler_follow_settings(void) {
    const bool on = settings_types(sampler.recorder->settings) & PROFILE_CPU;
    const uint64_t period = settings_cpu_period_nano(sampler.recorder->settings);
    if (!sampler.on)
        return;
    atomic_store(&sampler.timers.period_nano, period);
    if (atomic_exchange(&sampler.timers.off, !on) == !on)
        return;
    change_charge(on);
    if (on)
        cpu_timers_arm(&sampler.timers, sampler.recorder->threads);
    else
        cpu_timers_disarm(&sampler.timers, sampler.recorder->threads);
}
