/* The life of the profiler in a process: the constructor, fork, and exit. The only file that knows
 * everything. */
#include "lifecycle.h"
#include "capture/capture.h"
#include "capture/cpu/masked_threads.h"
#include "capture/kernel/first_page.h"
#include "capture/kernel/futex.h"
#include "capture/kernel/signals_blocked.h"
#include "capture/record/libc_threads.h"
#include "capture/symbols/loader_state.h"
#include "capture/symbols/next.h"
#include "capture/symbols/own_exports.h"
#include "clock.h"
#include "config.h"
#include "helper.h"
#include "helper_gate.h"
#include "hooks/environment.h"
#include "hooks/mmap.h"
#include "hooks/operator_new.h"
#include "hooks/sandbox.h"
#include "log.h"
#include "log_file.h"
#include "origin.h"
#include "otelprof.h"
#include "process/eligibility/choice.h"
#include "process/eligibility/left_alone.h"
#include "process/eligibility/preload_source.h"
#include "process_tree.h"
#include "release.h"
#include "seccomp_state.h"
#include "termination.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CONFIG_BYTES = 16384,
    COMPLAINTS_BYTES = 16384, /* untouched where nothing is wrong: no memory is taken for it */
    PATH_BYTES = 512,
    LOADER_TIMEOUT_MS = 100, /* how long fork() waits for a thread of ours inside the loader */
};

static struct lifecycle {
    pid_t pid; /* of the process that this state is about; written by a forked child */
    _Atomic bool exiting;
    _Atomic bool left; /* lifecycle_leave_process() */
    bool started;
    bool told_alone;        /* libc, by the thread that forks: libc_threads.h */
    int sandbox;            /* PR_GET_SECCOMP when we started */
    bool variables_refused; /* refuse_files() */
    bool files_refused;     /* and there was one */
    struct config config;
    struct log log;
    _Atomic uint32_t said; /* by this process alone: log.said, until it is shared (helper.c) */
    struct origin origin;
    char config_text[CONFIG_BYTES];
    char flush_path[PATH_BYTES];
    char release_path[PATH_BYTES];
    char log_path[PATH_MAX];
    struct wrong_settings {
        size_t size;
        char text[COMPLAINTS_BYTES]; /* sentences, each with the 0 at its end */
    } wrong;
} life;

OTELPROF_EXPORT const char *otelprof_version(void) {
    return OTELPROF_VERSION;
}

/* --- exit --- */

bool lifecycle_may_send(void) {
    return life.started && helper_is_due();
}

/* A helper is created late in children only. What it would do (threads, files, sockets) is what the
 * sandboxes that a child puts itself into forbid, often on pain of death; then there is none, and
 * nothing is said, because that takes calls too. The helper would need prctl itself. */
static void start_late_helper(void) {
    const int saved = errno; /* the program is in the middle of a malloc */
    atomic_store(&capture.want_helper, NULL);
    if (prctl(PR_GET_SECCOMP) == life.sandbox)
        (void)helper_start();
    errno = saved;
}

static void end_fork(void) {
    if (own_tls.modules_locked) {
        own_tls.modules_locked = false;
        modules_end_fork(&capture.modules);
    }
    helper_open_gate();
}

/* A signal handler may have interrupted a malloc. */
static bool may_be_in_handler(void) {
    return atomic_load(&capture.has_handlers) && own_tls.thread && !own_tls.inside &&
           !thread_is_calm();
}

/* But for a helper that does nothing, and will do nothing without being let. A filter of the
 * program's own may forbid to look. */
static bool is_alone(void) {
    if (prctl(PR_GET_SECCOMP) != life.sandbox)
        return false;
    const unsigned threads = libc_threads_count();
    return threads == 1 || (threads == 2 && helper_is_at_rest());
}

/* After fork() has looked, and before the helper may go on. */
static void tell_libc_of_helper(void) {
    if (life.told_alone)
        libc_threads_are(false);
    life.told_alone = false;
}

/* true: this call, and no other, is to end it. A signal may end the process while this thread is in
 * the middle of a fork, whose locks the helper would wait for. */
static bool begin_end(void) {
    if (!life.started || lifecycle_is_out() || getpid() != life.pid ||
        atomic_exchange(&life.exiting, true))
        return false;
    atomic_store(&capture.ending, true);
    tell_libc_of_helper();
    end_fork();
    return true;
}

/* A forked child that has made no call in which its helper could be started. Here none is: the
 * thread may be in the middle of anything. */
