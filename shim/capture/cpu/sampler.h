/* CPU samples: the signal that brings them, its handler, and what happens when the application
 * wants that signal for itself. */
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

/* Which signal, and what the application may believe about it: that it has its default action. */
struct sampler {
    bool on;              /* CPU time is sampled */
    uint64_t period_nano; /* of CPU time between two samples, as configured */
    int wanted;           /* the signal to take if it is free */
    const struct log *log;
    const struct recorder *recorder;
    const _Atomic bool *armed; /* samples are taken */
    /* Not NULL: a helper thread is wanted, and the next malloc of a sampled thread is to ask for
     * it. */
    _Atomic(void (*)(bool calm)) const *want_helper;
    struct cpu_timers timers;    /* timers.signal is the signal in use */
    struct sigaction believed;   /* what sigaction() answers for it */
    _Atomic uint32_t taken;      /* times that the application took our signal away */
    _Atomic bool moving;         /* one thread is changing the signal, all signals blocked */
    bool blocked_for_move;       /* that thread's: they are */
    uint64_t mask_before_move;   /* that thread's own */
    _Atomic bool waited_in_vain; /* for the end of this move */
    pid_t pid;                   /* whose state this is */
    _Atomic bool timers_stay;    /* masked_threads_stop() */
    _Atomic bool pending_stay;   /* sampler_leave_pending() */
    struct libc_signal libcs;    /* for threads that block ours */
    bool helper_asked;           /* for a signal; see sampler_watch_helper() */
    bool tracer_looked_for;      /* by the helper, once */
    bool traced;                 /* it was, then */
    bool logged_taken;           /* of sampler_report() */
    bool logged_refused;
    bool logged_slow;
    bool logged_late;
};

/* The room's one: a signal handler must find it. */
extern struct sampler sampler;

/* Tells it what it works with, whether CPU time is sampled or not. Context: calm, at start. */
void sampler_prepare(const struct config *config, const struct log *log,
                     const struct recorder *recorder, const _Atomic bool *armed,
                     _Atomic(void (*)(bool calm)) const *want_helper);

/* Installs the handler, on SIGPROF or the configured signal if that has its default action, else on
 * a free real-time signal. false: no signal could be had (said in the log). Context: calm. */
bool sampler_install(void);

/* Sees to it that the calling thread, the helper, gets the signal by its own CPU clock; where CPU
 * time is not sampled, the handler is installed for that alone. false: there is no signal, or no
 * timer. Context: the helper. */
bool sampler_watch_helper(void);

/* The application takes `number` for itself: if it is the signal in use, moves to a free real-time
 * signal, or, if there is none, stops sampling CPU time. Whatever of ours is pending is discarded,
 * what is the program's stays, and the signal has its default action. Waits for a thread that is
 * changing the signal or its timers. false: that thread did not end in time, and nothing has
 * changed. Context: any. Async-signal-safe: yes. */
bool sampler_give_signal_away(int number);

/* Expiries of ours that are pending for the calling thread or the process are dropped; what is the
 * program's stays. Context: any. Async-signal-safe: yes. errno is changed. */
void sampler_drop_expiries(void);

/* Code comes whose calls we do not see: moves to a real-time signal, which it will hardly name, if
 * one is free. Context: calm. */
void sampler_choose_unnamed_signal(void);

/* Looks whether the handler is still ours: a program may install its own by a bare system call,
 * which no hook sees, or libc may; then gives the signal away without touching that handler.
 * Context: the helper, or calm before main. */
void sampler_check_signal(void);

/* Says in the log, once each, what has come in the way of sampling; `merged` is how many expiries
 * of timers were merged into a later one so far (DROP_OVERRUN). Context: the helper. */
void sampler_report(uint64_t merged);

/* Whether `number` is the signal that we use now. Async-signal-safe: yes. */
bool sampler_uses(int number);

/* Whether a signal of the number that we use, or used, is an expiry of a timer of ours. One that a
 * tracer held back is counted, and its time is in the next sample. Context: any.
 * Async-signal-safe: yes. errno is preserved. */
bool sampler_sent(const siginfo_t *info);

/* Waits until no other thread is just changing the signal, so that what sampler_uses() answers, and
 * what the kernel has for the signal, belong together. Gives up after a second. Context: any. */
void sampler_wait_stable(void);

/* What sampler_uses() answers once no other thread is changing the signal, or after a second. A
 * change that begins meanwhile is waited for, too. Context: any. */
bool sampler_uses_when_stable(int number);

/* An action that the kernel told, as the program may see it: in place of our handler what it
 * believes about that signal. Async-signal-safe: yes. */
struct sigaction sampler_action_seen(const struct sigaction *action);

/* Whether CPU time is sampled at present. Context: any. Async-signal-safe: yes. */
bool sampler_is_on(void);

/* CPU time of every thread is sampled by the present settings, or is not, from now on. What a
 * thread uses while it is not is in no sample, ever. The caller is in sampler_begin_move().
 * Context: calm. */
void sampler_follow_settings(void);

/* The calling thread's timer has the period that is set at present. Context: the thread itself.
 * Async-signal-safe: yes. */
void sampler_follow_period(struct thread_state *thread);

/* Whether the calling thread may change the signal, or the timers of all threads: one does at a
 * time, and takes no signal meanwhile. sampler_end_move() is to be called then. Context: any.
 * Async-signal-safe: yes. */
bool sampler_begin_move(struct sampler *s);

/* The same, but waits while another thread does so, for half a second or more. false: it still
 * does, or it is not in this process. Context: any. Async-signal-safe: yes. errno is preserved. */
bool sampler_begin_move_in_turn(struct sampler *s);
void sampler_end_move(struct sampler *s);

/* Starts, or ends, CPU sampling of the calling thread, which gets a signal stack of ours: one that
 * can have none is not sampled, and that is counted. Context: calm. */
void sampler_start_thread(struct thread_state *thread);
void sampler_stop_thread(struct thread_state *thread);

/* In a forked child: timers and what other threads were doing are gone. Context: fork handler. */
void sampler_after_fork(void);

/* No more CPU samples in this process. The signal has the action that the program believes in;
 * under a tracer, which may hold an expiry back beyond the end of the timers, it keeps our handler.
 * Context: calm. */
void sampler_stop(void);

/* After sampler_stop(): waits, within a bound of a tenth of a second or more, until the kernel says
 * that no other thread is in our handler, its return included. Where /proc is out of sight it does
 * not wait. Context: calm. errno is changed. */
void sampler_wait_for_handlers(void);

/* Signals that are pending may not be looked at any more: a filter of system calls would kill. What
 * is pending when the signal is given up is discarded, the program's too. Context: any. */
void sampler_leave_pending(void);

/* --- called from signal_entry.c only --- */

/* The handler, as given to the kernel. */
void signal_entry(int number, siginfo_t *info, void *context);
/* On the thread's signal stack. true: the signal was ours. */
bool sampler_on_signal(int number, siginfo_t *info, void *context);
/* On the interrupted stack: a signal that is not from our timers does what it would have done. */
void sampler_pass_on(int number, siginfo_t *info, void *context);

#endif
