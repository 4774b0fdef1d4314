#include "helper.h"

#include "arch_machine.h"
#include "capture/capture.h"
#include "capture/cpu/libc_signal.h"
#include "capture/kernel/futex.h"
#include "capture/kernel/own_memory.h"
#include "capture/kernel/signals_blocked.h"
#include "capture/symbols/next.h"
#include "clock.h"
#include "descriptors.h"
#include "harvest.h"
#include "helper_gate.h"
#include "helper_rights.h"
#include "process_file.h"
#include "process_tree.h"
#include "release.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct helper helper;

/* A request beside those of harvest.h: WAIT_SUSPEND was handed over. */
enum { SUSPENDING = 100 };

enum {
    HELPER_STACK_BYTES = 2 << 20, /* demanglers and TLS libraries recurse */
    WITHDRAW_PATIENCE = 2000,     /* rounds of 50 us */
    EARLY_PATIENCE_MS = 500,
    EARLY_ROUND_MS = 5,
    SUSPEND_ROUND_MS = 2,     /* the answer is no change of state */
    EXIT_PATIENCE_MS = 10000, /* of exit: for libraries that are being loaded */
    /* of exit: for a step in a library that is the program's too and torn down with it */
    TEAR_DOWN_PATIENCE_MS = 1000,
};

bool helper_after_fork(void) {
    const bool outside = helper_gate_after_fork();
    atomic_store(&helper.finished, false);
    atomic_store(&helper.stage, HELPER_STARTS);
    atomic_store(&helper.state, HELPER_NONE);
    atomic_store(&helper.request, WAIT_TIMEOUT);
    helper.stop_handed_over = false;
    atomic_store(&capture.last_harvest, false);
    helper.suspends = false;
    helper.suspended = NULL; /* the parent's samples, under the parent's name */
    helper.spent_nano = 0;
    atomic_store(&helper.endpoint_away, false);
    atomic_store(&helper.leave_at, 0);
    main_watch_after_fork();
    atomic_store(&helper.loading, false);
    atomic_store(&helper.libraries_outlive_exit, false);
    atomic_store(&helper.early, EARLY_NOT_ASKED);
    atomic_store(&helper.log->separate_thread, 0);
    helper.start_nano = monotonic_nano();
    helper.start_unix_nano = realtime_nano();
    return outside;
}

/* --- the thread --- */

static bool never(void) {
    return false;
}

static int wait_for_request(uint64_t deadline, bool (*enough)(void)) {
    for (;;) {
        const uint32_t request = atomic_load(&helper.request);
        if (request != WAIT_TIMEOUT || monotonic_nano() >= deadline || enough())
            return (int)request;
        main_watch_sleep(WAIT_TIMEOUT, deadline);
    }
}

/* Who asked may have given up just now: then there is nothing to be done. */
static int answer_to_suspend(void) {
    uint32_t asked = WAIT_SUSPEND;
    helper.suspends = atomic_compare_exchange_strong(&helper.request, &asked, SUSPENDING);
    return helper.suspends ? WAIT_SUSPEND : (int)asked;
}

/* Once WAIT_STOP has been handed over, only WAIT_ABANDON ends a sleep early. It may have come while
 * the flush side was busy, so it is not enough that it was there before the sleep. After
 * WAIT_SUSPEND each sleep is as long as was asked. */
static int wait_until(uint64_t deadline) {
    const uint64_t leave_at = atomic_load(&helper.leave_at);
    if (leave_at && monotonic_nano() >= leave_at)
        atomic_store(&helper.request, WAIT_ABANDON);
    if (leave_at && deadline > leave_at)
        deadline = leave_at;
    if (helper.stop_handed_over || helper.suspends) {
        main_watch_sleep(helper.suspends ? SUSPENDING : WAIT_STOP, deadline);
        return (int)atomic_load(&helper.request);
    }
    const int request = wait_for_request(deadline, never);
    if (request == WAIT_SUSPEND)
        return answer_to_suspend();
    helper.stop_handed_over = request == WAIT_STOP;
    atomic_store(&capture.last_harvest, helper.stop_handed_over);
    return request;
}

