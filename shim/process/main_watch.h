/* Watches the main thread from the helper.
 *
 * The main thread may end unseen, by the kernel (a sandbox) or by a bare exit(2), and the helper
 * must not keep the process alive after that. A hook that expects such an end requests the watch.
 * From then on the helper checks the main thread, at first often, later five times a second. When
 * no thread of the application is left, the helper ends after a last cycle, and the process ends
 * with it. No exit handler runs.
 */
#ifndef OTELPROF_MAIN_WATCH_H
#define OTELPROF_MAIN_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum main_watch_state { WATCH_NOTHING, WATCH_ASKED, WATCH_MAIN };

/* Holds the state of the watch, as a part of struct helper. Fields "of the helper" are read and
 * written on that thread only. */
struct main_watch {
    /* the process's first thread; in a forked child the thread that forked */
    pthread_t main;
    _Atomic uint32_t state; /* enum main_watch_state */
    /* wait(2) status of the main thread; used if the kernel's status cannot be read */
    _Atomic int expected_end;
    /* status of a thread that outlives the main thread; 0, except after a bare exit(2) */
    _Atomic int others_end;
    uint64_t round_ms; /* of the helper: time until the next check */
    bool outlived;     /* of the helper: main had ended while other threads ran */
    bool alone;        /* of the helper: only the helper is left, and ends the process */
};

/* --- for the application's threads --- */

/* Returns true if the calling thread is the main thread. Async-signal-safe: yes. */
bool main_watch_is_main(void);

/* Returns true if the main thread has ended, and the process continues. Async-signal-safe: yes. */
bool main_watch_main_has_ended(void);

/* Returns true if the watch was requested. Async-signal-safe: yes. */
bool main_watch_is_on(void);

/* Requests the watch, and waits at most 20 ms until the helper has noticed that. The process will
 * end with the main thread's wait(2) status (`expected`, if /proc is hidden), or with the status of
 * a thread that was seen to outlive it. Context: calm. */
void main_watch_begin(int expected);

/* Records that the calling thread, which is not the main thread, ends by a bare exit(2), with the
 * wait(2) status `status`. Context: calm. */
void main_watch_other_ends(int status);

/* --- for the helper --- */

/* Returns when a sleep must end for the next poll (CLOCK_MONOTONIC, ns); UINT64_MAX: nothing is
 * watched. Called before each sleep. */
uint64_t main_watch_next_poll(void);

/* Requests a last cycle if the main thread has ended and no other thread is left. Called after each
 * sleep.
 */
void main_watch_poll(void);

/* Ends the thread, and with it the process, with the status of the last application thread. */
void main_watch_end_process(void);

void main_watch_after_fork(void);

#endif
