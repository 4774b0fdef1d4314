/* Declares the capture world: everything that runs on the application's own threads.
 *
 * Only the hooks, the harvest and the life cycle name `capture`, a struct that contains the state
 * of most modules; the modules below get pointers to the parts that they use. Where a signal
 * handler or free() must find the state, it is a struct of its own module: `sampler`,
 * `helper_heap`, `allocation_path`. On paths that a signal or an allocation can reach, this world
 * calls neither the flush world nor libc's malloc, stdio or the loader. */
#ifndef OTELPROF_CAPTURE_H
#define OTELPROF_CAPTURE_H

#include "allocator/allocation_path.h"
#include "config.h"
#include "context/context.h"
#include "cpu/sampler.h"
#include "frames/python.h"
#include "harvest.h"
#include "heap/heap.h"
#include "log.h"
#include "record/kernel_workers.h"
#include "record/record.h"
#include "record/thread_table.h"
#include "record/unknown_threads.h"
#include "settings.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"
#include "wait/wait_sampler.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

/* Holds the state of the capture world. A forked child writes the members from the end of `modules`
 * to the beginning of `threads`. These share one page, because the child copies each page that it
 * writes. */
struct capture {
    struct modules modules;
    const struct config *config;
    const struct log *log;
    _Atomic bool armed;                /* threads register themselves, and samples are taken */
    _Atomic bool has_handlers;         /* the program has set functions for signals */
    _Atomic bool uses_interval_timers; /* the program has set ITIMER_VIRTUAL or ITIMER_PROF */
    _Atomic bool left;                 /* a thread has left: capture_leave_thread() */
    /* the next harvest is the last one: it reports remainders, too */
    _Atomic bool last_harvest;
    /* the number of the application's threads, as far as it is known */
    _Atomic int32_t live_threads;
    void (*on_last_thread)(void); /* called when that number reaches 0. Context: calm */
    bool alloc_on;                /* allocations are sampled (alloc or heap) */
    bool mmap_on;                 /* the program's own mappings are sampled, too */
    uintptr_t allocator_base;     /* start of the next malloc's object; 0: it may be unloaded */
    bool malloc_is_profilers;     /* allocation_path_is_used() */
    pid_t pid; /* differs from getpid() in a vfork()ed child, which shares our memory */
    /* Requests a helper thread from the life cycle. NULL: there is a helper, or there will be none.
     * `calm`: a thread may be created here; otherwise the callee checks (thread_is_calm). Context:
     * a hook, on a thread of the application. */
    _Atomic(void (*)(bool calm)) want_helper;
    struct heap heap;
    struct recorder recorder;
    struct thread_table threads;
    /* used by the helper: counts that it has already logged */
    uint64_t logged_dropped[DROP_REASON_COUNT];
    /* CPU time, in ns, of children that ended without an export: child_ledger.h */
    _Atomic uint64_t short_child_nano;
    struct sampling_costs costs; /* used by the helper */
    struct unknown_threads unknown_threads;
    struct kernel_workers kernel_workers;
    struct context_reader contexts;
    _Alignas(ARCH_LARGEST_PAGE_BYTES) struct rule_cache rules;
    struct unwinder unwinder;      /* begins the page that holds rules.generation */
    struct settings settings;      /* changed by change_settings.h */
    struct settings_values wanted; /* the program's settings, which hold again after a pause */
    _Atomic bool paused;           /* the program has paused sampling */
    struct wait_sampler waits;
    /* address of generated code that was found running last: unwinder.generated */
    _Atomic uintptr_t generated_code;
    struct python python;
    struct registered_tables registered_tables;
};
_Static_assert(offsetof(struct capture, modules.current) / 4096 ==
                   (offsetof(struct capture, threads.pool.segments) - 1) / 4096,
               "one page to copy");

extern struct capture capture;

/* True: nothing is sampled now, and sampling never begins (again), so hooks need not check
 * further. */
extern _Atomic bool capture_is_off;

/* --- capture.c: switching on and off --- */

/* Prepares tables and arms sampling of the calling thread as `config` says. Parts that are
 * unavailable are logged and left out. Returns false if nothing could be armed. Context: calm, at
 * start. */
bool capture_start(const struct config *config, const struct log *log);

/* Turns the hooks off in a process that is not profiled, instead of capture_start(). From each
 * thread's second call on, a hook forwards without reading profiler state. Context: calm, at
 * start. */
void capture_decline(void);

/* Discards the parent's samples and locks in a forked child, and registers the calling thread
 * again. Context: fork handler. */
void capture_after_fork(void);

/* Stops sampling and deletes timers. Context: calm. */
void capture_stop(void);

/* Does what capture_stop() does, and waits, within a bound, until other threads have left our
 * signal handler and the code that makes system calls for the profiler. After that they make no
 * such call, not even the return from a signal. Context: calm. */
void capture_stop_and_wait(void);

/* --- harvest.c --- */
/* Fills in capture's functions of the interface to flush. Context: calm. */
void harvest_fill_api(struct capture_api *api);

#endif