static void report_unprofiled(void) {
    const uint64_t used = clock_nano(CLOCK_PROCESS_CPUTIME_ID);
    if (atomic_load(&capture.want_helper) && helper_is_due() && used >= capture.cpu_period_nano)
        log_debug(&life.log,
                  "this child ends at once, and has called nothing that its exporter could be "
                  "started in; %llu ms of CPU time are in no profile",
                  (unsigned long long)(used / NANO_PER_MILLI));
}

/* What the helper uses counts for the interval timers of the process. One that the program has left
 * running without a handler, as Python does at its end, must not expire of our last export. Not
 * behind a filter, which may kill for the call. */
static void finish_helper(void) {
    static const struct itimerval off = {{0, 0}, {0, 0}};
    static const int which[] = {ITIMER_VIRTUAL, ITIMER_PROF};
    struct itimerval left[2] = {0};
    const bool uses = atomic_load(&capture.uses_interval_timers) && !seccomp_is_filtered();
    for (int i = 0; uses && i < 2; i++)
        (void)next_calls()->setitimer(which[i], &off, &left[i]);
    helper_finish(life.config.shutdown_timeout_ms);
    for (int i = 0; uses && i < 2; i++)
        if (left[i].it_value.tv_sec || left[i].it_value.tv_usec)
            (void)next_calls()->setitimer(which[i], &left[i], NULL);
}

void lifecycle_end_at_once(void) {
    if (!begin_end())
        return;
    report_unprofiled();
    finish_helper();
}

void lifecycle_end(void) {
    if (!begin_end())
        return;
    if (helper_is_due() && atomic_load(&capture.want_helper))
        start_late_helper(); /* a forked child that ends before it needed one */
    finish_helper();
    capture_stop();
    /* exit handlers allocate, and a signal handler that interrupts them may fork; or this is one */
    if (atomic_load(&capture.has_handlers) && is_alone())
        libc_threads_are(true);
}

/* --- leaving before the end --- */

bool lifecycle_is_out(void) {
    return atomic_load(&life.left) || capture_has_left();
}

/* In a child that has our variables to itself: it is behind the parent's filter, or no fork handler
 * has seen it. */
static void stay_out(void) {
    life.started = false;
    atomic_store(&capture.want_helper, NULL);
    atomic_store(&capture.armed, false);
    capture_decline();
}

/* Signals that end the process do so by themselves again: our handler makes calls, on any thread.
 */
void lifecycle_leave_thread(int killed_by) {
    if (!life.started) {
        capture_decline(); /* the constructor comes after another's; see begin() */
    } else if (thread_table_is_wiped(&capture.threads)) {
        stay_out();
    } else if (getpid() == life.pid) { /* not in a child of vfork() */
        lifecycle_may_end_unseen(killed_by, false);
        capture_leave_thread();
        termination_remove();
    }
}

void lifecycle_may_end_unseen(int expected, bool all) {
    if (!life.started || lifecycle_is_out() || thread_table_is_wiped(&capture.threads))
        return;
    if (all || main_watch_is_main())
        main_watch_begin(expected);
    else if (WIFEXITED(expected))
        main_watch_other_ends(expected);
}

void lifecycle_leave_process(void) {
    const bool last = begin_end();
    lifecycle_leave_thread(SIGSYS);
    atomic_store(&life.left, life.started && getpid() == life.pid);
    if (!last)
        return;
    if (!helper_withdraw()) {
        helper_finish(life.config.shutdown_timeout_ms);
        helper_part();
    }
    capture_stop();
}

/* The process will end when this thread has: with exit handlers, as it would without us. */
static void on_last_thread(void) {
    if (!life.started || atomic_load(&life.left) || getpid() != life.pid)
        return;
    atomic_store(&capture.ending, true);
    helper_leave(life.config.shutdown_timeout_ms);
}

/* at_quick_exit() and pthread_atfork(), without the part of them that is linked statically and
 * needs glibc: weak_glibc.h. */
int __cxa_at_quick_exit(void (*function)(void *), void *object);
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void end_quickly(void *unused) {
    (void)unused;
    lifecycle_end();
}

static void register_at_exit(void) {
    /* refused only without memory: then the last interval is lost */
    (void)atexit(lifecycle_end);
    (void)__cxa_at_quick_exit(end_quickly, __dso_handle);
}

/* --- fork --- */

/* Threads of the exporter's libraries (libcurl asks for names on one) are nobody's that is
 * registered. What they load is not to be left half loaded in the program's children. */
static bool is_ours_inside(uint32_t user) {
    for (uint32_t i = 0; user != 0 && i < thread_table_count(&capture.threads); i++)
        if (atomic_load(&thread_table_at(&capture.threads, i)->tid) == user)
            return false;
    return user != 0 && helper.run && loader_state_is_known();
}

