/* The capture world: everything that runs on the application's own threads.
 *
 * The hooks, the harvest and the life cycle name `capture`, which has the parts of most rooms in
 * one struct; the rooms below get a pointer to what they work on. What a signal handler or free()
 * must find by itself is a struct of its room: `sampler`, `helper_heap`, `allocation_path`.
 * Nothing here calls the flush world, libc's malloc, stdio or the loader on a path that a signal or
 * an allocation can reach.
 */
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

/* What a forked child writes stands together, in one page, from the end of `modules` to the
 * beginning of `threads`: each page of it is copied then. */
struct capture {
    struct modules modules;
    const struct config *config;
    const struct log *log;
    _Atomic bool armed;                /* threads register, samples are taken */
    _Atomic bool has_handlers;         /* the program has functions for signals */
    _Atomic bool uses_interval_timers; /* ITIMER_VIRTUAL or ITIMER_PROF */
    _Atomic bool left;                 /* a thread has: capture_leave_thread() */
    _Atomic bool last_harvest; /* the next one is it: what no sample covers is told in it, once */
    _Atomic int32_t live_threads; /* of the application, as far as we know of them */
    void (*on_last_thread)(void); /* told when that number comes to 0. Context: calm */
    bool alloc_on;                /* allocations are sampled (alloc or heap) */
    bool mmap_on;                 /* and so are the program's own mappings */
    uintptr_t
        allocator_base;  /* where the object begins that the next malloc lies in; 0: it may go */
    bool malloc_is_ours; /* allocation_path_is_used() */
    pid_t pid;           /* a vfork()ed child sees our memory, but has another */
    /* Asks the life cycle for a helper thread. NULL: there is one, or none will be. `calm`: a
     * thread may be created here, otherwise that is looked for (thread_is_calm). Context: a hook,
     * on a thread of the application. */
    _Atomic(void (*)(bool calm)) want_helper;
    struct heap heap;
    struct recorder recorder;
    struct thread_table threads;
    uint64_t logged_dropped[DROP_REASON_COUNT]; /* of the helper: what the log has said */
    struct sampling_costs costs;                /* the helper's, too */
    struct unknown_threads unknown_threads;
    struct context_reader contexts;
    _Alignas(ARCH_LARGEST_PAGE_BYTES) struct rule_cache rules;
    struct unwinder unwinder;      /* from here on: the page of rules.generation */
    struct settings settings;      /* change_settings.h */
    struct settings_values wanted; /* whether or not it is paused */
    _Atomic bool paused;           /* by the program */
    struct wait_sampler waits;
    _Atomic uintptr_t generated_code; /* unwinder.generated */
    struct python python;
    struct registered_tables registered_tables;
};
_Static_assert(offsetof(struct capture, modules.current) / 4096 ==
                   (offsetof(struct capture, threads.pool.segments) - 1) / 4096,
               "one page to copy");

extern struct capture capture;

/* Nothing is sampled, and never will be (again): hooks need not ask. */
extern _Atomic bool capture_is_off;

/* --- capture.c: switching on and off --- */

/* Prepares tables and arms sampling of the calling thread as `config` says. What cannot be had is
 * said in the log and left out. false: nothing could be armed. Context: calm, at start. */
bool capture_start(const struct config *config, const struct log *log);

/* Instead: this process is not profiled. Its hooks forward, without a look at anything of ours from
 * each thread's second call on. Context: calm, at start. */
void capture_decline(void);

/* In a forked child: everything of the parent's is forgotten, the calling thread is registered
 * again. Context: fork handler. */
void capture_after_fork(void);

/* No more samples; timers are deleted. Context: calm. */
void capture_stop(void);

/* The same, and other threads are out of those that they were at, and out of our signal handler:
 * they make no call for them any more, not even the return from a signal. Context: calm. */
void capture_stop_and_wait(void);

/* --- harvest.c --- */
/* Fills in the functions of the door that capture answers. Context: calm. */
void harvest_fill_api(struct capture_api *api);

#endif
