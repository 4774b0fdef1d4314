/* The helper thread (helper_name.h) does the profiler's work apart from the application's threads.
 *
 * It waits until main has begun and the process has lived long enough. Then it loads
 * libotelprof-flush.so and runs it. It has all signals blocked, descriptors of its own, and is
 * never sampled. It works under a lock, which fork() and exit() close: quiesce_lock.h.
 */
#ifndef OTELPROF_HELPER_H
#define OTELPROF_HELPER_H

#include "config.h"
#include "descriptors.h"
#include "file_root.h"
#include "harvest.h"
#include "log.h"
#include "main_watch.h"
#include "origin.h"
#include "quiesce_lock.h"
#include "served_descriptors.h"
#include "state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* State of a request to load early (helper_load_early). */
enum helper_early { EARLY_NOT_ASKED, EARLY_ASKED, EARLY_DONE };

struct helper {
    const struct config *config;
    struct log *log;
    const struct origin *origin;
    const char *const *variables; /* capture_api.variables */
    uint64_t start_nano;          /* start of this process's profiling, CLOCK_MONOTONIC */
    uint64_t start_unix_nano;
    uint64_t start_cpu_nano;
    struct file_root root;    /* the process's root at its start */
    const char *flush_path;   /* libotelprof-flush.so beside libotelprof.so */
    const char *release_path; /* the same in the folder of its release there: `make install` */
    bool other_release;       /* the loaded library is of another build */
    bool shares;     /* the "already logged" flags are shared with forked children (log.h) */
    flush_main *run; /* the library's entry point, once it is loaded; in a forked child, too */
    void (*before_libraries)(void); /* registers the profiler's exit handler after the program's */
    _Atomic uint32_t state;         /* enum helper_state (state.h); a futex */
    _Atomic uint32_t request;       /* REQUEST_* */
    _Atomic uint32_t wakes;         /* counted by helper_wake(): a futex; wraps */
    bool stop_handed_over; /* used by the helper only: wait.until() has returned REQUEST_STOP */
    bool suspends;         /* used by the helper only: wait.until() has returned REQUEST_SUSPEND */
    _Atomic bool endpoint_away;          /* the last export did not arrive, and that is logged */
    _Atomic bool libraries_outlive_exit; /* exit does not tear down the helper's libraries */
    _Atomic bool loading;     /* is in the loader or about to enter it, under the quiesce lock */
    _Atomic bool disabled;    /* by the configuration file; in forked children, too */
    _Atomic bool main_begun;  /* helper_main_begins(); in forked children, too */
    _Atomic bool initialised; /* all libraries are initialised, in this process or before a fork */
    bool opens; /* used by the helper only: the flush side opens its files, and does not run */
    _Atomic uint32_t early;    /* enum helper_early; a futex */
    _Atomic uint64_t leave_at; /* CLOCK_MONOTONIC; not 0: see helper_leave() */
    _Atomic uint32_t tid;
    _Atomic bool follows_ids; /* with calls of its own: helper_rights_hold() */
    pthread_t thread;         /* valid from HELPER_WAITS on */
    _Atomic bool joined;      /* a thread joins the helper, or the helper has detached itself */
    void *kept;               /* capture_api.lifecycle.kept */
    void *suspended;          /* capture_api.lifecycle.suspended */
    struct capture_api api;   /* given to the flush side */
    struct served_descriptors served; /* while it waits; used by the helper only */
    bool is_woken;                    /* by helper_wait_wake(); used by the helper only */
    uint64_t spent_nano;              /* CPU time of this process's earlier helper threads */
    _Atomic bool waits; /* in wait.until(), or until its time; then it enters the lock */
    _Atomic bool rests; /* sleeps until the process is gone */
    struct quiesce_lock lock;
    struct main_watch watch;
    struct descriptor_table table; /* used by the helper only */
};

/* The one helper of this process. */
extern struct helper helper;

/* Starts the thread; once per process. Returns false if the kernel refused, which is logged.
 * Context: calm. */
bool helper_start(void);

/* Requests a last cycle and waits for it, at most `timeout_ms`; the state of the process permits no
 * helper any more (state.h). Logs a helper that is late, and does not let it sleep any more. If
 * exit may tear down a library that the helper uses, or the helper is loading one, the call waits
 * until the helper has left it and blocks it from every library. Context: calm. */
void helper_finish(uint64_t timeout_ms);

/* Does the last part of helper_finish() alone: it wakes no thread, and waits only for a helper that
 * works. */
void helper_block_libraries(void);

/* Ends the thread of a helper that is done, and waits until it is gone. Returns true if this call
 * did so. Context: calm, while nothing is being torn down. */
bool helper_join(void);

/* Ends the helper because the application's last thread is ending: a process ends with its last
 * thread, and the helper must not keep it alive. The helper makes a last cycle of at most
 * `timeout_ms` and is gone when this returns, because the last thread to end runs the exit
 * handlers. A helper that does not finish in time is outlived by a thread that shares the
 * application's descriptors. Context: calm. */
void helper_leave(uint64_t timeout_ms);

/* Returns true if the process has lived for OTEL_PROFILER_MIN_LIFETIME: before that the helper only
 * waits, and sends nothing. Context: async-signal-safe. */
bool helper_is_due(void);

/* Reports that all constructors have run, and that main is about to be called: the helper may enter
 * the loader. The helper polls for it. Context: calm, once, without a system call. */
void helper_main_begins(void);

/* Wakes the helper if it sleeps or is about to: it sees all that was stored before this call before
 * it sleeps again. Context: async-signal-safe. */
void helper_wake(void);

/* Ends the helper's thread if it has not loaded anything yet. Returns true if the thread is gone;
 * then helper_start() may make another. Context: calm. */
bool helper_suspend_waiting(void);

/* Ends the thread of a helper that has loaded libraries, and keeps the work that it has begun;
 * gives up if the helper stays busy for longer than `timeout_ms`. Returns as
 * helper_suspend_waiting(). Context: calm. */
bool helper_suspend_working(uint64_t timeout_ms);

/* Starts a helper after helper_suspend_waiting() or helper_suspend_working(). It inherits all
 * thread attributes from the calling thread. Context: calm. */
void helper_replace(void);

/* Has the helper load and initialise its libraries now, because the process is about to lose sight
 * of its files. Waits for that (some 30 ms), at most half a second. The helper still exports
 * nothing before its time. Context: calm. */
void helper_load_early(void);

/* Ends the helper for good after its current step, without a last cycle; logs `why`. May be called
 * on the helper's thread. Context: calm. */
void helper_end(const char *why);

/* Returns the CPU time that the helper has used so far, in nanoseconds. Context: any. */
uint64_t helper_cpu_nano(void);

/* Returns true if the helper's state describes this process: false in a child of vfork() or of a
 * bare clone(2). Async-signal-safe: yes. */
bool helper_is_of_this_process(void);

/* Resets the state in a forked child, which has no helper. Returns false if none may be started,
 * because the parent's helper was inside a library when the child was made. */
bool helper_after_fork(void);

#endif
