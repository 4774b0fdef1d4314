/* The signal that libc keeps for itself, by which threads that block ours are sampled.
 *
 * Most servers write their workers so: sigfillset(), pthread_sigmask(), work. glibc leaves one
 * signal out of all sets that it fills and out of all masks that it sets, number 33 (SIGSETXID): by
 * it setuid() and its like reach every thread. A timer that raises this one reaches a thread
 * whatever it blocks, and nothing changes that a program could see: its masks are those that it
 * set, for itself, its handlers, its children and the programs that it executes; and it can neither
 * wait for 33 nor handle it (sigaction() refuses it).
 *
 * libc's handler ignores a signal that is not its own, by si_code. Ours, in front of it, takes
 * signals with the mark of our timers and passes all others on. It runs on the thread's signal
 * stack, as libc's does since glibc 2.34. It is not installed where libc has not installed its
 * handler yet (before the first thread is created), nor where an expiry could interrupt a system
 * call (cpu_timers_interrupt_calls()): a thread that blocks every signal has never seen EINTR. */
#ifndef OTELPROF_LIBC_SIGNAL_H
#define OTELPROF_LIBC_SIGNAL_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LIBC_SIGNAL = 33 }; /* SIGSETXID of nptl, since glibc 2.3.3; SIGRTMIN is the next one */

/* The kernel's form of struct sigaction: libc's functions refuse the number. */
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

struct libc_signal {
    _Atomic uint32_t state; /* enum in libc_signal.c */
    /* A call has been interrupted all the same: the signal is not used any more. */
    _Atomic bool interrupted;
    struct kernel_action libcs; /* written before the state, always with the same values */
};

/* Installs our handler, once. Returns false if the signal cannot be had, or not yet. Context: any.
 * Async-signal-safe: yes. errno may change. */
bool libc_signal_take(struct libc_signal *signal);

/* Passes a signal that is not from our timers to libc's handler. Returns false if its number is
 * another, or libc has none. Context: our handler, on the interrupted stack. */
bool libc_signal_pass_on(const struct libc_signal *signal, int number, siginfo_t *info,
                         void *context);

#endif
