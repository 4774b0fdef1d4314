/* Takes the profiling signal for itself, in every way that a program has.
 *
 * usage: signal_owner HOW, one of `modes` below. Prints "ok", or the first difference from a run
 * without a profiler; burns CPU in own_work() meanwhile.
 */
#define _GNU_SOURCE
#include "cpu_sample.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_US = 5000, SMALLEST_STACK = 2048, OWN_SIGNALS = 30 };

sighandler_t bsd_signal(int number, sighandler_t handler);

static atomic_int own_hits;   /* signals of its interval timer, and of its own */
static atomic_int stray_hits; /* signals of any other sender */
static atomic_int others;     /* signals of other numbers */

NOIPA static void own_work(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

static void fail(const char *what) {
    printf("%s\n", what);
    fflush(stdout);
    _exit(1);
}

static void on_info(int number, siginfo_t *info, void *context) {
    (void)context;
    if (number != SIGPROF)
        atomic_fetch_add(&others, 1);
    else if (info->si_code == SI_KERNEL || info->si_code == SI_USER || info->si_code == SI_TKILL)
        atomic_fetch_add(&own_hits, 1);
    else
        atomic_fetch_add(&stray_hits, 1);
}

static void on_number(int number) {
    atomic_fetch_add(number == SIGPROF ? &own_hits : &stray_hits, 1);
}

static void start_timer(void) {
    const struct itimerval every = {{0, PERIOD_US}, {0, PERIOD_US}};
    setitimer(ITIMER_PROF, &every, NULL);
}

static void stop_timer(void) {
    const struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &off, NULL);
}

/* Sends SIGPROF again and again, each time after 2 ms of work with a sample, and expects exactly
 * these signals. */
static void send_own_signals(void) {
    for (int i = 0; i < OWN_SIGNALS; i++) {
        own_work(2);
        raise(SIGPROF);
    }
    if (atomic_load(&own_hits) != OWN_SIGNALS) {
        printf("%d of %d: ", atomic_load(&own_hits), OWN_SIGNALS);
        fail("not as many SIGPROF as the program sends");
    }
    if (atomic_load(&stray_hits))
        fail("a SIGPROF that the program did not ask for");
}

/* Expects signals of the interval timer, and then those that it sends itself. */
static void expect_own_signals(void) {
    start_timer();
    while (!atomic_load(&own_hits))
        own_work(2);
    stop_timer();
    atomic_store(&own_hits, 0);
    send_own_signals();
}

/* --- setting a handler --- */

static void with_sigaction(void) {
    struct sigaction action = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction old;
    if (sigaction(SIGPROF, &action, &old) != 0 || old.sa_handler != SIG_DFL)
        fail("the action before was not the default one");
    expect_own_signals();
    if (sigaction(SIGPROF, NULL, &old) != 0 || old.sa_sigaction != on_info)
        fail("the action is not the program's");
}

struct kernel_action {
    union {
        sighandler_t by_number;
        void (*by_info)(int, siginfo_t *, void *);
    } handler;
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static struct kernel_action raw_action(void) {
    struct kernel_action action;
    struct sigaction libc = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR2, &libc, NULL); /* makes libc set its restorer */
    syscall(SYS_rt_sigaction, SIGUSR2, NULL, &action, sizeof action.mask);
    return action;
}

static void with_raw_call(void) {
    const struct kernel_action action = raw_action();
    long result;
    register long size __asm__("r10") = sizeof action.mask;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_rt_sigaction), "D"(SIGPROF), "S"(&action), "d"(NULL), "r"(size)
                     : "rcx", "r11", "memory");
    if (result != 0)
        fail("rt_sigaction");
    siginfo_t expiry;
    while (describe_expiry(&expiry) && expiry.si_signo == SIGPROF)
        own_work(1); /* until the profiler notices: strays do not matter */
    atomic_store(&own_hits, 0);
    atomic_store(&stray_hits, 0);
    expect_own_signals();
}

static void with_number(void) {
    struct kernel_action action = raw_action();
    if (syscall(SYS_rt_sigaction, SIGPROF, &action, NULL, sizeof action.mask) != 0)
        fail("rt_sigaction");
    expect_own_signals();
}

/* Sets the default action by syscall(), on a thread that is being sampled. */
static void default_by_number(void) {
    const struct kernel_action action = {.handler = {SIG_DFL}};
    own_work(10);
    if (syscall(SYS_rt_sigaction, SIGPROF, &action, NULL, sizeof action.mask) != 0)
        fail("rt_sigaction");
    own_work(50);
}

