/* Takes CPU samples: the signal that triggers them, its handler, and the move to another signal
 * when the application uses that signal itself. */
#ifndef OTELPROF_SAMPLER_H
#define OTELPROF_SAMPLER_H

#include "config.h"
#include "cpu_timers.h"
#include "libc_signal.h"
#include "log.h"
#include "record/record.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Holds the state of CPU sampling: the sampling signal, the action that the application sees for
 * that signal (the default action), and the timers. */
struct sampler {
    bool on;              /* CPU time is sampled */
    uint64_t period_nano; /* CPU time between two samples, as configured */
    int wanted;           /* the signal to use if it is free */
    const struct log *log;
    struct recorder *recorder;
    const _Atomic bool *armed; /* samples are taken */
    /* If not NULL, a helper thread is wanted, and the next malloc of a sampled thread requests it.
     */
    _Atomic(void (*)(bool calm)) const *want_helper;
    struct cpu_timers timers;    /* timers.signal is the signal that is in use */
    struct sigaction believed;   /* the action that the program sees for that signal */
    _Atomic uint32_t taken;      /* number of times that the application took our signal away */
    _Atomic bool moving;         /* a thread is changing the signal, and has blocked all signals */
    bool blocked_for_move;       /* used by that thread: it has blocked the signals itself */
    uint64_t mask_before_move;   /* used by that thread: its former mask */
    _Atomic bool wait_timed_out; /* a wait for the end of this change has timed out */
    pid_t pid;                   /* the process that this state belongs to */
    /* set by masked_threads_stop(): no timer changes its signal any more */
    _Atomic bool timers_stay;
    /* set by sampler_leave_pending(): a filter may kill for a query of pending signals, or for
     * opening a file of /proc, so that neither is done */
    _Atomic bool queries_kill;
    struct libc_signal libcs; /* the signal for threads that block ours */
    bool helper_asked;        /* sampler_watch_helper() has tried to get a signal */
    bool tracer_checked;      /* the helper has searched for a tracer, which it does once */
    bool traced;              /* the helper has found a tracer */
    bool logged_taken;        /* sampler_report() has logged `taken` */
    bool logged_refused;
    bool logged_slow;
    bool logged_late;
};

/* Holds the module's only state, outside of `capture`, because a signal handler must find it. */
extern struct sampler sampler;

/* Passes the objects that the sampler works with, whether CPU time is sampled or not. Context:
 * calm, at start. */
void sampler_prepare(const struct config *config, const struct log *log, struct recorder *recorder,
                     const _Atomic bool *armed, _Atomic(void (*)(bool calm)) const *want_helper);

/* Returns true while samples are taken; false before sampler_prepare(). Context: any. */
static inline bool sampler_is_armed(void) {
    return sampler.armed && atomic_load(sampler.armed);
}

/* Installs the handler, on SIGPROF or the configured signal if that has its default action, else on
 * a free real-time signal. Returns false if no signal was free (logged). Context: calm. */
bool sampler_install(void);

/* Ensures that the calling thread, the helper, gets the signal by its own CPU clock. If CPU time is
 * not sampled, installs the handler for the helper alone. Returns false if there is no signal or no
 * timer, or if the helper has found a tracer. Context: the helper. */
bool sampler_watch_helper(void);

/* Gives `number` to the application: if it is the signal in use, moves to a free real-time signal,
 * or, if there is none, stops sampling CPU time. Afterwards the signal has its default action; our
 * pending expiries are discarded, the program's pending signals stay. Waits for a thread that is
 * changing the signal or its timers; returns false, without a change, if that thread does not
 * finish in time. Context: any. Async-signal-safe: yes. */
bool sampler_give_signal_away(int number);

/* Drops expiries of ours that are pending for the calling thread or the process; the program's
 * signals stay. Context: any. Async-signal-safe: yes. errno is changed. */
void sampler_drop_expiries(void);

/* Moves to a free real-time signal, if there is one, before code runs that bypasses our hooks: such
 * code is unlikely to use that signal. Context: calm. */
void sampler_choose_unnamed_signal(void);

/* Checks whether the handler is still ours, because the program or libc may install another by a
 * bare system call, which no hook sees. If it is not, gives the signal away and keeps that handler.
 * Context: the helper, or calm before main. */