/* Whoever waits for what is loaded early waits no more: it is loaded, or will not be. */
static void tell_loaded(void) {
    if (atomic_exchange(&helper.early, EARLY_DONE) != EARLY_DONE)
        futex_wake(&helper.early);
}

/* A fork that finds the flush side here finds it here to its end. Where the gate stays closed the
 * process is past saving, and the flush side does nothing any more. */
static int flush_waits(uint64_t deadline) {
    atomic_store(&helper.initialised, true);
    tell_loaded();
    if (helper.opens)
        return WAIT_SUSPEND;
    atomic_store(&helper.waits, true);
    const int request = wait_until(deadline);
    const bool entered = helper_gate_enter();
    atomic_store(&helper.waits, false);
    if (entered)
        helper_gate_leave();
    return request;
}

static void endpoint_answers(bool answers) {
    atomic_store(&helper.endpoint_away, !answers);
}

static void libraries_ready(bool outlive_exit) {
    atomic_store(&helper.libraries_outlive_exit, outlive_exit);
    if (!outlive_exit)
        helper.before_libraries();
}

static bool is_there(const char *path) {
    struct stat status;
    return syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0;
}

/* That of this build, wherever the name leads to that we were loaded by, or the one beside us.
 * Where neither is there any more, the kernel knows which folder we came from. */
static const char *flush_path(void) {
    static const char installed[] = "/" OTELPROF_RELEASE "/libotelprof.so";
    if (is_there(helper.release_path))
        return helper.release_path;
    if (is_there(helper.flush_path))
        return helper.flush_path;
    return process_file_has(getpid(), "maps", installed) ? helper.release_path : helper.flush_path;
}

static void load_library(void) {
    atomic_store(&helper.loading, true);
    void *const library = dlopen(flush_path(), RTLD_NOW | RTLD_LOCAL);
    const char *const release = library ? dlsym(library, FLUSH_RELEASE_SYMBOL) : NULL;
    helper.other_release = library && (!release || strcmp(release, OTELPROF_RELEASE) != 0);
    void *const found = library && !helper.other_release ? dlsym(library, FLUSH_MAIN_SYMBOL) : NULL;
    memcpy(&helper.run, &found, sizeof found);
    atomic_store(&helper.loading, false);
}

/* The file may be read by its owner and mode, and cannot be opened all the same. */
static bool is_kept_from_reading(const char *path) {
    if (syscall(SYS_faccessat, AT_FDCWD, path, R_OK) != 0)
        return false;
    const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    const bool refused = file < 0 && (errno == EACCES || errno == EPERM);
    if (file >= 0)
        close(file);
    return refused;
}

/* The program has restricted itself (landlock), or was started in a sandbox: neither our library
 * need be within reach there, nor those that it needs, which lie beside libc. */
static bool is_sandboxed(const char *path) {
    const struct harvest_module *const libc =
        modules_find(&capture.modules, (uintptr_t)(void *)getpid);
    return is_kept_from_reading(path) || (libc && is_kept_from_reading(libc->path));
}

static void tell_not_loaded(void) {
    const char *const why = helper.other_release ? NULL : dlerror();
    const char *const path = flush_path();
    const enum log_level level =
        is_sandboxed(path) ? LOG_DEBUG : log_level_in_tree(helper.log, LOG_INSTALLATION, LOG_ERROR);
    if (helper.other_release)
        log_write(helper.log, level,
                  "%s is of another build than libotelprof.so, which is %s and was "
                  "perhaps replaced while this process ran; nothing is profiled",
                  path, OTELPROF_RELEASE);
    else
        log_write(helper.log, level, "%s cannot be loaded (%s); nothing is profiled", path,
                  why ? why : "symbol missing");
}

/* An allocator in front of ours may create a thread in its first call, with its lock held
 * (heaptrack), and a new thread needs the loader. Once this thread has got an object of it, that is
 * over: nobody waits for the loader there while the loader, on this thread, waits for the
 * allocator. By the name that libraries call; no lock of the loader, and not the gate, is held. */
static void wait_for_allocator(void) {
    void *volatile object = malloc(1);
    free(object);
}

