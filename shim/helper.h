/* The helper thread "otelprof", and what keeps it out of the application's way.
 *
 * It waits until the process has lived long enough, loads libotelprof-flush.so and runs it. It has
 * all signals blocked, descriptors of its own, and is never sampled. The gate is a lock with two
 * sides: the helper holds it while it is inside a library whose own locks the application may
 * share; fork() and exit() close it, so that the child of a fork inherits none of those locks held,
 * and no library is used while it is torn down.
 */
#ifndef OTELPROF_HELPER_H
#define OTELPROF_HELPER_H

#include "config.h"
#include "log.h"
#include "origin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether there is a helper, as those see it who wait for its end. A forked child begins at NONE.
 */
enum helper_state {
    HELPER_NONE,    /* not started, or ended for a while (helper_withdraw) */
    HELPER_RUNNING, /* its thread was created, or is about to be */
    HELPER_DONE,    /* at rest for good: it touches no library any more */
};

/* How far a running one is. Whoever changes WAITS, by compare-and-swap, has it his way: the helper
 * that goes on to load, or another thread that ends it before it has loaded anything. */
enum helper_stage {
    HELPER_STARTS,    /* the thread that creates it is at it still */
    HELPER_WAITS,     /* for the process to have lived long enough */
    HELPER_LOADS,     /* libotelprof-flush.so; from now on it ends at rest, never by leaving */
    HELPER_WITHDRAWN, /* it ends without having loaded anything */
};

/* Whether it is to load before its time (helper_load_early). */
enum helper_early { EARLY_NOT_ASKED, EARLY_ASKED, EARLY_DONE };
enum helper_watch { WATCH_NOTHING, WATCH_ASKED, WATCH_MAIN };

struct helper {
    const struct config *config;
    struct log *log;
    const struct origin *origin;
    uint64_t start_nano; /* CLOCK_MONOTONIC, of this process's profiling */
    uint64_t start_unix_nano;
    const char *flush_path;         /* of libotelprof-flush.so */
    void (*before_libraries)(void); /* registers our exit handler behind those of the libraries */
    _Atomic uint32_t state;         /* enum helper_state; a futex */
    _Atomic uint32_t request;       /* WAIT_*; a futex */
    bool stop_handed_over;          /* the helper's own: wait() has answered WAIT_STOP */
    _Atomic uint32_t gate;          /* a futex; see helper.c */
    _Atomic bool endpoint_answered;
    _Atomic bool loading;      /* the flush side, under the gate */
    _Atomic bool finished;     /* helper_finish() was called: there is no helper any more */
    _Atomic bool stuck;        /* a fork has waited in vain for the gate; none does again */
    _Atomic uint32_t early;    /* enum helper_early; a futex */
    _Atomic uint64_t leave_at; /* CLOCK_MONOTONIC; not 0: see helper_leave() */
    _Atomic uint32_t stage;    /* enum helper_stage: until it loads anything it can be withdrawn */
    _Atomic uint32_t tid;
    pthread_t thread;          /* known from HELPER_WAITS on */
    _Atomic bool parted;       /* somebody joins the thread, or it has detached itself */
    void *kept;                /* capture_api.kept */
    _Atomic bool waits;        /* in the flush side's wait(), or for its time: the gate is next */
    _Atomic bool rests;        /* in its last sleep */
    _Atomic bool whole;        /* while a fork has the gate closed: so is `kept` */
    _Atomic pthread_t forking; /* the thread that has closed the gate for its fork; 0: none */
    pthread_t main;            /* the first of the process; after a fork the one that forked */
    _Atomic uint32_t watch;    /* enum helper_watch: of `main` */
    _Atomic int expected_end;  /* its status, where the kernel's word cannot be read */
    uint64_t watch_round_ms;   /* the helper's own: until it looks again */
    _Atomic int others_end;    /* the status of who outlives it: 0, but by a bare exit(2) */
    bool main_outlived;        /* the helper's own: it has seen main gone, and others not */
    bool alone;                /* the helper's own: it is the last, and ends the process */
    uint64_t (*shutdown_timeout_ms)(void);
};

/* The one helper of this process. */
extern struct helper helper;

/* Starts the thread; once per process. false: the kernel refused (said in the log).
 * Context: calm. */
bool helper_start(void);

/* Asks for a last cycle and waits for it, at most `timeout_ms`; then keeps the helper out of every
 * library for ever. Context: calm. */
void helper_finish(uint64_t timeout_ms);

/* After helper_finish(), if the helper has come to rest: its thread ends, and is gone when this
 * returns. Context: calm, while nothing is being torn down. */
void helper_part(void);

/* The application's last thread is ending: a process ends with its last thread, and ours must not
 * keep it alive. After a last cycle, of at most `timeout_ms`, the helper ends, and is gone when
 * this returns: whoever ends last runs the exit handlers. One that does not find its end in time is
 * outlived by a thread that shares the application's descriptors. Context: calm. */
void helper_leave(uint64_t timeout_ms);

/* The main thread may end unseen, by the kernel's hand or by a bare exit(2), and ours must not keep
 * the process alive behind it. From now on the helper looks whether it is still there, at first
 * often, later five times a second; when it is not, nor another thread, the helper ends after a
 * last cycle, and the process with the main thread's status (`expected`, as wait(2) tells it, where
 * /proc is out of sight), or that of the threads that were seen to outlive it. No exit handler
 * runs. Context: an application's thread, calm. */
void helper_watch_main(int expected);

/* A thread that is not the main thread ends by a bare exit(2), with `status` as wait(2) tells it.
 * Context: that thread, calm. */
void helper_other_ends(int status);
bool helper_is_main(void); /* the calling thread. Async-signal-safe: yes */

/* Whether the process has lived for OTEL_PROFILER_MIN_LIFETIME: before that the helper only waits,
 * and nothing is sent. Context: async-signal-safe. */
bool helper_is_due(void);

/* Ends the helper for a while, if it has not loaded anything yet: some calls are for processes of
 * one thread only. true: it is gone, and helper_return() is to be called. Context: calm. */
bool helper_withdraw(void);
void helper_return(void);

/* The process is about to lose sight of its files: what the helper will load it loads now, if it
 * has not; waits for that (some 10 ms), at most half a second. It still exports nothing before its
 * time. Context: calm. */
void helper_load_early(void);

/* Around fork(): closes and opens the gate. `has_helper`: false in a process that a bare clone(2)
 * has made, which has the helper's variables and no helper. Waits at most half a second; while
 * libraries are being loaded, which takes some 10 ms once in a process, until that is done.
 * Context: calm. */
void helper_close_gate(bool has_helper);
void helper_open_gate(void);

/* Around a call that makes a child which no fork handler sees: waits until the helper is no new
 * thread any more and does nothing, at most half a second, and closes the gate as for a fork.
 * true: it is to be opened again, in this process. Context: any. */
bool helper_close_gate_to_copy(void);

/* Around fork(), before libc's handlers close the gate, which then is: the same when the helper
 * does nothing, within half a second. false: it is at work, or another thread forks.
 * Async-signal-safe: yes. */
bool helper_close_gate_at_rest(void);

/* Whether the helper, if there is one, sleeps and cannot go on: behind its time, for good, or
 * behind the gate that this thread has closed. Async-signal-safe: yes. */
bool helper_is_at_rest(void);

/* In a forked child there is no helper. */
void helper_after_fork(void);

#endif
