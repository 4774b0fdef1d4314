/* Takes CPU samples at chosen places: the calling thread sends itself the signal of its own CPU
 * timer, as the timer would. The profiler charges all CPU time since the thread's last sample to
 * the stack that the signal interrupts. So a test that samples at a function's end knows exactly
 * which time is that function's. The timers themselves go on.
 *
 * The kernel lists a process's timers in /proc/self/timers, with the signal, its value and the
 * thread of each. A thread without such a timer is not sampled, and so it sends nothing. It sends
 * nothing under a small RLIMIT_SIGPENDING either, which all processes of a user share: where that
 * is used up, the kernel sends the signal without its siginfo_t, and such a signal is not the
 * profiler's: it ends the program. Needs /proc. All calls here are bare instructions, which no hook
 * sees. */
#ifndef TEST_CPU_SAMPLE_H
#define TEST_CPU_SAMPLE_H

#include "bare_call.h"
#include "cpu_work.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Describes a signal of the calling thread's timer as the kernel sends it, and the timer's id.
 * Returns false if the thread has no timer, or under a small RLIMIT_SIGPENDING, or without
 * /proc. */
__attribute__((noinline, unused)) static bool describe_timer(siginfo_t *expiry, int *id) {
    /* a timer takes some 100 bytes of text; the text is in a mapping, because some threads have
     * small stacks */
    enum { ROOM = 1 << 20 };
    enum { LEAST_PENDING = 1000 };
    struct rlimit pending = {0, 0};
    char owner[32];
    unsigned long value;
    size_t length = 0;
    int signal_number;
    bool is_found = false;
    long got;
    snprintf(owner, sizeof owner, "notify: signal/tid.%ld\n",
             bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0));
    if (bare_call(SYS_prlimit64, 0, RLIMIT_SIGPENDING, 0, (long)&pending, 0, 0) != 0 ||
        pending.rlim_cur < LEAST_PENDING)
        return false;
    const long file =
        bare_call(SYS_openat, AT_FDCWD, (long)"/proc/self/timers", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0)
        return false;
    const long room =
        bare_call(SYS_mmap, 0, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *const text = (char *)room;
    if (room < 0 && room >= -4095) {
        bare_call(SYS_close, file, 0, 0, 0, 0, 0);
        return false;
    }
    while (length < ROOM - 1 && (got = bare_call(SYS_read, file, (long)(text + length),
                                                 (long)(ROOM - 1 - length), 0, 0, 0)) > 0)
        length += (size_t)got;
    bare_call(SYS_close, file, 0, 0, 0, 0, 0);
    text[length] = '\0';
    for (const char *timer = text; (timer = strstr(timer, "ID: ")) != NULL; timer++) {
        const char *notify = strstr(timer, "notify: ");
        if (!notify || strncmp(notify, owner, strlen(owner)) != 0 ||
            sscanf(timer, "ID: %d\nsignal: %d/%lx", id, &signal_number, &value) != 3)
            continue;
        memset(expiry, 0, sizeof *expiry);
        expiry->si_signo = signal_number;
        expiry->si_code = SI_TIMER;
        expiry->si_value.sival_ptr = (void *)value;
        is_found = true;
        break;
    }
    bare_call(SYS_munmap, room, ROOM, 0, 0, 0, 0);
    return is_found;
}

__attribute__((noinline, unused)) static bool describe_expiry(siginfo_t *expiry) {
    int id;
    return describe_timer(expiry, &id);
}

static __thread int held_timer __attribute__((unused)); /* 1 + its id; 0: it runs */

static void stop_kernel_timer(int id) {
    const struct itimerspec stopped = {{0, 0}, {0, 0}};
    bare_call(SYS_timer_settime, id, 0, (long)&stopped, 0, 0, 0);
}

/* Stops the timer of a thread whose timer is held: a sample that cost much has set another period,
 * which started the timer. */
__attribute__((noinline, unused)) static void keep_timer_held(void) {
    if (held_timer)
        stop_kernel_timer(held_timer - 1);
}

/* Takes a sample whose leaf is the function in which the macro is used: the signal is delivered
 * right behind the system call, before the nop. */
#define TAKE_CPU_SAMPLE()                                                                          \
    do {                                                                                           \
        siginfo_t sample_expiry;                                                                   \
        if (describe_expiry(&sample_expiry)) {                                                     \
            bare_call(SYS_rt_tgsigqueueinfo, bare_call(SYS_getpid, 0, 0, 0, 0, 0, 0),              \
                      bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0), sample_expiry.si_signo,             \
                      (long)&sample_expiry, 0, 0);                                                 \
            __asm__ volatile("nop");                                                               \
            keep_timer_held();                                                                     \
        }                                                                                          \
    } while (0)

/* Charges the time that the main thread has used before main(), most of it in the loader, to this
 * constructor: so the program's first function has no time but its own. */
__attribute__((constructor, noinline, unused)) static void charge_the_start(void) {
    TAKE_CPU_SAMPLE();
}

/* Waits until has_done() returns true, if something is preloaded: on a busy machine the profiler
 * may begin late. Gives up after two minutes. */
__attribute__((noinline, unused)) static void await_profiler(bool (*has_done)(void)) {
    for (int i = 0; i < 60000 && getenv("LD_PRELOAD") && !has_done(); i++)
        usleep(2000);
}

__attribute__((noinline, unused)) static bool has_timer(void) {
    siginfo_t expiry;
    return describe_expiry(&expiry);
}

/* Waits until the calling thread is sampled: no sample can be taken before. */
__attribute__((noinline, unused)) static void cpu_samples_await(void) {
    await_profiler(has_timer);
    TAKE_CPU_SAMPLE();
}

/* Stops the calling thread's timer if it runs. Returns whether the timer is held, by this call or
 * an earlier one. */
__attribute__((noinline, unused)) static bool hold_timer(void) {
    struct itimerspec present;
    siginfo_t expiry;
    int id;
    if (held_timer || !describe_timer(&expiry, &id) ||
        bare_call(SYS_timer_gettime, id, (long)&present, 0, 0, 0, 0) != 0 ||
        (present.it_interval.tv_sec == 0 && present.it_interval.tv_nsec == 0))
        return held_timer != 0;
    stop_kernel_timer(id);
    held_timer = id + 1;
    return true;
}

/* Stops the calling thread's timer once it runs: from here on the thread has no other samples than
 * those of TAKE_CPU_SAMPLE(). It is not enough to block the signal: if a thread uses CPU time
 * without a sample, the helper has it sampled by another signal. */
__attribute__((noinline, unused)) static void cpu_samples_hold(void) {
    await_profiler(hold_timer);
}

/* Defines a function as BURNER() of cpu_work.h does. All that it has used is charged to it,
 * whatever the timers sample. */
#define SAMPLED_BURNER(name, milliseconds)                                                         \
    NOIPA static void name(void) {                                                                 \
        WORK_FOR((milliseconds)*NS_PER_MS);                                                        \
        TAKE_CPU_SAMPLE();                                                                         \
    }

#endif
