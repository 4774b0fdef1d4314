#include "helper.h"

#include "arch_machine.h"
#include "capture/capture.h"
#include "capture/cpu/libc_signal.h"
#include "capture/kernel/first_page.h"
#include "capture/kernel/futex.h"
#include "capture/kernel/profiler_memory.h"
#include "capture/kernel/signals_blocked.h"
#include "capture/symbols/libc_threads.h"
#include "capture/symbols/next.h"
#include "child_ledger.h"
#include "clock.h"
#include "cpp_programs.h"
#include "crash_guard.h"
#include "harvest.h"
#include "helper_load.h"
#include "helper_name.h"
#include "helper_parts.h"
#include "helper_rights.h"
#include "helper_wait.h"
#include "quiesce_lock.h"
#include "state.h"
#include "wanted_export.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

IN_FIRST_PAGE struct helper helper;

enum {
    HELPER_STACK_BYTES = 2 << 20, /* large, because demanglers and TLS libraries recurse */
    /* Assumes that all constructors are over after so much CPU time since the profiler's start, in
     * programs whose main is not seen. node's constructors take 12 ms of CPU time, those of clang
     * and gdb less than one (measured). */
    CONSTRUCTORS_CPU_MS = 50,
    CONSTRUCTORS_MS = 5000,
    CONSTRUCTORS_ROUND_MS = 10, /* time between two polls */
};

bool helper_after_fork(void) {
    const bool outside = quiesce_lock_after_fork();
    (void)helper_state_move(&helper.state, HELPER_NONE, IN_COPY);
    atomic_store(&helper.request, REQUEST_TIMEOUT);
    helper.stop_handed_over = false;
    atomic_store(&capture.last_harvest, false);
    helper.suspends = false;
    /* forgets the parent's samples, which the parent exports under its own name */
    helper.suspended = NULL;
    helper.spent_nano = 0;
    atomic_store(&helper.endpoint_away, false);
    atomic_store(&helper.leave_at, 0);
    main_watch_after_fork();
    wanted_export_after_fork();
    cpp_programs_after_fork();
    child_ledger_after_fork();
    atomic_store(&helper.loading, false);
    atomic_store(&helper.libraries_outlive_exit, false);
    atomic_store(&helper.early, EARLY_NOT_ASKED);
    atomic_store(&helper.log->separate_thread, 0);
    log_forget_waiting(helper.log);
    helper.start_nano = monotonic_nano();
    helper.start_unix_nano = realtime_nano();
    helper.start_cpu_nano = 0;
    return outside;
}

/* --- the thread --- */

/* Wakes the threads that wait for an early load: the load is done, or will never happen. */
static void announce_loaded(void) {
    if (atomic_exchange(&helper.early, EARLY_DONE) != EARLY_DONE)
        futex_wake(&helper.early);
}

static int flush_waits(uint64_t deadline) {
    atomic_store(&helper.initialised, true);
    announce_loaded();
    if (helper.opens)
        return REQUEST_SUSPEND;
    return helper_wait_outside(deadline);
}

static void set_log_level(enum log_level level) {
    atomic_store(&helper.log->level, level);
}

static void endpoint_responded(bool responded) {
    atomic_store(&helper.endpoint_away, !responded);
}

static void libraries_ready(bool outlive_exit) {
    atomic_store(&helper.libraries_outlive_exit, outlive_exit);
    if (!outlive_exit)
        helper.before_libraries();
}

/* Moves to HELPER_WORKS; from then on the helper cannot leave. Returns false if another thread has
 * already requested that the helper leaves. */
static bool begin_work(void) {
    return helper_state_move(&helper.state, HELPER_WORKS, IN_HELPER) ||
           atomic_load(&helper.state) == HELPER_WORKS;
}

/* Returns the time before which the helper only waits. */
static uint64_t due_nano(void) {
    return helper.start_nano + helper.config->min_lifetime_ms * NANO_PER_MILLI;
}

bool helper_is_due(void) {
    return monotonic_nano() >= due_nano();
}

void helper_main_begins(void) {
    atomic_store(&helper.main_begun, true); /* pairs with helper_constructors_are_over() */
}

/* Returns true if the helper need not wait for main any more. It waits because other objects'
 * constructors run after the profiler's. The constructor of an allocator may create a thread under
 * the allocator's lock and wait for it, as heaptrack's does, and this thread needs the loader. A
 * helper in dlopen, which calls that allocator, would deadlock with this thread. Main is not seen
 * in programs that do not begin in libc (Go's own linker makes some), or that do their work in a
 * constructor. Their CPU time and their age soon exceed the time that constructors take. */
bool helper_constructors_are_over(void) {
    return atomic_load(&helper.main_begun) ||
           clock_nano(CLOCK_PROCESS_CPUTIME_ID) >=
               helper.start_cpu_nano + CONSTRUCTORS_CPU_MS * (uint64_t)NANO_PER_MILLI ||
           monotonic_nano() >= helper.start_nano + CONSTRUCTORS_MS * (uint64_t)NANO_PER_MILLI;
}