static void expect_default(sighandler_t before) {
    if (before != SIG_DFL)
        fail("the handler before was not the default one");
    expect_own_signals();
}

static void with_signal(void) {
    expect_default(signal(SIGPROF, on_number));
    if (signal(SIGPROF, SIG_DFL) != on_number)
        fail("the handler was not the program's");
}

static void with_bsd_signal(void) {
    expect_default(bsd_signal(SIGPROF, on_number));
}

static void on_number_again(int number) {
    on_number(number);
    sysv_signal(SIGPROF, on_number_again);
}

/* Sends one signal at a time: between two calls of the handler the action is the default one. */
static void with_sysv_signal(void) {
    if (sysv_signal(SIGPROF, on_number_again) != SIG_DFL)
        fail("the handler before was not the default one");
    send_own_signals();
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* programs use it all the same */
static void with_sigset(void) {
    expect_default(sigset(SIGPROF, on_number));
}
#pragma GCC diagnostic pop

static void with_default(void) {
    struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_NODEFER};
    struct sigaction old;
    sigaction(SIGPROF, &action, NULL);
    sigaction(SIGPROF, NULL, &old);
    if (old.sa_handler != SIG_DFL || !(old.sa_flags & SA_NODEFER))
        fail("the action that was set is not the one that is told");
    if (signal(SIGPROF, SIG_DFL) != SIG_DFL)
        fail("the handler is not the default one");
    own_work(60);
}

static void with_ignore(void) {
    signal(SIGPROF, SIG_IGN);
    raise(SIGPROF);
    own_work(60);
    if (getenv("SIGNAL_OWNER_AGAIN"))
        return;
    setenv("SIGNAL_OWNER_AGAIN", "1", 1);
    execl("/proc/self/exe", "signal_owner", "ignored", NULL);
}

static void ignored(void) { /* survives exec */
    struct sigaction old;
    sigaction(SIGPROF, NULL, &old);
    if (old.sa_handler != SIG_IGN)
        fail("an ignored signal is not ignored after exec");
    raise(SIGPROF);
    own_work(60);
}

static void every_signal(void) {
    struct sigaction action = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (int number = 1; number <= SIGRTMAX; number++)
        if (number < SIGSYS || number >= SIGRTMIN)
            sigaction(number, &action, NULL);
    expect_own_signals();
    if (atomic_load(&others))
        fail("a signal that nobody sent");
}

/* --- waiting for signals --- */

static void block_all(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static atomic_int waits; /* how often the thread has come to its next wait */

static void *waiting_thread(void *unused) {
    sigset_t all;
    const struct timespec moment = {0, 20 * NS_PER_MS};
    int number;
    sigfillset(&all);
    block_all();
    own_work(10);
    if (sigtimedwait(&all, NULL, &moment) != -1 || errno != EAGAIN)
        fail("sigtimedwait found a signal that nobody sent");
    own_work(10);
    atomic_store(&waits, 1);
    if (sigwait(&all, &number) != 0 || number != SIGUSR1)
        fail("sigwait did not wait for SIGUSR1");
    own_work(10);
    atomic_store(&waits, 2);
    if (sigwaitinfo(&all, NULL) != SIGUSR2)
        fail("sigwaitinfo did not wait for SIGUSR2");
    return unused;
}

static void work_until_wait(int number) {
    do
        own_work(10);
    while (atomic_load(&waits) < number);
    usleep(20000);
}

static void waiting(void) {
    pthread_t thread;
    block_all();
    pthread_create(&thread, NULL, waiting_thread, NULL);
    work_until_wait(1);
    pthread_kill(thread, SIGUSR1);
    work_until_wait(2);
    pthread_kill(thread, SIGUSR2);
    pthread_join(thread, NULL);
}

static void descriptor(void) {
    sigset_t all;
    struct signalfd_siginfo info;
    sigfillset(&all);
    block_all();
    const int file = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
    own_work(30);
    if (read(file, &info, sizeof info) != -1 || errno != EAGAIN)
        fail("signalfd has a signal that nobody sent");
    kill(getpid(), SIGPROF);
    if (read(file, &info, sizeof info) != sizeof info || info.ssi_signo != SIGPROF)
        fail("signalfd has not the program's own SIGPROF");
    own_work(30);
    if (read(file, &info, sizeof info) != -1)
        fail("signalfd has another signal that nobody sent");
}

static atomic_bool is_waited_for;

/* Works as long as the timer's signals are waited for: the timer counts CPU time. */
static void *busy_thread(void *unused) {
    do
        own_work(10);
    while (atomic_load(&is_waited_for));
    return unused;
}

/* Blocks SIGPROF in all threads and waits for it: nothing may end the process. */
static void waiting_for_it(void) {
    sigset_t prof;
    siginfo_t info;
    pthread_t thread;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &prof, NULL);
    atomic_store(&is_waited_for, true);
    pthread_create(&thread, NULL, busy_thread, NULL);
    start_timer();
    for (int i = 0; i < 10; i++) {
        own_work(4);
        if (sigwaitinfo(&prof, &info) != SIGPROF || info.si_code != SI_KERNEL)
            fail("sigwaitinfo found a SIGPROF that is not the timer's");
    }
    atomic_store(&is_waited_for, false);
    stop_timer();
    pthread_join(thread, NULL);
}