/* Whether a child of this moment could find the loader in the middle of another thread's work. */
static bool loader_is_in_use(void) {
    const uint64_t deadline = in_milliseconds(LOADER_TIMEOUT_MS);
    while (is_ours_inside(loader_state_user()) && monotonic_nano() < deadline)
        syscall(SYS_nanosleep, &(struct timespec){0, 50000}, NULL);
    if (loader_state_is_known())
        return loader_state_user() != 0;
    return atomic_load(&capture.live_threads) > 1 && !helper.run;
}

/* The signal stays away from the fork itself: where copying the address space takes longer than the
 * timer's period, the kernel would start over for ever. */
static void before_fork(void) {
    signal_mask before = 0;
    tell_libc_of_helper();
    own_tls.blocked_for_fork = 0;
    /* in a child of a bare clone(2) the gate is as the helper held it, and nobody opens it */
    if (lifecycle_is_out() || thread_table_is_wiped(&capture.threads))
        return;
    const int number = masked_threads_signal();
    if (number && signal_block(number, &before) && !(before & signal_bit(number)))
        own_tls.blocked_for_fork = (uint8_t)number;
    const bool outside = helper_close_gate(getpid() == life.pid);
    own_tls.modules_locked = modules_begin_fork(&capture.modules);
    own_tls.loader_in_use = !outside || loader_is_in_use();
}

static bool may_be_copied(void) {
    return life.started && !lifecycle_is_out() && getpid() == life.pid &&
           !atomic_load(&life.exiting) && !atomic_load(&capture.ending);
}

bool lifecycle_before_bare_child(void) {
    return may_be_copied() && helper_close_gate_to_copy();
}

void lifecycle_before_fork(void) {
    const int saved = errno;
    if (may_be_copied() && atomic_load(&capture.live_threads) <= 1 && may_be_in_handler() &&
        helper_close_gate_at_rest() && is_alone()) {
        life.told_alone = true;
        libc_threads_are(true);
    }
    errno = saved;
}

void lifecycle_after_bare_child(void) {
    helper_open_gate();
}

static void unblock_signal(void) {
    if (own_tls.blocked_for_fork)
        signal_unblock(own_tls.blocked_for_fork);
}

static void after_fork_in_parent(void) {
    end_fork();
    unblock_signal();
    if (own_tls.loader_in_use)
        atomic_fetch_add(&capture.dropped[DROP_CHILD], 1);
    own_tls.loader_in_use = false;
}

/* Children mostly live short or exec at once: their helper is created when they show that they do
 * not, by work and MIN_LIFETIME, in a malloc, a setitimer or a call of hooks_waits.c, or at exit.
 * Not behind their last thread's end: there ours would be the last, and exit in its place. Nor in a
 * child of theirs that shares their memory (vfork): it would have the thread, and take it along. */
static void want_helper(bool calm) {
    if (!helper_is_due() || getpid() != life.pid || atomic_load(&life.exiting) ||
        atomic_load(&capture.ending) || (!calm && !thread_is_calm()))
        return;
    start_late_helper();
}

void lifecycle_load_early(void) {
    if (!life.started || getpid() != life.pid || atomic_load(&capture.ending))
        return;
    if (atomic_load(&capture.want_helper))
        start_late_helper();
    helper_load_early();
}

/* Neither a helper nor anything else of ours calls the loader, or the exporter's libraries, in this
 * process, ever. */
static void stay_out_of_libraries(const char *reason) {
    log_debug(&life.log, "this process was forked while %s; it is not profiled", reason);
    atomic_store(&capture.want_helper, NULL);
    atomic_store(&life.left, true);
    capture_stop();
}

static void after_fork_in_child(void) {
    const bool may_load = !own_tls.loader_in_use && loader_state_is_whole();
    own_tls.loader_in_use = false;
    own_tls.modules_locked = false;
    if (lifecycle_is_out()) {
        stay_out();
        return;
    }
    const bool outside = helper_after_fork();
    life.pid = getpid();
    termination_spare_first_process();
    atomic_store(&life.exiting, false);
    atomic_store(&capture.ending, false);
    atomic_store(&capture.want_helper, want_helper);
    capture_after_fork();
    unblock_signal();
    if (!outside)
        stay_out_of_libraries("the exporter was inside of a library");
    else if (!may_load)
        stay_out_of_libraries("a library was being loaded or unloaded");
}

/* --- start --- */