void sampler_check_signal(void);

/* Logs, once each, each condition that has impaired sampling. `merged`: the number of expiries so
 * far that were merged into a later one (DROP_OVERRUN). Context: the helper. */
void sampler_report(uint64_t merged);

/* Returns whether `number` is the signal that we use now. Async-signal-safe: yes. */
bool sampler_uses(int number);

/* Returns whether a signal of the number that we use, or used, is an expiry of a timer of ours. An
 * expiry that a tracer held back is counted, and its time is in the next sample. Context: any.
 * Async-signal-safe: yes. errno is preserved. */
bool sampler_sent(const siginfo_t *info);

/* Waits until no other thread is changing the signal, so that sampler_uses() matches the kernel's
 * action for the signal. Gives up after a second; almost at once if an earlier wait for this change
 * has timed out, or if the changing thread is not in this process. Context: any. */
void sampler_wait_stable(void);

/* Returns sampler_uses() once no other thread is changing the signal, or after a second. If a
 * change begins meanwhile, waits for that change, too. Context: any. */
bool sampler_uses_when_stable(int number);

/* Returns the program's view of an action that the kernel reported: our handler is replaced by the
 * action that the program believes in. Async-signal-safe: yes. */
struct sigaction sampler_action_seen(const struct sigaction *action);

/* Returns whether CPU time is sampled at present. Context: any. Async-signal-safe: yes. */
bool sampler_is_on(void);

/* Turns sampling of every thread's CPU time on or off by the present settings. CPU time used while
 * it is off is in no sample, ever. The caller is in sampler_begin_move(). Context: calm. */
void sampler_follow_settings(void);

/* Gives the calling thread's timer the period that is set at present. Context: the thread itself.
 * Async-signal-safe: yes. */
void sampler_follow_period(struct thread_state *thread);

/* Tries to begin a change of the signal, or of the timers of all threads: one thread does so at a
 * time, with all signals blocked. After true the caller must call sampler_end_move(). Context: any.
 * Async-signal-safe: yes. */
bool sampler_begin_move(void);

/* Begins a change as sampler_begin_move() does. If another thread is changing the signal or the
 * timers, waits for up to 10,000 rounds of wait.h, which take half a second or more. Returns false
 * if that change still lasts, or if a thread that is not in this process began it. Context: any.
 * Async-signal-safe: yes. errno is preserved. */
bool sampler_begin_move_in_turn(void);
void sampler_end_move(void);

/* Starts CPU sampling of the calling thread, which gets a signal stack of the profiler's. A thread
 * that gets no such stack is counted, and not sampled. Context: calm. */
void sampler_start_thread(struct thread_state *thread);
void sampler_stop_thread(struct thread_state *thread);

/* Resets the state in a forked child, where timers and unfinished changes of other threads do not
 * exist. Context: fork handler. */
void sampler_after_fork(void);

/* Ends CPU sampling in this process. The signal gets the action that the program sees. Under a
 * tracer it keeps our handler, because the tracer may hold an expiry back beyond the end of the
 * timers. Context: calm. */
void sampler_stop(void);

/* Waits after sampler_stop(), within a bound of a tenth of a second or more, until the kernel shows
 * no other thread in our handler, its return included. Without a readable /proc it does not wait.
 * Context: calm. errno is changed. */
void sampler_wait_for_handlers(void);

/* Returns false if a filter of system calls would kill this process for opening a file of /proc.
 * Context: any. */
bool sampler_may_open(void);

/* Forbids queries of pending signals and of /proc from now on, because a filter of system calls
 * would kill for them. Whenever the signal is given up, all its pending signals are discarded, the
 * program's too. Context: any. */
void sampler_leave_pending(void);

/* --- called from signal_entry.c only --- */

/* Handles the signal, as the handler that the kernel has. */
void signal_entry(int number, siginfo_t *info, void *context);
/* Runs on the thread's signal stack. Returns true if the signal was ours. */
bool sampler_on_signal(int number, siginfo_t *info, void *context);
/* Runs on the interrupted stack: gives a signal that is not from our timers the effect that it
 * would have had. */
void sampler_pass_on(int number, siginfo_t *info, void *context);

#endif
