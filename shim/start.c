/* Starts the profiler in a process: the constructor reads the settings, decides whether the process
 * is profiled, and arms the profiler. This is the only file above both hooks/ and process/.
 */
#include "start.h"

#include "capture/allocator/allocation_path.h"
#include "capture/binding/profiler_exports.h"
#include "capture/capture.h"
#include "capture/cpu/masked_threads.h"
#include "capture/kernel/first_page.h"
#include "capture/kernel/profiler_memory.h"
#include "capture/symbols/next.h"
#include "clock.h"
#include "config.h"
#include "config_names.h"
#include "config_values.h"
#include "hooks/by_number.h"
#include "hooks/hooks.h"
#include "log.h"
#include "origin.h"
#include "process/crash_guard.h"
#include "process/eligibility/environment_rule.h"
#include "process/eligibility/host_files.h"
#include "process/eligibility/ineligible.h"
#include "process/eligibility/preload_source.h"
#include "process/eligibility/process_filter.h"
#include "process/helper.h"
#include "process/lifecycle.h"
#include "process/log_file.h"
#include "process_tree.h"
#include "release.h"
#include "syslog_lines.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    CONFIG_BYTES = 16384,
    /* bytes for sentences, which are not touched if there are no sentences */
    SENTENCES_BYTES = 16384,
    PATH_BYTES = 512,
};

/* Lists the kinds of sentences about the settings, which are kept until the log file is known. */
enum sentences { WRONG_SETTINGS, NOTES, KINDS_OF_SENTENCES };

/* Holds decisions for the life of the process. */
static struct start {
    enum preload_source source;
    enum environment_rule rule;
    struct settings_sources sources;
    bool files_refused; /* the environment named a file that only a configuration file may name */
    struct config config;
    struct log log;
    /* the process's own flags: log.said points here until they are shared with children
     * (helper.c) */
    _Atomic uint32_t logged;
    size_t sentences_bytes[KINDS_OF_SENTENCES];
    /* strings of the configuration: mostly a few bytes, in the same page as the fields above */
    char config_text[CONFIG_BYTES];
    struct origin origin;
    char flush_path[PATH_BYTES];
    char release_path[PATH_BYTES];
    char log_path[PATH_MAX];
    char config_path[PATH_MAX];
    char sentences[KINDS_OF_SENTENCES][SENTENCES_BYTES]; /* sentences, each with its final 0 */
    struct syslog_lines syslog;                          /* touched only if the log goes there */
} start;

/* --- the log --- */

static void decide_file(void) {
    if (start.log.file) /* the log is opened once */
        return;
    start.log.file =
        syslog_is_wanted(start.config.log_file)
            ? ""
            : log_file_absolute(start.config.log_file, start.log_path, sizeof start.log_path);
}

static void open_log(const char *file) {
    const bool is_raised = file[0] && !start.config.log_level_set;
    log_init(&start.log, is_raised ? LOG_DEBUG : start.config.log_level, file);
    if (syslog_is_wanted(start.config.log_file)) {
        syslog_lines_open(&start.syslog);
        start.log.syslog = &start.syslog;
    }
    atomic_store(&start.log.logged, &start.logged);
}

/* Returns the log, and opens it if that was not done: only when a line is written, because
 * identifying stderr's file takes a system call, and most processes log no line.
 */
static struct log *log_to_write(void) {
    decide_file();
    if (!start.log.standard_error.known)
        open_log(start.log.file);
    return &start.log;
}

/* Returns LOG_WARN in the first process of a tree with the same settings. Returns LOG_DEBUG in the
 * other processes, because the first one has reported the errors. */
static enum log_level level_if_first(enum process_tree_reporter reporter) {
    return process_tree_has_reported(reporter) ? LOG_DEBUG : LOG_WARN;
}

static void remember_sentence(enum sentences kind, const char *message) {
    size_t *const bytes = &start.sentences_bytes[kind];
    const size_t size = strlen(message) + 1;
    if (size > SENTENCES_BYTES - *bytes)
        return;
    memcpy(start.sentences[kind] + *bytes, message, size);
    *bytes += size;
}

static void remember_wrong(void *unused, const char *message) {
    (void)unused;
    remember_sentence(WRONG_SETTINGS, message);
}

static void remember_note(void *unused, const char *message) {
    (void)unused;
    remember_sentence(NOTES, message);
}

static void report_sentences(enum sentences kind, enum log_level level) {
    const char *const text = start.sentences[kind];
    for (size_t at = 0; at < start.sentences_bytes[kind]; at += strlen(text + at) + 1)
        log_write(log_to_write(), level, "%s", text + at);
}

/* Reports errors of the settings. Host-wide, reports them as warnings only in profiled programs,
 * because the settings are not meant for other programs. */