static atomic_int may_end;

static void *masked_thread(void *unused) {
    own_work(20);
    while (!atomic_load(&may_end))
        usleep(1000);
    return unused;
}

static void masked(void) {
    sigset_t prof;
    sigset_t pending;
    pthread_t thread;
    block_all();
    pthread_create(&thread, NULL, masked_thread, NULL);
    own_work(10);
    kill(getpid(), SIGPROF);
    usleep(50000);
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    sigpending(&pending);
    if (!sigismember(&pending, SIGPROF))
        fail("a SIGPROF that every thread blocks is not pending");
    siginfo_t info;
    const struct timespec none = {0, 0};
    if (sigtimedwait(&prof, &info, &none) != SIGPROF || info.si_pid != getpid())
        fail("the pending SIGPROF is not the one that was sent");
    atomic_store(&may_end, 1);
    pthread_join(thread, NULL);
}

static atomic_bool is_waiting;

static void *patient_thread(void *unused) {
    /* 4,000 years; modulo 2^64 ns, 33 ms */
    const struct timespec for_ever = {129127208516, 0};
    sigset_t all;
    sigfillset(&all);
    block_all();
    own_work(10);
    atomic_store(&is_waiting, true);
    if (sigtimedwait(&all, NULL, &for_ever) != SIGUSR1)
        fail("sigtimedwait did not wait for ever");
    return unused;
}

static void patient(void) {
    const struct timespec tenth = {0, 100 * NS_PER_MS};
    pthread_t thread;
    if (pthread_create(&thread, NULL, patient_thread, NULL) != 0)
        fail("pthread_create");
    while (!atomic_load(&is_waiting))
        sched_yield();
    nanosleep(&tenth, NULL);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    own_work(10);
}

static void pointers(void) {
    void *volatile nowhere = (void *)16;
    const struct timespec none = {0, 0};
    sigset_t prof;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    if (sigwaitinfo(nowhere, NULL) != -1 || errno != EFAULT)
        fail("sigwaitinfo");
    if (sigtimedwait(nowhere, NULL, &none) != -1 || errno != EFAULT)
        fail("sigtimedwait of no set");
    if (sigtimedwait(&prof, NULL, nowhere) != -1 || errno != EFAULT)
        fail("sigtimedwait for no time");
    if (signalfd(-1, nowhere, 0) != -1 || errno != EFAULT)
        fail("signalfd");
    if (sigaltstack(nowhere, NULL) != -1 || errno != EFAULT)
        fail("sigaltstack");
    own_work(20);
}

/* --- alternate stacks --- */

static void small_stack(void) {
    static char memory[SMALLEST_STACK];
    const stack_t small = {.ss_sp = memory, .ss_size = sizeof memory};
    const stack_t none = {.ss_flags = SS_DISABLE};
    stack_t now;
    if (sigaltstack(&small, NULL) != 0)
        fail("sigaltstack");
    own_work(50);
    sigaltstack(NULL, &now);
    if (now.ss_sp != memory || now.ss_size != sizeof memory)
        fail("the alternate stack is not the program's");
    sigaltstack(&none, NULL);
    own_work(50);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    {"sigaction", with_sigaction},
    {"raw", with_raw_call},
    {"number", with_number},
    {"default_number", default_by_number},
    {"signal", with_signal},
    {"bsd_signal", with_bsd_signal},
    {"sysv_signal", with_sysv_signal},
    {"sigset", with_sigset},
    {"default", with_default},
    {"ignore", with_ignore},
    {"ignored", ignored},
    {"every", every_signal},
    {"waiting", waiting},
    {"patient", patient},
    {"pointers", pointers},
    {"descriptor", descriptor},
    {"waiting_for_it", waiting_for_it},
    {"masked", masked},
    {"small_stack", small_stack},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, argv[1]) != 0)
            continue;
        modes[i].run();
        printf("ok\n");
        return 0;
    }
    return 2;
}
