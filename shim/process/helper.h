/* Declares the helper thread (helper_name.h), which does the profiler's work outside of the
 * application's threads.
 *
 * The helper waits until main has begun and the process has lived long enough. Then it loads
 * libotelprof-flush.so and runs it. The helper has all signals blocked and descriptors of its own,
 * and is never sampled. It works under a lock, which fork() and exit() close: quiesce_lock.h.
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
#include "state.h"
#include "watched_descriptors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Lists the states of a request to load early (helper_load_early). */
enum helper_early { EARLY_NOT_ASKED, EARLY_ASKED, EARLY_DONE };

struct helper {
    const struct config *config;
    struct log *log;
    const struct origin *origin;
    const char *const *variables; /* capture_api.variables */
    uint64_t start_nano;          /* start of this process's profiling, CLOCK_MONOTONIC */
    uint64_t start_unix_nano;
    uint64_t start_cpu_nano;
    struct file_root root;  /* the root folder that the process had at its start */
    const char *flush_path; /* path of libotelprof-flush.so beside libotelprof.so */
    /* path in the folder of this release beside libotelprof.so: `make install` creates it */
    const char *release_path;
    bool other_release; /* the loaded library belongs to another build */
    flush_main *run;    /* the library's entry point, once it is loaded; kept in a forked child */
    void (*before_libraries)(void); /* registers the profiler's exit handler after the program's */
    _Atomic uint32_t state;         /* enum helper_state (state.h); a futex */
    _Atomic uint32_t request;       /* REQUEST_* */
    _Atomic uint32_t wakes;         /* number of calls of helper_wake(); a futex; wraps */
    bool stop_handed_over; /* wait.until() has returned REQUEST_STOP; used by the helper only */
    bool suspends;         /* wait.until() has returned REQUEST_SUSPEND; used by the helper only */
    _Atomic bool endpoint_away;          /* the last export did not arrive, and that was logged */
    _Atomic bool libraries_outlive_exit; /* exit does not tear down the helper's libraries */
    /* the helper is in the loader, or about to enter it, under the quiesce lock */
    _Atomic bool loading;
    /* the configuration file disables the profiler; kept in forked children */
    _Atomic bool disabled;
    _Atomic bool main_begun;  /* helper_main_begins() was called; kept in forked children */
    _Atomic bool initialised; /* all libraries are initialised, in this process or before a fork */
    bool opens;               /* the flush side only opens its files now; used by the helper only */
    _Atomic uint32_t early;   /* enum helper_early; a futex */
    /* CLOCK_MONOTONIC; not 0: the helper must have left by then (helper_leave()) */
    _Atomic uint64_t leave_at;
    _Atomic uint32_t tid;
    _Atomic bool follows_ids;       /* helper_rights_hold() takes over ids by system calls */
    _Atomic uint32_t irreplaceable; /* calls of helper_keep() that were not undone */
    pthread_t thread;               /* valid from the state HELPER_WAITS on */
    _Atomic bool joined;    /* a thread will join the helper, or the helper has detached itself */
    void *kept;             /* capture_api.lifecycle.kept */
    void *suspended;        /* capture_api.lifecycle.suspended */
    struct capture_api api; /* the interface that is passed to the flush side */
    /* descriptors watched while the helper waits; used by the helper only */
    struct watched_descriptors watched;
    bool is_woken;       /* helper_wait_wake() was called; used by the helper only */
    uint64_t spent_nano; /* CPU time of the earlier helper threads of this process */
    /* the helper is in wait.until(), or waits until it is due; its next step is to enter the
     * lock */
    _Atomic bool waits;
    _Atomic bool rests; /* the helper sleeps until the process has ended */
    struct quiesce_lock lock;
    struct main_watch watch;
    struct descriptor_table table; /* used by the helper only */
};

/* Describes the helper of this process, which has at most one. */
extern struct helper helper;

/* Shares the "already logged" flags (log.h) with the children that are forked from now on, so that
 * a tree logs an unreachable receiver once. Precedes the thread: a program may fork before the
 * thread first runs. Context: calm, once. */
void helper_share_logged_flags(void);

/* Starts the thread, unless the process has one, had one that is done, or starts no helper any more
 * (state.h). Returns false if the kernel refused, after logging that. Context: calm. */
bool helper_start(void);

/* Requests a last cycle and waits for it, at most `timeout_ms`; the state of the process permits no
 * new helper by now (state.h). If the helper is late, logs that, and keeps the helper from sleeping
 * again. If exit may tear down a library that the helper uses, or the helper is loading a library,
 * waits until the helper has left that library, and keeps the helper out of every library. Context:
 * calm. */
void helper_finish(uint64_t timeout_ms);

/* Does only the last part of helper_finish(): wakes no thread, and waits only for a helper that is
 * working. */
void helper_block_libraries(void);

/* Ends the thread of a helper that is done, and waits until the kernel no longer knows it. Returns
 * true if this call did so. Context: calm, while no library is being torn down. */
bool helper_join(void);

/* Ends the helper because the application's last thread is ending: a process ends with its last
 * thread, and the helper must not keep it alive. The helper makes a last cycle of at most
 * `timeout_ms` and has ended when this function returns, because the last thread to end runs the
 * exit handlers. If the helper does not finish in time, another thread, which shares the
 * application's descriptors, outlives it. Context: calm. */
void helper_leave(uint64_t timeout_ms);

/* Returns true if the process has lived for OTEL_PROFILER_MIN_LIFETIME: until then the helper only
 * waits, and sends nothing. Async-signal-safe: yes. */
bool helper_is_due(void);

/* Reports that all constructors have run, and that main is about to be called: the helper, which
 * polls for this, may now enter the loader. Makes no system call. Context: calm, once. */
void helper_main_begins(void);

/* Wakes the helper if it sleeps or is about to: the helper sees everything stored before this call
 * before it sleeps again. Async-signal-safe: yes. */
void helper_wake(void);

/* Ends the helper's thread if it has not loaded a library yet. Returns true if the thread has
 * ended; then helper_start() may create another. Context: calm. */
bool helper_suspend_waiting(void);

/* Ends the thread of a helper that has loaded libraries, and keeps the work that it has begun.
 * Gives up if the helper stays busy for longer than `timeout_ms`. Returns true if the thread has
 * ended. Context: calm. */
bool helper_suspend_working(uint64_t timeout_ms);

/* Starts a helper after helper_suspend_waiting() or helper_suspend_working(). The helper inherits
 * ids, capabilities, filters and namespaces from the calling thread. Context: calm. */
void helper_replace(void);

/* Has the helper load and initialise its libraries now, because the process is about to lose access
 * to their files. Waits at most half a second (loading takes some 30 ms). The helper still exports
 * nothing before it is due. Context: calm. */
void helper_load_early(void);

/* Ends the helper for ever after its current step, without a last cycle; logs `why`. May be called
 * on the helper's thread. Context: calm. */
void helper_end(const char *why);

/* Returns the CPU time that the process's helper threads have used so far, in nanoseconds. Context:
 * any. */
uint64_t helper_cpu_nano(void);

/* Returns true if the helper's state describes this process: false in a child of vfork() or of a
 * bare clone(2). Async-signal-safe: yes. */
bool helper_is_of_this_process(void);

/* Resets the state in a forked child, which has no helper. Returns false if no helper may be
 * started, because the parent's helper was inside a library when the child was made. */
bool helper_after_fork(void);

#endif