/* The variables may be another user's than the process (preload_source.h): no file is written that
 * they name. */
static void refuse_files(void) {
    life.log.file = "";
    life.variables_refused = true;
    life.files_refused = life.config.log_file[0] != 0;
    if (!config_writes_file(&life.config))
        return;
    life.files_refused = true;
    life.config.exporters &= ~(unsigned)EXPORTER_OTLP_FILE;
}

/* Where LD_PRELOAD is missing now, it may be that only a library before us took it away. */
static void settle_files(const char *const *environment) {
    const char *const file = life.config.log_file;
    if (life.log.file) /* once */
        return;
    if (preload_is_named(environment) || preload_was_given())
        life.log.file = log_file_absolute(file, life.log_path, sizeof life.log_path);
    else
        refuse_files();
}

static enum log_level level_of(const char *file) {
    return file[0] && !life.config.log_level_set ? LOG_DEBUG : life.config.log_level;
}

static void open_log(const char *file) {
    log_init(&life.log, level_of(file), file);
    atomic_store(&life.log.said, &life.said);
}

/* Which file stderr is costs a call, and most processes have nothing to say. */
static struct log *log_to_write(const char *const *environment) {
    settle_files(environment);
    if (!life.log.standard_error.known)
        open_log(life.log.file);
    return &life.log;
}

/* Of what is wrong in all that are given the same: what starts them has said it. */
static enum log_level level_if_first(enum process_tree_teller teller) {
    return process_tree_has_told(teller) ? LOG_DEBUG : LOG_WARN;
}

/* Where they are said is not known before all settings are. */
static void remember_wrong(void *unused, const char *message) {
    (void)unused;
    struct wrong_settings *const wrong = &life.wrong;
    const size_t size = strlen(message) + 1;
    if (size > sizeof wrong->text - wrong->size)
        return;
    memcpy(wrong->text + wrong->size, message, size);
    wrong->size += size;
}

static void report_wrong_settings(const char *const *environment) {
    const struct wrong_settings *const wrong = &life.wrong;
    if (wrong->size == 0)
        return;
    const struct log *const log = log_to_write(environment);
    const enum log_level level = level_if_first(TELLER_LOADED);
    for (size_t at = 0; at < wrong->size; at += strlen(wrong->text + at) + 1)
        log_write(log, level, "%s", wrong->text + at);
}

static bool is_enabled(void) {
    return !life.config.disabled && life.config.exporters != 0 && life.config.types != 0;
}

static enum choice choose(const char *const *environment) {
    char path[PATH_MAX];
    struct program program;
    const enum choice choice = choice_of_this_process(life.config.include, life.config.exclude,
                                                      &program, path, sizeof path);
    if (choice != CHOICE_PROFILED && life.config.log_level >= LOG_DEBUG)
        log_debug(log_to_write(environment),
                  "%s is excluded by OTEL_PROFILER_EXCLUDE%s; nothing is profiled unless "
                  "OTEL_PROFILER_INCLUDE names it",
                  program.file[0] ? program.file : program.started_by,
                  choice == CHOICE_EXCLUDED_BY_DEFAULT ? "'s default" : "");
    return choice;
}

static bool is_left_alone(char *const *arguments) {
    /* before the look-ups of names that are not there: valgrind counts their allocations */
    return (choice_has_default(life.config.exclude) && is_under_valgrind(&life.log)) ||
           must_be_left_alone(&life.log, arguments);
}

/* libotelprof-flush.so lies beside libotelprof.so. */
static bool find_flush(void) {
    static const char name[] = "libotelprof-flush.so";
    static const char installed[] = OTELPROF_RELEASE "/libotelprof-flush.so";
    const struct harvest_module *const own =
        modules_find(&capture.modules, (uintptr_t)(void *)find_flush);
    const char *const slash = own ? strrchr(own->path, '/') : NULL;
    const size_t folder = slash ? (size_t)(slash - own->path) + 1 : 0;
    if (!slash || folder + sizeof installed > sizeof life.release_path)
        return false;
    memcpy(life.flush_path, own->path, folder);
    memcpy(life.flush_path + folder, name, sizeof name);
    memcpy(life.release_path, own->path, folder);
    memcpy(life.release_path + folder, installed, sizeof installed);
    return true;
}

