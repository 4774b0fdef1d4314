/* CPU time: one timer per thread on the thread's own CPU clock, and the signal handler.
 *
 * The kernel delivers CPU timers on its scheduler tick, late and never early, so a signal is not
 * worth one period: the handler reads the thread's CPU clock and records all time since the
 * thread's last recorded sample. Totals therefore equal the clock's whatever the tick, and a sample
 * that had to be given up loses its stack but not its time.
 */
#include "capture.h"

#include "arch/x86_64.h"
#include "clock.h"
#include "next.h"
#include "poisson.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --- the handler --- */

static struct stack_range signal_stack_of(const ucontext_t *context) {
    const stack_t *const stack = &context->uc_stack;
    if (stack->ss_flags & SS_DISABLE)
        return (struct stack_range){0, 1}; /* known to be none */
    return (struct stack_range){(uintptr_t)stack->ss_sp, (uintptr_t)stack->ss_sp + stack->ss_size};
}

static void take_sample(struct thread_state *thread, const ucontext_t *context) {
    const uint64_t now = thread_cpu_nano();
    if (now <= thread->last_cpu_nano)
        return;
    uint64_t registers[REGISTER_COUNT];
    registers_from_context(registers, context);
    struct sample sample = {.kind = SAMPLE_CPU, .cpu_ns = now - thread->last_cpu_nano};
    enum unwind_end end;
    bool crossed_signal;
    if (record_stack(thread, registers, signal_stack_of(context), &sample, &end, &crossed_signal))
        thread->last_cpu_nano = now;
}

/* A forked child has no helper until it shows that it lives: have its next malloc ask for one. */
static void ask_for_helper(void) {
    if (atomic_load_explicit(&capture.want_helper, memory_order_relaxed))
        own_tls.alloc_left = 0;
}

/* A SIGPROF that is not from our timers goes where it would have gone without us. */
static void pass_on(int number, siginfo_t *info, void *context) {
    const struct sigaction *const previous = &capture.previous_sigprof;
    if (previous->sa_flags & SA_SIGINFO)
        previous->sa_sigaction(number, info, context);
    else if (previous->sa_handler == SIG_DFL) {
        const struct sigaction standard = {.sa_handler = SIG_DFL};
        next_sigaction(number, &standard, NULL);
        raise(number); /* pending until this handler returns, then fatal, as it was meant */
    } else if (previous->sa_handler != SIG_IGN)
        previous->sa_handler(number);
}

static void on_sigprof(int number, siginfo_t *info, void *context) {
    const int saved = errno;
    struct thread_state *const thread = own_tls.thread;
    if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &capture)
        pass_on(number, info, context);
    else if (thread && own_tls.inside)
        thread_count_drop(thread, DROP_BUSY);
    else if (thread && atomic_load_explicit(&capture.armed, memory_order_relaxed)) {
        own_tls.inside++;
        take_sample(thread, context);
        own_tls.inside--;
        ask_for_helper();
    }
    errno = saved;
}

bool sampler_install(void) {
    struct sigaction action = {.sa_sigaction = on_sigprof,
                               .sa_flags = SA_RESTART | SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    return next_sigaction(SIGPROF, &action, &capture.previous_sigprof) == 0;
}

/* --- timers --- */

/* The kernel's own calls: libc's wrappers may allocate, and hide the timer's id. */
static bool create_timer(struct thread_state *thread) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    event.sigev_value.sival_ptr = &capture;
    event._sigev_un._tid = (pid_t)atomic_load_explicit(&thread->tid, memory_order_relaxed);
    return syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &thread->timer) == 0;
}

static struct timespec timespec_of(uint64_t nano) {
    return (struct timespec){(time_t)(nano / NANO_PER_SECOND), (long)(nano % NANO_PER_SECOND)};
}

/* The first expiry is uniform within the period, so that short threads are met without bias. */
static void set_timer(struct thread_state *thread) {
    const uint64_t first = 1 + random_next(&thread->random) % capture.cpu_period_nano;
    const struct itimerspec when = {.it_interval = timespec_of(capture.cpu_period_nano),
                                    .it_value = timespec_of(first)};
    syscall(SYS_timer_settime, thread->timer, 0, &when, NULL);
}

static void warn_once_about_timers(void) {
    static _Atomic bool said; /* the one place that can say it is any thread's start */
    if (!atomic_exchange(&said, true))
        log_warn(capture.log,
                 "the kernel refused a CPU timer (errno %d); this thread's CPU time, and that of "
                 "others refused, is not profiled",
                 errno);
}

void sampler_start_thread(struct thread_state *thread) {
    const int saved = errno;
    if (!atomic_load(&capture.cpu_on))
        return;
    if (create_timer(thread)) {
        thread->has_timer = true;
        set_timer(thread);
    } else {
        thread_count_drop(thread, DROP_NO_TIMER);
        warn_once_about_timers();
    }
    if (!atomic_load(&capture.cpu_on)) /* pairs with sampler_stand_down() */
        sampler_stop_thread(thread);
    errno = saved;
}

void sampler_stop_thread(struct thread_state *thread) {
    const int saved = errno;
    if (thread->has_timer)
        syscall(SYS_timer_delete, thread->timer);
    thread->has_timer = false;
    errno = saved;
}

void sampler_stand_down(void) {
    if (!atomic_exchange(&capture.cpu_on, false))
        return;
    for (uint32_t i = 0; i < thread_table_count(&capture.threads); i++) {
        struct thread_state *const thread = thread_table_at(&capture.threads, i);
        if (atomic_load(&thread->tid) && thread->has_timer)
            syscall(SYS_timer_delete, thread->timer);
    }
    /* Ignoring a signal discards it where it is pending: none of ours reaches the application. */
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    next_sigaction(SIGPROF, &ignore, NULL);
    next_sigaction(SIGPROF, &capture.previous_sigprof, NULL);
}