bool helper_is_asked_early(void) {
    return atomic_load(&helper.early) == EARLY_ASKED;
}

static uint64_t helper_thread_cpu_nano(void) {
    return helper.spent_nano + thread_cpu_nano();
}

uint64_t helper_cpu_nano(void) {
    const uint32_t tid = atomic_load(&helper.tid);
    const bool runs = tid && helper_state_is_running(atomic_load(&helper.state));
    return helper.spent_nano + (runs ? clock_nano(cpu_clock_of(tid)) : 0);
}

static bool may_export(void) {
    const bool may = helper_rights_hold();
    if (!may)
        helper_end("the program has given up rights that the exporter has still");
    return may;
}

/* Polls for C++ programs before the flush side is loaded. Returns false if the helper must not work
 * any more. Clears `waits`, because from here on the helper may hold libc's locks outside of the
 * quiesce lock. */
static bool poll_cpp_programs(void) {
    if (!quiesce_lock_enter())
        return false;
    atomic_store(&helper.waits, false); /* pairs with helper_is_at_rest(), with the lock closed */
    (void)cpp_programs_poll();          /* the first poll for contexts repeats it */
    quiesce_lock_leave();
    return true;
}

/* Returns true if the flush side, and so its libraries, was loaded. */
static bool run_flush(void) {
    flush_main *const run = poll_cpp_programs() ? helper_load_flush() : NULL;
    if (!run) {
        capture_stop();
        return false;
    }
    helper.api = (struct capture_api){
        .start_unix_nano = helper.start_unix_nano,
        .start_nano = helper.start_nano,
        .start_cpu_nano = helper.start_cpu_nano,
        .origin = helper.origin,
        .variables = helper.variables,
        .lifecycle = {.libraries_ready = libraries_ready,
                      .may_open_by_path = helper_may_open_by_path,
                      .set_log_level = set_log_level,
                      .exports_wanted = wanted_export_notice,
                      .exports_made = wanted_export_is_made,
                      .may_export = may_export,
                      .endpoint_responded = endpoint_responded,
                      .give_up = helper_end,
                      .suspended = &helper.suspended,
                      .kept = &helper.kept},
        .wait = {.until = flush_waits,
                 .watch_fd = helper_wait_watch_fd,
                 .unwatch_fd = helper_wait_unwatch_fd,
                 .wake = helper_wait_wake},
        .guard = {.lock_enter = quiesce_lock_enter,
                  .lock_leave = quiesce_lock_leave,
                  .lock_is_awaited = quiesce_lock_is_awaited},
        .counters = {.child_is_lost = child_ledger_count_lost,
                     .export_ended = wanted_export_count,
                     .exports_delivered = wanted_export_delivered,
                     .exports_failed = wanted_export_failed,
                     .helper_cpu_nano = helper_thread_cpu_nano,
                     .threads = libc_threads_count},
    };
    harvest_fill_api(&helper.api);
    child_ledger_begin(&helper.table);
    const int result = run(&helper.api);
    if (result == 0)
        child_ledger_report();
    if (result == FLUSH_DISABLED)
        atomic_store(&helper.disabled, true);
    if (result < 0)
        capture_stop();
    return true;
}

/* Loads and opens the flush side early; its loop runs only once the helper is due. Returns false if
 * the helper is to leave instead. */
static bool load_early(void) {
    const bool loads = begin_work();
    if (loads && !atomic_load(&helper.initialised)) {
        helper.opens = true;
        (void)run_flush();
        helper.opens = false;
    }
    announce_loaded();
    return loads;
}

/* Returns the end of the next wait. In HELPER_LEAVES the wait has no end: either a request ends it,
 * or the process is ending, and the thread stays, because the thread's end would call libc, which
 * may assume that there is no such thread (libc_threads.h). */
static uint64_t wait_deadline(void) {
    if (atomic_load(&helper.state) == HELPER_LEAVES)
        return UINT64_MAX;
    if (helper_is_due() && !helper_constructors_are_over())
        return in_milliseconds(CONSTRUCTORS_ROUND_MS);
    return due_nano();
}

/* Waits until the helper may begin; the following steps run under the quiesce lock. Does not wait
 * for main if the process ends, or if a thread waits for an early load. Returns false if the helper
 * must leave instead. Sets `*loaded` if an early load has begun to load libraries. */
static bool lived_long_enough(bool *loaded) {
    for (;;) {
        const uint64_t deadline = wait_deadline();
        atomic_store(&helper.waits, true);
        const int request = helper_wait_for_request(deadline, helper_is_asked_early);
        if (request == REQUEST_SUSPEND && helper_accept_suspend() == REQUEST_SUSPEND)
            return false;
        if (request != REQUEST_SUSPEND && request != REQUEST_TIMEOUT)
            return helper_is_due();
        if (helper_is_asked_early())
            *loaded |= load_early();
        else if (request == REQUEST_TIMEOUT && helper_is_due() && helper_constructors_are_over() &&
                 begin_work())
            return true;
    }
}