/* Under the gate: a child forked meanwhile would inherit a loader in the middle of its work, with
 * libraries half loaded or its locks held. What was found is not looked for again: a forked child
 * needs no loader for what its parent has loaded. */
static flush_main *find_flush_main(void) {
    wait_for_allocator();
    if (!helper_gate_enter())
        return NULL;
    atomic_store(&helper.waits, false);
    if (!helper.run)
        load_library();
    helper_gate_leave();
    return helper.run;
}

static bool may_open_by_path(void) {
    return file_root_is(&helper.root);
}

/* Behind another root it would be loaded, and its libraries initialised, from whoever's files. */
static bool may_load(void) {
    const bool may = atomic_load(&helper.initialised) || may_open_by_path();
    if (!may)
        log_debug(helper.log,
                  "the program has changed its root or its mounts before the exporter was "
                  "loaded; nothing is profiled");
    return may;
}

static flush_main *load_flush(void) {
    if (helper.other_release || !may_load()) /* it was said, and stays so */
        return NULL;
    flush_main *const run = find_flush_main();
    if (!run && atomic_load(&helper.request) != WAIT_ABANDON)
        tell_not_loaded();
    return run;
}

static bool change_stage(uint32_t from, uint32_t to) {
    return atomic_compare_exchange_strong(&helper.stage, &from, to);
}

/* false: somebody was faster. */
static bool leave_stage(uint32_t to) {
    return change_stage(HELPER_STARTS, to) || change_stage(HELPER_WAITS, to);
}

/* Before this moment it only waits. */
static uint64_t due_nano(void) {
    return helper.start_nano + helper.config->min_lifetime_ms * NANO_PER_MILLI;
}

bool helper_is_due(void) {
    return monotonic_nano() >= due_nano();
}

static bool is_asked_early(void) {
    return atomic_load(&helper.early) == EARLY_ASKED;
}

static uint64_t own_cpu_nano(void) {
    return helper.spent_nano + thread_cpu_nano();
}

static bool may_export(void) {
    const bool may = helper_rights_hold();
    if (!may)
        helper_end("the program has given up rights that the exporter has still");
    return may;
}

/* Whether the flush side, and so its libraries, came to be loaded. */
static bool run_flush(void) {
    flush_main *const run = load_flush();
    if (!run) {
        capture_stop();
        return false;
    }
    helper.api = (struct capture_api){.start_unix_nano = helper.start_unix_nano,
                                      .start_nano = helper.start_nano,
                                      .origin = helper.origin,
                                      .wait = flush_waits,
                                      .gate_enter = helper_gate_enter,
                                      .gate_leave = helper_gate_leave,
                                      .gate_is_awaited = helper_gate_is_awaited,
                                      .kept = &helper.kept,
                                      .suspended = &helper.suspended,
                                      .own_cpu_nano = own_cpu_nano,
                                      .may_open_by_path = may_open_by_path,
                                      .give_up = helper_end,
                                      .may_export = may_export,
                                      .endpoint_answers = endpoint_answers,
                                      .libraries_ready = libraries_ready};
    harvest_fill_api(&helper.api);
    if (run(&helper.api) < 0)
        capture_stop();
    return true;
}

/* What is loaded and opened here is run when its time has come. */
static bool load_early(void) {
    const bool loads = leave_stage(HELPER_LOADS) || atomic_load(&helper.stage) == HELPER_LOADS;
    if (loads && !atomic_load(&helper.initialised)) {
        helper.opens = true;
        (void)run_flush();
        helper.opens = false;
    }
    tell_loaded();
    return loads;
}

/* What comes next is behind the gate. */
static bool lived_long_enough(bool *loaded) {
    for (;;) {
        atomic_store(&helper.waits, true);
        const int request = wait_for_request(due_nano(), is_asked_early);
        if (request == WAIT_SUSPEND && answer_to_suspend() == WAIT_SUSPEND)
            return false;
        if (request != WAIT_SUSPEND && (request != WAIT_TIMEOUT || !is_asked_early()))
            return helper_is_due();
        if (is_asked_early())
            *loaded |= load_early();
    }
}

