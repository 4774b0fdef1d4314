/* Implements the profiler's life in a process, once start.c has armed it: fork, exit, leaving. */
#include "lifecycle.h"
#include "arch_entry.h"
#include "cancellation.h"
#include "capture/capture.h"
#include "capture/cpu/masked_threads.h"
#include "capture/cpu/program_handlers.h"
#include "capture/kernel/first_page.h"
#include "capture/kernel/signals_blocked.h"
#include "capture/kernel/wait.h"
#include "capture/record/child_samples.h"
#include "capture/record/list_iterations.h"
#include "capture/symbols/libc_threads.h"
#include "capture/symbols/loader_state.h"
#include "capture/symbols/next.h"
#include "capture/thread_life.h"
#include "clock.h"
#include "crash_guard.h"
#include "end_turn.h"
#include "helper.h"
#include "quiesce.h"
#include "quiesce_lock.h"
#include "seccomp_state.h"
#include "state.h"
#include "termination.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Declares the function that replaces at_quick_exit(), whose statically linked part needs glibc:
 * weak_glibc.h. */
int __cxa_at_quick_exit(void (*function)(void *), void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

enum {
    LOADER_TIMEOUT_MS = 100, /* bounds fork()'s wait for an exporter thread in the loader */
    /* bounds fork()'s wait for a helper in the loader, which leaves it as soon as it gets CPU
     * time */
    HELPER_TIMEOUT_MS = 10000,
    /* bounds the wait of other ends for the process's end, after a last export */
    LAST_MOMENT_MS = 1000,
};

/* Holds the data that the end and fork need, apart from process_state (state.h). */
IN_FIRST_PAGE static struct lifecycle {
    /* the thread that forks has set libc to single-threaded: libc_threads.h */
    bool set_libc_single;
    int sandbox; /* PR_GET_SECCOMP at the profiler's start */
    /* filters installed since; PR_GET_SECCOMP differs only for the first filter of all */
    _Atomic uint32_t own_filters;
    _Atomic uint32_t barring_filters; /* those of them that let no helper start or export */
    struct end_turn turn;
    const struct config *config;
    const struct log *log;
} life;

/* --- exit --- */

bool lifecycle_may_send(void) {
    return state_has_begun(&process_state) && helper_is_due();
}

static bool is_in_first_filter(void) {
    return prctl(PR_GET_SECCOMP) != life.sandbox;
}

/* Returns true if the program may have put this thread into a sandbox. */
static bool is_in_own_sandbox(void) {
    return atomic_load(&life.own_filters) || is_in_first_filter();
}

void lifecycle_see_filter(bool may_log, bool may_start) {
    atomic_fetch_add(&life.own_filters, 1);
    if (!may_start)
        atomic_fetch_add(&life.barring_filters, 1);
    if (!may_log && helper.log)
        atomic_fetch_add(&helper.log->helper_only, 1);
}

void lifecycle_forget_filter(bool may_log, bool may_start) {
    atomic_fetch_sub(&life.own_filters, 1);
    if (!may_start)
        atomic_fetch_sub(&life.barring_filters, 1);
    if (!may_log && helper.log)
        atomic_fetch_sub(&helper.log->helper_only, 1);
}

/* Starts a late helper, in a child. A child often puts itself into a sandbox that kills for a
 * helper's calls (threads, files, sockets). In such a sandbox this function starts no helper and
 * logs nothing, because logging makes system calls, too. */
static void start_late_helper(void) {
    const int saved = errno; /* preserves errno, because the program is in the middle of a malloc */
    (void)state_move(&process_state, STATE_ARMED, IN_CALM);
    atomic_store(&capture.want_helper, NULL);
    if (!atomic_load(&life.barring_filters) && !is_in_first_filter())
        (void)helper_start();
    errno = saved;
}

static void end_fork(void) {
    if (profiler_tls.modules_locked) {
        profiler_tls.modules_locked = false;
        modules_end_fork(&capture.modules);
    }
    if (profiler_tls.tables_locked) {
        profiler_tls.tables_locked = false;
        registered_tables_end_fork(&capture.registered_tables);
    }
    list_iterations_end_fork();
    quiesce_lock_open();
}

/* Returns true if this thread may be in a signal handler that has interrupted a malloc. */
static bool may_interrupt_malloc(void) {
    return !profiler_tls.inside && thread_may_be_in_handler();
}

/* Returns true if the kernel counts no other thread, except a helper that stays asleep. */
static bool is_alone(void) {
    if (is_in_own_sandbox())
        return false; /* the program has installed a filter, which may forbid the next query */
    const unsigned threads = libc_threads_count();
    return threads == 1 || (threads == 2 && helper_is_at_rest());
}

/* Lets libc count several threads again, after fork() has read its count and before the helper may
 * continue. */
static void restore_libc_threads(void) {
    if (life.set_libc_single)
        libc_set_single_threaded(false);
    life.set_libc_single = false;
}

/* Returns true if this call ends the process; then end_turn_enter() follows. Otherwise returns
 * false; if another thread's end has begun, waits for that end first. Releases the locks of a fork:
 * a signal may end the process while this thread forks, and the helper would wait for these
 * locks. */
static bool begin_end(enum state_context context) {
    if (capture_has_left())
        return false;
    if (!state_permits(state_now(&process_state), STATE_ENDING, context) ||
        !state_is_own(&process_state) ||
        !end_turn_take(&life.turn, life.config->shutdown_timeout_ms + LAST_MOMENT_MS)) {
        /* a child of vfork does not wait: the end that it sees in the shared memory is its
         * parent's */
        if (atomic_load(&life.turn.taken) && state_is_own(&process_state)) {
            capture_await_end();
            end_turn_wait(&life.turn);
        }
        return false;
    }
    /* another thread has stopped the profiler meanwhile */
    if (!state_move(&process_state, STATE_ENDING, context)) {
        end_turn_enter(&life.turn, END_TURN_LEFT);
        return false;
    }
    restore_libc_threads();
    end_fork();
    return true;
}

/* Logs that a forked child has made no call that could start its helper. Starts no helper here,
 * either, because the thread may be in the middle of any call. */
static void report_unprofiled(void) {
    /* its parent's exporter has the samples in its slot */
    const uint64_t kept = child_samples_nano();
    const uint64_t total = clock_nano(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t used = total > kept ? total - kept : 0;
    if (atomic_load(&capture.want_helper) && helper_is_due() && used >= sampler.period_nano)
        log_debug(life.log,
                  "this child ended before its exporter could start; %llu ms of CPU time are in no "
                  "profile",
                  (unsigned long long)(used / NANO_PER_MILLI));
}

/* Finishes the helper. Stops the process's interval timers meanwhile, because the helper's CPU time
 * counts for them: a timer that the program has left running without a handler, as Python does at
 * its end, must not expire during the last export. Under a filter, which may kill for the call, the
 * timers are not stopped. */
static void finish_helper(enum state_context context) {
    static const struct itimerval off = {{0, 0}, {0, 0}};
    static const int which[] = {ITIMER_VIRTUAL, ITIMER_PROF};
    struct itimerval left[2] = {0};
    const bool uses = atomic_load(&capture.uses_interval_timers) && !seccomp_is_filtered();
    for (int i = 0; uses && i < 2; i++)
        (void)next_calls()->setitimer(which[i], &off, &left[i]);
    (void)state_move(&process_state, STATE_ENDED, context);
    helper_finish(life.config->shutdown_timeout_ms);
    for (int i = 0; uses && i < 2; i++)
        if (left[i].it_value.tv_sec || left[i].it_value.tv_usec)
            (void)next_calls()->setitimer(which[i], &left[i], NULL);
}

void lifecycle_end_at_once(void) {
    const int cancellation = cancellation_disable();
    if (begin_end(IN_SIGNAL)) {
        report_unprofiled();
        finish_helper(IN_SIGNAL);
        crash_guard_mark_started();
        end_turn_enter(&life.turn, END_TURN_ENDS);
    }
    cancellation_restore(cancellation);
}

/* Ends the profiler in the handler of a fatal signal. Returns false if the signal is held back.
 * abort() does not wait for the export that it interrupts. */
static bool end_before_signal(int number) {
    if (number != SIGABRT && end_turn_hold(&life.turn, number))
        return false;
    if (number != SIGABRT)
        lifecycle_end_at_once();
    /* an end by abort() is a failure: the crash guard's start stays unmarked */
    else if (begin_end(IN_SIGNAL)) {
        report_unprofiled();
        finish_helper(IN_SIGNAL);
        end_turn_enter(&life.turn, END_TURN_ENDS);
    }
    return true;
}

/* Ends the profiler where a helper may be started. Returns true if this call ends the process. */
static bool end_calmly(void) {
    const int cancellation = cancellation_disable();
    const bool first = begin_end(IN_CALM);
    /* Threads of a Python up to 3.10 that still run after its end use memory that Python has freed:
     * each further tenth of a millisecond makes a crash likelier. So there is no last export, and
     * the helper, which would take this thread's processor, is not even woken. */
    if (first && python_ends_in_haste(&capture.python) && atomic_load(&capture.live_threads) > 1) {
        (void)state_move(&process_state, STATE_ENDED, IN_CALM);
        helper_block_libraries();
        crash_guard_mark_started();
    } else if (first) {
        if (helper_is_due() && atomic_load(&capture.want_helper))
            start_late_helper(); /* a forked child may end before it needed a helper */
        finish_helper(IN_CALM);
        capture_stop();
        crash_guard_mark_started(); /* the profiler's part of the end is done */
        /* exit handlers allocate, and a signal handler that forks may interrupt them */
        if (atomic_load(&capture.has_handlers) && atomic_load(&capture.live_threads) <= 1 &&
            quiesce_lock_close_for_good(!atomic_load(&helper.tid) && may_interrupt_malloc()) &&
            is_alone())
            libc_set_single_threaded(true);
    }
    if (first)
        end_turn_enter(&life.turn, END_TURN_ENDS);
    cancellation_restore(cancellation);
    return first;
}

void lifecycle_end_without_handlers(void) {
    (void)end_calmly();
}

ARCH_ANY_STACK void lifecycle_end(void) {
    if (end_calmly())
        end_turn_raise(&life.turn);
}

/* --- leaving before the end --- */

bool lifecycle_is_out(void) {
    return state_now(&process_state) == STATE_LEFT || capture_has_left();
}

/* Stops the profiler in a child that has its own copy of the memory: the child is under the
 * parent's filter, or no fork handler has seen it. */
static void stay_out(void) {
    end_turn_after_fork(&life.turn);
    (void)state_move(&process_state, STATE_OFF, IN_COPY);
    atomic_store(&capture.want_helper, NULL);
    atomic_store(&capture.armed, false);
    capture_decline();
}

/* Restores the default action of fatal signals, because the profiler's handler makes system calls.
 */
void lifecycle_leave_thread(int killed_by) {
    crash_guard_mark_started(); /* marks now, because later the start cannot be marked any more */
    if (!state_has_begun(&process_state)) {
        lifecycle_decline(); /* another library's constructor was called before ours: see begin() */
    } else if (capture_has_left()) {
        return; /* the process is under a filter already */
    } else if (thread_table_is_wiped(&capture.threads)) {
        stay_out();
    } else if (state_is_own(&process_state)) { /* state_is_own() is false in a child of vfork() */
        lifecycle_may_end_unseen(killed_by, false);
        capture_leave_thread();
        termination_remove();
    }
}

void lifecycle_may_end_unseen(int expected, bool all) {
    if (!state_has_begun(&process_state) || lifecycle_is_out() ||
        thread_table_is_wiped(&capture.threads))
        return;
    if (all || main_watch_is_main())
        main_watch_begin(expected);
    else if (WIFEXITED(expected))
        main_watch_other_ends(expected);
}

void lifecycle_leave_process(void) {
    const bool last = begin_end(IN_CALM);
    lifecycle_leave_thread(SIGSYS);
    (void)state_move(&process_state, STATE_LEFT, IN_CALM);
    if (!last)
        return;
    if (!helper_suspend_waiting()) {
        helper_finish(life.config->shutdown_timeout_ms);
        helper_join();
    }
    capture_stop_and_wait();
    end_turn_enter(&life.turn, END_TURN_LEFT);
    end_turn_raise(&life.turn);
}

/* Returns true if the last thread need not end the profiler: the profiler has left the process, or
 * has left this thread, and the helper detects the end by its watch of the main thread. A helper
 * without this watch would keep the process alive. */
static bool ends_without_us(void) {
    return state_now(&process_state) == STATE_LEFT || (capture_has_left() && main_watch_is_on());
}

/* Ends the profiler when the process will end after this thread, and run its exit handlers. */
static void on_last_thread(void) {
    if (!state_has_begun(&process_state) || ends_without_us() || !state_is_own(&process_state))
        return;
    if (!state_move(&process_state, STATE_DRAINING, IN_CALM))
        libc_set_single_threaded(
            /* an exit handler ends this thread: libc must count several threads again, because the
             * helper ends, too */
            false);
    helper_leave(life.config->shutdown_timeout_ms);
}

ARCH_ANY_STACK static void lifecycle_end_quickly(void *unused) {
    (void)unused;
    lifecycle_end();
}

static void register_at_exit(void) {
    /* These handlers see the exits inside libc that bypass the hooks (hooks/exit.c), such as the
     * end of the last thread. The registration fails only without memory: then the last interval is
     * lost. */
    (void)atexit(lifecycle_end);
    (void)__cxa_at_quick_exit(lifecycle_end_quickly, __dso_handle);
}

/* --- fork --- */

/* Declares the function that replaces pthread_atfork(), whose statically linked part needs glibc:
 * weak_glibc.h. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *object);

/* Returns true if no exporter thread is inside the loader. libcurl resolves names on a thread that
 * is not registered; the program's children must not inherit a library that this thread has half
 * loaded. */
static bool is_outside(void *unused) {
    (void)unused;
    const uint32_t user = loader_state_user();
    for (uint32_t i = 0; user != 0 && i < thread_table_count(&capture.threads); i++)
        if (atomic_load(&thread_table_at(&capture.threads, i)->tid) == user)
            return true;
    return user == 0 || !helper.run || !loader_state_is_known();
}

/* Returns true if a child forked now could inherit a loader that another thread is using. */
static bool loader_is_in_use(void) {
    (void)wait_until_ms(is_outside, NULL, LOADER_TIMEOUT_MS);
    if (loader_state_is_known())
        return loader_state_user() != 0;
    return atomic_load(&capture.live_threads) > 1 && !helper.run;
}

static bool helper_is_outside(void *unused) {
    const uint32_t helper_tid = atomic_load(&helper.tid);
    (void)unused;
    return !helper_tid || !loader_state_is_used_by(helper_tid);
}

/* Returns true if this thread itself is inside the loader: the helper may then be waiting for this
 * thread. */
static bool is_inside_itself(void) {
    return loader_state_is_used_by((uint32_t)syscall(SYS_gettid));
}

/* Closes the lock and waits until the helper has left the loader: otherwise the child would block
 * for ever in its first dlopen(). Waits longer for the loader than for other work, because on a
 * busy machine a helper in the loader may get no CPU time. Returns false if the helper still holds
 * the lock. */
static bool close_to_fork(void) {
    const bool has_helper = state_is_own(&process_state);
    const uint64_t deadline = in_milliseconds(HELPER_TIMEOUT_MS);
    bool outside = quiesce_lock_close_to_fork(has_helper);
    while (has_helper && !helper_is_outside(NULL) && !is_inside_itself() &&
           monotonic_nano() < deadline) {
        (void)wait_until_ms(helper_is_outside, NULL, milliseconds_until(deadline));
        outside = quiesce_lock_close_behind_loader(has_helper);
    }
    return outside;
}

/* Blocks the profiler's signal during the fork: if copying the address space takes longer than the
 * timer's period, the kernel would restart the copying for ever. */
ARCH_ANY_STACK static void before_fork(void) {
    signal_mask before = 0;
    restore_libc_threads();
    /* returns in a child of a bare clone(2), too: its lock is a copy, and no thread of the child
     * opens it if it was held */
    if (lifecycle_is_out() || thread_table_is_wiped(&capture.threads))
        return;
    const int number = masked_threads_signal();
    if (number && signal_block(number, &before) && !(before & signal_bit(number)))
        profiler_tls.blocked_for_fork = (uint8_t)number;
    const bool outside = close_to_fork();
    profiler_tls.modules_locked = modules_begin_fork(&capture.modules);
    profiler_tls.tables_locked = registered_tables_begin_fork(&capture.registered_tables);
    list_iterations_begin_fork();
    const bool in_use = loader_is_in_use();
    profiler_tls.loader_in_use = !outside || in_use;
}

/* Returns true if the process is profiled, and calls are allowed on this thread. */
static bool is_in_service(void) {
    return state_is_in_service(&process_state) && !capture_has_left() &&
           state_is_own(&process_state);
}

bool lifecycle_before_bare_child(void) {
    return is_in_service() && helper_quiesce(QUIESCE_IDLE, QUIESCE_TIMEOUT_MS);
}

void lifecycle_before_fork(void) {
    const int saved = errno;
    if (is_in_service() && atomic_load(&capture.live_threads) <= 1 && may_interrupt_malloc() &&
        quiesce_lock_close_at_rest() && is_alone()) {
        life.set_libc_single = true;
        libc_set_single_threaded(true);
    }
    errno = saved;
}

void lifecycle_after_bare_child(void) {
    helper_resume(QUIESCE_IDLE);
}

/* Unblocks the signal after a fork. The note that it was blocked stays until the signal is
 * delivered, so that record_stack() attributes the sample to fork(). */
static void unblock_signal(void) {
    if (profiler_tls.blocked_for_fork)
        signal_unblock(profiler_tls.blocked_for_fork);
    profiler_tls.blocked_for_fork = 0;
}

ARCH_ANY_STACK static void after_fork_in_parent(void) {
    end_fork();
    unblock_signal();
    if (profiler_tls.loader_in_use)
        record_drop(&capture.recorder, DROP_CHILD);
    profiler_tls.loader_in_use = false;
}

/* Starts a child's helper late, because most children live short or exec at once: after enough work
 * (or waits) and MIN_LIFETIME, in a malloc, a setitimer, a call of hooks/waits.c or
 * hooks/blocking.c, or at exit. Starts no helper after the end of the last thread, because the
 * helper would then be the last one, and call exit in its place; nor in a child that shares the
 * memory (vfork), because the helper would run in the child alone. */
static void want_helper(bool calm) {
    if (!helper_is_due() || !state_is_own(&process_state) || !state_is_in_service(&process_state) ||
        (!calm && !thread_is_calm()))
        return;
    start_late_helper();
}

void lifecycle_load_early(void) {
    if (!is_in_service())
        return;
    if (atomic_load(&capture.want_helper))
        start_late_helper();
    helper_load_early();
}

/* Forbids the profiler ever to call the loader or the exporter's libraries in this process. */
static void stay_out_of_libraries(const char *reason) {
    log_debug(life.log, "this process was forked while %s; it is not profiled", reason);
    atomic_store(&capture.want_helper, NULL);
    (void)state_move(&process_state, STATE_LEFT, IN_COPY);
    capture_stop();
}

/* Returns true if the parent had no exporter, and has stopped sampling. Then a helper in the child
 * would read tables whose locks may be held since the fork. */
static bool has_given_up(void) {
    return state_is_in_service(&process_state) && atomic_load(&capture_is_off);
}

/* Lets the samples of this child, which has no helper yet, reach its parent's helper. A child in a
 * pid namespace of its own, where its parent has no id, does without that, and so do a child whose
 * parent has ended, and one that must not ask for its parent because of a filter. */
static void keep_samples_for_parent(pid_t parent, bool is_profiled) {
    const struct forked_child child = {.pid = (uint32_t)capture.pid,
                                       .parent = (uint32_t)parent,
                                       .start_nano = helper.start_nano,
                                       .start_unix_nano = helper.start_unix_nano,
                                       .interval = modules_interval(&capture.modules)};
    const bool is_known = is_profiled && child_samples_can_be_kept() && !is_in_own_sandbox() &&
                          syscall(SYS_getppid) == parent;
    child_samples_after_fork(is_known ? &child : NULL);
}

ARCH_ANY_STACK static void after_fork_in_child(void) {
    const pid_t parent = capture.pid;
    end_turn_after_fork(&life.turn);
    crash_guard_after_fork();
    list_iterations_after_fork();
    const bool may_load = !profiler_tls.loader_in_use && loader_state_is_whole();
    profiler_tls.loader_in_use = false;
    profiler_tls.modules_locked = false;
    if (lifecycle_is_out() || atomic_load(&helper.disabled) || has_given_up()) {
        unblock_signal();
        stay_out();
        child_samples_after_fork(NULL);
        return;
    }
    const bool outside = helper_after_fork();
    (void)state_move(&process_state, STATE_CHILD, IN_COPY);
    termination_spare_first_process();
    atomic_store(&capture.want_helper, want_helper);
    capture_after_fork();
    keep_samples_for_parent(parent, outside && may_load);
    unblock_signal();
    if (!outside)
        stay_out_of_libraries("the exporter was inside of a library");
    else if (!may_load)
        stay_out_of_libraries("a library was being loaded or unloaded");
}

/* --- start --- */

void lifecycle_decline(void) {
    crash_guard_mark_started();
    (void)state_move(&process_state, STATE_OFF, IN_CALM);
    capture_decline();
    program_handlers_unwrap();
}

void lifecycle_begin(const struct config *config, const struct log *log, int sandbox) {
    life.sandbox = sandbox;
    life.config = config;
    life.log = log;
    capture.on_last_thread = on_last_thread;
    helper.before_libraries = register_at_exit;
    __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, __dso_handle);
    (void)state_move(&process_state, STATE_ARMED, IN_CALM);
    process_state.owner = getpid();
    libc_threads_finish_init();
    loader_state_learn();
    termination_install(end_before_signal, capture.heap.peak.watches);
    register_at_exit();
}
