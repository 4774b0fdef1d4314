/* Sets up the sampler of a process with two threads, against a kernel of our own: actions of
 * signals, and timers. */
#ifndef OTELPROF_TEST_SAMPLER_FIXTURE_H
#define OTELPROF_TEST_SAMPLER_FIXTURE_H

#include "arch_context.h"
#include "cpu/sampler.h"
#include "fake_syscall.h"
#include "kernel/profiler_time.h"
#include "recorder_fixture.h"
#include "symbols/next.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { DEPTH = 32, TIMERS = 32 };

/* --- the kernel: actions of signals, and timers --- */

static struct {
    struct sigaction actions[65];
    struct {
        bool exists;
        int signal;
    } timers[TIMERS];
    int created;
    bool keeps_timers; /* a sandbox: no call deletes or stops a timer */
    long ended;        /* the id of a thread that has ended for the kernel; 0: no such thread */
    /* NULL, or what another thread does at each call */
    void (*meanwhile)(long number, const long a[6]);
} kernel;

static int fake_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    struct sigaction *const present = &kernel.actions[number];
    const struct sigaction before = *present;
    if (action)
        *present = *action;
    if (old)
        *old = before;
    return 0;
}

/* Replaces the code that finds the C library's functions. */
static const struct next_calls calls = {.sigaction = fake_sigaction};

const struct next_calls *next_calls(void) {
    return &calls;
}

const struct next_calls *next_library_calls(void) {
    return &calls;
}

static long create(const struct sigevent *event, int *id) {
    *id = kernel.created++;
    assert_true(*id < TIMERS);
    kernel.timers[*id].exists = true;
    kernel.timers[*id].signal = event->sigev_signo;
    return 0;
}

static long change(int id, bool exists) {
    if (kernel.keeps_timers)
        return refuse_syscall(EPERM);
    kernel.timers[id].exists = exists;
    return 0;
}

static long fake_syscall(long number, const long a[6]) {
    if (kernel.meanwhile)
        kernel.meanwhile(number, a);
    switch (number) {
    case SYS_tgkill:
        return a[1] == kernel.ended ? refuse_syscall(ESRCH) : real_syscall(number, a);
    case SYS_timer_create:
        return create((const struct sigevent *)a[1], (int *)a[2]);
    case SYS_timer_settime:
        return change((int)a[0], true);
    case SYS_timer_delete:
        return change((int)a[0], false);
    case SYS_setitimer:
        return refuse_syscall(EPERM);
    default:
        return real_syscall(number, a);
    }
}

static int timers_of(int signal) {
    int count = 0;
    for (int id = 0; id < TIMERS; id++)
        count += kernel.timers[id].exists && kernel.timers[id].signal == signal;
    return count;
}

/* --- a process of two threads --- */

static const struct config config = {
    .signal = SIGPROF, .cpu_frequency = 100, .wait_frequency = 49, .lock_interval = 10000};
static const struct log logged;
static _Atomic bool armed;
static _Atomic(void (*)(bool calm)) want_helper;
static struct thread_state *thread;
static struct thread_state *other;

static int begin(void **state) {
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    memset(&sampler, 0, sizeof sampler);
    thread_table_reset(&threads);
    thread = begin_thread((uint32_t)gettid());
    other = begin_thread((uint32_t)gettid());
    assert_true(thread && other);
    profiler_tls.thread = thread;
    armed = true;
    want_helper = NULL;
    sampler_prepare(&config, &logged, &recorder, &armed, &want_helper);
    return 0;
}

/* Counts the timers of the two threads, and the process's timer, which is in reserve. */
enum { ALL_TIMERS = 3 };

static int begin_sampled(void **state) {
    begin(state);
    assert_true(sampler_install());
    sampler_start_thread(thread);
    sampler_start_thread(other);
    assert_int_equal(timers_of(SIGPROF), ALL_TIMERS);
    return 0;
}

/* --- the handler --- */

static struct {
    int samples;
    unsigned flags;
    double nano;
} seen;

static void see(void *arg, const struct sample *sample) {
    (void)arg;
    seen.samples++;
    seen.flags |= sample->flags;
    seen.nano += sample->values[MEASURED_NANO];
}

static void here(ucontext_t *context) {
    getcontext(context);
}

/* Is marked as used because the linker defines a section's bounds only if a function is in the
 * section. The empty asm keeps the compiler from making the call a jump: getcontext() must return
 * to this function. */
__attribute__((used)) PROFILER_TIME static void in_work_of_ours(ucontext_t *context) {
    getcontext(context);
    __asm__ volatile("" : : : "memory");
}

static bool deliver_at(void (*where)(ucontext_t *context), int code, const void *mark) {
    siginfo_t info = {.si_signo = SIGPROF, .si_code = code};
    ucontext_t context;
    info.si_value.sival_ptr = (void *)(uintptr_t)mark;
    where(&context);
    const bool ours = sampler_on_signal(SIGPROF, &info, &context);
    memset(&seen, 0, sizeof seen);
    thread_table_harvest(&threads, see, NULL);
    return ours;
}

static bool deliver(int code, const void *mark) {
    return deliver_at(here, code, mark);
}

/* Runs once, before the first test. */
static int start(void **state) {
    (void)state;
    return recorder_is_ready(DEPTH) ? 0 : -1;
}

#endif