/* false: nothing is profiled; that has been said. The helper is to be started. */
static bool arm(const char *const *environment) {
    life.pid = getpid();
    life.sandbox = prctl(PR_GET_SECCOMP);
    if (life.sandbox)
        log_debug(&life.log, "a seccomp filter was there first: only calls that the usual ones let "
                             "pass are made (docs/deployment.md)");
    helper.config = &life.config;
    helper.log = &life.log;
    helper.origin = &life.origin;
    if (life.config.exporters & EXPORTER_OTLP_FILE)
        origin_remember(&life.origin);
    helper.start_nano = monotonic_nano();
    helper.start_unix_nano = realtime_nano();
    helper.root = file_root_now();
    helper.flush_path = life.flush_path;
    helper.release_path = life.release_path;
    helper.watch.main = pthread_self();
    helper.before_libraries = register_at_exit;
    if (!capture_start(&life.config, &life.log))
        return false;
    if (!find_flush()) {
        log_error(&life.log, "the folder of libotelprof.so is not known; nothing is profiled");
        capture_stop();
        return false;
    }
    capture.on_last_thread = on_last_thread;
    __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, __dso_handle);
    life.started = true;
    libc_threads_settle();
    loader_state_learn();
    hooks_environment_keep(environment, life.variables_refused);
    termination_install(lifecycle_end_at_once);
    register_at_exit();
    return true;
}

/* Of what is profiled: what is left alone has nothing to tell. */
static void report_refused_files(void) {
    if (life.files_refused)
        log_write(&life.log, level_if_first(TELLER_PROFILED),
                  "log files and export files are refused where LD_PRELOAD does not name "
                  "libotelprof.so (/etc/ld.so.preload does): another user may have set "
                  "the variables; lines go to stderr");
}

static void check_log_file(void) {
    const char *const file = life.log.file;
    const char *const problem = file[0] ? log_file_problem(file) : NULL;
    if (!problem)
        return;
    open_log("");
    log_write(&life.log, level_if_first(TELLER_PROFILED),
              "OTEL_PROFILER_LOG_FILE: %s %s; using stderr", file, problem);
}

/* So that what is loaded later finds what it would have found without us. */
static void withdraw_unneeded(void) {
    struct symbol unneeded[HOOKS_NEW_FUNCTIONS + HOOKS_MMAP_FUNCTIONS];
    size_t count = hooks_new_unneeded(unneeded);
    count += hooks_mmap_unneeded(unneeded + count);
    (void)own_exports_withdraw(unneeded, count);
}

/* What else there is to pay is too much for `ls` and `sh`, which load nothing that could tell. */
static void decline(enum choice choice) {
    capture_decline();
    if (choice != CHOICE_EXCLUDED_BY_DEFAULT)
        withdraw_unneeded();
}

static bool is_to_profile(enum choice choice, const char *const *environment,
                          char *const *arguments) {
    if (choice != CHOICE_PROFILED)
        return false;
    settle_files(environment);
    open_log(life.log.file);
    check_log_file();
    const bool left_alone = is_enabled() && is_left_alone(arguments);
    if (!left_alone)
        report_refused_files();
    return is_enabled() && !left_alone;
}

/* What the hooks need they look for at the first call elsewhere. */
static void look_behind_us(void) {
    (void)next_calls();
    allocation_path_resolve();
    hooks_sandbox_settle();
    hooks_new_settle();
}

/* `arguments`: NULL if they are not known. */
static void begin(const char *const *environment, char *const *arguments) {
    IN_FIRST_PAGE static bool begun;   /* there is one thread */
    if (begun || getauxval(AT_SECURE)) /* the loader drops us there; if it did not, stay off */
        return;
    if (!libc_is_complete())
        return;
    begun = true;
    if (atomic_load(&capture.off)) /* what another constructor did: lifecycle_leave_thread() */
        return;
    const int saved = errno; /* 0 where main begins, as C has it */
    config_parse(environment, &life.config, life.config_text, sizeof life.config_text,
                 remember_wrong, NULL);
    const enum choice choice = is_enabled() ? choose(environment) : CHOICE_EXCLUDED;
    const bool profiled = is_to_profile(choice, environment, arguments);
    report_wrong_settings(environment);
    if (!profiled) {
        decline(choice);
        errno = saved;
        return;
    }
    look_behind_us();
    if (!arm(environment))
        capture_decline();
    withdraw_unneeded();
    if (life.started && !helper_start())
        capture_stop();
    masked_threads_settle();
    errno = saved;
}

void capture_wants_start(void) {
    begin((const char *const *)(const void *)environ, NULL);
}

/* glibc passes main's arguments to constructors; the environment is read from there, once, because
 * programs export a getenv of their own and overwrite environ. */
__attribute__((constructor)) static void construct(int argc, char **argv, char **envp) {
    (void)argc;
    begin((const char *const *)(const void *)envp, argv);
}