static void report_wrong_settings(bool profiled) {
    if (start.sentences_bytes[WRONG_SETTINGS] == 0)
        return;
    if (start.source != PRELOAD_HOST)
        report_sentences(WRONG_SETTINGS, level_if_first(REPORTER_LOADED));
    else
        report_sentences(WRONG_SETTINGS, profiled ? level_if_first(REPORTER_PROFILED) : LOG_DEBUG);
}

static void report_sources(void) {
    if (start.config.log_level < LOG_DEBUG)
        return;
    report_sentences(NOTES, LOG_DEBUG);
    if (start.sources.left_out.length)
        log_debug(log_to_write(),
                  "the environment's %s are ignored: libotelprof.so is loaded host-wide, and this "
                  "process has root's rights or capabilities; configuration files may set them",
                  start.sources.left_out.text);
}

/* Reports the refused files, for profiled programs only. */
static void report_refused_files(void) {
    if (start.files_refused)
        log_write(&start.log, level_if_first(REPORTER_PROFILED),
                  "log files, export files, OTEL_CONFIG_FILE, OTEL_PROFILER_CONTROL_FILE and "
                  "OTEL_PROFILER_LISTEN are refused where LD_PRELOAD does not name libotelprof.so "
                  "(/etc/ld.so.preload does), unless a configuration file names them: another user "
                  "may have set the variables");
}

static void check_log_file(void) {
    const char *const file = start.log.file;
    const char *const problem = file[0] ? log_file_problem(file) : NULL;
    if (!problem)
        return;
    open_log("");
    log_write(&start.log, level_if_first(REPORTER_PROFILED),
              "OTEL_PROFILER_LOG_FILE: %s %s; using stderr", file, problem);
}

/* --- reading the settings --- */

static bool environment_has(const char *const *environment, const char *name) {
    return config_names_value(environment, name) != NULL;
}

static void parse_settings(const char *const *environment, const struct config_lines *files) {
    start.rule = environment_rule_of(start.source, environment, files);
    environment_join(environment, start.rule, files, &start.sources);
    config_parse(start.sources.entries, &start.config, start.config_text, sizeof start.config_text,
                 remember_wrong, NULL);
}

/* Reports at debug level why the profiler stays off, and forgets errors of the settings. Returns
 * false. `kill_switch` NULL: there may be a kill switch in files that could not be opened. */
static bool stay_off(const char *kill_switch) {
    start.sentences_bytes[WRONG_SETTINGS] = 0;
    if (start.config.log_level < LOG_DEBUG)
        return false;
    if (kill_switch)
        log_debug(log_to_write(), "%s exists; nothing is profiled", kill_switch);
    else
        log_debug(log_to_write(), "no descriptor is left to read the configuration files; nothing "
                                  "is profiled");
    return false;
}

/* Reads the settings. Returns false if the process must not be profiled: the kill switch is on, the
 * environment disables it, or the files may do so. */
static bool read_settings(const char *const *environment) {
    const char *const disabled = config_names_value(environment, "OTEL_SDK_DISABLED");
    if (disabled && text_equals_ignoring_case(disabled, "true")) {
        parse_settings(environment, NULL);
        return false;
    }
    const int folder = host_files_open();
    const char *const kill_switch = host_files_kill_switch(folder);
    if (!kill_switch)
        parse_settings(environment, host_files_read(folder, remember_wrong, remember_note));
    /* stores the level for the report of the kill switch */
    else if (environment_has(environment, "OTEL_LOG_LEVEL"))
        parse_settings(environment, NULL);
    host_files_close(folder);
    return (!kill_switch && host_files_are_known()) || stay_off(kill_switch);
}

/* --- deciding --- */

static bool is_enabled(void) {
    return !start.config.disabled && config_has_receiver(&start.config) && start.config.types != 0;
}

static void report_not_profiled(enum filter_result result, const char *name) {
    const struct log *const log = log_to_write();
    if (result == PROCESS_NOT_INCLUDED)
        log_debug(log,
                  "%s is left alone: libotelprof.so is loaded host-wide, and "
                  "OTEL_PROFILER_INCLUDE does not name it",
                  name);
    else if (result == PROCESS_NEVER_PROFILED)
        log_debug(log, "%s is one of the programs that are never profiled host-wide", name);
    else if (start.source == PRELOAD_HOST)
        log_debug(log, "%s is excluded by OTEL_PROFILER_EXCLUDE", name);
    else
        log_debug(log,
                  "%s is excluded by OTEL_PROFILER_EXCLUDE%s; nothing is profiled unless "
                  "OTEL_PROFILER_INCLUDE names it",
                  name, result == PROCESS_EXCLUDED_BY_DEFAULT ? "'s default" : "");
}

