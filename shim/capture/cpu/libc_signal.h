/* Samples threads that block our signal by the signal that libc keeps for itself.
 *
 * Most servers write their workers so: sigfillset(), pthread_sigmask(), work. glibc leaves signal
 * 33 (SIGSETXID) out of every set that it fills and every mask that it sets, because setuid() and
 * its like must reach every thread. So a timer that raises 33 reaches a thread whatever it blocks.
 * The program cannot notice: the masks of its threads, handlers, children and executed programs
 * stay as it set them, and it can neither wait for 33 nor handle it (sigaction() refuses it).
 *
 * libc's handler ignores a signal that is not its own, by si_code. Ours, in front of it, takes
 * signals with the mark of our timers and passes all others on. It runs on the thread's signal
 * stack, as libc's does since glibc 2.34. Our handler is not installed before libc's (that is,
 * before the first thread is created), nor where an expiry could interrupt a system call
 * (cpu_timers_interrupt_calls()), because a thread that blocks every signal does not expect
 * EINTR. */
#ifndef OTELPROF_LIBC_SIGNAL_H
#define OTELPROF_LIBC_SIGNAL_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LIBC_SIGNAL = 33 }; /* SIGSETXID of nptl, since glibc 2.3.3; SIGRTMIN is 34 */

/* Has the kernel's form of struct sigaction, because libc's functions refuse the number. */
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

struct libc_signal {
    _Atomic uint32_t state; /* enum in libc_signal.c */
    /* The signal has interrupted a system call, although it should not: from then on libc's signal
     * is not used. */
    _Atomic bool interrupted;
    /* libc's action; written before the state, always with the same values */
    struct kernel_action libcs;
};

/* Installs our handler, once. Returns false if the signal is not available, or not yet. Context:
 * any. Async-signal-safe: yes. errno may change. */
bool libc_signal_take(struct libc_signal *signal);

/* Passes a signal that is not from our timers to libc's handler. Returns false if it is another
 * signal, or if libc has no handler. Context: our handler, on the interrupted stack. */
bool libc_signal_pass_on(const struct libc_signal *signal, int number, siginfo_t *info,
                         void *context);

#endif
