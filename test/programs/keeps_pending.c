/* Blocks SIGPROF, is sent one, and only then takes the signal for itself.
 *
 * usage: keeps_pending SENDER TAKER [beside|behind]
 *   SENDER   kill, raise, queue, child, timer; to the thread alone: thread_queue, thread_timer
 *   TAKER    handler, number (by syscall()), descriptor
 *   beside   another thread works meanwhile, and blocks SIGPROF, too, unless it is sent to a thread
 *   behind   it takes it behind a filter that kills for sigtimedwait()
 * Prints each SIGPROF that it gets. The profiler's signals are pending, too, unless a thread is the
 * target: the mask is set by an instruction, which no hook sees. For a thread the kernel keeps one
 * signal of a number, whatever its sender.
 */
#define _GNU_SOURCE
#include "bare_call.h"
#include "cpu_sample.h"
#include "forbid_call.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { VALUE = 4711, MOST = 8 };

static atomic_int count;
static siginfo_t received[MOST];
static atomic_int over;
static pid_t child;

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    const int i = atomic_fetch_add(&count, 1);
    if (i < MOST)
        received[i] = *info;
}

static void *work_beside(void *unused) {
    while (!atomic_load(&over))
        WORK_FOR(NS_PER_MS);
    return unused;
}

/* --- sending --- */

static void send_by_child(void) {
    child = fork();
    if (child == 0)
        _exit(kill(getppid(), SIGPROF));
    waitpid(child, NULL, 0);
}

static void send_by_timer(int notify) {
    const struct itimerspec soon = {.it_value = {0, 1000000}};
    struct sigevent event = {.sigev_notify = notify, .sigev_signo = SIGPROF};
    timer_t timer;
    event.sigev_value.sival_int = VALUE;
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &soon, NULL) != 0)
        exit(1);
    usleep(20000);
}

static void send(const char *how) {
    const union sigval value = {.sival_int = VALUE};
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGPROF);
    else if (strcmp(how, "raise") == 0)
        raise(SIGPROF);
    else if (strcmp(how, "queue") == 0)
        sigqueue(getpid(), SIGPROF, value);
    else if (strcmp(how, "child") == 0)
        send_by_child();
    else if (strcmp(how, "thread_queue") == 0)
        pthread_sigqueue(pthread_self(), SIGPROF, value);
    else
        send_by_timer(strcmp(how, "timer") == 0 ? SIGEV_SIGNAL : SIGEV_THREAD_ID);
}

/* --- taking --- */

static void unblock(void) {
    sigset_t prof;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    pthread_sigmask(SIG_UNBLOCK, &prof, NULL);
}

static void take_by_handler(void) {
    const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGPROF, &action, NULL);
    unblock();
}

static void take_by_number(void) {
    const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    uint64_t kernels[4]; /* in the kernel's form: handler, flags, restorer, mask */
    sigaction(SIGUSR2, &action, NULL);
    syscall(SYS_rt_sigaction, SIGUSR2, NULL, kernels, sizeof kernels[3]);
    syscall(SYS_rt_sigaction, SIGPROF, kernels, NULL, sizeof kernels[3]);
    unblock();
}

static void take_by_descriptor(void) {
    sigset_t prof;
    struct signalfd_siginfo found;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    const int file = signalfd(-1, &prof, SFD_NONBLOCK | SFD_CLOEXEC);
    while (read(file, &found, sizeof found) == sizeof found) {
        siginfo_t info = {.si_signo = SIGPROF, .si_code = found.ssi_code};
        if (found.ssi_code == SI_QUEUE || found.ssi_code == SI_TIMER)
            info.si_value.sival_int = found.ssi_int;
        else
            info.si_pid = (pid_t)found.ssi_pid;
        on_signal(SIGPROF, &info, NULL);
    }
}

static void take(const char *how) {
    if (strcmp(how, "handler") == 0)
        take_by_handler();
    else if (strcmp(how, "number") == 0)
        take_by_number();
    else
        take_by_descriptor();
}

static void print_received(void) {
    for (int i = 0; i < atomic_load(&count) && i < MOST; i++) {
        const siginfo_t *const info = &received[i];
        if (info->si_code == SI_QUEUE || info->si_code == SI_TIMER)
            printf("code %d with %d\n", info->si_code, info->si_value.sival_int);
        else
            printf("code %d from %s\n", info->si_code,
                   info->si_pid == getpid() ? "itself"
                   : info->si_pid == child  ? "its child"
                                            : "another");
    }
    printf("%d in all\n", atomic_load(&count));
}

static bool is_sent_to_thread(const char *sender) {
    return strncmp(sender, "thread_", 7) == 0;
}

static void block(const char *sender) {
    sigset_t prof;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    if (strcmp(sender, "raise") == 0 || is_sent_to_thread(sender))
        pthread_sigmask(SIG_BLOCK, &prof, NULL);
    else
        bare_sigprocmask(SIG_BLOCK, UINT64_C(1) << (SIGPROF - 1));
}

int main(int argc, char **argv) {
    const bool beside = argc > 3 && strcmp(argv[3], "beside") == 0;
    pthread_t thread;
    if (argc < 3)
        return 2;
    if (!is_sent_to_thread(argv[1]))
        block(argv[1]);
    if (beside && pthread_create(&thread, NULL, work_beside, NULL) != 0)
        return 1;
    block(argv[1]);
    WORK_FOR(10 * NS_PER_MS);
    if (!is_sent_to_thread(argv[1]) && strcmp(argv[1], "raise") != 0)
        TAKE_CPU_SAMPLE();
    send(argv[1]);
    if (argc > 3 && !beside)
        forbid_call(SYS_rt_sigtimedwait);
    take(argv[2]);
    WORK_FOR(10 * NS_PER_MS);
    atomic_store(&over, 1);
    if (beside)
        pthread_join(thread, NULL);
    print_received();
    return 0;
}