static enum filter_result start_filter(void) {
    char path[PATH_MAX];
    struct program program;
    const char *const include = start.config.include;
    const char *const exclude = start.config.exclude;
    const enum filter_result result =
        start.source == PRELOAD_HOST
            ? process_filter_this_process_host_wide(include, exclude, &program, path, sizeof path)
            : process_filter_this_process(include, exclude, &program, path, sizeof path);
    if (result != PROCESS_PROFILED && start.config.log_level >= LOG_DEBUG)
        report_not_profiled(result, program.file[0] ? program.file : program.started_by);
    return result;
}

/* Returns true for a process that is excluded before any configuration file is read: a command of
 * the system for which the environment has none of three variables. Such commands are most
 * processes of a machine, and host-wide no file can include them. */
static bool is_left_to_itself(const char *const *environment) {
    return process_filter_is_command() && !environment_has(environment, "OTEL_PROFILER_INCLUDE") &&
           !environment_has(environment, "OTEL_PROFILER_EXCLUDE") &&
           !environment_has(environment, "OTEL_LOG_LEVEL");
}

static enum filter_result start_decide(const char *const *environment, char *const *arguments) {
    const bool named = preload_is_named(environment);
    if (!named && is_left_to_itself(environment))
        return PROCESS_EXCLUDED_BY_DEFAULT;
    start.source = named ? PRELOAD_VARIABLE : preload_source_unnamed(arguments);
    if (!read_settings(environment))
        return PROCESS_EXCLUDED;
    report_sources();
    return is_enabled() ? start_filter() : PROCESS_EXCLUDED;
}

static bool is_to_profile(enum filter_result result, char *const *arguments) {
    if (result != PROCESS_PROFILED)
        return false;
    decide_file();
    open_log(start.log.file);
    check_log_file();
    start.files_refused = start.sources.files_left_out;
    if (!start.sources.writes_file && config_writes_file(&start.config)) {
        /* the environment names an export file that it must not name, and no configuration file
         * names one */
        start.files_refused = true;
        start.config.exporters &= ~(unsigned)EXPORTER_OTLP_FILE;
    }
    /* checks before names are looked up that may be missing, because valgrind counts the
     * allocations of such lookups */
    const bool ineligible =
        is_enabled() &&
        ((process_filter_has_default(start.config.exclude) && is_under_valgrind(&start.log)) ||
         is_ineligible(&start.log, arguments));
    if (!ineligible)
        report_refused_files();
    return is_enabled() && !ineligible;
}

/* --- arming --- */

/* Sets the two paths of libotelprof-flush.so: beside libotelprof.so, and in the folder of this
 * release there. Returns false if the path of libotelprof.so is unknown or too long. */
static bool find_flush(void) {
    static const char name[] = "libotelprof-flush.so";
    static const char installed[] = OTELPROF_RELEASE "/libotelprof-flush.so";
    const struct harvest_module *const own =
        modules_find(&capture.modules, (uintptr_t)(void *)find_flush);
    const char *const slash = own ? strrchr(own->path, '/') : NULL;
    const size_t folder = slash ? (size_t)(slash - own->path) + 1 : 0;
    if (!slash || folder + sizeof installed > sizeof start.release_path)
        return false;
    memcpy(start.flush_path, own->path, folder);
    memcpy(start.flush_path + folder, name, sizeof name);
    memcpy(start.release_path, own->path, folder);
    memcpy(start.release_path + folder, installed, sizeof installed);
    return true;
}

static bool is_profiler_variable(const char *entry) {
    return strncmp(entry, "OTEL_", 5) == 0;
}

/* Copies the OTEL_* variables from which the settings were read, in the same order. The copy lives
 * as long as the process, and a forked child has it, too. The exporter reads a configuration file
 * only after the process has lived for a while, and merges it with these variables: by then the
 * program may have changed its environment, or overwritten it with its title. Returns NULL if there
 * is no memory. */
static const char *const *keep_variables(const char *const *environment) {
    size_t count = 0;
    size_t size = 0;
    for (size_t i = 0; environment && environment[i]; i++) {
        count += is_profiler_variable(environment[i]);
        size += is_profiler_variable(environment[i]) ? strlen(environment[i]) + 1 : 0;
    }
    const size_t table = (count + 1) * sizeof(const char *);
    const char **const kept = profiler_memory_take(whole_pages(table + size));
    if (!kept)
        return NULL;
    char *at = (char *)kept + table;
    size_t index = 0;
    for (size_t i = 0; environment && environment[i]; i++) {
        if (!is_profiler_variable(environment[i]))
            continue;
        kept[index++] = at;
        at = stpcpy(at, environment[i]) + 1;
    }
    return kept;
}

