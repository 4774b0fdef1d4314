/* One-line log messages, "libotelprof[PID] warn: ...", to the stderr that the process started with
 * or to OTEL_PROFILER_LOG_FILE.
 *
 * Each line is formatted into a buffer on the stack and leaves in one write(2): no stdio, no
 * locale, no malloc. The state is one struct that its world owns (the helper gets it through
 * capture_api), so nothing here is global.
 */
#ifndef OTELPROF_LOG_H
#define OTELPROF_LOG_H

#include "config.h"
#include "file_identity.h"

#include <stdarg.h>
#include <stdbool.h>
#include <sys/types.h>

struct log {
    enum log_level level;
    const char *file;                    /* "" = stderr; opened, written and closed for each line */
    struct file_identity standard_error; /* at start; lines go there only while it is the same */
    _Atomic pid_t
        separate_thread; /* whose descriptors are not the program's (descriptors.h); or 0 */
};

/* Remembers which file stderr is. Context: calm. */
void log_init(struct log *log, enum log_level level, const char *file);

/* Writes one line if `level` is enabled; lines over 1 KiB are cut. errno is preserved. Understands
 * the conversions %s %d %u %ld %lu %lld %llu %zu %x %lx %p %c %% and %.*s only (a formatter of our
 * own: vsnprintf may allocate and read the locale). Texts are shown as shown_text.h has it: whoever
 * wrote them, they stay within their line. Context: any but never in a signal handler or
 * malloc hook, which count and leave the telling to calm code. */
void log_write(const struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether the calling thread has descriptors of its own (descriptors.h). Context: any. */
bool log_thread_is_separate(const struct log *log);

/* A descriptor of the stderr that the process started with; -1 if its descriptor 2 is another file
 * by now. Give it back with log_close_stderr(). Context: any. */
int log_open_stderr(const struct log *log);
void log_close_stderr(int descriptor);

#define log_error(log, ...) log_write((log), LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...)  log_write((log), LOG_WARN, __VA_ARGS__)
#define log_info(log, ...)  log_write((log), LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_write((log), LOG_DEBUG, __VA_ARGS__)

#endif
