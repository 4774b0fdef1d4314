/* Writes one-line log messages, "libotelprof[PID] warn: ...", to the stderr that the process
 * started with, to OTEL_PROFILER_LOG_FILE, or to the system's log (syslog_lines.h).
 *
 * A program's stderr may be mailed (cron), compared (tests), or parsed (man, dovecot). So there is
 * one rule for the level of a line:
 *   error  nothing is profiled or sent, because of a fault in the installation
 *   warn   a setting is wrong, or profiles do not arrive where a setting sends them, or are refused
 *   info   such a condition is over
 *   debug  all else: facts about the program, refusals by the machine or a sandbox, excluded
 *          programs, losses that are counted
 * An operator must know of the first three levels and can act on them. These levels are on by
 * default, and one process of a tree logs them: log_level_in_tree(). A log file is meant to be
 * read: if OTEL_LOG_LEVEL is not set, the file gets all lines, except those of excluded programs.
 *
 * Each line is formatted into a buffer on the stack and leaves in one write(2): no stdio, no
 * locale, no malloc. The state is one struct that the caller owns (the helper gets it through
 * capture_api), so no variable here is global.
 */
#ifndef OTELPROF_LOG_H
#define OTELPROF_LOG_H

#include "config.h"
#include "file_identity.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct log {
    _Atomic enum log_level level;
    /* "": stderr; the file is opened, written and closed for each line */
    const char *file;
    struct syslog_lines *syslog; /* not NULL: lines go there instead */
    /* stderr of the start; lines are written only while stderr is that file */
    struct file_identity standard_error;
    /* The thread with a descriptor table of its own (descriptors.h); 0: none. */
    _Atomic pid_t separate_thread;
    /* Filters of system calls that kill an application's thread that logs. Other than 0: only the
     * helper logs. */
    _Atomic uint32_t helper_only;
    /* Bits of enum log_topic that were logged by this process, or by those that it was forked from
     * or has forked. NULL: no bits are kept, and every line is logged. */
    _Atomic uint32_t *_Atomic logged;
};

enum log_topic {
    /* Profiles do not arrive. Programs that this process starts can see that it has logged this
     * topic. */
    LOG_AWAY,
    LOG_REFUSED,
    LOG_UNWRITTEN,
    LOG_UNSENT = LOG_UNWRITTEN, /* the last of the topics that may end and be logged again */
    LOG_PARTLY,
    LOG_CLAIMED,
    LOG_HEADERS,
    LOG_INSTALLATION,
    LOG_UNFINISHED,
    LOG_DECLARED,
    LOG_CONTROLLED,
};

/* Initialises the log, and records which file stderr is. `file`, which the log keeps: a path, or ""
 * for stderr. Context: calm. */
void log_init(struct log *log, enum log_level level, const char *file);

/* Sends lines of other threads to the system's log, if lines go there. Context: the helper. */
void log_send_waiting(const struct log *log);

/* Forgets the parent's lines that wait for the system's log. Context: fork handler. */
void log_forget_waiting(const struct log *log);

/* Writes one line if `level` is enabled; lines over 1 KiB are cut. errno is preserved. Understands
 * only the conversions %s %d %u %ld %lu %lld %llu %zu %x %lx %p %c %% and %.*s (it has its own
 * formatter: vsnprintf may allocate and read the locale). Texts are made printable as in
 * shown_text.h, so that any text stays within its line. Context: any but never in the handler of a
 * sample or in a malloc hook: these count their losses, and calm code logs the counts. */
void log_write(const struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns `level` if the topic is reported for the first time in a tree of processes, and LOG_DEBUG
 * if it was reported before. The tree consists of processes that were forked from each other; for
 * topics up to LOG_UNSENT also of their descendants (process_tree.h), and the first report of these
 * topics renames the calling thread (helper_name.h). Context: for topics up to LOG_UNSENT the
 * helper; for others any, async-signal-safe. */
enum log_level log_level_in_tree(const struct log *log, enum log_topic topic, enum log_level level);

/* Ends a topic up to LOG_UNSENT, so that it may be logged again, and gives the calling thread the
 * name HELPER_NAME again. Context: the helper. */
void log_forget(const struct log *log, enum log_topic topic);

/* Returns whether the calling thread has its own descriptor table (descriptors.h). Context: any. */
bool log_thread_is_separate(const struct log *log);

/* Returns a descriptor of the stderr that the process started with. Returns -1 if there was none,
 * if the process's descriptor 2 is another file by now, or if it cannot be borrowed. The caller
 * closes the descriptor with log_close_stderr(). Context: any. */
int log_open_stderr(const struct log *log);
void log_close_stderr(int descriptor);

#define log_error(log, ...) log_write((log), LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...)  log_write((log), LOG_WARN, __VA_ARGS__)
#define log_info(log, ...)  log_write((log), LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_write((log), LOG_DEBUG, __VA_ARGS__)

#endif
