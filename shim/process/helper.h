/* The helper thread (helper_name.h), and what keeps it out of the application's way.
 *
 * It waits until main has begun and the process has lived long enough. Then it loads
 * libotelprof-flush.so and runs it. It has all signals blocked, descriptors of its own, and is
 * never sampled. It works under a lock, which fork() and exit() close: quiesce_lock.h.
 */
#ifndef OTELPROF_HELPER_H
#define OTELPROF_HELPER_H

#include "config.h"
#include "file_root.h"
#include "harvest.h"
#include "log.h"
#include "main_watch.h"
#include "origin.h"
#include "quiesce_lock.h"
#include "state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether it is to load before its time (helper_load_early). */
enum helper_early { EARLY_NOT_ASKED, EARLY_ASKED, EARLY_DONE };

struct helper {
    const struct config *config;
    struct log *log;
    const struct origin *origin;
    const char *const *variables; /* capture_api.variables */
    uint64_t start_nano;          /* CLOCK_MONOTONIC, of this process's profiling */
    uint64_t start_unix_nano;
    uint64_t start_cpu_nano;
    struct file_root root;          /* of the process, as it started */
    const char *flush_path;         /* of libotelprof-flush.so, beside libotelprof.so */
    const char *release_path;       /* in the folder of its release there: `make install` */
    bool other_release;             /* what was loaded is of another build */
    bool shares;                    /* what was said is shared with forked children (log.h) */
    flush_main *run;                /* its entry point, once it is loaded; in a forked child, too */
    void (*before_libraries)(void); /* registers our exit handler behind those of the program's */
    _Atomic uint32_t state;         /* enum helper_state (state.h); a futex */
    _Atomic uint32_t request;       /* WAIT_* */
    _Atomic uint32_t wakes;         /* helper_wake(): a futex; wraps */
    bool stop_handed_over;          /* the helper's own: wait() has answered WAIT_STOP */
    bool suspends;                  /* the helper's own: wait() has answered WAIT_SUSPEND */
    _Atomic bool endpoint_away;     /* the receiver, at the last try, and that has been said */
    _Atomic bool libraries_outlive_exit; /* what the helper uses is not torn down there */
    _Atomic bool loading;                /* in the loader or about to be, under the quiesce lock */
    _Atomic bool disabled;               /* by the configuration file; in forked children, too */
    _Atomic bool main_begun;             /* helper_main_begins(); in forked children, too */
    _Atomic bool initialised;            /* all that it loads, in this process or before a fork */
    bool opens;                          /* the helper's own: flush is to open, and no more */
    _Atomic uint32_t early;              /* enum helper_early; a futex */
    _Atomic uint64_t leave_at;           /* CLOCK_MONOTONIC; not 0: see helper_leave() */
    _Atomic uint32_t tid;
    _Atomic bool follows_ids; /* by calls of its own: helper_rights_hold() */
    pthread_t thread;         /* known from HELPER_WAITS on */
    _Atomic bool joined;      /* somebody joins the thread, or it has detached itself */
    void *kept;               /* capture_api.kept */
    void *suspended;          /* capture_api.suspended */
    struct capture_api api;   /* the flush side's, from then on */
    uint64_t spent_nano;      /* CPU time of the threads that were the helper before */
    _Atomic bool waits;       /* in the flush side's wait(), or for its time: the lock is next */
    _Atomic bool rests;       /* in its last sleep */
    struct quiesce_lock lock;
    struct main_watch watch;
};

/* The one helper of this process. */
extern struct helper helper;

/* Starts the thread; once per process. false: the kernel refused (said in the log).
 * Context: calm. */
bool helper_start(void);

/* The process is past helpers (state.h). Asks for a last cycle and waits for it, at most
 * `timeout_ms`. A helper that is not done by then is said to be late, and does not sleep any more;
 * where a library that it uses may be torn down, or is being loaded, it is waited for until it has
 * left it, and kept out of every library. Context: calm. */
void helper_finish(uint64_t timeout_ms);

/* The last part of that alone: nobody is woken, and without a helper at work nobody waited for. */
void helper_keep_out(void);

/* If the helper has come to rest: its thread ends, and is gone when this returns. true: so it is,
 * by this call. Context: calm, while nothing is being torn down. */
bool helper_join(void);

/* The application's last thread is ending: a process ends with its last thread, and ours must not
 * keep it alive. After a last cycle, of at most `timeout_ms`, the helper ends, and is gone when
 * this returns: whoever ends last runs the exit handlers. One that does not find its end in time is
 * outlived by a thread that shares the application's descriptors. Context: calm. */
void helper_leave(uint64_t timeout_ms);

/* Whether the process has lived for OTEL_PROFILER_MIN_LIFETIME: before that the helper only waits,
 * and nothing is sent. Context: async-signal-safe. */
bool helper_is_due(void);

/* All constructors have run, and main is about to be called: the helper may enter the loader. A
 * helper that waits for it polls. Context: calm, once, without a system call. */
void helper_main_begins(void);

/* Has the helper look at what it is to do, if it sleeps or is about to: what was stored before the
 * call it sees before its next sleep. Context: async-signal-safe. */
void helper_wake(void);

/* Ends the helper's thread if it has not loaded anything yet. true: it is gone; helper_start() may
 * make another. Context: calm. */
bool helper_suspend_waiting(void);

/* Ends the thread of a helper that has loaded libraries, with what it had begun kept whole, unless
 * it is at work for longer than `timeout_ms`. true: as helper_suspend_waiting(). Context: calm. */
bool helper_suspend_working(uint64_t timeout_ms);

/* After one of these: a helper, which is the calling thread's child in all that threads inherit.
 * Context: calm. */
void helper_replace(void);

/* The process is about to lose sight of its files: what the helper will load it loads and
 * initialises now, if it has not; waits for that (some 30 ms), at most half a second. It still
 * exports nothing before its time. Context: calm. */
void helper_load_early(void);

/* Has it end for good as soon as it leaves what it is in, without a last cycle; says `why`. On
 * the helper's thread, too. Context: calm. */
void helper_end(const char *why);

/* CPU time that it has used so far, nanoseconds. Context: any. */
uint64_t helper_cpu_nano(void);

/* Whether this process is the one that the helper's state is about: not in a child of vfork() or of
 * a bare clone(2). Async-signal-safe: yes. */
bool helper_is_of_this_process(void);

/* In a forked child there is no helper. false: nor should there be, for the parent's was inside of
 * a library when the child was made. */
bool helper_after_fork(void);

#endif
