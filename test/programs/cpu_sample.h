/* A CPU sample at a chosen place: the calling thread sends itself the signal of its own CPU timer,
 * as the timer would. The profiler charges all CPU time since the thread's sample before to the
 * stack that the signal interrupts, so a test that samples at a function's end knows exactly which
 * time is that function's. The timers themselves go on.
 *
 * The kernel lists a process's timers in /proc/self/timers, with the signal, its value and the
 * thread of each. A thread without such a timer is not sampled: then nothing is sent. Needs
 * /proc; its calls are bare instructions, which neither hooks nor stacks show. */
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
#include <unistd.h>

/* A signal of the calling thread's timer as timer_settime(2) has it sent. False: it has none. */
__attribute__((noinline, unused)) static bool describe_expiry(siginfo_t *expiry) {
    enum { ROOM = 1 << 20 }; /* a timer has some 100 bytes; for threads with small stacks, too */
    char owner[32];
    unsigned long value;
    size_t length = 0;
    int signal_number;
    bool is_found = false;
    long got;
    snprintf(owner, sizeof owner, "notify: signal/tid.%ld\n",
             bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0));
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
    for (const char *timer = text; (timer = strstr(timer, "signal: ")) != NULL; timer++) {
        const char *end = strchr(timer, '\n');
        if (!end || strncmp(end + 1, owner, strlen(owner)) != 0 ||
            sscanf(timer, "signal: %d/%lx", &signal_number, &value) != 2)
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

/* A macro, so that the function that has it in it is the leaf of the sample. */
#define TAKE_CPU_SAMPLE()                                                                          \
    do {                                                                                           \
        siginfo_t sample_expiry;                                                                   \
        if (describe_expiry(&sample_expiry))                                                       \
            bare_call(SYS_rt_tgsigqueueinfo, bare_call(SYS_getpid, 0, 0, 0, 0, 0, 0),              \
                      bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0), sample_expiry.si_signo,             \
                      (long)&sample_expiry, 0, 0);                                                 \
    } while (0)

#define CPU_SAMPLE_BIT(expiry) (UINT64_C(1) << ((expiry).si_signo - 1))

/* Waits until the profiler, where it is preloaded, samples the calling thread: on a busy machine it
 * may begin late, and a sample that is taken before is none. Gives up after two minutes. */
__attribute__((noinline, unused)) static void cpu_samples_await(void) {
    siginfo_t expiry;
    for (int i = 0; i < 60000 && getenv("LD_PRELOAD") && !describe_expiry(&expiry); i++)
        usleep(2000);
}

/* From here on the calling thread has no other samples than those of TAKE_HELD_CPU_SAMPLE(), for
 * which its timer's signal waits, too. */
__attribute__((noinline, unused)) static void cpu_samples_hold(void) {
    siginfo_t expiry;
    cpu_samples_await();
    if (describe_expiry(&expiry))
        bare_sigprocmask(SIG_BLOCK, CPU_SAMPLE_BIT(expiry));
}

#define TAKE_HELD_CPU_SAMPLE()                                                                     \
    do {                                                                                           \
        siginfo_t held_expiry;                                                                     \
        uint64_t held_mask;                                                                        \
        TAKE_CPU_SAMPLE();                                                                         \
        if (describe_expiry(&held_expiry)) {                                                       \
            const uint64_t held_bit = CPU_SAMPLE_BIT(held_expiry);                                 \
            bare_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&held_bit, (long)&held_mask,          \
                      sizeof held_bit, 0, 0);                                                      \
            bare_sigprocmask(SIG_SETMASK, held_mask);                                              \
        }                                                                                          \
    } while (0)

/* As BURNER() of cpu_work.h. What it has used is charged to it, whatever the timers met. */
#define SAMPLED_BURNER(name, milliseconds)                                                         \
    NOIPA static void name(void) {                                                                 \
        WORK_FOR((milliseconds)*NS_PER_MS);                                                        \
        TAKE_CPU_SAMPLE();                                                                         \
    }

#endif