/* Passes the data of the start to the helper. */
static void prepare_helper(void) {
    helper.config = &start.config;
    helper.log = &start.log;
    helper.origin = &start.origin;
    /* stores an absolute path, because the helper reads the file later, when the working directory
     * may be another */
    if (start.config.config_file[0]) {
        start.config.config_file = log_file_absolute(start.config.config_file, start.config_path,
                                                     sizeof start.config_path);
        helper.variables = keep_variables(start.sources.entries);
    }
    if (start.config.exporters & EXPORTER_OTLP_FILE)
        origin_remember(&start.origin);
    helper.start_nano = monotonic_nano();
    helper.start_unix_nano = realtime_nano();
    helper.start_cpu_nano = clock_nano(CLOCK_PROCESS_CPUTIME_ID);
    helper.root = file_root_now();
    helper.flush_path = start.flush_path;
    helper.release_path = start.release_path;
    helper.watch.main = pthread_self();
}

/* Arms the profiler; the caller then starts the helper. Returns false, after the reason was logged,
 * if the process cannot be profiled. */
static bool start_arm(const char *const *environment) {
    const int sandbox = prctl(PR_GET_SECCOMP);
    if (sandbox)
        log_debug(&start.log, "a seccomp filter was there first: only calls that the usual ones "
                              "let pass are made (docs/deployment.md)");
    prepare_helper();
    if (!capture_start(&start.config, &start.log))
        return false;
    if (!find_flush()) {
        log_error(&start.log, "the folder of libotelprof.so is not known; nothing is profiled");
        capture_stop();
        return false;
    }
    hooks_environment_keep(start.rule == ENVIRONMENT_DESCRIBES ? NULL : environment,
                           start.rule != ENVIRONMENT_COUNTS);
    lifecycle_begin(&start.config, &start.log, sandbox);
    return true;
}

/* Hides hooks that are not needed, so that objects loaded later find the same symbols as without
 * the profiler. */
static void unexport_unneeded(void) {
    struct symbol
        unneeded[HOOKS_NEW_FUNCTIONS + HOOKS_MMAP_FUNCTIONS + HOOKS_GENERATED_CODE_FUNCTIONS];
    size_t count = hooks_new_unneeded(unneeded);
    count += hooks_mmap_unneeded(unneeded + count);
    count += hooks_generated_code_unneeded(unneeded + count);
    (void)profiler_exports_unexport(unneeded, count);
}

/* --- the constructor --- */

IN_FIRST_PAGE static bool has_begun; /* not atomic, because there is one thread */

/* Runs the start once. `arguments`: NULL if they are unknown. */
static void start_begin(const char *const *environment, char *const *arguments) {
    if (has_begun ||
        /* AT_SECURE: the loader should have dropped the profiler; if it has not, the profiler stays
         * off */
        getauxval(AT_SECURE))
        return;
    if (!libc_is_complete())
        return;
    has_begun = true;
    /* another library's constructor has called lifecycle_leave_thread() */
    if (atomic_load(&capture_is_off))
        return;
    const int saved = errno; /* errno must be 0 when main begins (C standard) */
    const enum filter_result result = start_decide(environment, arguments);
    const bool profiled = is_to_profile(result, arguments) &&
                          crash_guard_admits(start.source == PRELOAD_HOST, &start.log);
    report_wrong_settings(profiled);
    if (!profiled) {
        lifecycle_decline();
        /* hides no hooks in programs such as `ls`: that costs too much, and they load no library
         * that would notice */
        if (result != PROCESS_EXCLUDED_BY_DEFAULT)
            unexport_unneeded();
        errno = saved;
        return;
    }
    /* resolves the next functions now; in other processes the first call of a hook resolves them */
    (void)next_calls();
    allocation_path_resolve();
    hooks_syscall_finish_init();
    hooks_new_finish_init();
    const bool armed = start_arm(environment);
    if (!armed)
        lifecycle_decline();
    unexport_unneeded();
    if (armed) {
        hooks_blocking_start(start.config.types);
        helper_share_logged_flags();
    }
    if (armed && !helper_start())
        capture_stop();
    masked_threads_finish_init();
    errno = saved;
}

void start_before_constructor(void) {
    start_begin((const char *const *)(const void *)environ, NULL);
}

/* Starts the profiler. glibc passes main's arguments to constructors, the environment among them.
 * The profiler reads that environment, once, because programs export a getenv of their own and
 * overwrite environ. */
__attribute__((constructor)) static void construct(int argc, char **argv, char **envp) {
    (void)argc;
    start_begin((const char *const *)(const void *)envp, argv);
}
