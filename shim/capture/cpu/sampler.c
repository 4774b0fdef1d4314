#include "sampler.h"

#include "arch_context.h"
#include "clock.h"
#include "helper_heap/memory_guard.h"
#include "masked_threads.h"
#include "pending_signal.h"
#include "record/own_time.h"
#include "sampler_parts.h"
#include "signal_stacks.h"
#include "symbols/next.h"
#include "tracer.h"

#include <errno.h>

struct sampler sampler;

/* A sample's own cost is looked at in one of this many, and may be this share of the period. */
enum { COST_EVERY = 16, COST_SHARE = 4, COST_SHARE_TO_RECOVER = 32 };

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

bool sampler_was_held_back(const siginfo_t *info) {
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
    struct pending_signal processes = {.info = *info};
    sigaddset(&context->uc_sigmask, number);
    pending_signal_put_back(&processes);
}

void sampler_pass_on(int number, siginfo_t *info, void *context) {
    const int saved = errno;
    const bool ours = cpu_timers_sent(&sampler.timers, info) || sampler_was_held_back(info);
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

/* --- threads --- */

void sampler_start_thread(struct thread_state *thread) {
    masked_threads_begin(thread);
    if (!thread->signals_given_up)
        cpu_timers_start(&sampler.timers, thread);
}

void sampler_stop_thread(struct thread_state *thread) {
    cpu_timers_stop(thread);
}