/* A thread that ends runs the destructors of every library that it has used (OpenSSL has one),
 * while the application's exit may be tearing those libraries down. So the thread does not end;
 * with all signals blocked it sleeps until the process is gone, or is to end with its last
 * thread. */
static void rest(void) {
    for (;;) {
        const uint32_t request = atomic_load(&helper.request);
        if (atomic_load(&helper.leave_at))
            return;
        main_watch_sleep(request, UINT64_MAX);
    }
}

/* For good: nothing that happens on this thread is the application's. */
static void become_ours(void) {
    thread_is_ours();
    floats_reset();
    prctl(PR_SET_NAME, PROCESS_TREE_THREAD);
}

static void change_state(enum helper_state state) {
    atomic_store(&helper.state, state);
    futex_wake(&helper.state);
}

/* There is no helper, or none that will work: an exit may wait for that, even for one that another
 * thread only tried to start. */
static void become_done(void) {
    change_state(HELPER_DONE);
}

/* With the children that are forked from now on: of what keeps all their profiles from arriving one
 * line is enough. Here, and not where the program's threads would wait for it. */
static void share_what_is_said(void) {
    if (helper.shares)
        return;
    _Atomic uint32_t *const shared = own_memory_share(sizeof *shared);
    if (!shared)
        return;
    atomic_store(&helper.log->said, shared);
    helper.shares = true;
}

static void *helper_main(void *unused) {
    (void)unused;
    become_ours();
    helper_rights_drop();
    if (descriptors_separate())
        atomic_store(&helper.log->separate_thread, (pid_t)syscall(SYS_gettid));
    atomic_store(&helper.tid, (uint32_t)syscall(SYS_gettid));
    share_what_is_said();
    bool loaded = false;
    if (lived_long_enough(&loaded) && (loaded || leave_stage(HELPER_LOADS)))
        loaded |= run_flush();
    if (helper.suspends) { /* and joined by who asked */
        helper.spent_nano = own_cpu_nano();
        cpu_timers_leave_helper(&sampler.timers);
        change_state(HELPER_SUSPENDED);
        return NULL;
    }
    atomic_store(&helper.rests, loaded);
    become_done();
    tell_loaded();
    if (loaded)
        rest();
    if (helper.watch.alone)
        main_watch_end_process();
    if (!atomic_exchange(&helper.parted, true))
        pthread_detach(pthread_self());
    return NULL;
}

/* Outlives the helper: see helper_leave(). */
static void *last_main(void *unused) {
    (void)unused;
    become_ours();
    (void)pthread_join(helper.thread, NULL);
    return NULL;
}

/* Whatever the application's thread has, ours is an ordinary one. Where that is one already,
 * nothing is set: units that may not change what they get (SystemCallFilter=~@resources) die of the
 * call. */
static void make_ordinary(pthread_attr_t *attributes) {
    static const struct sched_param no_priority; /* unset, it would be the creating thread's */
    if (syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER)
        return;
    pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
    pthread_attr_setschedparam(attributes, &no_priority);
}

