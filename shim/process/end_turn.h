/* Chooses the first of several concurrent ends of the process: exit, `_exit`, or a fatal signal.
 *
 * The first end makes the last export, which takes time, and the process ends with the first end's
 * status. Another thread may end the process meanwhile. Without the profiler the first end would be
 * over by then. So the other ends wait until a deadline that the first end sets when it takes the
 * turn. No other end moves this deadline, so no end waits longer than one export may take. An end
 * that reaches the deadline ends the process itself.
 *
 * The thread that has the turn never waits: one of its exit handlers, or a signal handler that
 * interrupts it, may end the process, too. An exit handler may also end that thread alone, by
 * pthread_exit(). Then the process continues until its last thread ends, and the other ends stop
 * waiting.
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
    END_TURN_EXPORTS, /* the last export is running */
    END_TURN_ENDS,    /* the export is over, and the process is about to end */
    END_TURN_LEFT,    /* the export is over, and the process continues */
};

/* Holds the turn. Initially all zero: no end has begun. */
struct end_turn {
    /* The thread that has the turn, and the deadline of the others' waits (CLOCK_MONOTONIC, ms).
     * Both share a word, so that a signal handler never reads one without the other. Set once, by
     * end_turn_take(). */
    _Atomic uint64_t taken;
    _Atomic uint32_t stage; /* enum end_turn_stage, set by the thread that has the turn; a futex */
    /* The signal that came to that thread during the export; 0: none. Set in the signal's handler,
     * read by the thread itself. */
    _Atomic int held;
};

/* Takes the turn for the calling thread; other ends wait for `timeout_ms` from now on. Returns
 * false if another end has the turn, or if this thread had it before. */
bool end_turn_take(struct end_turn *turn, uint64_t timeout_ms);

/* Enters a stage. Called by the thread that has the turn. */
void end_turn_enter(struct end_turn *turn, enum end_turn_stage stage);

/* Holds a signal back; called in its handler. Returns true if this thread has the turn and the
 * signal has interrupted its export. Then the export continues, and end_turn_raise() sends the
 * signal again later. */
bool end_turn_hold(struct end_turn *turn, int number);

/* Sends this thread the signal that was held back during the export. Without the profiler the
 * signal would have come during the exit handlers, or later. */
void end_turn_raise(struct end_turn *turn);

/* Waits until the process ends, the deadline passes, the process is known to continue, or the
 * thread that has the turn has ended. Returns at once if no end has begun, and on the thread that
 * has the turn.
 */
void end_turn_wait(struct end_turn *turn);

/* Resets the turn in a forked child, which has no other thread. */
void end_turn_after_fork(struct end_turn *turn);

#endif