/* Makes this a profiler thread for ever: none of its events is the application's. */
static void become_profiler_thread(void) {
    thread_mark_as_profiler();
    floats_reset();
    prctl(PR_SET_NAME, HELPER_NAME);
}

static void change_state(enum helper_state to, enum state_context context) {
    (void)helper_state_move(&helper.state, to, context);
    futex_wake(&helper.state);
}

/* Reports that there is no helper, or that it will not work. An exit may be waiting for this, even
 * if another thread only tried to start a helper. */
static void become_done(enum state_context context) {
    change_state(HELPER_DONE, context);
}

void helper_share_logged_flags(void) {
    _Atomic uint32_t *const shared = profiler_memory_share(sizeof *shared);
    if (shared)
        atomic_store(&helper.log->logged, shared);
}

static void *helper_main(void *unused) {
    (void)unused;
    become_profiler_thread();
    helper_rights_drop();
    if (descriptors_separate(&helper.table))
        atomic_store(&helper.log->separate_thread, (pid_t)syscall(SYS_gettid));
    atomic_store(&helper.tid, (uint32_t)syscall(SYS_gettid));
    child_ledger_note_start();
    helper_wait_begin();
    bool loaded = false;
    if (lived_long_enough(&loaded) && begin_work())
        loaded |= run_flush();
    if (helper.suspends) { /* the thread that requested the suspension joins this thread */
        helper.spent_nano = helper_thread_cpu_nano();
        cpu_timers_leave_helper(&sampler.timers);
        change_state(HELPER_SUSPENDED, IN_HELPER);
        return NULL;
    }
    if (!state_is_ending(
            /* the state is set by the thread that ends the process, which knows whether the export
             * succeeded */
            &process_state))
        crash_guard_mark_started(); /* nothing is profiled any more, so the start is completed */
    atomic_store(&helper.rests, loaded);
    become_done(IN_HELPER);
    announce_loaded();
    if (loaded)
        helper_park_forever();
    if (helper.watch.alone)
        main_watch_end_process();
    if (!atomic_exchange(&helper.joined, true))
        pthread_detach(pthread_self());
    return NULL;
}

/* Joins the helper, and so ends after it: see helper_leave(). */
static void *reaper_main(void *unused) {
    (void)unused;
    become_profiler_thread();
    (void)pthread_join(helper.thread, NULL);
    return NULL;
}

/* Gives the helper ordinary scheduling, whatever the application's thread has. Sets nothing if the
 * scheduling is ordinary already, because systemd kills a process for the call if its unit may not
 * change the scheduling (SystemCallFilter=~@resources). */
static void make_ordinary(pthread_attr_t *attributes) {
    /* sets priority 0: without this value the thread would get the creating thread's priority */
    static const struct sched_param no_priority;
    if (syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER)
        return;
    pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
    pthread_attr_setschedparam(attributes, &no_priority);
}

/* Creates the thread with all signals blocked; otherwise it would take the program's signals.
 * Returns 0, or a positive errno. */
static int create_thread(void *(*run)(void *), int detached, pthread_t *id) {
    /* libc interrupts threads by these two signals */
    const signal_mask all = ~(signal_bit(LIBC_SIGNAL) | signal_bit(LIBC_SIGNAL - 1));
    pthread_attr_t attributes;
    signal_mask before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    error = signals_change(SIG_SETMASK, &all, &before) ? 0 : errno;
    if (error == 0) {
        profiler_tls.inside += OWN_WORK;
        pthread_attr_setdetachstate(&attributes, detached);
        pthread_attr_setstacksize(&attributes, HELPER_STACK_BYTES);
        make_ordinary(&attributes);
        error = next_calls()->pthread_create(id, &attributes, run, NULL);
        profiler_tls.inside -= OWN_WORK;
        signals_restore(&before);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

bool helper_start(void) {
    if (!helper_state_move(&helper.state, HELPER_STARTS, IN_CALM))
        return true;
    if (state_is_past_helpers(&process_state)) { /* pairs with helper_finish() */
        become_done(IN_CALM);
        return true;
    }
    atomic_store(&helper.joined, false);
    atomic_store(&helper.tid, 0);
    atomic_store(&helper.follows_ids, false);
    const int error = create_thread(helper_main, PTHREAD_CREATE_JOINABLE, &helper.thread);
    if (error == 0) {
        (void)helper_state_move(&helper.state, HELPER_WAITS, IN_CALM);
        return true;
    }
    atomic_store(&helper.joined, true);
    log_debug(helper.log, "no helper thread could be created (error %d); nothing is profiled",
              error);
    become_done(IN_CALM); /* an exit that waits for this may end the process now */
    return false;
}

void helper_spawn_reaper(void) {
    pthread_t last;
    (void)create_thread(reaper_main, PTHREAD_CREATE_DETACHED, &last);
}