/* Without a full mask it would take the program's signals. */
static int create_thread(void *(*run)(void *), int detached, pthread_t *id) {
    /* but for those by which libc interrupts threads */
    const signal_mask all = ~(signal_bit(LIBC_SIGNAL) | signal_bit(LIBC_SIGNAL - 1));
    pthread_attr_t attributes;
    signal_mask before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    error = signals_change(SIG_SETMASK, &all, &before) ? 0 : errno;
    if (error == 0) {
        own_tls.inside += OWN_WORK;
        pthread_attr_setdetachstate(&attributes, detached);
        pthread_attr_setstacksize(&attributes, HELPER_STACK_BYTES);
        make_ordinary(&attributes);
        error = next_calls()->pthread_create(id, &attributes, run, NULL);
        own_tls.inside -= OWN_WORK;
        signals_restore(&before);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

bool helper_start(void) {
    uint32_t none = HELPER_NONE;
    if (!atomic_compare_exchange_strong(&helper.state, &none, HELPER_RUNNING))
        return true;
    if (atomic_load(&helper.finished)) {
        become_done();
        return true;
    }
    atomic_store(&helper.parted, false);
    atomic_store(&helper.tid, 0);
    atomic_store(&helper.follows_ids, false);
    const int error = create_thread(helper_main, PTHREAD_CREATE_JOINABLE, &helper.thread);
    if (error == 0) {
        (void)change_stage(HELPER_STARTS, HELPER_WAITS);
        return true;
    }
    atomic_store(&helper.parted, true);
    log_debug(helper.log, "no helper thread could be created (error %d); nothing is profiled",
              error);
    become_done(); /* an exit that waits may end the process now */
    return false;
}

/* --- not now --- */

static enum helper_state state_behind_running(uint64_t deadline) {
    while (atomic_load(&helper.state) == HELPER_RUNNING && monotonic_nano() < deadline)
        futex_wait(&helper.state, HELPER_RUNNING, deadline);
    return (enum helper_state)atomic_load(&helper.state);
}

static void request(uint32_t what) {
    atomic_store(&helper.request, what);
    futex_wake(&helper.request);
}

/* The kernel counts a thread until it is quite gone, which is a little after pthread_join(). */
static void wait_until_gone(uint32_t tid) {
    for (int i = 0; i < WITHDRAW_PATIENCE && syscall(SYS_tgkill, getpid(), tid, 0) == 0; i++)
        syscall(SYS_nanosleep, &(struct timespec){0, 50000}, NULL);
}

/* A child of vfork() or of a bare clone(2) has our variables, but not the thread. */
bool helper_is_of_this_process(void) {
    return getpid() == capture.pid;
}

/* What the application calls is no cancellation point. */
static void join_uncancelled(void) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_join(helper.thread, NULL);
    pthread_setcancelstate(before, &before);
}

bool helper_withdraw(void) {
    const int saved = errno;
    if (!helper_is_of_this_process() || atomic_load(&helper.state) != HELPER_RUNNING ||
        !change_stage(HELPER_WAITS, HELPER_WITHDRAWN))
        return false;
    const bool ours = !atomic_exchange(&helper.parted, true);
    request(WAIT_ABANDON);
    if (ours) {
        join_uncancelled();
        wait_until_gone(atomic_load(&helper.tid));
        atomic_store(&helper.state, HELPER_SUSPENDED);
    }
    errno = saved;
    return ours;
}

static bool change_request(uint32_t from, uint32_t to) {
    return atomic_compare_exchange_strong(&helper.request, &from, to);
}

/* false: it did not answer in time, and is not asked any more. An exit on another thread asks for
 * its end in our place. */
static bool is_asked_in_vain(uint64_t patience_ms) {
    if (!change_request(WAIT_TIMEOUT, WAIT_SUSPEND))
        return true;
    const uint64_t deadline = in_milliseconds(patience_ms);
    futex_wake(&helper.request);
    while (atomic_load(&helper.request) == WAIT_SUSPEND && monotonic_nano() < deadline)
        (void)state_behind_running(in_milliseconds(SUSPEND_ROUND_MS));
    return change_request(WAIT_SUSPEND, WAIT_TIMEOUT);
}

bool helper_interrupt(uint64_t patience_ms) {
    const int saved = errno;
    if (atomic_load(&helper.state) != HELPER_RUNNING ||
        atomic_load(&helper.stage) != HELPER_LOADS || !helper_is_of_this_process() ||
        is_asked_in_vain(patience_ms))
        return false;
    const bool ours = state_behind_running(in_milliseconds(EXIT_PATIENCE_MS)) == HELPER_SUSPENDED &&
                      !atomic_exchange(&helper.parted, true);
    if (ours) {
        join_uncancelled();
        wait_until_gone(atomic_load(&helper.tid));
    }
    errno = saved;
    return ours;
}

void helper_start_again(void) {
    const int saved = errno;
    helper.suspends = false;
    atomic_store(&helper.request, WAIT_TIMEOUT);
    atomic_store(&helper.early, EARLY_NOT_ASKED);
    atomic_store(&helper.log->separate_thread, 0);
    atomic_store(&helper.stage, HELPER_STARTS);
    atomic_store(&helper.state, HELPER_NONE);
    (void)helper_start();
    errno = saved;
}

void helper_end(const char *why) {
    uint64_t stays = 0;
    if (atomic_load(&helper.state) != HELPER_RUNNING || !helper_is_of_this_process() ||
        !atomic_compare_exchange_strong(&helper.leave_at, &stays, monotonic_nano()))
        return;
    log_debug(helper.log, "%s; nothing is profiled any more", why);
    request(WAIT_ABANDON);
    capture_stop();
}

void helper_load_early(void) {
    uint32_t not_asked = EARLY_NOT_ASKED;
    const uint64_t deadline = in_milliseconds(EARLY_PATIENCE_MS);
    if (!helper_is_of_this_process() || atomic_load(&helper.state) != HELPER_RUNNING ||
        !atomic_compare_exchange_strong(&helper.early, &not_asked, EARLY_ASKED))
        return;
    while (is_asked_early() && monotonic_nano() < deadline) {
        futex_wake(&helper.request); /* again: it may have been about to sleep */
        futex_wait(&helper.early, EARLY_ASKED, in_milliseconds(EARLY_ROUND_MS));
    }
}

/* --- the end --- */

static bool is_done_by(uint64_t deadline) {
    return state_behind_running(deadline) == HELPER_DONE;
}

/* On a busy machine the helper may get too little of it to load, or to encode; a receiver that is
 * away has been told of. Async-signal-safe: yes. */
static void report_unfinished(uint64_t timeout_ms) {
    const bool told = atomic_load(&helper.endpoint_away);
    const bool minded = !told && config_says_where(helper.config);
    log_write(helper.log,
              minded ? log_level_in_tree(helper.log, LOG_UNFINISHED, LOG_WARN) : LOG_DEBUG,
              "the last export was not done within %llu ms (OTEL_PROFILER_SHUTDOWN_TIMEOUT): what "
              "was recorded since the one before is lost",
              (unsigned long long)timeout_ms);
}

/* The calling thread is the last for libc too, and calls exit: its own thread-local objects are
 * destroyed there, and handlers find its signal mask. */
void helper_leave(uint64_t timeout_ms) {
    pthread_t last;
    if (atomic_load(&helper.state) == HELPER_NONE)
        return; /* a forked child without one: exit will have it made */
    const uint64_t deadline = in_milliseconds(timeout_ms);
    const bool parts = !atomic_exchange(&helper.parted, true);
    atomic_store(&helper.leave_at, deadline);
    request(WAIT_STOP);
    if (!parts)
        return;
    if (is_done_by(deadline)) {
        join_uncancelled();
        return;
    }
    report_unfinished(timeout_ms);
    (void)create_thread(last_main, PTHREAD_CREATE_DETACHED, &last);
}

void helper_finish(uint64_t timeout_ms) {
    /* before the look at the state: a helper that another thread has withdrawn either shows there
     * that it is back, or does not come back (helper_start) */
    atomic_store(&helper.finished, true);
    if (atomic_load(&helper.state) != HELPER_RUNNING)
        return;
    /* before its time it has nothing to send: it is not even woken */
    if (!helper_is_due() && leave_stage(HELPER_WITHDRAWN))
        return;
    request(WAIT_STOP);
    if (is_done_by(in_milliseconds(timeout_ms)))
        return;
    report_unfinished(timeout_ms);
    request(WAIT_ABANDON);
    if (!atomic_load(&helper.libraries_outlive_exit)) /* closed, and never opened again */
        (void)helper_gate_close(atomic_load(&helper.loading) ? EXIT_PATIENCE_MS
                                                             : TEAR_DOWN_PATIENCE_MS);
}

bool helper_part(void) {
    if (atomic_load(&helper.state) != HELPER_DONE || atomic_exchange(&helper.parted, true))
        return false;
    atomic_store(&helper.leave_at, monotonic_nano());
    request(WAIT_ABANDON);
    join_uncancelled();
    wait_until_gone(atomic_load(&helper.tid));
    return true;
}
