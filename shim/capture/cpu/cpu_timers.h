/* Manages CPU timers: one per thread on the thread's own CPU clock, or one for the whole process if
 * the kernel refuses these.
 *
 * One rule covers creating, moving and deleting a timer: the thread that exchanges the timer's id
 * out of thread_state.timer owns the timer and deletes it. So the end of a thread, the end of the
 * process and the loss of our signal to the application need no lock. A thread arms its timer after
 * it has stored the id, and only if the signal is still ours: so a thread that begins while the
 * application takes the signal never lets a timer raise it. Fallback, in order: a POSIX timer on
 * the process's CPU clock, reserved at the start so that RLIMIT_SIGPENDING cannot refuse it later;
 * ITIMER_PROF, if the program does not use it; none. The signal of a process timer reaches an
 * arbitrary thread, which records its time by its own CPU clock. So totals hold; the time of a
 * thread that the signal never reaches is recorded under its start routine. */
#ifndef OTELPROF_CPU_TIMERS_H
#define OTELPROF_CPU_TIMERS_H

#include "record/thread_table.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Lists the values of thread_state.timer without a timer. Another thread may replace only
 * TIMER_NONE by a timer; the thread itself may replace TIMER_PAUSED, too. TIMER_ENDED stays. */
enum { TIMER_NONE = -1, TIMER_ENDED = -2, TIMER_PAUSED = -3 };

enum process_timer { PROCESS_TIMER_OFF, PROCESS_TIMER_POSIX, PROCESS_TIMER_ITIMER };

struct cpu_timers {
    /* the signal that the timers raise; 0: none, CPU time is not sampled */
    _Atomic int signal;
    _Atomic int reserve; /* id of the process's POSIX timer, or TIMER_NONE */
    /* CPU time between two expiries, for timers that start from now on */
    _Atomic uint64_t period_nano;
    _Atomic bool off;         /* no timer is armed except the helper's, until cpu_timers_arm() */
    const void *mark;         /* si_value of our signals, by which a handler recognizes them */
    _Atomic uint32_t process; /* enum process_timer: the process's timer that runs */
    /* ITIMER_PROF was ours once, so its last expiry may still be pending after it was stopped. The
     * program's own expiries reach no handler of ours (setitimer in hooks/signal.c). */
    _Atomic bool interval_ran;
    _Atomic uint32_t refused;     /* number of threads that got no timer */
    _Atomic uint32_t slowed_down; /* times that a thread's period was doubled */
    _Atomic int helper;           /* 1 + id of the helper's timer; 0: none */
    bool helper_only;             /* CPU time is not sampled: threads have no timers */
    bool deadly; /* no timer may run, because it would end the process. Written once, at start */
};

/* Returns true if RLIMIT_RTTIME, soft or hard, is 0. While a CPU timer of a process is armed, Linux
 * applies that limit to all its threads, even to those without a real-time policy: a limit of 0
 * would end the process. Called before the first timer is created. Context: calm. */
bool cpu_timers_are_deadly(void);

/* Reserves the process timer, and forgets the helper's timer. Called in a forked child, too,
 * because timers are not inherited. Context: calm. */
void cpu_timers_reserve(struct cpu_timers *timers);

/* Create and delete the thread's timer. After the stop no timer is ever created for this thread.
 * errno is preserved. Context of start: the thread itself, calm; of stop: any thread. */
void cpu_timers_start(struct cpu_timers *timers, struct thread_state *thread);
void cpu_timers_stop(struct thread_state *thread);

/* Ensures that the calling thread, the helper, has a timer of its own, which raises the signal
 * every few milliseconds of its CPU time. Returns false if it has none. */
bool cpu_timers_watch_helper(struct cpu_timers *timers);

/* Deletes the helper's timer, when the helper's thread ends and another thread becomes the
 * helper. */
void cpu_timers_leave_helper(struct cpu_timers *timers);

/* Removes the timer until cpu_timers_start(), for a time in which the thread cannot take a signal.
 * Context: the thread. */
void cpu_timers_pause(struct thread_state *thread);

/* Arms the thread's timer, if it has one, with thread->period_nano, which has changed. Context:
 * any, the thread itself. Async-signal-safe: yes. */
void cpu_timers_set_period(const struct thread_state *thread);

/* Returns true if an expiry can interrupt a system call that the thread has just begun: then a call
 * that SA_RESTART does not restart fails with EINTR. Context: any. Async-signal-safe: yes. errno
 * may change. */
bool cpu_timers_interrupt_calls(void);

/* Makes the thread's timer raise libc's signal (libc_signal.h) from now on, whatever signal the
 * timers of other threads raise. While timers are off, only the next timer does. If the kernel
 * refuses another timer, the thread keeps its present one. errno is preserved. Context: the thread
 * itself, or the helper. Async-signal-safe: yes. */
void cpu_timers_use_libc_signal(struct cpu_timers *timers, struct thread_state *thread);

/* Makes every timer of every thread, and of the process, raise `signal` from now on; timers that
 * raise libc's signal keep it. 0: deletes all timers. Deletes the helper's timer in any case.
 * Returns false if the kernel refused to delete a timer, which then continues to raise the old
 * signal. Async-signal-safe: yes. */
bool cpu_timers_move(struct cpu_timers *timers, struct thread_table *threads, int signal);

/* cpu_timers_disarm() deletes the timers of all threads, and stops that of the process; call it
 * after setting `off`. cpu_timers_arm() creates the threads' timers; call it after clearing `off`.
 * A thread that begins meanwhile reads `off` itself. errno is preserved. Context: calm, between
 * sampler_begin_move() and sampler_end_move(), so that no move changes the timers at the same time.
 */
void cpu_timers_disarm(struct cpu_timers *timers, struct thread_table *threads);
void cpu_timers_arm(struct cpu_timers *timers, struct thread_table *threads);

/* Returns true if one of our timers sent a signal with this information. If ITIMER_PROF was ever
 * ours, every SIGPROF of the kernel's counts. Async-signal-safe: yes. */
bool cpu_timers_sent(const struct cpu_timers *timers, const siginfo_t *info);

#endif
