/* Which end of the process is the first: exit, `_exit`, a signal that ends it.
 *
 * The first makes the last export, which takes time, and the process ends with its status. Another
 * thread may end the process meanwhile. Without us the first would have ended it by then, so the
 * others wait: all until one moment, which the first sets when it takes the turn. No other end
 * begins that time anew, so none waits longer than one export may take. Then an end that has waited
 * goes on, and ends the process itself.
 *
 * The thread that has the turn never waits: an exit handler of its own, or a signal handler that
 * interrupts it, may end the process, too. An exit handler may also end that thread alone, by
 * pthread_exit(). Then the process goes on until its last thread ends, and the others wait no
 * longer.
 *
 * Context of all: any. Async-signal-safe: yes; errno is preserved, and no wait is a cancellation
 * point. The system calls are gettid, getpid, futex and tgkill.
 */
#ifndef OTELPROF_END_TURN_H
#define OTELPROF_END_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum end_turn_stage {
    END_TURN_EXPORTS, /* the last export is under way */
    END_TURN_ENDS,    /* it is over, and the process about to end */
    END_TURN_LEFT,    /* it is over, and the process goes on */
};

/* All zero: no end has begun. */
struct end_turn {
    /* The id of the thread that has it, and the moment (CLOCK_MONOTONIC, ms). One word, so that a
     * signal handler never finds one without the other. Set once, by end_turn_take(); the others
     * read it. */
    _Atomic uint64_t taken;
    _Atomic uint32_t stage; /* enum end_turn_stage, set by the thread that has it; a futex */
    /* A signal that came to that thread during the export: set in its handler, read by the thread
     * itself. 0: none. */
    _Atomic int held;
};

/* Takes it for the calling thread; the others wait for `timeout_ms` from now on. false: another end
 * has it, or this thread has had it before. */
bool end_turn_take(struct end_turn *turn, uint64_t timeout_ms);

/* The thread that has it goes on to a stage. */
void end_turn_enter(struct end_turn *turn, enum end_turn_stage stage);

/* In a signal handler. true: it has interrupted the export of the end that this thread has begun,
 * which goes on, and the signal is to come again after it. */
bool end_turn_hold(struct end_turn *turn, int number);

/* On the thread that has it, after the export: sends the thread the signal that was held. Without
 * us it would have met it in its exit handlers, or later. */
void end_turn_raise(struct end_turn *turn);

/* Waits until the process is gone, the moment has come, the process goes on, or the thread that has
 * the turn has ended. Returns at once where no end has begun, and on the thread that has it. */
void end_turn_wait(struct end_turn *turn);

/* In a forked child, which has no other thread: no end has begun. */
void end_turn_after_fork(struct end_turn *turn);

#endif
