/* Watching the main thread from the helper.
 *
 * It may end unseen, by the kernel's hand (a sandbox's) or by a bare exit(2), and the helper must
 * not keep the process alive behind it. Who sees that coming asks for the watch; from then on the
 * helper looks whether it is still there, at first often, later five times a second. When it is
 * not, nor another thread, the helper ends after a last cycle, and the process with it. No exit
 * handler runs.
 */
#ifndef OTELPROF_MAIN_WATCH_H
#define OTELPROF_MAIN_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum main_watch_state { WATCH_NOTHING, WATCH_ASKED, WATCH_MAIN };

/* A part of struct helper. What is the helper's own nobody else reads or writes. */
struct main_watch {
    pthread_t main;           /* the first of the process; after a fork the one that forked */
    _Atomic uint32_t state;   /* enum main_watch_state */
    _Atomic int expected_end; /* its status, where the kernel's word cannot be read */
    _Atomic int others_end;   /* the status of who outlives it: 0, but by a bare exit(2) */
    uint64_t round_ms;        /* the helper's own: until it looks again */
    bool outlived;            /* the helper's own: it has seen main gone, and others not */
    bool alone;               /* the helper's own: it is the last, and ends the process */
};

/* --- for the application's threads --- */

/* The calling thread is the main thread. Async-signal-safe: yes. */
bool main_watch_is_main(void);

/* The main thread has ended, and the process goes on. Async-signal-safe: yes. */
bool main_watch_main_has_ended(void);

/* Somebody has asked for the watch. Async-signal-safe: yes. */
bool main_watch_is_on(void);

/* Asks for the watch. The process will have the main thread's status (`expected`, as wait(2) tells
 * it, where /proc is out of sight), or that of the threads that were seen to outlive it. Context:
 * calm. */
void main_watch_begin(int expected);

/* The calling thread, which is not the main thread, ends by a bare exit(2), with `status` as
 * wait(2) tells it. Context: calm. */
void main_watch_other_ends(int status);

/* --- for the helper --- */

/* When a sleep is to end (CLOCK_MONOTONIC, ns) for the next look at the main thread; UINT64_MAX:
 * there is nothing to look after. Before each sleep. */
uint64_t main_watch_next_look(void);

/* After each sleep: where the main thread has ended alone, a last cycle is requested. */
void main_watch_look(void);

/* Ends the thread, and with it the process, as the one did that it was left alone by. */
void main_watch_end_process(void);

void main_watch_after_fork(void);

#endif
